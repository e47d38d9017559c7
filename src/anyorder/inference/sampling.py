"""Draws of the targets given what is known, and their entropy."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..errors import InputError
from ..model import Model
from ..schema import Mask, Values
from ..subsets import Blocks, OneByOne, Order, Question, RandomOrder, check_question
from .likelihood import MOST_ROWS
from .walk import ContextLike, context_of, walk


@torch.no_grad()
def sample(
    model: Model,
    x: Values,
    question: Question,
    rng: Generator,
    *,
    order: Order = RandomOrder(),
    blocks: Blocks = OneByOne(),
    temperature: float = 1.0,
    context: ContextLike = None,
) -> Values:
    """The rows of x with their targets drawn from p(target | given); nothing else is changed.

    Several draws of one row are several rows: `x.repeat_interleave(draws, 0)`.
    """
    check_sampling(model, x, question, temperature)
    x = x.clone()
    for step in walk(model, x, question, order=order, blocks=blocks, rng=rng, context=context):
        x.copy_(torch.where(step.now, step.conditionals.sample(rng, temperature, at=step.now), x))
    return x


class Estimate(NamedTuple):
    """A Monte-Carlo answer and how far it may be off: its standard error, row by row."""

    value: Float[Tensor, " batch"]
    standard_error: Float[Tensor, " batch"]


@torch.no_grad()
def entropy(
    model: Model,
    x: Values,
    question: Question,
    rng: Generator,
    *,
    draws: int = 64,
    order: Order = RandomOrder(),
    context: ContextLike = None,
) -> Estimate:
    r"""How uncertain the targets are given what is known, in nats per row.

    .. math:: H(x_T \mid x_G) = \mathbb{E} \sum_j H(x_{\sigma_j} \mid x_G, x_{\sigma_1}, \dots, x_{\sigma_{j-1}})

    Every step's entropy is exact, only the path is drawn: one target needs no draw at all, and `draws` paths leave
    less noise than the mean of minus log p over as many samples.
    """
    if draws < 2:
        raise InputError(f"entropy got draws={draws}; expected at least 2, since the standard error comes from their spread.")
    check_sampling(model, x, question, temperature=1.0)
    parts = [
        _drawn_entropy(model, x, question, rng, draws, order, context, rows)
        for rows in torch.arange(len(x), device=x.device).split(max(1, MOST_ROWS // draws))
    ]
    if not parts or not len(x):
        return Estimate(x.new_zeros(0), x.new_zeros(0))
    paths = torch.cat(parts)
    return Estimate(paths.mean(-1), paths.std(-1) / draws**0.5)


def _drawn_entropy(
    model: Model, x: Values, question: Question, rng: Generator, draws: int, order: Order, context: ContextLike, rows: Tensor
) -> Float[Tensor, "row draw"]:
    """The entropy along every drawn path of some of the rows."""
    many = rows.repeat_interleave(draws)
    y, total = x[many].clone(), x.new_zeros(len(many))

    def here(given: Mask, _: Tensor | None) -> Any:
        return context_of(context, given, many)

    for step in walk(model, y, question[many], order=order, rng=rng, context=here):
        total += step.conditionals.entropy(at=step.now).sum(-1).to(x.dtype)
        y.copy_(torch.where(step.now, step.conditionals.sample(rng, at=step.now), y))
    return total.unflatten(0, (len(rows), draws))


def check_sampling(model: Model, x: Values, question: Question, temperature: float) -> None:
    """Everything known must be a legal value; what is asked for may hold anything."""
    if not temperature > 0:
        raise InputError(f"temperature={temperature}; expected a positive number (1 draws from the model's own law).")
    model.schema.check(x, None)
    check_question(model.schema, x, question)
    model.schema.check(x, question.given)
