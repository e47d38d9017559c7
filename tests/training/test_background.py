"""Work beside the work: it gives the same results, is dropped when the caller gives up, and does not hide its errors."""

import threading
import time

import pytest

from anyorder.training.blending import Background


def test_jobs_are_done_in_turn_while_the_caller_goes_on():
    begun, done = threading.Event(), []
    with Background() as beside:
        jobs = [beside.start(lambda k=k: (begun.wait(5), done.append(k))) for k in range(3)]
        assert not done  # the caller is here, and the first job waits for it
        begun.set()
        for job in jobs:
            job.result()
    assert done == [0, 1, 2]


def test_an_error_of_a_job_reaches_whoever_asks_for_its_result():
    with Background() as beside, pytest.raises(ZeroDivisionError):
        beside.start(lambda: 1 / 0).result()


def test_a_caller_that_gives_up_stops_the_job_at_hand_and_drops_the_rest():
    begun, done = threading.Event(), []

    def long(beside):
        begun.set()
        while True:
            beside.raise_if_cancelled()
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt), Background() as beside:  # noqa: PT012
        stopped = beside.start(long, beside)
        never = beside.start(done.append, 1)
        begun.wait(5)
        raise KeyboardInterrupt
    assert isinstance(stopped.exception(), KeyboardInterrupt)
    assert never.cancelled()
    assert not done
