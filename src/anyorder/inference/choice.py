"""Which measurement is worth making next, for every row its own: prices, budgets, and looking ahead."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..model import Model
from ..schema import Mask
from .mutual_information import CandidateRatio, Estimator, Information, check_sets, information

MOST_SETS = 10_000
ROUNDING = 1 - 1e-9
Gain = Float[Tensor, "batch set"]
Cost = Float[Tensor, " set"]


@final
@dataclass(frozen=True)
class Measurement:
    """Variables that are measured together, at one price: a blood panel, a question."""

    variables: tuple[int, ...]
    cost: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.cost < math.inf:
            raise InputError(f"The measurement of {self.variables} costs {self.cost}; expected a finite number, 0 or more.")


def one_by_one(variables: Iterable[int], costs: Mapping[int, float] | float = 1.0) -> list[Measurement]:
    """A measurement for every variable, all at one price or each at its own.

    >>> one_by_one([0, 2], costs={0: 1.0, 2: 40.0})
    [Measurement(variables=(0,), cost=1.0), Measurement(variables=(2,), cost=40.0)]
    """
    price = costs if isinstance(costs, Mapping) else dict.fromkeys(variables := list(variables), costs)
    missing = [variable for variable in variables if variable not in price]
    if missing:
        raise InputError(f"`costs` has no price for the variables {missing}. Give every variable one, or one price for all.")
    return [Measurement((variable,), price[variable]) for variable in variables]


@dataclass(frozen=True)
class Preference(ABC):
    """Which of two measurements is better, and when none is worth its price; `worth` is what a nat is worth, in prices."""

    worth: float = math.inf

    def __post_init__(self) -> None:
        if not self.worth > 0:
            raise InputError(f"{type(self).__name__} got worth={self.worth}; expected a positive price of a nat.")

    @abstractmethod
    def score(self, gain: Gain, cost: Cost) -> Gain:
        """The higher the better."""

    def worthwhile(self, gain: Gain, cost: Cost) -> Bool[Tensor, "batch set"]:
        """Whether what is expected to be learned is worth more than it costs; with no price on a nat, always."""
        return torch.ones_like(gain, dtype=torch.bool) if math.isinf(self.worth) else self.worth * gain > cost


@final
@dataclass(frozen=True)
class GainMinusCost(Preference):
    """The most nats after the price is taken off. With no price on a nat, the most nats whatever they cost."""

    def score(self, gain: Gain, cost: Cost) -> Gain:
        return gain - cost / self.worth


@final
@dataclass(frozen=True)
class GainPerCost(Preference):
    """The most nats for the money."""

    def score(self, gain: Gain, cost: Cost) -> Gain:
        return gain / cost.clamp(min=1e-9)


@final
@dataclass(frozen=True)
class Policy:
    """How to choose.

    With `ahead` above 1, all sets of up to so many candidates are weighed, and of the best set the best member goes first:
    some things tell nothing alone and everything together.
    """

    preference: Preference = GainMinusCost()
    ahead: int = 1
    estimator: Estimator = CandidateRatio()
    certain: float = -math.inf  # the entropy of the targets, in nats, at which a row needs no more
    steps: int | None = None  # at most so many measurements

    def __post_init__(self) -> None:
        if self.ahead < 1:
            raise InputError(f"Policy got ahead={self.ahead}; expected at least 1, which is to choose greedily.")
        if math.isnan(self.certain):
            raise InputError("Policy got certain=NaN; expected an entropy in nats.")
        if self.steps is not None and self.steps < 0:
            raise InputError(f"Policy got steps={self.steps}; expected 0 or more, or None for as many as there are.")


class Stop(IntEnum):
    """Why nothing more is measured in a row."""

    NOT_YET = 0
    CERTAIN = 1  # the targets are as certain as was asked for
    NOTHING_LEFT = 2  # all that could be measured was
    BUDGET = 3  # what is left costs more than may be spent
    NOT_WORTH_IT = 4  # what is left is expected to tell less than it costs
    STEPS = 5  # as many measurements as were allowed


class Choice(NamedTuple):
    """What to measure next in every row: the place of a candidate, or -1 to stop."""

    candidate: Int[Tensor, " batch"]
    stop: Int[Tensor, " batch"]  # why, as a number of `Stop`
    together: Bool[Tensor, "batch candidate"]  # what is planned to be measured, this one included
    gain: Float[Tensor, " batch"]  # what all that is planned is expected to tell, in nats; 0 when stopping
    singles: Information  # of every candidate alone


@torch.no_grad()
def choose(
    model: Model,
    x: Tensor,
    given: Tensor,
    target: Sequence[int],
    candidates: Sequence[Measurement],
    rng: Generator,
    *,
    policy: Policy = Policy(),
    budget: float | Tensor = math.inf,
    allowed: Tensor | None = None,
) -> Choice:
    """The best candidate of every row that is not known yet, affordable and worth it.

    `budget` is one number or one for every row; `allowed` (batch, candidate) rules candidates out row by row.
    """
    check_sets(model.schema, x, given, target, [candidate.variables for candidate in candidates])
    left, usable = check_budget(budget, len(x)), still_open(given, candidates).cpu()
    if allowed is not None:
        usable = usable & check_allowed(allowed, len(x), len(candidates)).cpu()
    sets = _Sets.of(candidates, policy.ahead)
    told = information(model, x, given, target, sets.variables, rng, estimator=policy.estimator)
    gain = told.value.double().cpu()
    affordable = ~(sets.member & ~usable.unsqueeze(1)).any(-1) & affordable_with(left.unsqueeze(-1), sets.cost)
    possible = affordable & policy.preference.worthwhile(gain, sets.cost)
    stop = torch.where(usable.any(-1), Stop.BUDGET, Stop.NOTHING_LEFT)
    stop = torch.where(affordable.any(-1), Stop.NOT_WORTH_IT, stop).masked_fill(possible.any(-1), Stop.NOT_YET)
    return _pick(policy.preference.score(gain, sets.cost), possible, stop, sets, told)


def _pick(
    score: Gain, possible: Bool[Tensor, "batch set"], stop: Int[Tensor, " batch"], sets: "_Sets", told: Information
) -> Choice:
    """The best possible set, and of its members the one that is best alone."""
    count = sets.member.shape[1]
    best = score.masked_fill(~possible, -math.inf).argmax(-1, keepdim=True)
    go = possible.any(-1)
    together = sets.member[best.squeeze(-1)] & go.unsqueeze(-1)
    first = score[:, :count].masked_fill(~together, -math.inf).argmax(-1)
    gain = told.value.double().cpu().gather(-1, best).squeeze(-1)
    singles = Information(told.value[:, :count], told.standard_error[:, :count])
    return Choice(torch.where(go, first, -1), stop, together, torch.where(go, gain, 0.0), singles)


class _Sets(NamedTuple):
    """Sets of candidates, the single ones first."""

    member: Bool[Tensor, "set candidate"]
    cost: Cost
    variables: list[tuple[int, ...]]

    @classmethod
    def of(cls, candidates: Sequence[Measurement], ahead: int) -> "_Sets":
        """All sets of up to `ahead` candidates."""
        count = len(candidates)
        sizes = range(1, min(ahead, count) + 1)
        total = sum(math.comb(count, size) for size in sizes)
        if total > MOST_SETS:
            raise InputError(f"ahead={ahead} makes {total} sets of {count} candidates, over {MOST_SETS}. Look less far ahead.")
        chosen = [combo for size in sizes for combo in itertools.combinations(range(count), size)]
        member = torch.tensor([[c in combo for c in range(count)] for combo in chosen])
        cost = torch.tensor([math.fsum(candidates[c].cost for c in combo) for combo in chosen], dtype=torch.float64)
        return cls(member, cost, [tuple(sorted({v for c in combo for v in candidates[c].variables})) for combo in chosen])


def affordable_with(budget: Tensor, cost: Tensor) -> Bool[Tensor, "..."]:
    """Up to rounding: three times 0.1 can be paid with 0.3."""
    return cost * ROUNDING <= budget


def still_open(given: Mask, candidates: Sequence[Measurement]) -> Bool[Tensor, "batch candidate"]:
    """Which candidates hold something that is not known yet, row by row."""
    return torch.stack([~given[:, list(candidate.variables)].all(-1) for candidate in candidates], dim=-1)


def check_budget(budget: float | Tensor, rows: int) -> Float[Tensor, " batch"]:
    """What every row may spend."""
    left = torch.as_tensor(budget, dtype=torch.float64).cpu()
    if left.ndim > 1 or (left.ndim == 1 and len(left) != rows) or not (left >= 0).all():
        raise InputError(f"The budget is {budget}; expected 0 or more: one number, or one for each of {rows} rows.")
    return left.expand(rows)


def check_allowed(allowed: Tensor, rows: int, candidates: int) -> Bool[Tensor, "batch candidate"]:
    if allowed.shape != (rows, candidates) or allowed.dtype != torch.bool:
        raise InputError(
            f"`allowed` is {allowed.dtype} of shape {tuple(allowed.shape)}; expected torch.bool of shape ({rows}, {candidates})."
        )
    return allowed
