"""Cells of text files: those that were there keep every character, and gaps are filled with what the column may hold."""

import csv
import gzip
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyorder.modalities.tables.as_written import read_texts, style_of
from anyorder.modalities.tables.table_files import WrittenNumbers, in_bytes, read_table

CITIES = ["Oslo", " Rome ", "Washington, D.C.", 'the "Loop"', "two\nlines", "tab\there"]
GAPS = ["", "NA", "NaN", "null", "N/A", "None"]


def make_texts(rows, seed):
    """Cells as other programs write them: leading zeros, capitals, decimals that are not needed, exponents, quotes."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D")
    times = days + pd.to_timedelta(rng.integers(0, 24 * 60, rows), unit="min")
    return {
        "zip": [f"{code:05}" for code in rng.integers(1000, 1040, rows)],
        "area": rng.choice(["007", "012", "100"], rows).tolist(),
        "member": rng.choice(["TRUE", "FALSE"], rows).tolist(),
        "price": [f"{price:.2f}" for price in rng.integers(100, 300, rows) / 20],
        "count": rng.choice(["1e3", "2000", "+3", "4.0", "05"], rows).tolist(),
        "day": days.strftime("%Y-%m-%d").tolist(),
        "time": times.strftime("%Y-%m-%dT%H:%M").tolist(),
        "city": rng.choice(CITIES, rows).tolist(),
        "name": rng.choice(["Null", "null", "NA", ""], rows).tolist(),  # nothing to learn
    }


def with_gaps(table, seed=0):
    """Every kind of gap in every column of the model."""
    rng, rows = np.random.default_rng(seed), len(table["zip"])
    gaps = {name: set(rng.choice(rows, 6, replace=False).tolist()) for name in table if name != "name"}
    return {
        name: [GAPS[i % len(GAPS)] if i in gaps.get(name, ()) else cell for i, cell in enumerate(cells)]
        for name, cells in table.items()
    }


def write(table, path):
    """As a spreadsheet does, by the standard library alone."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t" if ".tsv" in path.name else ",", lineterminator="\r\n")
    writer.writerows([list(table), *zip(*table.values(), strict=True)])
    content = out.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def read(path):
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return cells_of(content.decode(), "\t" if ".tsv" in path.name else ",")


def cells_of(text, separator=","):
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


