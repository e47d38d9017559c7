r"""Which edges of the lattice are practised: the training laws of the papers, each one line.

A law draws, for every row, a set of given variables G and weights on the hidden ones; the loss is
:math:`-\sum_j w_j \log p(x_j \mid x_G)`. All laws walk the same way: draw a question, stop somewhere on its path,
weigh the edges that leave from there. They differ in the four choices a `PathSampler` holds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Generator, Tensor

from ..errors import InputError
from ..model import Context
from ..schema import Mask
from ..subsets import AnySize, Blocks, CanonicalOrder, Everything, OneByOne, Order, Questions, RandomOrder, mode_and_step
from ..subsets.draws import check_weights, pick
from .depths import AnyStep, DeeperStep, Depth, RandomTime
from .weights import AllNextEdges, Draw, EveryHidden, MeanOfHidden, NextEdges, Weighing, Weights


@final
@dataclass(frozen=True)
class Edges:
    """What a row is shown, how much each hidden variable's loss counts, and what is no variable: SFARM's mode and step."""

    given: Mask
    weight: Weights
    context: Context | None = None

    @classmethod
    def none(cls) -> "Edges":
        return cls(torch.zeros(0, 0, dtype=torch.bool), torch.zeros(0, 0))

    def __getitem__(self, rows: Tensor | slice) -> "Edges":
        return Edges(self.given[rows], self.weight[rows], None if self.context is None else self.context[rows])


class EdgeSampler(ABC):
    """A training law."""

    @abstractmethod
    def sample(self, present: Mask, rng: Generator) -> Edges:
        """What each row practises this time."""

    @abstractmethod
    def nats(self) -> "EdgeSampler":
        """The law whose expected loss is the nats of this law's questions, for held-out scores."""


@final
@dataclass(frozen=True)
class PathSampler(EdgeSampler):
    """A question, its path, a place on the path, and the edges that leave from there."""

    questions: Questions = Everything()
    order: Order = RandomOrder()
    depth: Depth = AnyStep()
    weigh: Weighing = NextEdges()
    mode: int | None = None  # set: the network is told the mode and the step

    def sample(self, present: Mask, rng: Generator) -> Edges:
        question = self.questions.sample(present, rng)
        stopped = self.depth.stop(question, rng)
        done = self.order.prefix(question, stopped.done, rng)
        given = question.given | done
        weight = self.weigh(Draw(self.questions, self.order, present, question, done, given, stopped))
        return Edges(given, weight.float(), None if self.mode is None else mode_and_step(self.mode, given))

    def nats(self) -> EdgeSampler:
        return replace(self, weigh=NextEdges())


# Laws made of laws


@final
@dataclass(frozen=True)
class Resampled(EdgeSampler):
    """The paper's cardinality reweighting: of many candidates one is taken, by weight 1 + number of given variables.

    The candidates are a row's own, so that rows with different gaps keep their own masks.
    """

    inner: EdgeSampler
    candidates: int = 100

    def sample(self, present: Mask, rng: Generator) -> Edges:
        # Candidate by candidate, not row by row: depths are spread evenly over the batch, so a row's own must lie far apart.
        pool = self.inner.sample(present.repeat(self.candidates, 1), rng)
        score = ((1.0 + pool.given.sum(-1)) * pool.weight.any(-1)).view(self.candidates, -1).T + 1e-30
        chosen = torch.multinomial(score, 1, generator=rng).squeeze(-1)
        rows = chosen * len(present) + torch.arange(len(present), device=present.device)
        return pool[rows]

    def nats(self) -> EdgeSampler:
        return self.inner.nats()


@final
@dataclass(frozen=True)
class Reweighted(EdgeSampler):
    """Cardinality reweighting in closed form: longer questions, and deeper places on their paths."""

    inner: PathSampler

    def __post_init__(self) -> None:
        if self.inner.questions.longer() is None or self.inner.depth != AnyStep():
            raise InputError(
                f"Cardinality reweighting has no closed form for {self.inner.questions} with {self.inner.depth}. "
                "Use resampled(...) instead."
            )

    def sample(self, present: Mask, rng: Generator) -> Edges:
        longer = self.inner.questions.longer() or self.inner.questions
        return replace(self.inner, questions=longer, depth=DeeperStep()).sample(present, rng)

    def nats(self) -> EdgeSampler:
        return self.inner.nats()


