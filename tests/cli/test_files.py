"""Tables in files: what is written is read back, every fault is named, and a failed write leaves what was there."""

import datetime as dt
import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anyorder.errors import FormatError, InputError
from anyorder.modalities.tables.table_files import check_output, read_table, write_table

TABLE = pd.DataFrame(
    {
        "text": ["Oslo", "a, b", 'say "hi"', "new\nline", "Ærø"],
        "whole": pd.array([1, 2, None, 4, 2**53 - 1], dtype="Int64"),
        "decimal": [0.1, 0.1 + 0.2, np.nan, -1e300, 5e-324],
        "yes": [True, False, True, True, False],
        "day": pd.to_datetime(["2020-02-29", None, "1900-01-01", "2020-01-01", "2100-12-31"]).astype("datetime64[us]"),
        "instant": pd.to_datetime(["2020-02-29 12:30:01.5", None] + ["2021-01-01 00:00:00"] * 3, format="ISO8601").astype(
            "datetime64[us]"
        ),
    }
)


@pytest.mark.parametrize(
    "suffix", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".parquet.gz", ".CSV", ".jsonl", ".ndjson.gz"]
)
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    write_table(TABLE, path)
    found = read_table(path)
    pd.testing.assert_frame_equal(found, TABLE, check_dtype=False, rtol=0, atol=0)
    assert found.dtypes.astype(str).tolist()[1:4] == ["Int64", "float64", "bool"]
    assert all("datetime64" in str(found[name].dtype) for name in ("day", "instant"))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_csv_is_read_as_a_person_means_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\ufeffcode,when,never,city\n007,2020-02-30,,NA\n1,2020-01-01,,Oslo\n\n", encoding="utf-8")
    found = read_table(path, texts=["code"])
    assert found["code"].tolist() == ["007", "1"]
    assert found["when"].tolist() == ["2020-02-30", "2020-01-01"]  # no such day: the column stays text
    assert found["never"].isna().all()
    assert found["city"].isna().tolist() == [True, False]
    assert len(found) == 2


def test_instants_with_time_zones_are_instants(tmp_path):
    """All with a zone, whichever; where some have none it stays text."""
    times = pd.to_datetime(["2024-01-04T10:00:00Z", "2024-07-04T10:00:00Z", None])
    for texts, zoned in (
        (["2024-01-04T10:00:00Z", "2024-07-04T10:00:00Z", ""], True),
        (["2024-01-04 11:00:00+01:00", "2024-07-04T12:00+0200", ""], True),
        (["2024-01-04 11:00:00+01:00", "2024-07-04T12:00", ""], False),
    ):
        (tmp_path / "t.csv").write_text("t,v\n" + "".join(f"{text},1.5\n" for text in texts))
        found = read_table(tmp_path / "t.csv")["t"]
        assert (list(found.dropna()) == list(times.dropna())) == zoned
        assert found.isna().tolist() == [False, False, True]


def test_dates_and_decimals_of_other_programs(tmp_path):
    pq.write_table(pa.table({"day": [dt.date(2020, 1, 2), None], "x": [1, None]}), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert found["day"].tolist()[0] == pd.Timestamp("2020-01-02")
    assert str(found["x"].dtype) == "Int64"


FAULTS = {
    "empty.csv": (b"", "empty.csv is empty; expected a header line and rows."),
    "header.csv": (b"a,b\n", "header.csv has a header but no rows."),
    "binary.csv": (
        b"a,b\n1,2\n\x00\xff,3\n",
        "binary.csv is not UTF-8 text: byte 0xff in line 3. Say --encoding, or save it as UTF-8",
    ),
    "long.csv": (b"a,b\n1,2\n1,2,3\n", "line 3 of long.csv has 3 cells, its header 2. Correct the line"),
    "short.csv": (b"a,b\n1,2\n1\n", "line 3 of short.csv has 1 cells, its header 2"),
    "shifted.csv": (b"a,b\n1,2,3\n4,5,6\n", "line 2 of shifted.csv has 3 cells, its header 2"),
    "quote.csv": (b'a,b\n1,2\n"3,4\n', "line 3 of quote.csv has 1 cells, its header 2"),
    "open.csv": (b'a,b\n1,2\n3,"4\n', "open.csv cannot be read as a table: .*EOF inside string"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "twice.csv has 2 columns named 'a'. Give every column its own name."),
    "ragged.csv": (b"a;b\n1;2\n1\n", "ragged.csv seems to be separated by ';': its only column would be 'a;b'. Say --sep ';'."),
    "plain.csv.gz": (b"a,b\n1,2\n", "plain.csv.gz is no whole gzip file .* Copy it again, or name it without .gz."),
    "half.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "half.csv.gz is no whole gzip file"),
    "text.parquet": (b"a,b\n1,2\n", "text.parquet is not a parquet file, or not a whole one"),
    "book.ods": (b"PK", "book.ods ends with no suffix of a table; expected .csv, .tsv, .parquet, .xlsx, .jsonl, .ndjson, each"),
    "none.jsonl": (b"\n", "none.jsonl has no rows."),
    "list.jsonl": (b'{"a": 1}\n[1, 2]\n', r"Line 2 of list.jsonl holds '\[1, 2\]'; expected one object a line, such as"),
    "half.ndjson": (b'{"a": 1}\n{"a": \n', "Line 2 of half.ndjson is no JSON .*. Expected one object a line."),
    "nested.jsonl": (b'{"a": [1]}\n', "Column 'a' of nested.jsonl holds lists or records"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_of_a_file_is_named(tmp_path, name):
    content, message = FAULTS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises((InputError, FormatError), match=message):
        read_table(tmp_path / name)


def test_cells_that_hold_lists_are_refused(tmp_path):
    pd.DataFrame({"a": [[1, 2], [3]]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"Column 'a' of t.parquet holds lists or records; a cell must be one value."):
        read_table(tmp_path / "t.parquet")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"There is no file '.*none.csv'\."):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"folder\.csv' is a folder; expected a file"):
        read_table(tmp_path / "folder.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(InputError, match=r"cannot be written to t.parquet .* Try .csv"):
        write_table(pd.DataFrame({"mixed": [1, "a"]}), tmp_path / "t.parquet")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"Cannot write '.*t.csv': No space left on device. What was there is untouched."):
        write_table(TABLE, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_keeps_mode_and_link(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_table(TABLE[["text"]], link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert read_table(real)["text"].tolist() == TABLE["text"].tolist()


def test_what_could_not_be_written_is_refused_first(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n")
    (tmp_path / "same.csv").hardlink_to(table)
    for path, message in [
        (Path("out.ods"), "out.ods ends with no suffix of a table"),
        (Path("out.ao"), r"out.ao is a name for models; name the table \*.csv"),
        (tmp_path / "none" / "t.csv", "Cannot write t.csv: its folder '.*none' does not exist. Make it first."),
        (table, "t.csv' is an input as well, and would be overwritten. Name another file."),
        (tmp_path / "same.csv", "is an input as well"),
    ]:
        with pytest.raises(InputError, match=message):
            check_output(path, table)