@pytest.fixture(scope="module")
def texts_model(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    write(make_texts(200, 0), path)
    result = run("fit", path, "--effort", "0.01", "--kind", "area=category")
    assert result.exit_code == 0, result.stderr
    return path.with_suffix(".ao")


FILLED = {
    "zip": r"\d{5}",
    "area": "007|012|100",
    "member": "TRUE|FALSE",
    "price": r"\d+\.\d\d",
    "count": r"\d+(\.0)?",
    "day": r"\d{4}-\d\d-\d\d",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d",
}


def check_filled(before, after):
    """The distribution: the same columns in the same order, every observed text the same, every gap of the model filled."""
    assert list(after) == list(before)
    for name, cells in before.items():
        assert len(after[name]) == len(cells)
        for old, new in zip(cells, after[name], strict=True):
            if old not in GAPS or name == "name":
                assert new == old
            else:
                assert new in CITIES if name == "city" else re.fullmatch(FILLED[name], new), (name, new)


@pytest.mark.parametrize("suffixes", [(".csv", ".csv"), (".tsv", ".tsv.gz"), (".csv.gz", ".tsv")], ids="-".join)
def test_observed_cells_keep_every_character(run, texts_model, tmp_path, suffixes):
    source, full = (tmp_path / f"{name}{suffix}" for name, suffix in zip(("gaps", "full"), suffixes, strict=True))
    write(with_gaps(make_texts(40, 1)), source)
    result = run("impute", texts_model, source, "-o", full)
    assert result.exit_code == 0, result.stderr
    check_filled(read(source), read(full))


def test_observed_cells_keep_every_character_in_draws_and_beside_intervals(run, texts_model, tmp_path):
    source = tmp_path / "gaps.csv"
    write(with_gaps(make_texts(40, 1)), source)
    before, text = read(source), source.read_bytes().decode()
    drawn = cells_of(run("impute", texts_model, "-", "--draws", 3, input=text).stdout)
    assert drawn.pop("draw") == ["0"] * 40 + ["1"] * 40 + ["2"] * 40
    for draw in range(3):
        check_filled(before, {name: cells[40 * draw :][:40] for name, cells in drawn.items()})
    wide = cells_of(run("impute", texts_model, source, "--intervals").stdout)
    added = {name: wide.pop(name) for name in list(wide) if name.endswith(("_low", "_high"))}
    check_filled(before, wide)
    assert [name for name in added if name.endswith("_low")] == ["price_low", "count_low", "day_low", "time_low"]
    for name, cells in added.items():
        assert [cell == "" for cell in cells] == [cell not in GAPS for cell in before[name.rsplit("_", 1)[0]]]


def test_texts_go_only_from_text_to_text(run, texts_model, tmp_path):
    source, table = tmp_path / "gaps.csv", tmp_path / "gaps.parquet"
    write(with_gaps(make_texts(40, 1)), source)
    assert run("impute", texts_model, source, "-o", tmp_path / "full.parquet").exit_code == 0
    assert pd.read_parquet(tmp_path / "full.parquet").dtypes.astype(str).tolist()[2:4] == ["bool", "float64"]
    assert set(pd.read_parquet(tmp_path / "full.parquet")["area"]) == {"007", "012", "100"}
    read_table(source).to_parquet(table)
    assert run("impute", texts_model, table, "-o", tmp_path / "full.csv").exit_code == 0
    assert set(read(tmp_path / "full.csv")["member"]) == {"True", "False"}


def test_a_value_never_seen_keeps_its_text(run, texts_model):
    table = with_gaps(make_texts(40, 1)) | {"area": ["0099", "", *["007"] * 38]}
    out = io.StringIO()
    csv.writer(out).writerows([list(table), *zip(*table.values(), strict=True)])
    found = cells_of(run("impute", texts_model, "-", input=out.getvalue()).stdout)["area"]
    assert found[0] == "0099"
    assert found[1] in ("007", "012", "100")


@pytest.mark.parametrize(("name", "separator"), [("t.csv", ","), ("t.tsv", "\t")])
def test_texts_are_written_as_they_are_read(name, separator):
    cells = ["a,b", "a\tb", 'say "hi"', '"', "'", "two\nlines", "\r", "\r\n", " ", "", "NA", "\\", "\\n", "Ærø", "#", "00"]
    frame = pd.DataFrame({"cell": cells, "place": [f"{i:03}" for i in range(len(cells))]})
    assert read_texts(in_bytes(frame, Path(name)), WrittenNumbers("utf-8-sig", separator, ".")).to_dict("list") == frame.to_dict(
        "list"
    )


@pytest.mark.parametrize(
    ("column", "plain", "wanted"),
    [
        (["TRUE"], "False", "FALSE"),
        (["true", "false"], "True", "true"),
        (["True", "FALSE"], "True", "True"),
        (["01008", "20000"], "1009", "01009"),
        (["01008", "20000"], "1009.5", "1009.5"),
        (["1008", "2000"], "99", "99"),
        (["01008", "200"], "99", "99"),
        (["1.50", "-12.25"], "3.0", "3.00"),
        (["1.50", "-12.25"], "3.125", "3.125"),
        (["10.0", "20.0"], "15", "15.0"),
        (["1.50", "2"], "3.0", "3.0"),
        (["1e3"], "2000", "2000"),
        (["2020-01-01"], "2020-01-02 00:00:00", "2020-01-02"),
        (["2020-01-01"], "2020-01-02 10:00:00", "2020-01-02 10:00:00"),
        (["2020-01-01T10:30"], "2020-01-02", "2020-01-02T00:00"),
        (["2020-01-01T10:30"], "2020-01-02 10:00:01", "2020-01-02T10:00:01"),
        (["2020-01-01 10:30:00.5"], "2020-01-02 00:00:00", "2020-01-02 00:00:00"),
        ([], "1.5", "1.5"),
    ],
)
def test_what_is_filled_in_is_written_like_the_rest(column, plain, wanted):
    assert style_of(column)(plain) == wanted
