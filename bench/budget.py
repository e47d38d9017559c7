"""The same CPU minutes for every method."""

import time
from collections.abc import Callable


def steps_in(minutes: float, run: Callable[[int], object], trial: int = 100) -> int:
    """How many steps of a training run fit into so many CPU minutes, told by the speed of a short one."""
    seconds = []
    for steps in (2, trial, 3 * trial):
        start = time.process_time()
        run(steps)
        seconds.append(time.process_time() - start)
    return max(1, round(60 * minutes * 2 * trial / (seconds[2] - seconds[1])))  # without what every run costs anyway
