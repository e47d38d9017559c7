"""Which measurement is worth making next, for every row its own: prices, budgets, and looking ahead."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..models.any_order import Model
from ..schema import Mask, Values
from ..subsets import Question
from .information import CandidateRatio, Estimator, Information, check_sets, information, uncertainty
from .likelihood import log_prob

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


class StopReason(IntEnum):
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
    stop = torch.where(usable.any(-1), StopReason.BUDGET, StopReason.NOTHING_LEFT)
    stop = torch.where(affordable.any(-1), StopReason.NOT_WORTH_IT, stop).masked_fill(possible.any(-1), StopReason.NOT_YET)
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


Oracle = Tensor | Callable[[Tensor, Tensor], Tensor]


@final
@dataclass(frozen=True)
class Path:
    """What was measured in every row, and what became known: a point before every step, and one at the end.

    A row that has stopped stays as it is. `model(path.x, path.given[:, point])` are the distributions at a point.
    """

    x: Values  # with all that was measured
    chosen: Int[Tensor, "batch step"]  # the place of the candidate; -1: the row has stopped
    gain: Float[Tensor, "batch step"]  # what the plan of this step was expected to tell, in nats
    cost: Float[Tensor, "batch point"]  # so far
    given: Bool[Tensor, "batch point variable"]
    log_prob: Float[Tensor, "batch point"]  # of the true targets, in nats; NaN where they are not told
    stop: Int[Tensor, " batch"]  # why no more was measured, as a number of `Stop`


@torch.no_grad()
def acquire(
    model: Model,
    x: Tensor,
    given: Tensor,
    target: Sequence[int],
    candidates: Sequence[Measurement],
    oracle: Oracle,
    rng: Generator,
    *,
    policy: Policy = Policy(),
    budget: float | Tensor = math.inf,
) -> Path:
    """Measure and choose again until a row's targets are certain, or nothing that is left is affordable and worth it.

    `oracle` tells the values: the true rows (NaN: cannot be measured), or a function of the numbers of rows and of what is
    wanted (row, variable) that returns values, NaN where it failed. What failed is paid for and not tried again.
    """
    check_sets(model.schema, x, given, target, [candidate.variables for candidate in candidates])
    state = _State.start(x, given, candidates, check_oracle(oracle, x), check_budget(budget, len(x)))
    for _ in range(len(candidates) if policy.steps is None else policy.steps):
        rows = state.active.nonzero().squeeze(-1)
        if policy.certain > -math.inf and len(rows):
            unsure = uncertainty(model, state.x[rows], state.given[rows], target, rng).value > policy.certain
            state.finish(rows[~unsure.cpu()], StopReason.CERTAIN)
            rows = rows[unsure.cpu()]
        choice = choose(
            model,
            state.x[rows],
            state.given[rows],
            target,
            candidates,
            rng,
            policy=policy,
            budget=state.left[rows],
            allowed=state.untried[rows],
        )
        if not state.measure(rows, choice):
            break
    state.finish(state.active.nonzero().squeeze(-1), StopReason.STEPS if policy.steps is not None else StopReason.NOTHING_LEFT)
    return state.path(model, target)


@final
@dataclass(eq=False)
class _State:
    """Where every row is on its path."""

    candidates: Sequence[Measurement]
    oracle: Oracle
    x: Values
    given: Mask
    left: Float[Tensor, " batch"]
    untried: Bool[Tensor, "batch candidate"]
    active: Bool[Tensor, " batch"]
    stop: Int[Tensor, " batch"]
    chosen: list[Tensor] = field(default_factory=list)
    gain: list[Tensor] = field(default_factory=list)
    spent: list[Tensor] = field(default_factory=list)
    known: list[Tensor] = field(default_factory=list)

    @classmethod
    def start(cls, x: Values, given: Mask, candidates: Sequence[Measurement], oracle: Oracle, budget: Tensor) -> "_State":
        untried = torch.ones(len(x), len(candidates), dtype=torch.bool)
        if isinstance(oracle, Tensor):  # where the true value is a gap, there is nothing to measure
            untried = still_open(given | ~oracle.isfinite(), candidates).cpu()
        active = torch.ones(len(x), dtype=torch.bool)
        state = cls(
            candidates, oracle, x.clone(), given.clone(), budget.clone(), untried, active, torch.zeros(len(x), dtype=torch.long)
        )
        state.known.append(state.given.clone())
        state.spent.append(torch.zeros(len(x), dtype=torch.float64))
        return state

    def measure(self, rows: Int[Tensor, " some"], choice: Choice) -> bool:
        """Reveal what was chosen in these rows; False if all have stopped."""
        going = choice.candidate >= 0
        self.finish(rows[~going], choice.stop[~going])
        if not going.any():
            return False
        rows, picked = rows[going], choice.candidate[going]
        prices = torch.tensor([candidate.cost for candidate in self.candidates], dtype=torch.float64)[picked]
        self.untried[rows, picked] = False
        self.left[rows] -= prices
        self._reveal(rows, picked)
        self.chosen.append(torch.full((len(self.x),), -1).index_put((rows,), picked))
        self.gain.append(torch.zeros(len(self.x), dtype=torch.float64).index_put((rows,), choice.gain[going]))
        self.spent.append(self.spent[-1].index_put((rows,), prices, accumulate=True))
        self.known.append(self.given.clone())
        return True

    def finish(self, rows: Int[Tensor, " some"], why: StopReason | Int[Tensor, " some"]) -> None:
        self.active[rows] = False
        self.stop[rows] = torch.as_tensor(why)

    def _reveal(self, rows: Int[Tensor, " some"], picked: Int[Tensor, " some"]) -> None:
        wanted = torch.zeros(len(self.candidates), self.x.shape[1], dtype=torch.bool)
        for place, candidate in enumerate(self.candidates):
            wanted[place, list(candidate.variables)] = True
        asked = wanted[picked].to(self.given.device) & ~self.given[rows]
        told = self.oracle[rows] if isinstance(self.oracle, Tensor) else self.oracle(rows, asked)
        if told.shape != asked.shape:
            raise InputError(f"The oracle returned shape {tuple(told.shape)}; expected {tuple(asked.shape)}: (rows, variables).")
        got = asked & told.isfinite()
        self.x[rows] = torch.where(got, told.to(self.x.dtype), self.x[rows])
        self.given[rows] |= got

    def path(self, model: Model, target: Sequence[int]) -> Path:
        known, nothing = torch.stack(self.known, dim=1), self.x.new_zeros(len(self.x), 0)
        chosen = torch.stack(self.chosen, dim=1) if self.chosen else nothing.long()
        gain = torch.stack(self.gain, dim=1) if self.gain else nothing.double()
        truth = self.oracle if isinstance(self.oracle, Tensor) else torch.full_like(self.x, torch.nan)
        log_p = _true_log_prob(model, self.x, truth, known, target)
        return Path(self.x, chosen, gain, torch.stack(self.spent, dim=1), known, log_p, self.stop)


def _true_log_prob(
    model: Model, x: Values, truth: Values, known: Bool[Tensor, "batch point variable"], target: Sequence[int]
) -> Float[Tensor, "batch point"]:
    """How likely the true targets are at every point; targets that are not told are left out, NaN if none is."""
    asked = torch.zeros_like(known[:, 0])
    asked[:, list(target)] = truth[:, list(target)].isfinite()
    y = torch.where(asked, truth.to(x.dtype), x)
    points = [log_prob(model, y, Question(given, asked)) for given in known.unbind(1)]
    return torch.where(asked.any(-1, keepdim=True), torch.stack(points, dim=1), torch.nan)


def check_oracle(oracle: Oracle, x: Values) -> Oracle:
    """True rows must be as many and as wide as the rows asked about."""
    if isinstance(oracle, Tensor) and oracle.shape != x.shape:
        raise InputError(f"The oracle has shape {tuple(oracle.shape)}; expected that of x, {tuple(x.shape)}: the true rows.")
    return oracle
