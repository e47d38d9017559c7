"""Time two things in the same run, taking turns, so that a noisy machine disturbs both alike."""

import statistics
import time
from collections.abc import Callable


def take_turns(*actions: Callable[[], object], rounds: int = 7) -> list[float]:
    """The median seconds of each action over the rounds, after one round that is not counted."""
    seconds: list[list[float]] = [[] for _ in actions]
    for turn in range(rounds + 1):
        for action, spent in zip(actions, seconds, strict=True):
            start = time.perf_counter()
            action()
            if turn:
                spent.append(time.perf_counter() - start)
    return [statistics.median(spent) for spent in seconds]
