"""Which training objective helps where: ARDM's, MAC's and both, on marginals, conditionals and the joint; the network
alone, no memory.

    python bench/mac_ablation.py --tables yacht concrete nltcs --seeds 0-2 --steps 1500

Every objective trains the same network from the same start for the same number of steps on the same rows, and keeps the averaged
weights of least held-out nats of its own questions. Nats per asked cell (probability mass) of test rows; a seed is a split of
the rows, a start and a draw of questions, shared by all objectives. Differences are paired by seed.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from density import existing
from results import Results, flags
from tables import load_split

from anyorder.inference import fixed_orders, mixture_log_prob, seeded
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.table_model import table_heads
from anyorder.models.any_order import AnyOrderModel, build_model
from anyorder.schema import Schema, Values
from anyorder.subsets import AnySize, CanonicalOrder, Everything, GivenAnySize, Question, QuestionDistribution
from anyorder.training import Objective, Recipe, ardm, fit, mac, mac_all_edges, mixture, reweighted

OBJECTIVES: dict[str, Objective] = {
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


class Rows(NamedTuple):
    schema: Schema
    train: Values
    test: Values


def main() -> None:
    parser = flags(__doc__, TABLES, seeds=range(3))
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = Results.open("mac_ablation", args, "Objectives: training for the next edge", ("table", "network", "objective"))
    results.note("Nats per asked cell; of objectives other than ardm also the difference to it on the same split.")
    for table, seed in itertools.product(args.tables, args.seeds):
        rows = load(table, seed)
        for network in NETWORKS:
            if results.has(table=table, network=network, objective=list(OBJECTIVES)[-1], seed=seed):
                continue
            base: dict[str, float] = {}
            for name, objective in OBJECTIVES.items():
                model = trained(rows, network, objective, round(args.steps * args.effort), seed)
                found = {f"{q}, {walk}": nats_per_cell(model, rows.test, q, walk, seed) for q, walk in COLUMNS}
                base = base or found  # ardm is the first
                away = {} if base is found else {f"{column}, - ardm": found[column] - base[column] for column in found}
                results.add({**found, **away}, table=table, network=network, objective=name, seed=seed)
    results.print()


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


if __name__ == "__main__":
    main()
