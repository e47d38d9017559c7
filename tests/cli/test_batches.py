"""Commands on many files: the same options, a folder for the outputs, one line for what is wrong."""

import json

import pandas as pd
import pytest


@pytest.fixture
def folder(tmp_path, gaps):
    (tmp_path / "in").mkdir()
    table = pd.read_csv(gaps, dtype={"zip": str})
    for name in ("a", "b", "c"):
        table.to_csv(tmp_path / "in" / f"{name}.csv", index=False)
    return tmp_path


def test_impute_a_pattern_into_a_folder(run, model, folder):
    command = ["impute", model, folder / "in" / "*.csv", "-o", folder / "out"]
    first = run(*command, "--shard", "2/3")
    assert first.exit_code == 0, first.stderr
    assert "1 files (12 rows)" in first.stdout
    assert "MB a worker (1)" in first.stdout
    found = json.loads(run(*command, "--json").stdout)
    assert (found["files"], found["skipped"], found["rows"], found["failed"]) == (2, 1, 24, [])
    alone = run("impute", model, folder / "in" / "a.csv", "-o", folder / "alone.csv")
    assert alone.exit_code == 0
    assert (folder / "out" / "a.csv").read_text() == (folder / "alone.csv").read_text()


def test_score_and_anomalies(run, model, folder):
    result = run("score", model, folder / "in", "-o", folder / "scores", "--target", "city")
    assert result.exit_code == 0, result.stderr
    assert list(pd.read_csv(folder / "scores" / "b.csv")) == ["row", "log_prob"]
    result = run("anomalies", model, folder / "in", "-o", folder / "odd", "--threshold", "1")
    assert result.exit_code == 0, result.stderr
    assert list(pd.read_csv(folder / "odd" / "b.csv"))[:3] == ["row", "column", "value"]


def test_sample_into_a_folder(run, model, tmp_path):
    result = run("sample", model, "-n", 30, "-o", tmp_path / "new", "--workers", 1, "--given", "city=Rome")
    assert result.exit_code == 0, result.stderr
    assert set(pd.read_parquet(tmp_path / "new" / "part-00000.parquet")["city"]) == {"Rome"}


def test_one_line_for_what_is_wrong(run, model, folder):
    (folder / "in" / "b.csv").write_text("nothing,of\nthe,kind\n")
    for arguments, message in (
        (["-o", folder / "out"], "b.csv"),
        (["-o", folder / "out", "--shard", "9"], "--shard '9'"),
        (["-o", folder / "out", "--engine", "slurm"], "--engine 'slurm'"),
        (["-o", folder / "out.csv"], "name one, as in -o out/"),
        (["-o", folder / "other", "--intervals"], "--intervals is for one table"),
        ([], "name one, as in -o out/"),
    ):
        result = run("impute", model, folder / "in" / "*.csv", *arguments)
        assert result.exit_code == 1
        lines = [line for line in result.stderr.splitlines() if not line.startswith("anyorder: note")]
        assert len(lines) == 1
        assert message in lines[0]
    assert sorted(one.name for one in (folder / "out").iterdir()) == ["_anyorder.json", "a.csv", "c.csv"]


def test_compress_many_files(run, people, folder, tmp_path):
    fitted = run("fit", people, "-o", tmp_path / "c.ao", "--effort", "0.01", "--codec")
    assert fitted.exit_code == 0, fitted.stderr
    result = run("compress", tmp_path / "c.ao", folder / "in" / "*.csv", "-o", folder / "archives")
    assert result.exit_code == 0, result.stderr
    back = run("decompress", folder / "archives" / "a.csv.aoz", "-o", folder / "a.csv", "--model", tmp_path / "c.ao")
    assert back.exit_code == 0, back.stderr
    assert (folder / "a.csv").read_bytes() == (folder / "in" / "a.csv").read_bytes()


def test_fit_a_pattern(run, folder, tmp_path):
    result = run("fit", folder / "in" / "*.csv", "-o", tmp_path / "m.ao", "--effort", "0.01", "--stream", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == 36
    result = run("fit", folder / "in" / "*.csv")
    assert result.exit_code == 2
    assert "name the model with -o" in result.stderr
