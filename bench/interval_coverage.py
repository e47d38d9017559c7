"""How often the truth lies in anyorder's intervals: every test row with many patterns of gaps, columns without frequent values.

    python bench/interval_coverage.py --tables energy yacht concrete wine --seeds 0-9 --masks 20

A split of `bench/imputation.py` has few test rows and one pattern; here the same splits get `--masks` patterns each, the first of
them being that one. Coverage is by the randomised PIT of every hidden cell given the known ones of its row. Cells of a row go
together, so the spread is over splits.
"""

import argparse
from typing import NamedTuple

import numpy as np
import torch
from imputation import continuous, hidden_cells, task_of
from peers.filling.exchange import Cells, Task
from peers.filling.ours import frame, place_in_distribution
from results import Results, flags
from summary import Score
from tables import SOURCES, Mask, gaps

from anyorder.estimator import AnyOrder

TAIL = 0.05


class Counted(NamedTuple):
    """Of one split: how many truths are where in their distributions."""

    cells: int
    below: int  # the 90 % interval
    above: int
    middle: int  # the 50 % interval

    def by_name(self) -> dict[str, Score]:
        """In per cent, as results keep them; nothing where no column is continuous."""
        if not self.cells:
            return {"failed": "no continuous column"}
        below, above, middle = (100 * number / self.cells for number in (self.below, self.above, self.middle))
        return {"90 % covers": 100 - below - above, "below": below, "above": above, "50 % covers": middle, "cells": self.cells}


def main() -> None:
    args = arguments()
    results = Results.open("coverage", args, "Coverage of intervals", ("table", "gaps"))
    torch.set_num_threads(1)
    for seed in args.seeds:
        for table in args.tables:
            if all(results.has(table=table, gaps=mechanism, seed=seed) for mechanism in args.mechanisms):
                continue
            task = task_of(table, args.mechanisms[:1], seed, draws=1)
            model = AnyOrder(effort=args.effort, random_state=seed).fit(frame(task.train, task))
            for mechanism in args.mechanisms:
                results.add(count(model, task, mechanism, args.masks).by_name(), table=table, gaps=mechanism, seed=seed)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, SOURCES, ["energy", "yacht", "concrete", "wine"], seeds=range(10))
    parser.add_argument("--mechanisms", nargs="+", default=["mcar20", "mcar50"], help="mcar, mar or mnar with a rate: mar20")
    parser.add_argument("--masks", type=int, default=20)
    args: argparse.Namespace = parser.parse_args()
    return args


def count(model: AnyOrder, task: Task, mechanism: str, masks: int) -> Counted:
    hidden = [gaps(task.truth, mechanism, task.seed + 1000 * again) for again in range(masks)]
    pit = np.concatenate([pit_of(model, task, each) for each in hidden])
    return Counted(len(pit), int((pit < TAIL).sum()), int((pit > 1 - TAIL).sum()), int((np.abs(pit - 0.5) <= 0.25).sum()))


def pit_of(model: AnyOrder, task: Task, hidden: Mask) -> Cells:
    """Of the hidden cells of continuous columns."""
    test = np.where(hidden, np.nan, task.truth)
    asked = hidden_cells(task, test) & continuous(task)
    return place_in_distribution(model, test, task)[asked]


if __name__ == "__main__":
    main()
