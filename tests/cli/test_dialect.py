"""Text files as other programs write them, workbooks and lines of JSON: read without a word, or with one line about it."""

import builtins
import warnings
from pathlib import Path

import pandas as pd
import pytest

from anyorder.errors import FormatError, InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.table_files import Dialect, read_table, table_in, write_table

PLAIN = "name,size,zip\nZoë,1.5,01008\nAna,2.25,10001\nBob,,01008\n"
REMEDY = "If that is wrong, say --encoding, --sep or --decimal."

FILES = {
    "plain.csv": (PLAIN.encode(), None),
    "marked.csv": (PLAIN.encode("utf-8-sig"), None),
    "semicolons.csv": (
        PLAIN.replace(",", ";").replace(".", ",").encode(),
        f"semicolons.csv is read as a table separated by ';', with decimal commas. {REMEDY}",
    ),
    "tabs.csv": (PLAIN.replace(",", "\t").encode(), rf"tabs.csv is read as a table separated by '\t'. {REMEDY}"),
    "pipes.csv": (PLAIN.replace(",", "|").encode(), f"pipes.csv is read as a table separated by '|'. {REMEDY}"),
    "commas.tsv": (PLAIN.encode(), f"commas.tsv is read as a table separated by ','. {REMEDY}"),
    "latin.csv": (PLAIN.encode("cp1252"), f"latin.csv is read as a table in the encoding cp1252. {REMEDY}"),
    "wide.csv": (PLAIN.encode("utf-16"), f"wide.csv is read as a table in the encoding utf-16. {REMEDY}"),
}


@pytest.mark.parametrize("name", FILES)
def test_how_a_file_is_written_is_found_out_and_said(name):
    content, note = FILES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = table_in(content, Path(name))
    assert [str(one.message) for one in told] == ([note] if note else [])
    assert found["name"].tolist() == ["Zoë", "Ana", "Bob"]
    assert found["size"].tolist()[:2] == [1.5, 2.25]
    assert found["size"].isna().tolist() == [False, False, True]
    assert found["zip"].tolist() == ["01008", "10001", "01008"]  # codes keep their zeros


def test_what_is_said_is_not_sniffed():
    asked = Dialect(sep="semicolon", decimal=",", encoding="cp1252")
    content = PLAIN.replace(",", ";").replace(".", ",").encode("cp1252")
    found = table_in(content, Path("t.csv"), dialect=asked)
    assert found["size"].tolist()[:2] == [1.5, 2.25]
    assert found["name"][0] == "Zoë"
    found = table_in(b"a,b;c\n1,2;3\n", Path("t.csv"), dialect=Dialect(sep=","))
    assert found.columns.tolist() == ["a", "b;c"]


def test_thousands_where_the_decimal_mark_is_a_comma():
    content = b"price;share\n1.234;1,5\n2.500;2,5\n12.000;3,5\n"
    with pytest.warns(UserWarning, match="decimal commas"):
        found = table_in(content, Path("t.csv"))
    assert found["price"].tolist() == [1234, 2500, 12000]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: Dialect(sep="::"),
            "--sep '::' is not understood; expected one character, or tab, comma, semicolon, pipe or space",
        ),
        (lambda: Dialect(decimal="'"), '--decimal "\'" is not understood; expected . or a comma'),
        (lambda: table_in(b"a\n1\n", Path("t.csv"), dialect=Dialect(encoding="utf-99")), "--encoding 'utf-99' is not known"),
        (
            lambda: table_in(b"a\n\xe9\n", Path("t.csv"), dialect=Dialect(encoding="utf-8")),
            "cannot be read in the encoding utf-8",
        ),
        (
            lambda: table_in(b'{"a": 1}', Path("t.jsonl"), dialect=Dialect(sep=";")),
            "--sep is for .csv and .tsv files; t.jsonl is none",
        ),
    ],
)
def test_what_cannot_be_is_explained(act, message):
    with pytest.raises((InputError, FormatError), match=message):
        act()


