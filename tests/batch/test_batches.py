"""Laws of batches: workers, shards and breaks change no bit; what is wrong with one file is said, and keeps no other from it."""

import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anyorder import AnyOrder
from anyorder.batch import Here, Processes, Shard, Worker, run
from anyorder.batch.engines import AHEAD, Clerk, serve
from anyorder.batch.worker import Answered, seed_at
from anyorder.errors import AnyOrderError, InputError
from anyorder.io.units import File, Unit, files_of, units_of

ASKED = [("impute", {}), ("impute", {"draws": 2}), ("score", {"target": ("city",)}), ("anomalies", {"threshold": 0.2})]


def content(folder):
    """All outputs by name; how long the run took is in none of them."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


@pytest.mark.parametrize(("verb", "options"), ASKED)
def test_shards_and_breaks_change_no_bit(model, inputs, tmp_path, verb, options):
    worker = Worker(model, verb, **options)
    whole = run(worker, inputs, tmp_path / "whole")
    assert (whole.files, whole.rows, whole.failed) == (5, 125, [])
    for number in (3, 1, 2):
        run(Worker(model, verb, **options), inputs, tmp_path / "shards", shard=Shard(number, 3))
    assert content(tmp_path / "shards") == content(tmp_path / "whole")
    for name in ("a.parquet", "more/d.parquet"):
        (tmp_path / "shards" / name).unlink()
    again = run(worker, inputs, tmp_path / "shards")
    assert (again.files, again.skipped) == (2, 3)
    assert content(tmp_path / "shards") == content(tmp_path / "whole")


def test_two_workers_change_no_bit(model, inputs, tmp_path):
    """Processes of their own load the model and the library anew: one question stands for all."""
    for engine, name in ((Here(), "one"), (Processes(2), "two")):
        run(Worker(model, "impute", draws=2), inputs, tmp_path / name, engine)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert multiprocessing.active_children() == []


def test_the_answers_are_those_of_the_estimator(model, inputs, tmp_path):
    """Row group by row group, with the seed of its first row."""
    run(Worker(model, "impute", draws=1, seed=5), inputs, tmp_path / "drawn")
    run(Worker(model, "score"), inputs, tmp_path / "scores")
    table = pq.ParquetFile(inputs / "b.parquet").read_row_group(1)
    estimator = AnyOrder.load(model).set_params(random_state=seed_at(5, "b.parquet", 10))
    made = pq.ParquetFile(tmp_path / "drawn" / "b.parquet").read_row_group(1)
    assert made.drop_columns("draw").equals(estimator.impute(table, 1)[0].cast(table.schema))
    scores = pd.read_parquet(tmp_path / "scores" / "b.parquet")
    assert scores["row"].tolist() == list(range(1, 26))
    np.testing.assert_array_equal(scores["log_prob"][10:20], estimator.score_samples(table))


def test_known_cells_and_types_stay(model, inputs, tmp_path):
    run(Worker(model, "impute"), inputs, tmp_path / "out")
    for file in files_of(inputs, (".parquet",)):
        before, after = (pq.read_table(place / file.name) for place in (inputs, tmp_path / "out"))
        assert after.schema.equals(before.schema)
        for name in before.column_names:
            there = before[name].is_valid()
            assert after[name].filter(there).equals(before[name].filter(there))
        assert after["income"].null_count == 0


def test_text_files_keep_their_characters_in_chunks(model, tmp_path, monkeypatch):
    rows = [f"{city},{income},{age}" for city, income, age in [('"Oslo"', "050.10", 30), ("Rome", "", 41), ("", "20.50", 25)] * 4]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").write_text("\n".join(["city,income,age", *rows]) + "\n")
    whole = run(Worker(model, "impute"), tmp_path / "in", tmp_path / "whole")
    assert whole.rows == 12
    monkeypatch.setattr("anyorder.batch.runner.units_of", lambda file: units_of(file, 5))
    parts = run(Worker(model, "impute"), tmp_path / "in", tmp_path / "parts")
    assert parts.rows == 12
    lines = [(tmp_path / name / "x.csv").read_text().splitlines() for name in ("whole", "parts")]
    assert len(lines[1]) == 13
    for one in lines:
        assert one[1] == "Oslo,050.10,30"
        assert all(cell for line in one for cell in line.split(","))
    assert [line.split(",")[2] for line in lines[1]] == [line.split(",")[2] for line in lines[0]]


def test_new_rows_come_in_files_of_their_own(model, tmp_path, monkeypatch):
    monkeypatch.setattr("anyorder.batch.runner.ROWS_OF_SAMPLE_FILE", 20)
    run(Worker(model, "sample", given={"city": "Rome"}), 50, tmp_path / "out")
    run(Worker(model, "sample", given={"city": "Rome"}), 50, tmp_path / "second", shard=Shard(2, 2))
    tables = [pd.read_parquet(tmp_path / "out" / f"part-0000{k}.parquet") for k in range(3)]
    assert [len(table) for table in tables] == [20, 20, 10]
    assert set(tables[0]["city"]) == {"Rome"}
    assert not tables[0].equals(tables[1])
    assert pd.read_parquet(tmp_path / "second" / "part-00001.parquet").equals(tables[1])


@pytest.fixture
def some_inputs(inputs, tmp_path):
    shutil.copytree(inputs, tmp_path / "in")
    return tmp_path / "in"


def spoilt(some_inputs, tmp_path, model):
    """Ask about files of which b is spoilt: the sentence about it, and the other files are written."""
    done = run(Worker(model, "impute"), some_inputs, tmp_path / "out")
    assert done.files == 4
    assert not (tmp_path / "out" / "b.parquet").exists()
    assert sorted(content(tmp_path / "out")) == ["_anyorder.json", "a.parquet", "c.parquet", "more/d.parquet", "more/e.parquet"]
    with pytest.raises(AnyOrderError, match=r"b\.parquet.*4 files were written"):
        done.raise_for_failures()
    (sentence,) = done.failed
    assert "\n" not in sentence
    return sentence


def test_a_file_that_is_cut_off(some_inputs, tmp_path, model):
    whole = (some_inputs / "b.parquet").read_bytes()
    (some_inputs / "b.parquet").write_bytes(whole[:200])
    assert "b.parquet is damaged or no Parquet file: its footer" in spoilt(some_inputs, tmp_path, model)


def test_a_row_group_that_is_damaged(some_inputs, tmp_path, model):
    place = some_inputs / "b.parquet"
    column = pq.ParquetFile(place).metadata.row_group(1).column(1)
    whole = bytearray(place.read_bytes())
    start = min(filter(None, [column.dictionary_page_offset, column.data_page_offset]))
    whole[start : start + 40] = b"\xff" * 40
    place.write_bytes(whole)
    assert "b.parquet, row group 2 of 3" in spoilt(some_inputs, tmp_path, model)


def test_a_column_that_is_missing(some_inputs, tmp_path, model):
    pq.write_table(pq.read_table(some_inputs / "b.parquet").drop_columns("age"), some_inputs / "b.parquet")
    assert "b.parquet has no column 'age', which a.parquet has" in spoilt(some_inputs, tmp_path, model)


def test_a_type_that_is_another(some_inputs, tmp_path, model):
    table = pq.read_table(some_inputs / "b.parquet")
    text = table["age"].cast(pa.string())
    pq.write_table(table.set_column(2, "age", text), some_inputs / "b.parquet")
    assert "b.parquet holds string in its column 'age', a.parquet holds int64" in spoilt(some_inputs, tmp_path, model)


def test_an_empty_file_gives_an_empty_file(some_inputs, tmp_path, model):
    pq.write_table(pq.read_table(some_inputs / "b.parquet").slice(0, 0), some_inputs / "b.parquet")
    for verb in ("impute", "score", "anomalies"):
        done = run(Worker(model, verb), some_inputs, tmp_path / verb)
        assert done.failed == []
        assert len(pq.read_table(tmp_path / verb / "b.parquet")) == 0


def test_another_question_is_not_mixed_in(model, inputs, tmp_path):
    run(Worker(model, "impute"), inputs, tmp_path / "out", shard=Shard(1, 5))
    with pytest.raises(InputError, match="holds answers of another run: draws differs"):
        run(Worker(model, "impute", draws=3), inputs, tmp_path / "out")
    with pytest.raises(InputError, match="is an input as well"):
        run(Worker(model, "score"), inputs, inputs)
    (inputs / "_anyorder.json").unlink()


def test_a_changed_input_is_answered_again(some_inputs, tmp_path, model):
    run(Worker(model, "score"), some_inputs, tmp_path / "out")
    later = (tmp_path / "out" / "c.parquet").stat().st_mtime + 5
    os.utime(some_inputs / "c.parquet", (later, later))
    done = run(Worker(model, "score"), some_inputs, tmp_path / "out")
    assert (done.files, done.skipped) == (1, 4)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/"])
def test_a_shard_that_is_none(text):
    with pytest.raises(InputError, match="3/40"):
        Shard.read(text)


def test_options_of_another_question_are_refused(model):
    with pytest.raises(InputError, match="impute of many files has the options draws; got target"):
        Worker(model, "impute", target=("age",))
    with pytest.raises(InputError, match="expected one of impute, score"):
        Worker(model, "report")


class Deadly(Worker):
    """Kills its process at one unit."""

    def __call__(self, unit):
        if (unit.file.name, unit.number) == ("c.parquet", 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return Answered(unit, b"answer", 1, (), 0)


def test_a_worker_that_dies_is_named_with_its_unit(model, inputs, monkeypatch):
    units = [unit for file in files_of(inputs, (".parquet",)) for unit in units_of(file)]
    context = multiprocessing.get_context("fork")  # a class of a test is not known to a process that starts anew
    engine = Processes(2)
    clerks = []

    class Forked(Clerk):
        def __init__(self, worker):
            self.pipe, other = context.Pipe()
            self.process, self.task = context.Process(target=served, args=(worker, other, self.pipe), daemon=True), None
            self.process.start()
            other.close()
            clerks.append(self)

    def served(worker, pipe, parents):
        parents.close()
        serve(worker, pipe)

    monkeypatch.setattr("anyorder.batch.engines.Clerk", Forked)
    with pytest.raises(AnyOrderError, match=r"c\.parquet, row group 2 of 3 .*signal 9"):
        list(engine.answers(Deadly(model, "score"), units))
    assert all(not clerk.process.is_alive() for clerk in clerks)


def test_answers_come_in_the_order_of_the_units_and_not_far_ahead(model):
    """A slow first unit keeps only so many answers waiting."""
    asked, given = [], []

    class Quick(Clerk):
        """Stands for a process: the first unit takes until all others that may be asked have been."""

        def __init__(self, worker):
            self.task = None

        @property
        def pipe(self):
            return self

        def ask(self, number, unit):
            self.task = number, unit
            asked.append(number)

        def answer(self):
            (number, unit), self.task = self.task, None
            given.append(number)
            return number, Answered(unit, b"", 0, (), 0)

        def end(self):
            assert self.task is None

    def others_first(pipes):
        return sorted(pipes, key=lambda one: one.task[0])[-1:]

    units = [Unit(File(Path("x"), "x"), number, 40) for number in range(40)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anyorder.batch.engines.Clerk", Quick)
        patch.setattr("anyorder.batch.engines.wait", others_first)
        found = [answer.unit.number for answer in Processes(2).answers(Worker(model, "score"), units)]
    assert found == list(range(40))
    assert given != sorted(given)
    assert max(asked[: asked.index(given[given.index(0) - 1]) + 1]) < AHEAD * 2
