"""In which order the targets of a question are revealed: MAC's decomposition protocol, SFARM's activation mechanism."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, final, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..schema import Mask
from .questions import Question, check_weights, pick, smallest, uniform

Ranks = Int[Tensor, "batch variable"]  # 0 = first; what is not a target comes after all targets
TargetCounts = Int[Tensor, "batch 1"]


@runtime_checkable
class HasEntropy(Protocol):
    """What an adaptive order looks at: the distributions of all variables given what is known so far."""

    def entropy(self) -> Float[Tensor, "batch variable"]: ...


class Order(ABC):
    """A distribution over the orders in which a question's targets are revealed, independent of hidden values."""

    adaptive: ClassVar[bool] = False  # True: the order looks at the model on the way, so its steps cannot be run in parallel

    @abstractmethod
    def rank(self, question: Question, rng: Generator) -> Ranks:
        """When each target is revealed, row by row: 0, 1, 2, ..."""

    @abstractmethod
    def next_probs(self, question: Question, done: Mask, count: TargetCounts | int = 1) -> Float[Tensor, "batch variable"]:
        """How likely each variable is to be among the next `count` revealed, once the targets `done` are."""

    @abstractmethod
    def log_reach(self, question: Question, done: Mask) -> Float[Tensor, " batch"]:
        """The log probability that the first targets revealed are just the set `done`."""

    def prefix(self, question: Question, count: TargetCounts, rng: Generator) -> Mask:
        """The first `count` targets revealed."""
        return self.rank(question, rng) < count

    def revise(self, rank: Ranks, question: Question, done: Mask, conditionals: HasEntropy) -> Ranks:
        """Adaptive orders rank what is left again at every step; the others keep their rank."""
        return rank


@final
@dataclass(frozen=True)
class NamedOrder(Order):
    """An order by a name that has a meaning only for some data, such as "left" for images: resolved before it is used."""

    name: str

    def of(self, orders: Mapping[str, Order]) -> Order:
        """The order that has this name among these."""
        if self.name not in orders:
            known = f"those that have a name here are {', '.join(orders)}" if orders else "no order has a name for such data"
            raise InputError(f"There is no order called {self.name!r}: {known}.")
        return orders[self.name]

    def rank(self, question: Question, rng: Generator) -> Ranks:
        raise self._unresolved()

    def next_probs(self, question: Question, done: Mask, count: TargetCounts | int = 1) -> Float[Tensor, "batch variable"]:
        raise self._unresolved()

    def log_reach(self, question: Question, done: Mask) -> Float[Tensor, " batch"]:
        raise self._unresolved()

    def _unresolved(self) -> InputError:
        return InputError(f"The order {self.name!r} is only a name: AnyOrder finds out what it means for the data at hand.")