def test_lines_of_json(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1, "when": "2020-01-31"}\n\n{"b": "x", "a": null, "when": "2020-02-01"}\n')
    found = read_table(tmp_path / "t.jsonl")
    assert found.columns.tolist() == ["a", "when", "b"]
    assert str(found["a"].dtype) == "Int64"
    assert found["when"].tolist() == [pd.Timestamp("2020-01-31"), pd.Timestamp("2020-02-01")]
    assert found["b"].isna().tolist() == [True, False]


def test_workbooks(tmp_path):
    pytest.importorskip("openpyxl")
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "01008"], "d": pd.to_datetime(["2020-01-31"] * 3)})
    write_table(table, tmp_path / "t.xlsx")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.xlsx"), table, check_dtype=False)
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        table.to_excel(book, sheet_name="first", index=False)
        table.to_excel(book, sheet_name="second", index=False)
    with pytest.warns(UserWarning, match=r"two\.xlsx has 2 sheets: read is 'first', not 'second'\."):
        assert len(read_table(tmp_path / "two.xlsx")) == 3
    (tmp_path / "no.xlsx").write_bytes(b"PK")
    with pytest.raises(FormatError, match=r"no\.xlsx is not an Excel workbook, or not a whole one"):
        read_table(tmp_path / "no.xlsx")


def test_workbooks_need_a_library(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("openpyxl"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(
        InputError, match=r"Reading t.xlsx needs openpyxl, which is not installed: pip install 'anyorder\[excel\]'"
    ):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(
        InputError, match=r"Writing t.xlsx needs openpyxl, which is not installed: pip install 'anyorder\[excel\]'"
    ):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.xlsx")


def test_kinds_shows_what_fit_would_do(run, tmp_path):
    (tmp_path / "t.csv").write_text("id;flag;size\n" + "".join(f"{k};{k % 2};{k},5\n" for k in range(40)))
    result = run("kinds", tmp_path / "t.csv", "--kind", "flag=number", "--na", "size=7,5")
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["column", "kind", "distinct", "gaps", "values", "why"]
    assert lines[1][:5] == ["id", "left", "out", "40", "0"]
    assert lines[2][:5] == ["flag", "whole", "number", "2", "0"]
    assert "To overrule: --kind COLUMN=category, or number or 'leave out'; --na COLUMN=999 names gaps." in result.stdout
    assert "t.csv is read as a table separated by ';', with decimal commas." in result.stderr


def test_a_file_with_decimal_commas_is_filled_in_its_own_way(run, tmp_path):
    source, full = tmp_path / "t.csv", tmp_path / "full.csv"
    cells = [f"{k % 3};{k % 17},{k % 7};{'?' if k == 4 else k % 11}" for k in range(60)]
    cells[2] = "1;;999"
    source.write_text("flag;size;count\n" + "\n".join(cells) + "\n")
    fitted = run("fit", source, "-o", tmp_path / "m.ao", "--effort", "0.01", "--na", "count=999")
    assert fitted.exit_code == 0, fitted.stderr
    assert (
        "1 cell of count is not a number: taken as a gap ('?'). If they are values, fit with --kind count=category."
        in fitted.stderr
    )
    result = run("impute", tmp_path / "m.ao", source, "-o", full)
    assert result.exit_code == 0, result.stderr
    after = [line.split(";") for line in full.read_text().splitlines()]
    before = [line.split(";") for line in source.read_text().splitlines()]
    assert [place for place in range(1, 61) if after[place] != before[place]] == [3, 5]
    assert after[3][0] == "1"
    assert float(after[3][1].replace(",", ".")) < 18
    assert "," in after[3][1]
    assert after[3][2] in map(str, range(11))
    assert after[5][2] in map(str, range(11))
    worst = run("anomalies", tmp_path / "m.ao", source, "--top", 60)
    assert worst.exit_code == 0, worst.stderr
    found = AnyOrder.load(tmp_path / "m.ao").conditional({"size": "3,5", "count": "?", "flag": "1"}, "count")
    assert found.given == {"size": "3,5", "flag": "1"}
