"""Every command on a small table: what it prints, what it writes, and the same as one JSON document."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from anyorder.estimator import AnyOrder


def document(result):
    """The one JSON document on standard output."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def read(source):
    return pd.read_csv(source, dtype={"zip": str})


def test_fit_says_what_it_found(run, people, tmp_path):
    result = run("fit", people, "-o", tmp_path / "m.ao", "--effort", "0.01", "--kind", "age=category", "--kind", "zip=leave out")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert any(line.split()[:3] == ["city", "category", "3:"] for line in lines)
    assert any(line.split()[:2] == ["age", "category"] for line in lines)
    assert any("income" in line and "recorded to 0.1" in line for line in lines)
    assert any("joined" in line and "date" in line and "recorded to the day" in line for line in lines)
    assert "  zip: was asked to be left out" in lines
    assert "  name: has 200 different values in 200 rows: an identifier or free text" in lines
    assert "5 in the model, 2 left out" in result.stdout
    assert "nats a row" in result.stdout
    assert max(len(line) for line in lines if not line.startswith("  file")) <= 80
    assert "training" in result.stderr


def test_fit_in_json(run, people, tmp_path):
    found = document(run("fit", people, "-o", tmp_path / "m.ao", "--effort", "0.01", "--without-rows", "--json"))
    assert found["rows"] == 200
    assert [column["name"] for column in found["columns"]] == ["city", "income", "age", "member", "joined", "zip"]
    assert [column["kind"] for column in found["columns"]] == [
        "category",
        "number",
        "whole number",
        "category",
        "date",
        "category",
    ]
    assert found["columns"][3]["levels"] == [False, True]
    assert found["columns"][4]["precision"] == 86400
    assert list(found["left_out"]) == ["name"]
    assert found["keeps_rows"] == 0
    assert found["bytes"] == (tmp_path / "m.ao").stat().st_size
    assert np.isfinite([found["held_out_nats"], found["seconds"]]).all()


