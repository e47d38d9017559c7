"""The campaign in a few seconds: every attack of `make campaign` some times, with seeds that hypothesis chooses and shrinks."""

import re
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyorder.inference import sample
from campaign import closed, disk, forgeries, joints, limits, together
from campaign.broken_disk import RAW, Fault, in_child

RANDOM = st.randoms(use_true_random=False)
TIMES = {"archives": 15, "codecs": 15, "model files": 5, "questions": 100, "csv files": 30, "other files": 40}


@pytest.mark.parametrize("name", disk.WRITERS)
def test_a_broken_disk_leaves_the_old_file_or_a_whole_new_one(name, tmp_path):
    writer = disk.Writer(name, tmp_path)
    few = [*writer.faults()][:: 6 if name == "save" else 4]  # all of them in the campaign
    for number, fault in enumerate(few):
        writer.attack(fault, (None, b"old")[number % 2])


def test_a_disk_that_breaks_is_noticed(tmp_path, monkeypatch):
    """The attack is one: a writer that writes in place is found out."""
    monkeypatch.setitem(disk.WRITERS, "in place", (lambda path: path.write_bytes(bytes(1000)), "x"))
    writer = disk.Writer("in place", tmp_path)
    with pytest.raises(AssertionError, match="leaves 500 bytes"):
        writer.attack(Fault(kill=True, byte=500), b"old")
    with pytest.raises(AssertionError, match="not ours"):
        writer.attack(Fault(kill=False, byte=500), b"old")


@pytest.mark.parametrize("kind", forgeries.FORGERS)
def test_forgeries_are_refused_or_read(kind):
    found = set()

    @settings(max_examples=TIMES[kind], deadline=None, derandomize=True, database=None)
    @given(RANDOM)
    def attack(random):
        found.add(forgeries.FORGERS[kind](random))

    attack()
    assert found == {True, False} or kind == "model files"  # neither all nothing, nor all harmless


def test_claims_take_no_memory_and_no_time():
    for name, raw in forgeries.claims():
        limits.check_raw(name, raw)


def test_the_limit_on_memory_is_one():
    assert in_child(lambda: bytearray(2**31), limits.narrow) == RAW


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(RANDOM)
def test_draws_follow_scores(random):
    joints.check_joint(random)
    joints.check_calibration(random)


def test_draws_that_do_not_follow_are_found_out(monkeypatch):
    """The check of chance can fail: draws that are a little too likely do not pass."""
    monkeypatch.setattr(joints, "sample", partial(sample, temperature=0.7))
    found = 0
    for seed in range(8):
        try:
            joints.check_joint(Random(seed))
        except AssertionError:
            found += 1
    assert found >= 4


def test_threads_and_processes_get_the_same_answers():
    together.check_threads(3, 2)
    together.check_processes(2)


def test_every_test_that_the_document_names_is_there():
    tests = Path(__file__).parents[1]
    written = "".join(path.read_text() for path in tests.rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", (tests.parent / "docs" / "reliability.md").read_text()):
        assert f"def {name}(" in written, name


@pytest.mark.slow
def test_memory_stays_flat():
    together.check_memory(300)


@pytest.mark.slow
def test_no_network_is_asked():
    closed.check_network()


@pytest.mark.slow
def test_wheels_are_the_same_bytes():
    closed.check_wheel()
