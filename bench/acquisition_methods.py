"""Who chooses, and whose model guesses: anyorder, random and fixed orders, VAE and MIWAE with their published rewards."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from anyorder.baselines import MIWAE, VAE, LatentModel, fit_baseline
from anyorder.baselines import log_prob as latent_log_prob
from anyorder.baselines.latent_answers import weighted
from anyorder.estimator import AnyOrder
from anyorder.inference import TargetBins, information, log_prob, seeded
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.table_model import table_heads
from anyorder.models.any_order import Model
from anyorder.schema import levels_of
from anyorder.subsets import Question

DRAWS = 100  # of z, for a reward; and for a guess
BINS = 5
EDDI_DRAWS = 50


class Curve(NamedTuple):
    """Means over the test rows at every point; `cost` is what has been spent there."""

    error: NDArray[np.float64]
    log_prob: NDArray[np.float64]
    cost: NDArray[np.float64]


class Chooser(Protocol):
    """A model that can be asked: what each candidate is worth, what the targets are, how likely the truth is."""

    def reward(self, x: Tensor, given: Tensor, rng: Generator) -> Tensor: ...
    def guess(self, x: Tensor, given: Tensor) -> Tensor: ...
    def log_prob(self, x: Tensor, given: Tensor) -> Tensor: ...


@dataclass
class Problem:
    """A split of a table, and what is wanted."""

    train: pd.DataFrame
    test: pd.DataFrame
    target_names: list[str]
    prices: Mapping[str, float] | None
    seed: int
    effort: float = 1.0

    @cached_property
    def encoder(self) -> TableEncoder:
        return TableEncoder.learn(self.train)

    @cached_property
    def ours(self) -> "AnyOrderChooser":
        return AnyOrderChooser(AnyOrder(effort=self.effort, random_state=self.seed).fit(self.train).model_, self)

    def latent(self, kind: type[LatentModel]) -> LatentModel:
        """Trained once for all rewards."""
        if kind.__name__ not in self.__dict__:
            x, present = self.encoder.encode(self.train)
            model = kind.build(self.encoder.schema, table_heads(self.encoder.schema), seed=self.seed)
            fit_baseline(model, x, present)
            self.__dict__[kind.__name__] = model
        found: LatentModel = self.__dict__[kind.__name__]
        return found

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        """Test rows whose targets are known, and what of them is not a gap."""
        x, present = self.encoder.encode(self.test)
        told = present[:, self.targets].all(-1)
        return x[told], present[told]

    @property
    def targets(self) -> list[int]:
        return [self.encoder.schema.index(name) for name in self.target_names]

    @property
    def candidates(self) -> list[int]:
        return [i for i in range(len(self.encoder.columns)) if i not in self.targets]

    @property
    def price(self) -> Tensor:
        prices = self.prices or {}
        return torch.tensor([float(prices.get(column.name, 1.0)) for column in self.encoder.columns])

    @property
    def categories(self) -> bool:
        return levels_of(self.encoder.schema.variables[self.targets[0]].domain) > 0


# The loop all of them share


def follow(chooser: Chooser, problem: Problem, pick: Callable[[Tensor, Tensor], Tensor]) -> Curve:
    """From nothing known to all known; `pick(x, given)` scores the candidates of every row, the best is measured.

    A gap in the data cannot be measured: it is passed over at no cost, and the row stays as it is.
    """
    truth, present = problem.rows
    given = torch.zeros_like(present)
    open_ = torch.zeros_like(present)
    open_[:, problem.candidates] = present[:, problem.candidates]
    spent = torch.zeros(len(truth))
    points = [point(chooser, problem, given, spent)]
    for _ in problem.candidates:
        score = pick(torch.where(given, truth, torch.nan), given).masked_fill(~open_, -torch.inf)
        best = score.argmax(-1)
        go = open_.any(-1)
        rows = torch.arange(len(truth))[go]
        given[rows, best[go]] = True
        open_[rows, best[go]] = False
        spent[go] += problem.price[best[go]]
        points.append(point(chooser, problem, given, spent))
    return Curve(*(np.array(column) for column in zip(*points, strict=True)))


def point(chooser: Chooser, problem: Problem, given: Tensor, spent: Tensor) -> tuple[float, float, float]:
    truth, _ = problem.rows
    return error(chooser, problem, given), float(chooser.log_prob(truth, given).mean()), float(spent.mean())


def error(chooser: Chooser, problem: Problem, given: Tensor) -> float:
    """RMSE of numbers in training standard deviations, the share of wrong guesses of categories."""
    truth, _ = problem.rows
    guess = chooser.guess(truth, given)[:, problem.targets]
    if problem.categories:
        return float((guess != truth[:, problem.targets]).double().mean())
    train = problem.encoder.encode(problem.train)[0][:, problem.targets]
    return float(((guess - truth[:, problem.targets]) / train.std(0)).square().mean().sqrt())


# anyorder


@dataclass
class AnyOrderChooser:
    model: Model
    problem: Problem

    def reward(self, x: Tensor, given: Tensor, rng: Generator) -> Tensor:
        """Information per price, in nats."""
        out = torch.full(x.shape, -torch.inf)
        sets = [(i,) for i in self.problem.candidates]
        told = information(self.model, x, given, self.problem.targets, sets, rng, estimator=TargetBins(8))
        out[:, self.problem.candidates] = told.value.float()
        return out / self.problem.price

    @torch.no_grad()
    def guess(self, x: Tensor, given: Tensor) -> Tensor:
        asked = torch.zeros_like(given)
        asked[:, self.problem.targets] = True
        return self.model(x, given).best(at=asked)

    def log_prob(self, x: Tensor, given: Tensor) -> Tensor:
        asked = torch.zeros_like(given)
        asked[:, self.problem.targets] = True
        return log_prob(self.model, x, Question(given, asked))


def ours(problem: Problem) -> Iterable[Curve]:
    rng = seeded(problem.seed)
    yield follow(problem.ours, problem, lambda x, given: problem.ours.reward(x, given, rng))


def random_order(problem: Problem) -> Iterable[Curve]:
    """The mean of three random orders a row, and our model's guesses."""
    rng = seeded(problem.seed)
    orders = torch.rand(3, *problem.rows[0].shape, generator=rng)
    curves = [follow(problem.ours, problem, lambda x, given, order=order: order) for order in orders]  # type: ignore[misc]
    yield Curve(*(np.mean(column, axis=0) for column in zip(*curves, strict=True)))


