"""Train for what you will ask: every objective on the questions it was trained for, against training for any subset alike.

    ANYORDER_DATA=../shared/data python bench/objectives.py --data yacht wine california digits --seeds 1000-1004

The same data, seed and effort, only `AnyOrder(objective=...)` differs. Asked are the nats of rows that were held out: of whole
rows along the columns (or pixels) as they stand; of the last half of the columns (or the right half of the pixels) given the
others, along any order. Of digits SFARM's modes are trained side by side, and asked in the mode that reveals the left first.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from results import Results, flags
from sklearn.datasets import load_digits
from tables import SOURCES, load_split

from anyorder import AnyOrder
from anyorder.modalities.images.regions import MODES, half
from anyorder.subsets import CanonicalOrder, Everything, Regions
from anyorder.training import Objective, ardm, mac, sfarm

DIGITS = "digits"
IN_ORDER, HALF_GIVEN = "whole rows, in order", "half given the other"


class Data(NamedTuple):
    """What is learned, what is scored, and how the second half is asked for."""

    train: Any
    test: Any
    half: dict[str, Any]
    region: torch.Tensor
    modes: bool


class Trained(NamedTuple):
    """An objective, the question it is for, and how the model is asked."""

    name: str
    objective: Objective | None
    question: str
    options: dict[str, Any]


def main() -> None:
    args = flags(__doc__, [*SOURCES, DIGITS], default=["yacht", "wine", "california", DIGITS]).parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    results = Results.open(
        "objectives",
        args,
        "Objectives on the questions they are for, nats of held-out rows",
        keys=("data", "question", "objective"),
    )
    for name in args.tables:
        for seed in args.seeds:
            measure(results, name, seed, args.effort)
    results.print()


def measure(results: Results, name: str, seed: int, effort: float) -> None:
    """One seed: every objective trained once, and asked its question."""
    data, fitted = load(name, seed), {}
    for one in trained_for(data):
        key = {"data": name, "question": one.question, "objective": one.name, "seed": seed}
        if results.has(**key):
            continue
        if one.name not in fitted:
            fitted[one.name] = AnyOrder(effort=effort, objective=one.objective, random_state=seed).fit(data.train)
        scores = fitted[one.name].score_samples(data.test, **one.options)
        results.add({"nats": -float(scores.mean())}, **key)


def trained_for(data: Data) -> Iterator[Trained]:
    along, given = {"order": CanonicalOrder()}, data.half
    yield Trained("any subset", None, IN_ORDER, along)
    yield Trained("mac, whole rows", mac(Everything()), IN_ORDER, along)
    yield Trained("any subset", None, HALF_GIVEN, given)
    yield Trained("ardm, this half", ardm(Regions(data.region[None])), HALF_GIVEN, given)
    if data.modes:
        yield Trained("sfarm, seven modes", sfarm(MODES), HALF_GIVEN, {**given, "mode": "left"})


def load(name: str, seed: int) -> Data:
    if name == DIGITS:
        found = load_digits()
        images = found.images.astype(np.uint8)[np.random.default_rng(seed).permutation(len(found.images))]
        right = half((8, 8, 1), "right")
        return Data(images[:1500], images[1500:], {"target": right.view(8, 8).numpy()}, right, True)
    split = load_split(name, seed)
    train, test = (pd.DataFrame(rows, columns=split.names) for rows in (split.train, split.test))
    first, second = split.names[: len(split.names) // 2], split.names[len(split.names) // 2 :]
    region = torch.tensor([column in second for column in split.names])
    return Data(train, test, {"target": second, "given": first}, region, False)


if __name__ == "__main__":
    main()
