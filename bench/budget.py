"""The same CPU minutes for every method."""

import time
from collections.abc import Callable


def steps_in(minutes: float, run: Callable[[int], object], trial: int = 100) -> int:
    """How many steps of a training run fit into so many CPU minutes, told by the speed of a short one."""
    run(2)
    start = time.process_time()
    run(trial)
    return max(1, round(60 * minutes / ((time.process_time() - start) / trial)))