def fixed_order(problem: Problem) -> Iterable[Curve]:
    """The same order for all rows: by information (per price) when nothing is known. Our model's guesses."""
    nothing = torch.zeros(1, problem.rows[0].shape[1], dtype=torch.bool)
    rewards = [problem.ours.reward(torch.full(nothing.shape, torch.nan), nothing, seeded(k)) for k in range(8)]
    order = torch.stack(rewards).mean(0).expand(len(problem.rows[0]), -1)
    yield follow(problem.ours, problem, lambda x, given: order)


def best_fixed_order(problem: Problem) -> Iterable[Curve]:
    """The fixed order with the least area, found with the true targets of the test rows: a bound for fixed orders.

    The area is a sum over sets that grow by one: the shortest path over all sets. Only where there are at most 8 candidates.
    """
    if len(problem.candidates) > 8 or problem.prices:
        return
    truth, present = problem.rows
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
    for size in range(len(problem.candidates) + 1):
        for chosen in combinations(problem.candidates, size):
            given = torch.zeros_like(present)
            given[:, list(chosen)] = present[:, list(chosen)]
            here = error(problem.ours, problem, given)
            ways = [(best[frozenset(chosen) - {last}], last) for last in chosen]
            area, path = min(((a + here, (*p, last)) for (a, p), last in ways), default=(here, ()))
            best[frozenset(chosen)] = (area, path)
    order = best[frozenset(problem.candidates)][1]
    rank = torch.zeros(truth.shape)
    for place, variable in enumerate(order):
        rank[:, variable] = -float(place)
    yield follow(problem.ours, problem, lambda x, given: rank)


# VAE and MIWAE


