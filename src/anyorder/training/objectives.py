"""How far along its path a row stops to practise."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor

from ..errors import InputError
from ..models.any_order import Context
from ..schema import Mask
from ..subsets import (
    AnySize,
    CanonicalOrder,
    Everything,
    NamedOrder,
    OneByOne,
    Order,
    Question,
    QuestionDistribution,
    RandomOrder,
    Schedule,
    mode_and_step,
)
from ..subsets.questions import check_weights, pick, stratified

TargetCounts = Int[Tensor, "batch 1"]


class Stopped(NamedTuple):
    """Where each row stops: targets done, targets revealed next, and what makes the loss the path's nats."""

    done: TargetCounts
    size: TargetCounts
    factor: Shaped[Tensor, "batch 1"]


class Depth(ABC):
    """A distribution over places on a path."""

    @abstractmethod
    def stop(self, question: Question, rng: Generator) -> Stopped:
        """A place for every row. Rows should come in random order: the places are spread evenly over the batch."""


@final
@dataclass(frozen=True)
class AnyStep(Depth):
    """Every step of the path is equally likely."""

    schedule: Schedule = OneByOne()

    def stop(self, question: Question, rng: Generator) -> Stopped:
        u = stratified(len(question), rng).unsqueeze(-1)
        stop = self.schedule.step(question.count, u)
        return Stopped(stop.done, stop.size, stop.steps)


@final
@dataclass(frozen=True)
class RandomTime(Depth):
    """Each target is hidden with probability t, for t uniform on (0, 1] (MDLM): m hidden ones count m / t."""

    def stop(self, question: Question, rng: Generator) -> Stopped:
        time = 1 - stratified(len(question), rng).unsqueeze(-1)
        count = question.count
        left = torch.binomial(count.double(), time, generator=rng).long()
        return Stopped(count - left, left.clamp(max=1), left / time)


@final
@dataclass(frozen=True)
class DeeperStep(Depth):
    r"""A step with s targets done is 1 + s times as likely: cardinality reweighting inside a path that begins with nothing.

    The first k steps hold :math:`k (k + 1) / 2` of the mass; u is sought in that.
    """

    def stop(self, question: Question, rng: Generator) -> Stopped:
        count = question.count
        mass = stratified(len(question), rng).unsqueeze(-1) * (count * (count + 1) / 2)
        done = ((0.25 + 2 * mass).sqrt() - 0.5).floor().long().minimum((count - 1).clamp(min=0))
        return Stopped(done, count.clamp(max=1), count)


Weights = Float[Tensor, "batch variable"]
EULER = 0.5772156649015329


@final
@dataclass(frozen=True)
class Draw:
    """All that was drawn for a batch, and the objectives it was drawn from."""

    questions: QuestionDistribution
    order: Order
    present: Mask
    question: Question
    done: Mask
    given: Mask
    stopped: Stopped


class Weighing(ABC):
    """From all that was drawn to the weights of the hidden variables."""

    @abstractmethod
    def __call__(self, draw: Draw) -> Weights:
        """One weight per cell, 0 for what is not practised."""


@final
@dataclass(frozen=True)
class NextEdges(Weighing):
    """The edges the path takes next, by their probability: the expected loss is the nats of the question."""

    def __call__(self, draw: Draw) -> Weights:
        return draw.stopped.factor * draw.order.next_probs(draw.question, draw.done, draw.stopped.size)


@final
@dataclass(frozen=True)
class EveryHidden(Weighing):
    """Every hidden variable counts 1 (ACE)."""

    def __call__(self, draw: Draw) -> Weights:
        return hidden(draw)


@final
@dataclass(frozen=True)
class MeanOfHidden(Weighing):
    """Every hidden variable counts 1 / their number (MAC, eq. 7), whether the path leads there or not."""

    def __call__(self, draw: Draw) -> Weights:
        counted = hidden(draw)
        return counted / counted.sum(-1, keepdim=True).clamp(min=1)


