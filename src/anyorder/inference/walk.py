"""The one loop: step by step from what is known to what is asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Generator, Tensor

from ..conditionals import Conditionals
from ..model import Context, Model
from ..schema import Mask, Values
from ..subsets import Blocks, OneByOne, Order, Question, RandomOrder

ContextLike = Tensor | Callable[[Mask], Context] | None  # one row each, or told by what is known


@final
@dataclass(frozen=True)
class Step:
    """What is known before this step, what it reveals, and the laws of all variables given what is known."""

    given: Mask
    now: Mask
    conditionals: Conditionals


@final
@dataclass(frozen=True)
class ModeAndStep:
    """SFARM's context: the mode, and how far the walk is, told by the number of known variables."""

    mode: int
    per_step: int = 1

    def __call__(self, given: Mask) -> Context:
        step = given.sum(-1) // self.per_step
        return torch.stack([torch.full_like(step, self.mode), step], dim=-1)


def walk(
    model: Model,
    x: Values,
    question: Question,
    order: Order = RandomOrder(),
    blocks: Blocks = OneByOne(),
    rng: Generator | None = None,
    context: ContextLike = None,
) -> Iterator[Step]:
    """Step by step from `given` to `given + target`; the consumer writes `x[step.now]` in place before the next step."""
    rng = rng or seeded(device=x.device)
    rank = order.rank(question, rng)
    bounds = blocks.bounds(question.count)  # (batch, step + 1)
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
    return None if context is None else context(given)


def seeded(seed: int = 0, device: torch.device | str = "cpu") -> Generator:
    """A fresh random number generator."""
    return Generator(device=device).manual_seed(seed)