@dataclass
class LatentChooser:
    """Guesses are weighted means over draws of z; the reward is the published histogram, or EDDI's."""

    model: LatentModel
    problem: Problem
    eddi: bool = False

    @torch.no_grad()
    def reward(self, x: Tensor, given: Tensor, rng: Generator) -> Tensor:
        return (self._eddi if self.eddi else self._histogram)(x.nan_to_num(), given, rng) / self.problem.price

    def _draw(self, x: Tensor, given: Tensor, rng: Generator, draws: int) -> Tensor:
        """Whole rows from p(all | given): (draw, row, variable)."""
        nothing = torch.zeros_like(given)
        found = weighted(self.model, x, Question(given, nothing), rng, draws)
        chosen = torch.distributions.Categorical(logits=found.log_weight.T).sample((draws,))  # (draw, row)
        z = found.z.gather(0, chosen.unsqueeze(-1).expand(-1, -1, found.z.shape[-1]))
        return self.model.decode(z.flatten(0, 1)).sample(rng).unflatten(0, (draws, len(x)))

    def _histogram(self, x: Tensor, given: Tensor, rng: Generator) -> Tensor:
        """The plug-in information of drawn (x_i, y), each in five equal bins over the range of its draws."""
        drawn = self._draw(x, given, rng, DRAWS)
        low, high = drawn.amin(0), drawn.amax(0)
        codes = ((drawn - low) / (high - low).clamp(min=1e-9) * BINS).long().clamp(max=BINS - 1)
        target = torch.zeros(codes.shape[:2], dtype=torch.long)
        for i in self.problem.targets:
            target = target * BINS + codes[:, :, i]
        out = torch.full(x.shape, -torch.inf)
        for i in self.problem.candidates:
            out[:, i] = plug_in(codes[:, :, i], target)
        return out

    def _eddi(self, x: Tensor, given: Tensor, rng: Generator) -> Tensor:
        """E KL(q(z | x_i, x_G) || q(z | x_G)) - E KL(q(z | y, x_i, x_G) || q(z | y, x_G)), with the variances squared."""
        drawn = self._draw(x, given, rng, EDDI_DRAWS)
        out = torch.full(x.shape, -torch.inf)
        rows = torch.where(given, x, drawn).flatten(0, 1)
        before = given.repeat(EDDI_DRAWS, 1)
        with_y = before.clone()
        with_y[:, self.problem.targets] = True
        for i in self.problem.candidates:
            terms = []
            for known in (before, with_y):
                more = known.clone()
                more[:, i] = True
                p, q = self.model.encode(rows, more), self.model.encode(rows, known)
                terms.append(normal_kl(p.mu, p.sigma, q.mu, q.sigma).unflatten(0, (EDDI_DRAWS, len(x))).mean(0))
            out[:, i] = terms[0] - terms[1]
        return out

    @torch.no_grad()
    def guess(self, x: Tensor, given: Tensor) -> Tensor:
        found = weighted(self.model, x.nan_to_num(), Question(given, torch.zeros_like(given)), seeded(0), DRAWS)
        distributions = self.model.decode(found.z.flatten(0, 1))
        weight = found.log_weight.exp()
        if not self.problem.categories:
            return (weight.unsqueeze(-1) * distributions.mean().unflatten(0, weight.shape)).sum(0)
        out = torch.zeros(x.shape)
        for i in self.problem.targets:
            pmf = distributions.distribution(i).pmf().unflatten(0, weight.shape)  # type: ignore[attr-defined]
            out[:, i] = (weight.unsqueeze(-1) * pmf).sum(0).argmax(-1).float()
        return out

    def log_prob(self, x: Tensor, given: Tensor) -> Tensor:
        asked = torch.zeros_like(given)
        asked[:, self.problem.targets] = True
        return latent_log_prob(self.model, x, Question(given, asked), seeded(0), 500)


def plug_in(a: Tensor, b: Tensor) -> Tensor:
    """The information of two codes in the counts of their pairs: (draw, row) -> (row)."""
    both = torch.zeros(a.shape[1], int(a.max()) + 1, int(b.max()) + 1)
    row = torch.arange(a.shape[1]).expand_as(a)
    both.index_put_((row.flatten(), a.flatten(), b.flatten()), torch.ones(a.numel()), accumulate=True)
    p = both / len(a)
    alone = p.sum(2, keepdim=True) * p.sum(1, keepdim=True)
    return torch.where(p > 0, p * (p / alone.clamp(min=1e-12)).log(), 0.0).sum((1, 2))


def normal_kl(mu: Tensor, sigma: Tensor, other_mu: Tensor, other_sigma: Tensor) -> Tensor:
    ratio = (sigma / other_sigma).square()
    return 0.5 * (ratio + ((mu - other_mu) / other_sigma).square() - 1 - ratio.log()).sum(-1)


def latent(kind: type[LatentModel], eddi: bool = False) -> Callable[[Problem], Iterable[Curve]]:
    def method(problem: Problem) -> Iterable[Curve]:
        chooser, rng = LatentChooser(problem.latent(kind), problem, eddi), seeded(problem.seed)
        torch.manual_seed(problem.seed)
        yield follow(chooser, problem, lambda x, given: chooser.reward(x, given, rng))

    return method


def latent_random(kind: type[LatentModel]) -> Callable[[Problem], Iterable[Curve]]:
    def method(problem: Problem) -> Iterable[Curve]:
        once = torch.rand(problem.rows[0].shape, generator=seeded(problem.seed))
        yield follow(LatentChooser(problem.latent(kind), problem), problem, lambda x, given: once)

    return method


METHODS: dict[str, Callable[[Problem], Iterable[Curve]]] = {
    "anyorder": ours,
    "anyorder, random order": random_order,
    "anyorder, fixed order": fixed_order,
    "anyorder, best fixed order": best_fixed_order,
    "MIWAE": latent(MIWAE),
    "VAE": latent(VAE),
    "VAE, EDDI's reward": latent(VAE, eddi=True),
    "MIWAE, random order": latent_random(MIWAE),
}