@final
@dataclass(frozen=True)
class AllNextEdges(Weighing):
    r"""All edges that some question's path takes from here, by their exact posterior mass (MAC-RB).

    For `AnySize` and a canonical order, a set of s variables whose last stands at place l (of 0 .. n-1 in that order)
    is left towards the variable at place j > l, and the sum over all questions has a closed form:

    .. math:: w_j = \frac{(n + 1) \, B(s + 2, j - s + 1)}{B(s, l - s + 2) - B(s, n - s + 1)}

    with the n-th harmonic number as the denominator for s = 0. Other questions fix the next edges by themselves,
    or have no such form: there the edges of the drawn question are taken.
    """

    def __call__(self, draw: Draw) -> Weights:
        if not (draw.questions == AnySize() and isinstance(draw.order, CanonicalOrder)):
            return NextEdges()(draw)
        n = draw.present.sum(-1, keepdim=True)
        s = draw.done.sum(-1, keepdim=True)
        place = draw.order.count_along(draw.present) - 1  # among the present variables
        last = torch.where(draw.done, place, -1).amax(-1, keepdim=True)
        log_factorial = log_factorials(draw.present.shape[1] + 1).to(n.device)
        log_mass = self._log_arrival(s, last, n, log_factorial) - torch.log(n + 1.0)
        # log B(s + 2, j - s + 1), with the part that is the same for the whole row taken together first
        onward = log_factorial[(place - s).clamp_(min=0)] - log_factorial[place + 2] + (log_factorial[s + 1] - log_mass)
        return onward.float().exp_().masked_fill_(~draw.present | (place <= last), 0.0)

    def _log_arrival(self, s: Tensor, last: Tensor, n: Tensor, log_factorial: Tensor) -> Tensor:
        """The denominator: how likely this set is to be stopped at, times n."""
        stay = log_factorial[(last - s + 1).clamp(min=0)] - log_factorial[last + 1]  # log B(s, last - s + 2) / (s - 1)!
        full = log_factorial[(n - s).clamp(min=0)] - log_factorial[n]  # log B(s, n - s + 1) / (s - 1)!
        difference = stay + torch.log(-torch.expm1((full - stay).clamp(max=-1e-12)))
        harmonic = torch.special.digamma(n + 1.0) + EULER
        return torch.where(s == 0, harmonic.clamp(min=1).log(), log_factorial[(s - 1).clamp(min=0)] + difference)


def log_factorials(most: int) -> Float[Tensor, " number"]:
    """log 0!, log 1!, ..., log most!"""
    return torch.lgamma(torch.arange(1, most + 2, dtype=torch.float64))


def hidden(draw: Draw) -> Weights:
    return (draw.present & ~draw.given).float()


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


class Objective(ABC):
    """A training objective."""

    @abstractmethod
    def sample(self, present: Mask, rng: Generator) -> Edges:
        """What each row practises this time."""

    @abstractmethod
    def nats(self) -> "Objective":
        """The objective whose expected loss is the nats of this objective's questions, for held-out scores."""

    def named(self, orders: Mapping[str, Order]) -> "Objective":
        """The same with orders in the place of their names."""
        return self

    def modes(self) -> tuple[str, ...]:
        """What it tells the network besides the data: the names of SFARM's modes, if it has modes."""
        return ()

    def untold(self) -> "Objective":
        """The same without telling the network of modes."""
        return self


@final
@dataclass(frozen=True)
class PathObjective(Objective):
    """A question, its path, a place on the path, and the edges that leave from there."""

    questions: QuestionDistribution = Everything()
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

    def nats(self) -> Objective:
        return replace(self, weigh=NextEdges())

    def named(self, orders: Mapping[str, Order]) -> "PathObjective":
        return replace(self, order=self.order.of(orders)) if isinstance(self.order, NamedOrder) else self

    def modes(self) -> tuple[str, ...]:
        name = self.order.name if isinstance(self.order, NamedOrder) else repr(self.order)
        return () if self.mode is None else (name,)

    def untold(self) -> "PathObjective":
        return replace(self, mode=None)


# Objectives made of objectives


@final
@dataclass(frozen=True)
class Resampled(Objective):
    """The paper's cardinality reweighting: of many candidates one is taken, by weight 1 + number of given variables.

    The candidates are a row's own, so that rows with different gaps keep their own masks.
    """

    inner: Objective
    candidates: int = 100

    def sample(self, present: Mask, rng: Generator) -> Edges:
        # Candidate by candidate, not row by row: depths are spread evenly over the batch, so a row's own must lie far apart.
        pool = self.inner.sample(present.repeat(self.candidates, 1), rng)
        score = ((1.0 + pool.given.sum(-1)) * pool.weight.any(-1)).view(self.candidates, -1).T + 1e-30
        chosen = torch.multinomial(score, 1, generator=rng).squeeze(-1)
        rows = chosen * len(present) + torch.arange(len(present), device=present.device)
        return pool[rows]

    def nats(self) -> Objective:
        return self.inner.nats()

    def named(self, orders: Mapping[str, Order]) -> Objective:
        return replace(self, inner=self.inner.named(orders))

    def modes(self) -> tuple[str, ...]:
        return self.inner.modes()

    def untold(self) -> Objective:
        return replace(self, inner=self.inner.untold())


