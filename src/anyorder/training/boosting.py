"""How boosted trees are grown: on whole rows and on copies with gaps; scikit-learn grows them, we keep their numbers."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from torch import Generator, Tensor

from ..boosting import Boosted, Trees
from ..schema import Mask, Recorded, Schema, Values, levels_of
from .edges import EdgeSampler

TREES, DEPTH = 200, 6
GAPS = (0.0, 0.0, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5)  # the share hidden in every copy of the rows
MOST_ROWS = 32_768  # to grow a tree on, copies included
QUESTIONS, STEPS = 1024, 150
UNSEEN = 1e-3  # share of all codes alike


class KeptBack(NamedTuple):
    """Rows that no tree has seen, to learn how far guesses are off."""

    x: Values
    present: Mask
    law: EdgeSampler


class Table(NamedTuple):
    """What scikit-learn learns from; NaN is a gap."""

    inputs: NDArray[np.float64]
    values: NDArray[np.float64]


def fit_boosted(schema: Schema, x: Values, present: Mask, kept_back: KeptBack, rng: Generator, trees: int = TREES) -> Boosted:
    """Trees for every number from (x, present), and the laws around their guesses from `kept_back`."""
    model = Boosted(schema, grow(schema, x, present, rng, trees), frequencies(schema, x, present))
    fit_laws(model, kept_back, rng)
    return model.eval()


def grow(schema: Schema, x: Values, present: Mask, rng: Generator, count: int = TREES) -> Trees:
    """For every number the trees that guess it from all other variables; for codes none."""
    numbers = [place for place, variable in enumerate(schema) if isinstance(variable.domain, Recorded)]
    trees = Trees.empty(len(numbers), count, DEPTH)
    for number, target in enumerate(numbers):
        rows = present[:, target].nonzero().squeeze(-1)
        if len(rows) > 1:
            seed = int(torch.randint(2**31, (), generator=rng))
            grow_one(Trees(*(tensor[number] for tensor in trees)), copies(x, present, target, rows, rng), seed)
    return trees


def copies(x: Values, present: Mask, target: int, rows: Tensor, rng: Generator) -> Table:
    """Rows that have the target, once for every share of gaps, or a part of a large table; NaN is a gap."""
    rows = rows.repeat(len(GAPS))
    share = torch.tensor(GAPS).repeat_interleave(len(rows) // len(GAPS))
    if len(rows) > MOST_ROWS:
        some = torch.randperm(len(rows), generator=rng)[:MOST_ROWS]
        rows, share = rows[some], share[some]
    shown = present[rows] & (torch.rand(len(rows), x.shape[1], generator=rng) >= share[:, None])
    shown[:, target] = False
    return Table(torch.where(shown, x[rows], torch.nan).double().numpy(), x[rows, target].double().numpy())


def grow_one(trees: Trees, table: Table, seed: int) -> None:
    """Let scikit-learn grow the trees of one number and write them down.

    Only its private attributes hold the trees; the tests compare ours with its predictions.
    """
    inputs = np.where(np.isnan(table.inputs).all(0), 0.0, table.inputs)  # the target itself, and what is never known
    grown = HistGradientBoostingRegressor(max_iter=len(trees.value), max_depth=DEPTH, early_stopping=False, random_state=seed)
    grown.fit(inputs, table.values)
    trees.base.fill_(float(grown._baseline_prediction.item()))
    for number, (predictor,) in enumerate(grown._predictors):
        write_down(trees, number, predictor.nodes)


def write_down(trees: Trees, number: int, nodes: NDArray[Any]) -> None:
    """One tree in the fixed layout: node k has the children 2k + 1 and 2k + 2."""
    inner = trees.feature.shape[-1]
    waiting = [(0, 0)]  # scikit-learn's number of a node, and ours
    while waiting:
        theirs, ours = waiting.pop()
        node = nodes[theirs]
        if node["is_leaf"]:
            low, high = ours, ours  # all that lies below
            while low < inner:
                low, high = 2 * low + 1, 2 * high + 2
            trees.value[number, low - inner : high - inner + 1] = float(node["value"])
            continue
        side = 1 if node["missing_go_to_left"] else -1
        trees.feature[number, ours] = side * (int(node["feature_idx"]) + 1)
        trees.threshold[number, ours] = below(float(node["num_threshold"]))
        waiting += [(int(node["left"]), 2 * ours + 1), (int(node["right"]), 2 * ours + 2)]


def below(threshold: float) -> float:
    """The largest float32 that is not above: then the same float32 values go left."""
    near = np.float32(min(threshold, float(np.finfo(np.float32).max)))  # infinite: all that is known goes left
    return float(near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf)))


def frequencies(schema: Schema, x: Values, present: Mask) -> Tensor:
    """How often every code occurs; numbers have none."""
    most = max(1, *(levels_of(variable.domain) for variable in schema))
    out = torch.zeros(len(schema), most)
    for i, variable in enumerate(schema):
        if levels := levels_of(variable.domain):
            count = torch.bincount(x[present[:, i], i].long(), minlength=levels).float()
            out[i, :levels] = (1 - UNSEEN) * count / count.sum().clamp(min=1) + UNSEEN / levels
            out[i] /= out[i].sum()
    return out


def fit_laws(model: Boosted, kept_back: KeptBack, rng: Generator) -> None:
    """The widths of the laws around the guesses at which the test rows need the fewest nats."""
    rows = torch.arange(len(kept_back.x)).repeat(max(1, QUESTIONS // len(kept_back.x)))
    edges = kept_back.law.sample(kept_back.present[rows], rng)
    numbers = torch.tensor([isinstance(variable.domain, Recorded) for variable in model.schema])
    row, target = ((edges.weight > 0) & numbers).nonzero().unbind(-1)
    x, given = torch.where(kept_back.present, kept_back.x, 0.0)[rows], edges.given
    guess = model.guess(torch.where(given, x, torch.nan)[row], target)
    hidden = ((~given).sum(-1) - 1)[row]
    weight = edges.weight[row, target] / len(rows)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        nats = -(weight * model.around(guess, hidden, target).log_prob(x[row, target])).sum()
        optimizer.zero_grad()
        nats.backward()
        optimizer.step()