def test_fit_reads_standard_input_and_the_seed_matters(run, people, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fitted = run("fit", "-", "-o", tmp_path / name, "--effort", "0.01", "--seed", seed, "--json", input=people.read_text())
        assert document(fitted)["rows"] == 200
    weights = [(tmp_path / name).read_bytes() for name in "abc"]
    assert weights[0] == weights[1] != weights[2]


def test_ask_for_a_category(run, model):
    result = run("ask", model, "city | income=20.5, member=true")
    lines = result.stdout.splitlines()
    assert lines[0] == "city given income=20.5, member=true"
    assert len(lines) == 7
    assert all("%" in line and "█" in line for line in lines[1:4])
    assert "of the training rows match" in lines[4]
    assert lines[5].startswith("  moved by ")
    assert "income" in lines[5]
    assert "member" in lines[5]
    found = document(run("ask", model, "city | income=20.5, member=true", "--json"))
    distribution = found["answers"][0]["probabilities"]
    assert sum(item["probability"] for item in distribution) == pytest.approx(1, abs=1e-4)
    assert [item["probability"] for item in distribution] == sorted((item["probability"] for item in distribution), reverse=True)
    expected = AnyOrder.load(model).conditional({"income": 20.5, "member": True}, "city").pmf()
    assert {item["value"]: item["probability"] for item in distribution} == pytest.approx(expected, abs=1e-5)


def test_ask_for_a_number(run, model):
    result = run("ask", model, 'income | city="Washington, D.C."')
    assert result.stdout.startswith('income given city="Washington, D.C."\n')
    assert all(word in result.stdout for word in ("median", "mean", "90 %", "█", " .. "))
    found = document(run("ask", model, "income | city=Rome", "--json"))["answers"][0]
    answer = AnyOrder.load(model).conditional({"city": "Rome"}, "income")
    assert found["median"] == answer.quantile(0.5)
    assert found["mean"] == answer.mean()
    assert [found["interval"]["low"], found["interval"]["high"]] == list(answer.interval(0.9))
    assert sum(item["probability"] for item in found["bins"]) == pytest.approx(1, abs=0.02)


def test_ask_for_a_date(run, model):
    found = document(run("ask", model, "joined | age=30", "--json"))["answers"][0]
    assert pd.Timestamp(found["median"]).year in range(2018, 2025)
    assert len(found["median"]) == len("2020-01-01")
    assert run("ask", model, "age | joined=2021-02-03").exit_code == 0


def test_ask_for_several_columns_says_that_they_are_not_joint(run, model):
    result = run("ask", model, "income, age | city=Oslo")
    assert "income given city=Oslo" in result.stdout
    assert "age given city=Oslo" in result.stdout
    assert "distribution of one column alone" in result.stdout


def test_ask_for_the_probability_of_a_value(run, model):
    ask = lambda question: document(run("ask", model, question, "--json"))["answers"][0]["probability"]  # noqa: E731
    answer = AnyOrder.load(model).conditional({"city": "Rome"}, "age")
    assert ask("age=39 | city=Rome") == pytest.approx(answer.prob(39))
    whole = ask("age=30..39 | city=Rome")
    assert whole == pytest.approx(sum(ask(f"age={year} | city=Rome") for year in range(30, 40)), abs=1e-4)
    assert whole + ask("age=..29 | city=Rome") + ask("age=40.. | city=Rome") == pytest.approx(1, abs=1e-4)
    assert ask("city in (Oslo, Rome)") == pytest.approx(ask("city=Oslo") + ask("city=Rome"), abs=1e-5)
    printed = run("ask", model, "age=39 | city=Rome").stdout
    assert "age=39 given city=Rome" in printed
    assert "recorded to 1" in printed


def test_evidence_may_be_a_range_or_a_set(run, model):
    found = document(run("ask", model, "income | age=30..40, city in (Oslo, Rome), joined=2020-06-01..", "--json"))
    assert found["given"] == ["age=30..40", "city in (Oslo, Rome)", "joined=2020-06-01.."]


def test_impute_writes_the_best_guess_and_changes_nothing_else(run, model, gaps):
    full = gaps.with_name("full.csv")
    result = run("impute", model, gaps, "-o", full)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert result.stderr == f"anyorder: wrote 12 rows to {full}, 12 gaps filled\n"
    before, after = read(gaps), read(full)
    assert not after.isna().any().any()
    pd.testing.assert_frame_equal(after.where(before.notna()), before, check_dtype=False)
    assert after["age"].dtype == "int64"  # no 39.0 beside 39
    assert after["joined"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    assert read(io.StringIO(run("impute", model, gaps).stdout)).equals(after)


def test_impute_writes_draws_one_below_the_other(run, model, gaps):
    out = gaps.with_name("draws.parquet")
    found = document(run("impute", model, gaps, "-o", out, "--draws", 3, "--json"))
    assert found == {
        "rows": 12,
        "gaps": 12,
        "columns": dict.fromkeys(["city", "income", "age", "member", "joined", "zip"], 2),
        "draws": 3,
        "written": str(out),
    }
    drawn = pd.read_parquet(out)
    assert drawn.columns.tolist() == ["draw", *read(gaps).columns]
    assert drawn["draw"].tolist() == [0] * 12 + [1] * 12 + [2] * 12
    assert not drawn.isna().any().any()
    assert drawn.loc[drawn["draw"] == 0, "income"].tolist() != drawn.loc[drawn["draw"] == 1, "income"].tolist()
    again = [run("impute", model, gaps, "--draws", 2, "--seed", seed).stdout for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_impute_adds_intervals_for_the_gaps_of_numbers(run, model, gaps):
    before = read(gaps)
    wide, narrow = (read(io.StringIO(run("impute", model, gaps, "--intervals", "--level", level).stdout)) for level in (0.9, 0.2))
    assert wide.columns.tolist()[:5] == ["city", "income", "income_low", "income_high", "age"]
    assert "city_low" not in wide
    assert (wide["income_low"].notna() == before["income"].isna()).all()
    filled = before["income"].isna()
    assert (wide["income_low"] <= narrow["income_low"])[filled].all()
    assert (wide["income_low"] < wide["income_high"])[filled].all()
    assert (wide["joined_low"].dropna() < wide["joined_high"].dropna()).all()
    rows = document(run("impute", model, gaps, "--intervals", "--json"))["table"]
    assert [row["joined_low"] for row in rows] == wide["joined_low"].astype(object).where(
        wide["joined_low"].notna(), None
    ).tolist()
    assert [row["age"] for row in rows] == wide["age"].tolist()


def test_a_column_of_gaps_alone_is_filled(run, model, gaps):
    table = read(gaps)
    table[["city", "income", "age", "member", "joined", "zip"]] = np.nan
    table["age"] = pd.array([30, *[None] * 11], dtype="Int64")
    filled = read(io.StringIO(run("impute", model, "-", input=table.to_csv(index=False)).stdout))
    assert not filled.isna().any().any()
    assert set(filled["city"]) <= {"Oslo", "Rome", "Washington, D.C."}
    assert filled["age"].dtype == "int64"


def test_values_never_seen_stay_and_are_reported(run, model, gaps):
    table = read(gaps).assign(city="Atlantis")
    result = run("impute", model, "-", input=table.to_csv(index=False))
    assert (read(io.StringIO(result.stdout))["city"] == "Atlantis").all()
    assert result.stderr == "anyorder: note: Column 'city' has values not seen in fit, taken as gaps: 'Atlantis'.\n"


def test_a_column_that_is_not_in_the_table_is_not_filled_but_named(run, model, gaps):
    result = run("impute", model, "-", input=read(gaps).drop(columns=["income", "name"]).to_csv(index=False))
    assert "income" not in result.stdout
    assert result.stderr == "anyorder: note: The table lacks income; add a column as empty cells to have it filled.\n"


def test_text_that_looks_like_numbers_stays_text(run, model):
    scored = document(run("score", model, "-", "--target", "zip", "--json", input="zip\n1\n2\n1\n"))
    assert all(value < 0 for value in scored["log_prob"])


def test_sample(run, model, tmp_path):
    result = run("sample", model, "-n", 20, "--given", "city=Oslo", "--given", "age=30..40")
    assert result.exit_code == 0, result.stderr
    drawn = read(io.StringIO(result.stdout))
    assert (drawn["city"] == "Oslo").all()
    assert drawn["age"].between(30, 40).all()
    assert drawn.columns.tolist() == ["city", "income", "age", "member", "joined", "zip"]
    assert drawn["joined"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    found = document(run("sample", model, "-n", 20, "--given", "city=Oslo, age=30..40", "--json"))
    assert found["given"] == ["city=Oslo", "age=30..40"]
    assert [row["income"] for row in found["table"]] == drawn["income"].tolist()
    assert isinstance(found["table"][0]["member"], bool)
    written = document(run("sample", model, "-n", 5, "-o", tmp_path / "new.tsv.gz", "--seed", 3, "--json"))
    assert written == {"rows": 5, "given": [], "written": str(tmp_path / "new.tsv.gz")}
    assert len(pd.read_csv(tmp_path / "new.tsv.gz", sep="\t")) == 5


def test_score(run, model, gaps):
    found = document(run("score", model, gaps, "--target", "income,age", "--given", "city", "--json"))
    table = pd.read_csv(gaps, dtype={"zip": str}, parse_dates=["joined"])
    expected = AnyOrder.load(model).score_samples(table, ["income", "age"], ["city"])
    assert found["log_prob"] == pytest.approx(expected)
    assert found["mean"] == pytest.approx(expected.mean())
    assert found["lowest"][0] == {"row": int(expected.argmin()) + 1, "log_prob": pytest.approx(expected.min())}
    assert found["rows_with_gaps"] == 4
    result = run("score", model, gaps, "-o", gaps.with_name("scores.csv"))
    assert result.stdout.startswith("log p(all columns), nats a row\n")
    assert "rows have gaps in the target; a gap is not scored" in result.stdout
    scores = pd.read_csv(gaps.with_name("scores.csv"))
    assert scores["row"].tolist() == list(range(1, 13))
    assert scores["log_prob"].to_numpy() == pytest.approx(AnyOrder.load(model).score_samples(table))


def test_anomalies_name_the_cell(run, model, people, tmp_path):
    table = read(people).dropna().head(20)
    table.iloc[7, table.columns.get_loc("age")] = 4000
    table.iloc[7, table.columns.get_loc("zip")] = "nowhere"
    table.to_csv(tmp_path / "odd.csv", index=False)
    lines = run("anomalies", model, tmp_path / "odd.csv", "--top", 2).stdout.splitlines()
    assert lines[0].endswith("of 120 cells have a chance below 0.001")
    assert lines[1] == "  without errors about 0.12 would; rows are counted from 1"
    assert lines[3].split()[:4] == ["8", "zip", "nowhere", "never"]
    assert "never seen in training; " in lines[3]
    assert lines[4].split()[:3] == ["8", "age", "4000"]
    assert "beyond all values seen" in lines[4]
    found = document(run("anomalies", model, tmp_path / "odd.csv", "--top", 3, "--threshold", 1, "--json"))
    assert [found["rows"], found["cells"], found["odd"], len(found["top"])] == [20, 120, 120, 3]
    assert [(cell["row"], cell["column"]) for cell in found["top"][:2]] == [(8, "zip"), (8, "age")]
    cell = found["top"][1]
    assert cell["low"] <= cell["expected"] <= cell["high"] < cell["value"] == 4000


def test_report_says_how_good_the_model_is(run, model, people, tmp_path):
    read(people).head(20).to_csv(tmp_path / "seen.csv", index=False)
    result = run("report", model, tmp_path / "seen.csv", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("6 columns on 20 held-out rows: ")
    assert "100.0 % of these rows were trained on: what is found is too good." in result.stdout
    assert f"written to {tmp_path / 'r.html'}" in result.stdout
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    refused = run("report", model, tmp_path / "seen.csv", "-o", tmp_path / "r.csv")
    assert refused.stderr == "anyorder: The report is written as HTML: name it r.html, not r.csv.\n"


def test_info(run, model):
    result = run("info", model)
    assert "income" in result.stdout
    assert "name: has 200 different values" in result.stdout
    found = document(run("info", model, "--json"))
    assert found["bytes"] == model.stat().st_size
    assert found["keeps_rows"] == AnyOrder.load(model).keeps_rows_
    assert found["columns"][0] == {"name": "city", "kind": "category", "levels": ["Oslo", "Rome", "Washington, D.C."]}
