"""Units of a data set: which files are meant, and that every row of a file is in one unit, whatever stands in its cells."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import FormatError, InputError
from anyorder.io.units import File, files_of, is_pattern, lines, row_groups_of, units_of

PARQUET = (".parquet", ".csv")


@pytest.fixture
def folder(tmp_path):
    for name in (
        "b.parquet",
        "a.parquet",
        "deep/er/c.parquet",
        ".hidden.parquet",
        "_SUCCESS",
        "notes.txt",
        "_tmp/d.parquet",
        "e.csv.gz",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_folder_a_pattern_and_a_file(folder):
    names = lambda path: [file.name for file in files_of(path, PARQUET)]  # noqa: E731
    assert names(folder) == ["a.parquet", "b.parquet", "deep/er/c.parquet", "e.csv.gz"]
    assert names(folder / "*.parquet") == ["a.parquet", "b.parquet"]
    assert names(folder / "**" / "*.parquet") == ["a.parquet", "b.parquet", "deep/er/c.parquet"]
    assert names(folder / "deep" / "*" / "c.parquet") == ["er/c.parquet"]
    assert names(folder / "b.parquet") == ["b.parquet"]
    assert is_pattern(folder / "[ab].parquet")
    (folder / "[ab].parquet").touch()
    assert not is_pattern(folder / "[ab].parquet")  # somebody called a file so


def test_what_is_not_there_is_said(folder):
    with pytest.raises(InputError, match="There is no file"):
        files_of(folder / "z*.parquet", PARQUET)
    with pytest.raises(InputError, match=r"No data in .* Expected names that end with"):
        files_of(folder / "*.txt", PARQUET)
    with pytest.raises(FormatError, match=r"a\.parquet is damaged or no Parquet file"):
        row_groups_of(File(folder / "a.parquet", "a.parquet"))


CELL = st.text(alphabet='ab",\n ', max_size=6)


@given(st.lists(st.tuples(CELL, CELL), max_size=12), st.integers(1, 5))
def test_chunks_hold_every_row_once(tmp_path_factory, rows, size):
    """The oracle: the csv module on the whole file. Line breaks and quote marks may stand in any cell."""
    place = tmp_path_factory.mktemp("chunks") / "x.csv"
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("p", "q"), *rows])
    place.write_text(text.getvalue(), newline="")
    units = units_of(File(place, "x.csv"), size)
    if len(units) == 1:
        assert len(rows) <= size
        return
    found = [list(csv.reader(io.StringIO(lines(unit).decode(), newline=""))) for unit in units]
    assert all(part[0] == ["p", "q"] for part in found)
    assert [row for part in found for row in part[1:]] == [list(row) for row in rows]
    assert [unit.rows for unit in units] == [len(part) - 1 for part in found]
    assert [unit.first for unit in units] == [sum(len(part) - 1 for part in found[:k]) for k in range(len(found))]


def test_empty_lines_are_no_rows(tmp_path):
    (tmp_path / "x.csv").write_text("p\n1\n\n2\n\n\n3\n")
    units = units_of(File(tmp_path / "x.csv", "x.csv"), 1)
    assert [unit.rows for unit in units] == [1, 1, 1]
    assert [unit.first for unit in units] == [0, 1, 2]