@final
@dataclass(frozen=True)
class Reweighted(Objective):
    """Cardinality reweighting in closed form: longer questions, and deeper places on their paths."""

    inner: PathObjective

    def __post_init__(self) -> None:
        if self.inner.questions.longer() is None or self.inner.depth != AnyStep():
            raise InputError(
                f"Cardinality reweighting has no closed form for {self.inner.questions} with {self.inner.depth}. "
                "Use resampled(...) instead."
            )

    def sample(self, present: Mask, rng: Generator) -> Edges:
        longer = self.inner.questions.longer() or self.inner.questions
        return replace(self.inner, questions=longer, depth=DeeperStep()).sample(present, rng)

    def nats(self) -> Objective:
        return self.inner.nats()

    def named(self, orders: Mapping[str, Order]) -> Objective:
        return replace(self, inner=self.inner.named(orders))


@final
@dataclass(frozen=True)
class MixtureOfObjectives(Objective):
    """One of several objectives for every row, with these weights (equal if none are given)."""

    samplers: Sequence[Objective]
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
                "Some objectives of the mixture tell the network a mode and some do not: give all of them a mode, or none."
            )
        return Edges(
            torch.cat([part.given for part in parts])[back],
            torch.cat([part.weight for part in parts])[back],
            torch.cat(contexts)[back] if contexts else None,
        )

    def nats(self) -> Objective:
        return replace(self, samplers=[sampler.nats() for sampler in self.samplers])

    def named(self, orders: Mapping[str, Order]) -> Objective:
        return replace(self, samplers=[sampler.named(orders) for sampler in self.samplers])

    def modes(self) -> tuple[str, ...]:
        return tuple(mode for sampler in self.samplers for mode in sampler.modes())

    def untold(self) -> Objective:
        return replace(self, samplers=[sampler.untold() for sampler in self.samplers])


# The presets: what each paper trains


def ardm(questions: QuestionDistribution = Everything()) -> PathObjective:
    """Any number of given variables, any set of that number; hidden ones weigh D / (D - t). https://arxiv.org/abs/2110.02037"""
    return PathObjective(questions, RandomOrder(), AnyStep(), NextEdges())


def mdlm(questions: QuestionDistribution = Everything()) -> PathObjective:
    """Each variable hidden with probability t, weight 1 / t: ARDM's bound by another estimate.
    https://arxiv.org/abs/2406.07524
    """
    return PathObjective(questions, RandomOrder(), RandomTime(), NextEdges())


def ace(questions: QuestionDistribution = Everything()) -> PathObjective:
    """ARDM's masks, but every hidden variable weighs 1. https://arxiv.org/abs/2102.04426"""
    return PathObjective(questions, RandomOrder(), AnyStep(), EveryHidden())


def mac(questions: QuestionDistribution = AnySize(), order: Order = CanonicalOrder()) -> PathObjective:
    """Prefixes of the questions' own paths, mean over all hidden variables, as the paper samples.
    https://arxiv.org/abs/2205.13554
    """
    return PathObjective(questions, order, AnyStep(), MeanOfHidden())


def mac_exact(questions: QuestionDistribution = AnySize(), order: Order = CanonicalOrder()) -> PathObjective:
    """MAC with the edge mass of its equations 5 and 6: only the next edge, weighted by the length of the path."""
    return PathObjective(questions, order, AnyStep(), NextEdges())


def mac_all_edges(questions: QuestionDistribution = AnySize(), order: Order = CanonicalOrder()) -> PathObjective:
    """The same expected loss as `mac_exact` with less noise: all legal next edges by their posterior mass."""
    return PathObjective(questions, order, AnyStep(), AllNextEdges())


def sfarm(
    orders: Sequence[Order | str], questions: QuestionDistribution = Everything(), schedule: Schedule = OneByOne()
) -> Objective:
    """One of several modes a row, each an order, with mode and step as context; several variables per step by `schedule`.

    Of images an order may be told by its name: uniform, left, right, top, bottom, interior, exterior (what is revealed first).
    """
    modes = [NamedOrder(order) if isinstance(order, str) else order for order in orders]
    return MixtureOfObjectives(
        [PathObjective(questions, order, AnyStep(schedule), NextEdges(), m) for m, order in enumerate(modes)]
    )


def mixture(*samplers: Objective, weights: tuple[float, ...] = ()) -> Objective:
    """Several objectives side by side: half ARDM, half MAC is a safe default for tables."""
    return MixtureOfObjectives(samplers, weights)


def resampled(sampler: Objective, candidates: int = 100) -> Objective:
    """Masks with e given variables made 1 + e times as likely, by sampling-importance-resampling as in MAC's paper."""
    return Resampled(sampler, candidates)


def reweighted(sampler: PathObjective) -> Objective:
    """Masks with e given variables made 1 + e times as likely, in closed form: exact, and a hundred times cheaper."""
    return Reweighted(sampler)
