"""Results as data: files are continued and refuse what does not belong to them; pages are what the files say."""

import argparse
import ast
import json
from pathlib import Path
from statistics import mean, stdev

import pytest
import report
import results
from results import Results
from summary import summary

BENCH = Path(report.__file__).parent
SCRIPTS = sorted(path for path in BENCH.glob("*.py") if "def main()" in path.read_text() and path.name != "report.py")
KEPT = sorted((BENCH / "results").glob("*.json"))


def opened(path, seeds=(0, 1), **settings):
    args = argparse.Namespace(seeds=list(seeds), effort=1.0, out=path, tables=["a"], **settings)
    return Results.open("toy", args, "A toy", ("table", "method"), ("score",))


def test_means_spreads_and_paired_differences():
    ours, theirs = [1.25, 2.5, 3.0], [2.0, 2.75, 4.5]
    scores = [
        {"table": "a", "method": method, "seed": seed, "score": value}
        for method, values in (("anyorder", ours), ("other", theirs))
        for seed, value in enumerate(values)
    ]
    headings, rows = summary({"keys": ["table", "method"], "compare": ["score"], "scores": scores})
    assert headings == ["table", "method", "score", "score, - anyorder", "seeds"]
    apart = [b - a for a, b in zip(ours, theirs, strict=True)]
    assert rows[0] == ["a", "anyorder", f"{mean(ours):.2f} ± {stdev(ours):.2f}", "", "3"]
    assert rows[1][2:4] == [f"{mean(theirs):.2f} ± {stdev(theirs):.2f}", f"{mean(apart):+.2f} ± {stdev(apart) / 3**0.5:.2f}"]


def test_differences_are_of_the_same_seeds_only():
    scores = [{"method": "anyorder", "seed": seed, "score": value} for seed, value in ((0, 1.0), (1, 100.0))]
    scores.append({"method": "other", "seed": 0, "score": 1.5})
    rows = summary({"keys": ["method"], "compare": ["score"], "scores": scores})[1]
    assert rows[1][2] == "+0.5"


def test_words_and_gaps_stay():
    scores = [{"method": "other", "seed": 0, "failed": "timeout"}, {"method": "anyorder", "seed": 0, "score": [0.25, 0.01]}]
    headings, rows = summary({"keys": ["method"], "scores": scores})
    assert headings == ["method", "failed", "score"]
    assert rows == [["other", "timeout", ""], ["anyorder", "", "0.25 ± 0.01"]]


def test_a_run_is_continued(tmp_path):
    path = tmp_path / "toy.json"
    opened(path, seeds=[0]).add({"score": 1.0}, table="a", method="anyorder", seed=0)
    again = opened(path, seeds=[1])
    assert again.has(table="a", method="anyorder", seed=0)
    assert not again.has(table="a", method="anyorder", seed=1)
    again.add({"score": 3.0}, table="a", method="anyorder", seed=1)
    again.add({"score": 2.0}, table="a", method="anyorder", seed=0)  # measured again: in place of the first
    document = json.loads(path.read_text())
    assert document["seeds"] == [0, 1]
    assert [record["score"] for record in document["scores"]] == [2.0, 3.0]
    assert {"command", "commit", "date", "machine", "settings"} <= document.keys()


def test_other_settings_and_other_sources_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "toy.json"
    opened(path, draws=20).add({"score": 1.0}, table="a", method="anyorder", seed=0)
    with pytest.raises(SystemExit, match="holds results of other settings"):
        opened(path, draws=5)
    monkeypatch.setattr(results, "sources", lambda: "changed")
    with pytest.raises(SystemExit, match="holds results of other sources"):
        opened(path, draws=20)


def test_report_and_development_do_not_mix(tmp_path):
    with pytest.raises(SystemExit, match="one file holds one kind"):
        opened(tmp_path / "toy.json", seeds=[0, 1000])
    assert opened(None, seeds=[1000]).path.name == "toy.json"
    assert opened(None, seeds=[3]).path.name == "toy_development.json"


def test_spans_of_seeds():
    assert results.span("1000-1003") == [1000, 1001, 1002, 1003]
    args = results.flags("", ["a"]).parse_args(["--data", "a", "--seeds", "1", "4-6"])
    assert (args.seeds, args.tables, args.effort) == ([1, 4, 5, 6], ["a"], 1.0)
    assert report.spans([1000, 1001, 1002, 1007]) == "1000-1002, 1007"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_every_benchmark_has_the_same_flags_and_keeps_its_results(path):
    called = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert {"flags", "Results.open"} <= called


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_every_file_of_results_says_how_it_was_made(path):
    document = json.loads(path.read_text())
    assert document["name"] == path.stem
    for what in ("title", "protocol", "command", "commit", "date", "machine", "seeds", "keys", "scores"):
        assert document[what] or what == "seeds", what
    for record in document["scores"]:
        assert set(document["keys"]) <= record.keys()
    told = [{name: record.get(name) for name in (*document["keys"], "seed")} for record in document["scores"]]
    assert len({json.dumps(key) for key in told}) == len(told)
    if document["protocol"] == "report":
        assert min(document["seeds"]) >= results.REPORT_SEEDS
    shown = {section.file for page in report.PAGES.values() for section in page.sections}
    assert path.stem in shown, "no page shows it"


@pytest.mark.parametrize(("path", "text"), report.made().items(), ids=lambda one: one.name if isinstance(one, Path) else "")
def test_pages_are_what_the_results_say(path, text):
    assert path.read_text() == text, "run python bench/report.py"
