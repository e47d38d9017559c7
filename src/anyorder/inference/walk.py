"""The one loop: step by step from what is known to what is asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Generator, Tensor

from ..models.any_order import Context, Model
from ..models.conditionals import Conditionals
from ..schema import Mask, Values
from ..subsets import OneByOne, Order, Question, RandomOrder, Schedule, mode_and_step

# One row each, or told by what is known and which rows are asked about (None: all, in order).
ContextLike = Tensor | Callable[[Mask, Tensor | None], Context] | None


@final
@dataclass(frozen=True)
class Step:
    """What is known before this step, what it reveals, and the distributions of all variables given what is known."""

    given: Mask
    now: Mask
    conditionals: Conditionals


@final
@dataclass(frozen=True, eq=False)
class ModeAndStep:
    """SFARM's context at every step of a walk; `label` is what belongs to the rows beside it."""

    mode: int
    label: Context | None = None

    def __call__(self, given: Mask, rows: Tensor | None) -> Context:
        own = mode_and_step(self.mode, given)
        if self.label is None:
            return own
        return torch.cat([own, self.label if rows is None else self.label[rows]], dim=-1)


def walk(
    model: Model,
    x: Values,
    question: Question,
    *,
    order: Order = RandomOrder(),
    schedule: Schedule = OneByOne(),
    rng: Generator | None = None,
    context: ContextLike = None,
) -> Iterator[Step]:
    """Step by step from `given` to `given + target`; the consumer writes `x[step.now]` in place before the next step."""
    rng = rng or seeded(device=x.device)
    rank = order.rank(question, rng)
    bounds = schedule.bounds(question.count)  # (batch, step + 1)
    done = torch.zeros_like(question.target)
    for start, stop in zip(bounds.T[:-1], bounds.T[1:], strict=True):
        given = question.given | done
        conditionals = model(x, given, context_of(context, given))
        if order.adaptive:
            rank = order.revise(rank, question, done, conditionals)
        now = question.target & (rank >= start.unsqueeze(-1)) & (rank < stop.unsqueeze(-1))
        yield Step(given, now, conditionals)
        done = done | now


def context_of(context: ContextLike, given: Mask, rows: Tensor | None = None) -> Context | None:
    """A context that depends on how far the walk is, asked; a fixed one as it is, or of some of the rows."""
    if isinstance(context, Tensor):
        return context if rows is None else context[rows]
    return None if context is None else context(given, rows)


def seeded(seed: int = 0, device: torch.device | str = "cpu") -> Generator:
    """A fresh random number generator."""
    return Generator(device=device).manual_seed(seed)
