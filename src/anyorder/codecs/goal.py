"""Whether a model that is being learned for one archive can still pay for its place in it."""

import math
import warnings
from collections.abc import Callable
from typing import final

from ..errors import AnyOrderError
from ..training import Check

EARLIEST = 0.25  # share of the steps before which nothing is judged
CAUTION = 2  # times the pace of late, because a falling learning rate may gain once more


class HopelessError(AnyOrderError):
    """However long it is trained, the archive would not be smaller with it."""


@final
class Goal:
    """Stops training that cannot reach its goal: `most` bytes for all items together.

    From now on it is taken to gain at twice the pace between the last two checks, which is more than it will: training gains less
    and less. Images are learned stage by stage, and those that have not begun are taken to cost nothing.
    """

    def __init__(self, most: int, items: int, progress: Callable[[Check], None] | None = None) -> None:
        self.most, self.items, self.progress = most, items, progress
        self.last = dict[int, Check]()  # of every stage

    def __call__(self, check: Check, stage: int = 0) -> None:
        if self.progress is not None:
            self.progress(check)
        before = self.last.get(stage)
        self.last[stage] = check
        if before is None or check.step < EARLIEST * check.steps:
            return
        pace = (before.best_nats - check.best_nats) / (check.step - before.step)
        gained = CAUTION * pace * (check.steps - check.step)
        nats = sum(one.best_nats for one in self.last.values()) - min(gained, check.best_nats)
        if nats * self.items / math.log(2) / 8 > self.most:
            warnings.warn("Learning a model was stopped early: the archive is smaller without one.", stacklevel=2)
            raise HopelessError
