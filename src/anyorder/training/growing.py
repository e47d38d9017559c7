"""How boosted trees are grown: on whole rows and on copies with gaps; scikit-learn grows them, we keep their numbers."""

import os
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits
from torch import Generator, Tensor

from ..models.memory import UNSEEN
from ..models.trees import LARGEST_THRESHOLD, Boosted, Grown, Trees, score_sets
from ..schema import Mask, Recorded, Schema, Values, levels_of
from .blending import Background
from .loop import usual_loss
from .objectives import Objective

TREES, DEPTH = 200, 6
FOR_GAPS: dict[str, float] = {}  # scikit-learn's defaults
FOR_WHOLE_ROWS: dict[str, float] = {"learning_rate": 0.2, "max_leaf_nodes": 8, "min_samples_leaf": 2}
FOR_CODES: dict[str, float] = {"learning_rate": 0.15, "max_leaf_nodes": 15, "l2_regularization": 20.0}
ROUNDS, LEAST_ROWS = 60, 50  # of trees for the scores of codes, and rows of which fewer grow none
SURENESS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
MOSTLY, CLEARLY = 0.5, 0.95  # the share of the rows that must be whole, and of the error that may remain
SHARES_OF_GAPS = (0.0, 0.0, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5)  # the share hidden in every copy of the rows
FEW_GAPS = (0.0, 0.25)  # the same for codes
MOST_TREE_ROWS = 32_768  # to grow a tree on, copies included
MOST_SCORED = 2**17  # the same for codes, times the trees of a round
SURENESS_QUESTIONS, SURENESS_STEPS = 1024, 150
FAITH = 2.0  # nats for a distribution whose mean is as far from the guess as the guess usually is from the truth
NEVER = -30.0  # the score of a level that nobody has


class KeptBack(NamedTuple):
    """Rows that no tree has seen, to learn how far guesses are off."""

    x: Values
    present: Mask
    objective: Objective


class TrainingRows(NamedTuple):
    """What scikit-learn learns from; NaN is a gap."""

    inputs: NDArray[np.float64]
    values: NDArray[np.float64]


def fit_boosted(
    schema: Schema, grown: Grown, x: Values, present: Mask, kept_back: KeptBack, rng: Generator, steps: int = SURENESS_STEPS
) -> Boosted:
    """Trees grown on (x, present), and the distributions around their guesses from `kept_back`."""
    model = Boosted(schema, grown, frequencies(schema, x, present))
    if len(model.trusted):
        trust_what_is_better(model, kept_back)
        fit_distributions(model, kept_back, rng, steps)
    fit_sureness(model, kept_back)
    return model.eval()


@torch.no_grad()
def fit_sureness(model: Boosted, kept_back: KeptBack) -> None:
    """How far scores must be drawn together so that rows no tree has seen need the fewest nats."""
    seen = torch.where(kept_back.present, kept_back.x, torch.nan)
    for target in range(len(model.schema)):
        rows = kept_back.present[:, target]
        if not model.scores[target] or not rows.any():
            continue
        scores, truth = model.level_scores(seen[rows], target), kept_back.x[rows, target].long()
        nats = [torch.nn.functional.cross_entropy(sure * scores, truth) for sure in SURENESS]
        model.sureness[target] = SURENESS[int(torch.stack(nats).argmin())]


def trust_what_is_better(model: Boosted, kept_back: KeptBack) -> None:
    """Use the trees for whole rows where they come clearly nearer to rows they have not seen; in noise they do not."""
    x = kept_back.x[kept_back.present.all(-1)]
    numbers = [place for place, variable in enumerate(model.schema) if isinstance(variable.domain, Recorded)]
    for number, target in enumerate(numbers):
        seen = x.clone()
        seen[:, target] = torch.nan
        sets = (torch.full((len(x),), place) for place in (number, len(numbers) + number))
        for_gaps, for_whole = ((model.guess(seen, which) - x[:, target]).square().sum() for which in sets)
        model.trusted[number] = float(for_whole < CLEARLY * for_gaps)


class Growing(NamedTuple):
    """Trees that grow while other models are trained, one job for every variable."""

    trees: Grown
    jobs: list[Future[None]]

    def grown(self) -> Grown:
        """When all of them are done."""
        for job in self.jobs:
            job.result()
        return self.trees


