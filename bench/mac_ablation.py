"""Which training objective helps where: ARDM's, MAC's and both, on marginals, conditionals and the joint; the network
alone, no memory.

    python bench/mac_ablation.py [--tables yacht concrete nltcs] [--seeds 3] [--steps 1500]

Every objective trains the same network from the same start for the same number of steps on the same rows, and keeps the averaged
weights of least held-out nats of its own questions. Nats per asked cell (probability mass) of test rows; a seed is a split of
the rows, a start and a draw of questions, shared by all objectives. Differences are paired by seed.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from density import existing
from tables import load_split

from anyorder.inference import fixed_orders, mixture_log_prob, seeded
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.table_model import table_heads
from anyorder.models.any_order import AnyOrderModel, build_model
from anyorder.schema import Schema, Values
from anyorder.subsets import AnySize, CanonicalOrder, Everything, GivenAnySize, Question, QuestionDistribution
from anyorder.training import Objective, Recipe, ardm, fit, mac, mac_all_edges, mixture, reweighted

LAWS: dict[str, Objective] = {
    "ardm": ardm(),
    "mac, all edges": mac_all_edges(),
    "half ardm, half mac": mixture(ardm(), mac_all_edges()),
    "mac, reweighted": reweighted(mac()),
}
QUESTIONS: dict[str, QuestionDistribution] = {"marginal": AnySize(), "conditional": GivenAnySize(), "joint": Everything()}
ORDERS: dict[str, Callable[[int], list[CanonicalOrder]]] = {
    "canonical": lambda variables: [CanonicalOrder()],
    "4 orders": lambda variables: fixed_orders(variables, 4),
}
NETWORKS = {"32 x 1": (32, 1), "128 x 3": (128, 3)}  # width, depth
TABLES = ("yacht", "concrete", "nltcs")
COLUMNS = [(question, walk) for question in QUESTIONS for walk in ORDERS]
BINARY_ROWS = {"train": 4000, "test": 400}
ASKED_ROWS = 400  # about so many (row, question) pairs of each kind: small test sets are asked several times
Results = dict[tuple[str, str, str], list[list[float]]]  # (table, network, objective) -> seed -> column


class Rows(NamedTuple):
    schema: Schema
    train: Values
    test: Values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = measure(args.tables, range(args.seeds), args.steps)
    print(report(results, args.seeds, args.steps))


def measure(tables: Sequence[str], seeds: range, steps: int) -> Results:
    results: Results = {}
    for table in tables:
        for seed in seeds:
            rows = load(table, seed)
            for network in NETWORKS:
                for objective in LAWS:
                    started = time.process_time()
                    model = trained(rows, network, LAWS[objective], steps, seed)
                    found = [nats_per_cell(model, rows.test, question, walk, seed) for question, walk in COLUMNS]
                    results.setdefault((table, network, objective), []).append(found)
                    seconds = time.process_time() - started
                    print(
                        f"{table}, seed {seed}, {network}, {objective}: {np.round(found, 3)} ({seconds:.1f} s)", file=sys.stderr
                    )
    return results


def load(table: str, seed: int) -> Rows:
    if table == "nltcs":
        rng = np.random.default_rng([seed, 6])
        with np.load(existing("debd/nltcs.npz")) as file:
            train, test = (rng.permutation(file[part])[:count].astype(str) for part, count in BINARY_ROWS.items())
    else:
        train, test = load_split(table, seed)[:2]
    encoder = TableEncoder.learn(pd.DataFrame(train).rename(columns=str))
    encoded = (encoder.encode(pd.DataFrame(part).rename(columns=str))[0] for part in (train, test))
    return Rows(encoder.schema, *encoded)


def trained(rows: Rows, network: str, objective: Objective, steps: int, seed: int) -> AnyOrderModel:
    width, depth = NETWORKS[network]
    model = build_model(rows.schema, table_heads(rows.schema), width, depth, seed=seed)
    recipe = Recipe(
        objective=objective, steps=steps, patience=steps, check_every=max(1, steps // 15), seed=seed
    )  # never stopped early
    return fit(model, rows.train, recipe=recipe).model


def nats_per_cell(model: AnyOrderModel, test: Values, question: str, walk: str, seed: int) -> float:
    times = 1 if question == "joint" else max(1, round(ASKED_ROWS / len(test)))
    x = test.repeat(times, 1)
    asked: Question = QUESTIONS[question].sample(torch.isfinite(x), seeded(seed))
    log_mass = mixture_log_prob(model, x, asked, ORDERS[walk](x.shape[1]))
    return -(log_mass.sum() / asked.count.sum()).item()


def report(results: Results, seeds: int, steps: int) -> str:
    lines = [
        f"Nats per asked cell, {seeds} seeds, {steps} steps: ardm's own (mean ± standard deviation over seeds);",
        "for the other objectives the paired difference to ardm ± its standard error over seeds, negative is better.",
        "",
        "| table | network | objective | " + " | ".join(f"{question}, {walk}" for question, walk in COLUMNS) + " |",
        "|---|---|---|" + "---|" * len(COLUMNS),
    ]
    for (table, network, objective), found in results.items():
        nats = np.array(found)  # (seed, column)
        if objective == "ardm":
            cells = [f"{mean:.3f} ± {std:.3f}" for mean, std in zip(nats.mean(0), nats.std(0, ddof=1), strict=True)]
        else:
            away = nats - np.array(results[table, network, "ardm"])
            error = away.std(0, ddof=1) / np.sqrt(len(away))
            cells = [f"{mean:+.3f} ± {e:.3f}" for mean, e in zip(away.mean(0), error, strict=True)]
        lines.append(f"| {table} | {network} | {objective} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
