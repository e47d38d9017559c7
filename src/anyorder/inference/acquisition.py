"""Measure, look, choose again: the whole sequence of measurements, every row on its own path."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..model import Model
from ..schema import Mask, Values
from ..subsets import Question
from .choice import Choice, Measurement, Policy, Stop, check_budget, choose, still_open
from .likelihood import log_prob
from .mutual_information import check_sets, uncertainty

Oracle = Tensor | Callable[[Tensor, Tensor], Tensor]


@final
@dataclass(frozen=True)
class Path:
    """What was measured in every row, and what became known: a point before every step, and one at the end.

    A row that has stopped stays as it is. `model(path.x, path.given[:, point])` are the laws at a point.
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
            state.finish(rows[~unsure.cpu()], Stop.CERTAIN)
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
    state.finish(state.active.nonzero().squeeze(-1), Stop.STEPS if policy.steps is not None else Stop.NOTHING_LEFT)
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

    def finish(self, rows: Int[Tensor, " some"], why: Stop | Int[Tensor, " some"]) -> None:
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
