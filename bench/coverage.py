"""How often the truth lies in anyorder's intervals: every test row with many patterns of gaps, columns without frequent values.

    python bench/coverage.py --tables energy yacht concrete wine --splits 10 --masks 20

A split of `bench/imputation.py` has few test rows and one pattern; here the same splits get `--masks` patterns each, the first of
them being that one. Coverage is by the randomised PIT of every hidden cell given the known ones of its row. Cells of a row go
together, so the standard error is over splits.
"""

import argparse
from statistics import stdev
from typing import NamedTuple

import numpy as np
import torch
from imputation import continuous, hidden_cells, task_of
from peers.exchange import Cells, Task
from peers.ours import frame, place_in_distribution
from tables import SOURCES, Mask, gaps

from anyorder.estimator import AnyOrder

TAIL = 0.05


class Counted(NamedTuple):
    """Of one split: how many truths are where in their distributions."""

    cells: int
    below: int  # the 90 % interval
    above: int
    middle: int  # the 50 % interval

    @property
    def covered(self) -> float:
        return 1 - (self.below + self.above) / max(1, self.cells)


def main() -> None:
    args = arguments()
    print("| table, gaps | 90 % covers | below | above | 50 % covers | cells | splits |\n" + "|---" * 7 + "|")
    for table in args.tables:
        found: dict[str, list[Counted]] = {mechanism: [] for mechanism in args.mechanisms}
        for split in range(args.splits):
            task = task_of(table, args.mechanisms[:1], split, draws=1)
            torch.set_num_threads(1)
            model = AnyOrder(random_state=split).fit(frame(task.train, task))
            for mechanism in args.mechanisms:
                found[mechanism].append(count(model, task, mechanism, args.masks))
        for mechanism, counted in found.items():
            print(f"| {table}, {mechanism} | " + " | ".join(columns(counted)) + " |", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["energy", "yacht", "concrete", "wine"], choices=SOURCES)
    parser.add_argument("--mechanisms", nargs="+", default=["mcar20", "mcar50"], help="mcar, mar or mnar with a rate: mar20")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--masks", type=int, default=20)
    return parser.parse_args()


def count(model: AnyOrder, task: Task, mechanism: str, masks: int) -> Counted:
    hidden = [gaps(task.truth, mechanism, task.seed + 1000 * again) for again in range(masks)]
    pit = np.concatenate([pit_of(model, task, each) for each in hidden])
    return Counted(len(pit), int((pit < TAIL).sum()), int((pit > 1 - TAIL).sum()), int((np.abs(pit - 0.5) <= 0.25).sum()))


def pit_of(model: AnyOrder, task: Task, hidden: Mask) -> Cells:
    """Of the hidden cells of continuous columns."""
    test = np.where(hidden, np.nan, task.truth)
    asked = hidden_cells(task, test) & continuous(task)
    return place_in_distribution(model, test, task)[asked]


def columns(counted: list[Counted]) -> list[str]:
    """All cells counted alike, whatever their split."""
    total = Counted(*map(sum, zip(*counted, strict=True)))
    spread = stdev(one.covered for one in counted) / len(counted) ** 0.5 if len(counted) > 1 else float("nan")
    shares = [f"{100 * number / max(1, total.cells):.1f}" for number in (total.below, total.above, total.middle)]
    return [f"{100 * total.covered:.1f} ± {100 * spread:.1f}", *shares, str(total.cells), str(len(counted))]


if __name__ == "__main__":
    main()
