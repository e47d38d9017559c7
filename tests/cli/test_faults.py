"""What goes wrong: one line on standard error, nothing on standard output, the right exit code, no file written."""

import pytest

FAULTS = [
    (["ask", "{model}", "incom"], 1, "The model has no column 'incom'. Did you mean 'income'? Its columns: city, income, age"),
    (["ask", "{model}", "income | city=Olso"], 1, "city=Olso is no value of column 'city'. Did you mean 'Oslo'?"),
    (
        ["ask", "{model}", "income | name=Bob"],
        1,
        "Column 'name' was left out of the model: in training it had 200 different values",
    ),
    (["ask", "{model}", "income | age"], 1, "'age' is given without a value"),
    (["ask", "{model}", "income | age=x"], 1, "age=x: expected a number"),
    (["ask", "{model}", "zip=1..2"], 1, "zip=1..2 is a range, but column 'zip' is a category"),
    (["ask", "{people}", "income"], 1, "people.csv is not an anyorder file (it begins with b'city,inco'"),
    (["ask", "none.ao", "income"], 1, "There is no file 'none.ao'."),
    (["info", "{folder}"], 1, "There is no file"),
    (["sample", "{model}", "--given", "city"], 1, "'city' is given without a value"),
    (["sample", "{model}", "-o", "new.xls"], 1, "new.xls ends with no suffix of a table"),
    (["impute", "{model}", "{people}", "-o", "{people}"], 1, "is an input as well, and would be overwritten. Name another file."),
    (["impute", "{model}", "{people}", "-o", "{model}"], 1, "people.ao is a name for models"),
    (["impute", "{model}", "{folder}/none.csv"], 1, "There is no file"),
    (["score", "{model}", "{people}", "--target", "incme"], 1, "The model has no column 'incme'. Did you mean 'income'?"),
    (["score", "{model}", "{people}", "--target", "age", "--given", "age"], 1, "share 1 variable"),
    (["score", "{model}", "{other}"], 1, "The table has none of the model's columns: it has a, b"),
    (["fit", "{other}", "-o", "{other}"], 1, "is an input as well, and would be overwritten"),
    (["fit", "{other}", "-o", "{folder}/none/x.ao"], 1, "its folder '{folder}/none' does not exist. Make it first."),
    (["fit", "{other}", "-o", "{folder}/x.csv"], 1, "x.csv is a name for tables; name the model x.ao."),
    (
        ["fit", "{other}", "-o", "x.ao", "--kind", "a=colour"],
        1,
        "--kind for 'a' is not understood; expected category, number, log, linear or leave out",
    ),
    (
        ["fit", "{other}", "-o", "x.ao", "--kind", "c=category"],
        1,
        "kinds names a column 'c' that the table does not have; it has a, b",
    ),
    (["fit", "{other}", "-o", "x.ao", "--effort", "0"], 1, "effort=0"),
    (["fit", "{constant}", "-o", "x.ao"], 1, "There is nothing to model in this table: 'a' is always 1"),
    (["fit", "-"], 2, "name the model with -o"),
    (["fit"], 2, "Missing argument"),
    (["ask", "{model}"], 2, "Missing argument"),
    (["asks", "{model}"], 2, "No such command 'asks'"),
    (["impute", "{model}", "{people}", "--draws", "0"], 2, "--draws"),
    (["impute", "{model}", "{people}", "--draws", "2", "--intervals"], 2, "--intervals goes with the single best guess"),
    (["impute", "{model}", "{people}", "--level", "1.5"], 2, "--level"),
    (["sample", "{model}", "-n", "many"], 2, "--rows"),
]


@pytest.mark.parametrize(("args", "code", "message"), FAULTS, ids=[" ".join(fault[0])[:40] for fault in FAULTS])
@pytest.mark.parametrize("json", [False, True], ids=["", "json"])
def test_faults_are_one_line(run, model, people, tmp_path, monkeypatch, args, code, message, json):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,x\n2,y\n3,x\n")
    (tmp_path / "constant.csv").write_text("a\n1\n1\n")
    places = {"model": model, "people": people, "folder": tmp_path, "other": "other.csv", "constant": "constant.csv"}
    before = {path: path.read_bytes() for path in (model, people)}
    result = run(*(arg.format(**places) for arg in args), *(["--json"] if json else []))
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    if code == 1:
        lines = [line for line in result.stderr.splitlines() if not line.startswith("training")]  # the progress bar
        assert len(lines) == 1
        assert lines[0].startswith("anyorder: ")
        assert message.format(**places) in lines[0]
    else:
        assert message in " ".join(result.stderr.replace("│", "").split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["constant.csv", "other.csv"]
    assert all(path.read_bytes() == content for path, content in before.items())