class StagedOrder(Order):
    """Stage after stage, and inside a stage all orders are equally likely.

    One stage is the random order, a stage for every variable is a fixed order, two stages are SFARM's modes,
    the digits of a number are the stages of an upscaling model: the same three formulas serve them all.
    """

    @abstractmethod
    def stages(self, variables: int) -> Int[Tensor, " variable"]:
        """The stage of every variable."""

    def rank(self, question: Question, rng: Generator) -> Ranks:
        return self._keys(question, rng).argsort(-1).argsort(-1)

    def prefix(self, question: Question, count: TargetCounts, rng: Generator) -> Mask:
        return smallest(self._keys(question, rng), count)

    def next_probs(self, question: Question, done: Mask, count: TargetCounts | int = 1) -> Float[Tensor, "batch variable"]:
        left = question.target & ~done
        before, inside = self._tally(question, left)
        return ((count - before) / inside.clamp(min=1)).clamp(0, 1) * left

    def log_reach(self, question: Question, done: Mask) -> Float[Tensor, " batch"]:
        early, _ = self._tally(question, question.target & ~done)
        legal = ~(done & (early > 0)).any(-1)  # nothing is revealed before its stage has come
        log_p = torch.zeros(len(done), dtype=torch.float64, device=done.device)
        stages = self._stages(question)
        for stage in stages.unique():
            total = (question.target & (stages == stage)).sum(-1)
            log_p -= log_choose(total, (done & (stages == stage)).sum(-1))
        return log_p.masked_fill(~legal, -torch.inf)

    def _stages(self, question: Question) -> Tensor:
        return self.stages(question.target.shape[1]).to(question.target.device)

    def _keys(self, question: Question, rng: Generator) -> Tensor:
        keys = uniform(*question.target.shape, rng=rng) + self._stages(question)
        return keys.masked_fill(~question.target, torch.inf)

    def _tally(self, question: Question, left: Mask) -> tuple[Tensor, Tensor]:
        """How many are left in the stages before a variable's own, and in its own."""
        stages = self._stages(question)
        by_stage = stages.argsort(stable=True)
        total = torch.nn.functional.pad(left[:, by_stage].cumsum(-1), (1, 0))  # (batch, variable + 1)
        ordered = stages[by_stage]
        start = torch.searchsorted(ordered, stages)  # the stage's first place in the sorted variables
        stop = torch.searchsorted(ordered, stages, right=True)
        return total[:, start], total[:, stop] - total[:, start]


def log_choose(n: Tensor, k: Tensor) -> Tensor:
    """The logarithm of the binomial coefficient."""
    n, k = n.double(), k.double()
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)


@final
@dataclass(frozen=True)
class RandomOrder(StagedOrder):
    """Every order is equally likely: ARDM, MDLM, MAC's w-RND, SFARM's uniform mode."""

    def stages(self, variables: int) -> Int[Tensor, " variable"]:
        return torch.zeros(variables, dtype=torch.long)


@final
@dataclass(frozen=True)
class CanonicalOrder(StagedOrder):
    """One fixed order of all variables, MAC's protocol: `order[0]` first; lexicographic if none is given.

    >>> CanonicalOrder.strided(variables=6, stride=3)
    CanonicalOrder(order=(0, 3, 1, 4, 2, 5))
    """

    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.order is not None and sorted(self.order) != list(range(len(self.order))):
            raise InputError(f"CanonicalOrder got {self.order}; expected every number from 0 to {len(self.order) - 1} once.")

    @classmethod
    def strided(cls, variables: int, stride: int) -> "CanonicalOrder":
        """0, stride, 2 stride, ..., 1, 1 + stride, ...: far apart first, and every variable just once."""
        return cls(tuple(sorted(range(variables), key=lambda i: (i % stride, i))))

    @classmethod
    def shuffled(cls, variables: int, rng: Generator) -> "CanonicalOrder":
        """A random order, drawn once and then fixed."""
        return cls(tuple(torch.randperm(variables, generator=rng, device=rng.device).tolist()))

    def reversed(self, variables: int) -> "CanonicalOrder":
        return CanonicalOrder(tuple(reversed(self.order or range(variables))))

    def stages(self, variables: int) -> Int[Tensor, " variable"]:
        if self.order is None:
            return torch.arange(variables)
        check_length("CanonicalOrder", len(self.order), variables)
        return torch.tensor(self.order).argsort()

    # A fixed order leaves nothing to draw: counting along it gives the same answers as the stages, faster.

    def prefix(self, question: Question, count: TargetCounts, rng: Generator) -> Mask:
        return self._first(question.target, count)

    def next_probs(self, question: Question, done: Mask, count: TargetCounts | int = 1) -> Float[Tensor, "batch variable"]:
        return self._first(question.target & ~done, count).float()

    def _first(self, mask: Mask, count: TargetCounts | int) -> Mask:
        """The first `count` True entries of every row, along this order."""
        return mask & (self.count_along(mask) <= (count if isinstance(count, int) else count.int()))

    def count_along(self, mask: Mask) -> Int[Tensor, "batch variable"]:
        """How many True entries a row has up to each variable, along this order."""
        if self.order is None:
            return mask.cumsum(-1, dtype=torch.int32)
        stages = self.stages(mask.shape[1]).to(mask.device)
        return mask[:, stages.argsort()].cumsum(-1, dtype=torch.int32)[:, stages]


