"""`ask-next`: a conversation about one record, typed by a test."""

import json

import pytest


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("name,cost,group\ncity,5,\nage,1,form\nmember,1,form\nzip,1,\n")
    return path


def test_it_proposes_reads_and_shows_the_target_again(model, prices, run):
    typed = "city=Oslo\nage=33\nmember=True\nzip=3a\n"  # whatever it proposes first
    result = run("ask-next", model, "--target", "income", "--costs", prices, input=typed)
    assert result.exit_code == 0, result.stderr
    assert "income, nothing known" in result.stdout
    assert "measure next" in result.stdout
    assert "expected nats" in result.stdout
    assert "Stop: nothing is left to measure." in result.stdout
    assert "spent." in result.stdout
    for value in ("city=Oslo", "age=33", "member=True"):
        assert value in result.stdout


def test_what_is_known_is_not_asked_for(model, run):
    result = run("ask-next", model, "--target", "city", "--known", "income=50, age=30", input="q\n")
    assert result.exit_code == 0, result.stderr
    assert "city given income=50.0, age=30" in result.stdout
    assert "Stopped.\n2 values known, 0 spent." in result.stdout
    assert "  age  " not in result.stdout.split("measure next")[1]


def test_something_else_may_be_typed_and_mistakes_are_explained(model, prices, run):
    typed = "nonsense\nzip=3a\nincome=3\nage=3..5\nq\n"
    result = run("ask-next", model, "--target", "income", "--costs", prices, input=typed)
    assert "nonsense is no value of column 'city'" in result.stdout
    assert "income given zip=3a" in result.stdout
    assert "'income' is the target" in result.stdout
    assert "such as age=VALUE" in result.stdout
    assert "Stopped.\n1 values known, 1 spent." in result.stdout


def test_it_stops_by_itself(model, prices, run):
    for options, reason in (
        (("--budget", "1"), "what is left costs more than the rest of the budget"),
        (("--worth", "0.0001"), "nothing left is expected to tell as much as it costs"),
        (("--certain", "1000"), "the target is as certain as was asked for"),
    ):
        result = run("ask-next", model, "--target", "income", "--costs", prices, *options, input="zip=3a\n")
        assert result.exit_code == 0, result.stderr
        assert f"Stop: {reason}." in result.stdout
    result = run("ask-next", model, "--target", "member", "--certain", "0.01", input="")
    assert "Stop: the target is as certain as was asked for." in result.stdout


def test_a_budget_is_spent_to_the_last_cent(model, tmp_path, run):
    path = tmp_path / "cents.csv"
    path.write_text("name,cost\ncity,0.1\nage,0.1\nzip,0.1\n")
    typed = "city=Oslo\nage=33\nzip=3a\n"
    result = run("ask-next", model, "--target", "income", "--costs", path, "--budget", "0.3", input=typed)
    assert result.exit_code == 0, result.stderr
    assert "Stop: nothing is left to measure.\n3 values known, 0.3 spent." in result.stdout


def test_a_group_is_paid_for_with_its_first_value(model, tmp_path, run):
    path = tmp_path / "form.csv"
    path.write_text("name,cost,group\nage,1,form\nmember,1,form\n")
    for typed, end in (
        ("33\nq\n", "Stopped.\n1 values known, 2 spent."),  # in the middle of the group
        ("33\ncity=Oslo\nTrue\n", "Stop: nothing is left to measure.\n3 values known, 2 spent."),
        ("\nTrue\n", "Stop: nothing is left to measure.\n1 values known, 2 spent."),
        ("\n\n", "Stop: nothing is left to measure.\n0 values known, 0 spent."),
    ):
        result = run("ask-next", model, "--target", "income", "--costs", path, input=typed)
        assert result.exit_code == 0, result.stderr
        assert end in result.stdout


def test_the_end_of_input_ends_it(model, run):
    result = run("ask-next", model, "--target", "income", input="")
    assert result.exit_code == 0
    assert "Stopped.\n0 values known, 0 spent." in result.stdout


def test_one_proposal_as_json(model, prices, run):
    result = run("ask-next", model, "--target", "income", "--known", "city=Oslo", "--costs", prices, "--json")
    document = json.loads(result.stdout)
    assert document["target"] == "income"
    assert document["known"] == {"city": "Oslo"}
    assert document["distribution"]["kind"] == "number"
    assert {line["measurement"] for line in document["measurements"]} == {"form", "zip"}
    assert document["measurements"][0]["advised"] is True
    assert document["stop"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "incom"), "Did you mean 'income'"),
        (("--target", "income", "--known", "income=3"), "'income' is already known"),
        (("--target", "income", "--known", "age=30..40"), "needs a value"),
        (("--target", "income", "--known", "city=Paris"), "no value of column 'city'"),
        (("--target", "income", "--costs", "missing.csv"), "missing.csv"),
        (("--target", "age", "--costs", "COSTS"), "'age' is the target"),
        (("--target", "income", "--costs", "COSTS", "--budget", "0.5"), "below every cost"),
    ],
)
def test_bad_input_is_one_line(model, prices, run, options, message):
    result = run("ask-next", model, *[prices if option == "COSTS" else option for option in options])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,price\nage,1\n", "no column 'cost'"),
        ("name,cost\nage,-1\n", "bad.csv, row 1: 'age' costs -1; expected a number, 0 or more"),
        ("name,cost\nage,1\nage,2\n", "row 2: 'age' has a price already"),
        ("name,cost\nagee,1\n", "agee"),
    ],
)
def test_bad_prices_are_one_line(model, tmp_path, run, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    result = run("ask-next", model, "--target", "income", "--costs", path)
    assert result.exit_code == 1
    assert message in result.stderr
