"""How long a decision takes: one record, and a thousand, with twenty candidates; ours next to MIWAE's histogram."""

import argparse

import numpy as np
import pandas as pd
import torch
from acquisition_methods import LatentChooser, Problem
from results import Results
from timing import take_turns

from anyorder.baselines import MIWAE
from anyorder.estimator import AnyOrder
from anyorder.inference import Policy, TargetBins, choose, one_by_one, seeded
from anyorder.modalities.tables.table_model import table_heads

COLUMNS, TRAIN, RECORDS = 21, 1000, 1000


def measure_speed(args: argparse.Namespace) -> None:
    """On one thread; the MIWAE is not trained, which takes no less time."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(5, COLUMNS))
    rows = (rng.normal(size=(TRAIN + RECORDS, 5)) @ mix + 0.5 * rng.normal(size=(TRAIN + RECORDS, COLUMNS))).round(2)
    frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(COLUMNS)])
    face = AnyOrder(effort=0.2).fit(frame[:TRAIN])
    problem = Problem(frame[:TRAIN], frame[TRAIN:], ["c20"], None, 0)
    x, _ = problem.rows
    given = torch.zeros(x.shape, dtype=torch.bool)
    candidates = one_by_one(range(COLUMNS - 1))
    latent = LatentChooser(MIWAE.build(problem.encoder.schema, table_heads(problem.encoder.schema)), problem)
    policy = Policy(estimator=TargetBins(8))

    def ours(count: int) -> None:
        choose(face.model_, x[:count], given[:count], [COLUMNS - 1], candidates, seeded(0), policy=policy)

    def theirs(count: int) -> None:
        for part in torch.arange(count).split(100):
            latent.reward(x[part], given[part], seeded(0))

    results = Results.open("acquisition_speed", args, "How long a decision takes", ("records", "method"), protocol="timing")
    for count, rounds in ((1, round(7 * args.effort)), (RECORDS, 1)):
        times = take_turns(lambda count=count: ours(count), lambda count=count: theirs(count), rounds=max(1, rounds))  # type: ignore[misc]
        for method, seconds in zip(("anyorder", "MIWAE, histogram"), times, strict=True):
            results.add({"seconds": seconds}, records=str(count), method=method, seed=args.seeds[0])
    results.print()