@final
@dataclass(frozen=True)
class Precedence(StagedOrder):
    """Variables of a lower stage come first; inside a stage every order is equally likely."""

    stage: tuple[int, ...]

    def stages(self, variables: int) -> Int[Tensor, " variable"]:
        check_length("Precedence", len(self.stage), variables)
        return torch.tensor(self.stage)


def TwoStage(region: Bool[Tensor, " variable"]) -> Precedence:
    """First the region, then the rest, both at random: SFARM's structured modes."""
    return Precedence(tuple((~region).long().tolist()))


@final
@dataclass(frozen=True)
class MixtureOfOrders(Order):
    """One of several orders for every row, with these weights (equal if none are given)."""

    orders: Sequence[Order]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_weights("MixtureOfOrders", len(self.orders), self.weights)
        if any(order.adaptive for order in self.orders):
            raise InputError("An adaptive order cannot be part of a mixture: its path is not known in advance.")

    @property
    def shares(self) -> tuple[float, ...]:
        weights = self.weights or (1.0,) * len(self.orders)
        return tuple(w / sum(weights) for w in weights)

    def rank(self, question: Question, rng: Generator) -> Ranks:
        mode = pick(self.shares, len(question), rng)
        rank = torch.empty_like(question.target, dtype=torch.long)
        for i, order in enumerate(self.orders):
            rank[mode == i] = order.rank(question[mode == i], rng)
        return rank

    def next_probs(self, question: Question, done: Mask, count: TargetCounts | int = 1) -> Float[Tensor, "batch variable"]:
        # Which order this may be, now that `done` is known; a set that no order reaches has no next variable.
        posterior = self._log_reach_each(question, done).softmax(0).nan_to_num(0.0)
        each = torch.stack([order.next_probs(question, done, count) for order in self.orders])
        return (posterior.unsqueeze(-1) * each).sum(0).to(each.dtype)

    def log_reach(self, question: Question, done: Mask) -> Float[Tensor, " batch"]:
        return self._log_reach_each(question, done).logsumexp(0)

    def _log_reach_each(self, question: Question, done: Mask) -> Float[Tensor, "order batch"]:
        shares = torch.tensor(self.shares, dtype=torch.float64, device=done.device).log()
        return torch.stack([share + order.log_reach(question, done) for share, order in zip(shares, self.orders, strict=True)])


@final
@dataclass(frozen=True)
class MostCertainFirst(Order):
    """At every step the hidden targets of least entropy, given the values revealed so far.

    The rule looks at known values only, so the density it defines is exactly normalised.
    """

    adaptive: ClassVar[bool] = True

    def rank(self, question: Question, rng: Generator) -> Ranks:
        return CanonicalOrder().rank(question, rng)

    def revise(self, rank: Ranks, question: Question, done: Mask, conditionals: HasEntropy) -> Ranks:
        keys = conditionals.entropy().masked_fill(~question.target, torch.inf).masked_fill(done, -torch.inf)
        return keys.argsort(dim=-1, stable=True).argsort(-1)

    def next_probs(self, question: Question, done: Mask, count: TargetCounts | int = 1) -> Float[Tensor, "batch variable"]:
        raise InputError(ADAPTIVE)

    def log_reach(self, question: Question, done: Mask) -> Float[Tensor, " batch"]:
        raise InputError(ADAPTIVE)


ADAPTIVE = "MostCertainFirst has no path of its own without a model: walk it, but train with RandomOrder or another order."


def check_length(what: str, length: int, variables: int) -> None:
    if length != variables:
        raise InputError(f"{what} is made for {length} variables, the data have {variables}. Make one for these data.")