def start_growing(by: Background, schema: Schema, x: Values, present: Mask, rng: Generator, count: int = TREES) -> Growing:
    """For every variable the trees that guess it from all others."""
    numbers = [place for place, variable in enumerate(schema) if isinstance(variable.domain, Recorded)]
    scores, rounds = score_sets(schema), max(1, ROUNDS * count // TREES)
    trees = Grown(Trees.empty(2 * len(numbers), count, DEPTH), Trees.empty(scores[-1].stop, rounds, DEPTH))
    seeds = torch.randint(2**31, (len(schema),), generator=rng).tolist()
    jobs = []
    for target in range(len(schema)):
        if target in numbers:
            for_gaps, for_whole = (trees.numbers.of(half + numbers.index(target)) for half in (0, len(numbers)))
            jobs.append(by.start(grow_number, for_gaps, for_whole, x, present, target, seeds[target]))
        elif scores[target]:
            mine = trees.codes.of(slice(scores[target].start, scores[target].stop))
            jobs.append(by.start(grow_code, mine, x, present, target, seeds[target]))
    return Growing(trees, jobs)


def grow(schema: Schema, x: Values, present: Mask, rng: Generator, count: int = TREES) -> Grown:
    """The same, at once."""
    with Background() as by:
        return start_growing(by, schema, x, present, rng, count).grown()


def grow_code(trees: Trees, x: Values, present: Mask, target: int, seed: int) -> None:
    """The trees for the scores of a code's levels; those that nobody has stay far below all others."""
    rows = present[:, target]
    trees.base.fill_(NEVER if len(trees.base) > 1 else 0.0)
    levels = x[rows, target].unique()
    if rows.sum() < LEAST_ROWS or len(levels) < 2:
        trees.base.fill_(0.0)
        return
    most = max(MOST_TREE_ROWS, MOST_SCORED // len(trees.base))
    table = copies(x[rows], present[rows], target, Generator().manual_seed(seed), FEW_GAPS, most)
    inputs = np.where(np.isnan(table.inputs).all(0), 0.0, table.inputs)
    enough = len(table.values) >= 200 and np.unique(table.values, return_counts=True)[1].min() >= 2
    settings = {"max_iter": trees.value.shape[1], "max_depth": DEPTH, "early_stopping": enough, **FOR_CODES}
    grown = HistGradientBoostingClassifier(**settings, random_state=seed)
    with one_less_thread():
        grown.fit(inputs, table.values)
    bases = grown._baseline_prediction.ravel()
    for place, level in enumerate(grown.classes_.astype(int).tolist() if len(bases) > 1 else [0]):
        one = trees.of(min(level, len(trees.base) - 1))
        one.base.fill_(float(bases[place]))
        write_down(one, [predictors[place].nodes for predictors in grown._predictors])


def one_less_thread() -> Any:
    """Of this thread alone."""
    return threadpool_limits(max(1, (os.cpu_count() or 1) - 1), user_api="openmp")


def grow_number(for_gaps: Trees, for_whole: Trees, x: Values, present: Mask, target: int, seed: int) -> None:
    """Both sets of trees of a number; where few rows are whole, the second one stays empty, and will not be trusted."""
    rows = present[:, target]
    if rows.sum() < 2:
        return
    grow_one(for_gaps, copies(x[rows], present[rows], target, Generator().manual_seed(seed)), FOR_GAPS, seed)
    others = present.clone()
    others[:, target] = True
    whole = rows & others.all(-1)
    if whole.sum() < MOSTLY * rows.sum():
        return
    once = copies(x[whole], present[whole], target, Generator().manual_seed(seed), (0.0,))
    grow_one(for_whole, once, FOR_WHOLE_ROWS, seed)


def grow_one(trees: Trees, table: TrainingRows, settings: dict[str, float], seed: int) -> None:
    """Let scikit-learn grow a set of trees and write them down.

    Only its private attributes hold the trees; the tests compare ours with its predictions.
    """
    inputs = np.where(np.isnan(table.inputs).all(0), 0.0, table.inputs)  # the target itself, and what is never known
    settings = {"max_iter": len(trees.value), "max_depth": DEPTH, "early_stopping": False, **settings}
    grown = HistGradientBoostingRegressor(**settings, random_state=seed)
    with one_less_thread():
        grown.fit(inputs, table.values)
    trees.base.fill_(float(grown._baseline_prediction.item()))
    write_down(trees, [predictor.nodes for (predictor,) in grown._predictors])


def copies(
    x: Values, present: Mask, target: int, rng: Generator, gaps: Sequence[float] = SHARES_OF_GAPS, most: int = MOST_TREE_ROWS
) -> TrainingRows:
    """The rows once for every share of gaps, or a part of a large table; NaN is a gap."""
    rows, share = torch.arange(len(x)).repeat(len(gaps)), torch.tensor(gaps).repeat_interleave(len(x))
    if len(rows) > most:
        some = torch.randperm(len(rows), generator=rng)[:most]
        rows, share = rows[some], share[some]
    shown = present[rows] & (torch.rand(len(rows), x.shape[1], generator=rng) >= share[:, None])
    shown[:, target] = False
    return TrainingRows(torch.where(shown, x[rows], torch.nan).double().numpy(), x[rows, target].double().numpy())


def write_down(trees: Trees, grown: list[NDArray[Any]]) -> None:
    """All trees level by level in the fixed layout: node k has the children 2k + 1 and 2k + 2. What lies below a leaf is it."""
    sizes = [len(nodes) for nodes in grown]
    nodes, first = np.concatenate(grown), np.cumsum([0, *sizes[:-1]])[:, None]
    feature, threshold, value = (tensor[: len(grown)] for tensor in trees[:3])  # it may have stopped early
    here = first  # the number among all nodes, of every tree and place of this level
    for level in range(DEPTH):
        node, places = nodes[here], slice(2**level - 1, 2 ** (level + 1) - 1)
        leaf = node["is_leaf"] == 1
        side = np.where(node["missing_go_to_left"], 1, -1)
        feature[:, places] = torch.from_numpy(np.where(leaf, 1, side * (node["feature_idx"].astype(int) + 1))).float()
        threshold[:, places] = torch.from_numpy(np.where(leaf, LARGEST_THRESHOLD, below(node["num_threshold"])))
        children = [np.where(leaf, here, first + node[child]) for child in ("left", "right")]
        here = np.stack(children, axis=-1).reshape(len(grown), -1)
    value[:] = torch.from_numpy(nodes["value"][here])


def below(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above: then the same float32 values go left."""
    near = np.minimum(threshold, LARGEST_THRESHOLD).astype(np.float32)  # infinite: all that is known goes left
    return np.where(near <= threshold, near, np.nextafter(near, np.float32(-np.inf)))


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


def fit_distributions(model: Boosted, kept_back: KeptBack, rng: Generator, steps: int) -> None:
    """The widths of the distributions around the guesses at which the test rows need the fewest nats.

    A wide distribution that ends at a bound has its mean elsewhere: that costs nats too, since nobody guesses a number better.
    """
    rows = torch.arange(len(kept_back.x)).repeat(max(1, SURENESS_QUESTIONS // len(kept_back.x)))
    edges = kept_back.objective.sample(kept_back.present[rows], rng)
    numbers = torch.tensor([isinstance(variable.domain, Recorded) for variable in model.schema])
    row, target = ((edges.weight > 0) & numbers).nonzero().unbind(-1)
    x, given = torch.where(kept_back.present, kept_back.x, 0.0)[rows], edges.given
    hidden = ((~given).sum(-1) - 1)[row]
    which = model.set_of(target, hidden)
    guess = model.within(model.guess(torch.where(given, x, torch.nan)[row], which), target)
    weight, truth = edges.weight[row, target] / len(rows), x[row, target]
    usual = usual_loss((guess - truth).square().unsqueeze(-1), which, 2 * len(model.trusted))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        distribution = model.around(guess, hidden, which, target)
        loss = -distribution.log_prob(truth) + FAITH * (distribution.mean() - guess).square() / usual
        optimizer.zero_grad()
        (weight * loss).sum().backward()
        optimizer.step()