@final
@dataclass(frozen=True)
class MixtureOfSamplers(EdgeSampler):
    """One of several laws for every row, with these weights (equal if none are given)."""

    samplers: Sequence[EdgeSampler]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_weights("The mixture", len(self.samplers), self.weights)

    def sample(self, present: Mask, rng: Generator) -> Edges:
        chosen = pick(self.weights or (1.0,) * len(self.samplers), len(present), rng)
        rows = [(chosen == i).nonzero().squeeze(-1) for i in range(len(self.samplers))]
        parts = [sampler.sample(present[r], rng) for sampler, r in zip(self.samplers, rows, strict=True)]
        back = torch.cat(rows).argsort()
        contexts = [part.context for part in parts if part.context is not None]
        if contexts and len(contexts) < len(parts):
            raise InputError(
                "Some laws of the mixture tell the network a mode and some do not: give all of them a mode, or none."
            )
        return Edges(
            torch.cat([part.given for part in parts])[back],
            torch.cat([part.weight for part in parts])[back],
            torch.cat(contexts)[back] if contexts else None,
        )

    def nats(self) -> EdgeSampler:
        return replace(self, samplers=[sampler.nats() for sampler in self.samplers])


# The presets: what each paper trains


def ardm(questions: Questions = Everything()) -> PathSampler:
    """Any number of given variables, any set of that number; hidden ones weigh D / (D - t). https://arxiv.org/abs/2110.02037"""
    return PathSampler(questions, RandomOrder(), AnyStep(), NextEdges())


def mdlm(questions: Questions = Everything()) -> PathSampler:
    """Each variable hidden with probability t, weight 1 / t: ARDM's bound by another estimate. https://arxiv.org/abs/2406.07524"""
    return PathSampler(questions, RandomOrder(), RandomTime(), NextEdges())


def ace(questions: Questions = Everything()) -> PathSampler:
    """ARDM's masks, but every hidden variable weighs 1. https://arxiv.org/abs/2102.04426"""
    return PathSampler(questions, RandomOrder(), AnyStep(), EveryHidden())


def mac(questions: Questions = AnySize(), order: Order = CanonicalOrder()) -> PathSampler:
    """Prefixes of the questions' own paths, mean over all hidden variables, as the paper samples. https://arxiv.org/abs/2205.13554"""
    return PathSampler(questions, order, AnyStep(), MeanOfHidden())


def mac_exact(questions: Questions = AnySize(), order: Order = CanonicalOrder()) -> PathSampler:
    """MAC with the edge mass of its equations 5 and 6: only the next edge, weighted by the length of the path."""
    return PathSampler(questions, order, AnyStep(), NextEdges())


def mac_all_edges(questions: Questions = AnySize(), order: Order = CanonicalOrder()) -> PathSampler:
    """The same expected loss as `mac_exact` with less noise: all legal next edges by their posterior mass."""
    return PathSampler(questions, order, AnyStep(), AllNextEdges())


def sfarm(orders: Sequence[Order], questions: Questions = Everything(), blocks: Blocks = OneByOne()) -> EdgeSampler:
    """One of several modes a row, each an order, with mode and step as context; several variables per step by `blocks`."""
    return MixtureOfSamplers([PathSampler(questions, order, AnyStep(blocks), NextEdges(), m) for m, order in enumerate(orders)])


def mixture(*samplers: EdgeSampler, weights: tuple[float, ...] = ()) -> EdgeSampler:
    """Several laws side by side: half ARDM, half MAC is a safe default for tables."""
    return MixtureOfSamplers(samplers, weights)


def resampled(sampler: EdgeSampler, candidates: int = 100) -> EdgeSampler:
    """Masks with e given variables made 1 + e times as likely, by sampling-importance-resampling as in MAC's paper."""
    return Resampled(sampler, candidates)


def reweighted(sampler: PathSampler) -> EdgeSampler:
    """Masks with e given variables made 1 + e times as likely, in closed form: exact, and a hundred times cheaper."""
    return Reweighted(sampler)
