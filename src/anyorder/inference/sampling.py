"""Draws of the targets given what is known, and their entropy."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from ..distributions import LatticeDistribution, mean_place
from ..errors import InputError
from ..models.any_order import Model
from ..schema import Mask, Recorded, Values
from ..subsets import OneByOne, Order, Question, RandomOrder, Schedule, check_question
from .likelihood import MOST_SCORED_ROWS
from .walk import ContextLike, context_of, walk


@torch.no_grad()
def sample(
    model: Model,
    x: Values,
    question: Question,
    rng: Generator,
    *,
    order: Order = RandomOrder(),
    schedule: Schedule = OneByOne(),
    temperature: float = 1.0,
    context: ContextLike = None,
) -> Values:
    """The rows of x with their targets drawn from p(target | given); nothing else is changed.

    Several draws of one row are several rows: `x.repeat_interleave(draws, 0)`.
    """
    check_sampling(model, x, question, temperature)
    x = x.clone()
    for step in walk(model, x, question, order=order, schedule=schedule, rng=rng, context=context):
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
        for rows in torch.arange(len(x), device=x.device).split(max(1, MOST_SCORED_ROWS // draws))
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
        raise InputError(f"temperature={temperature}; expected a positive number (1 draws from the model's own distribution).")
    model.schema.check(x, None)
    check_question(model.schema, x, question)
    model.schema.check(x, question.given)


FILLED_ROWS_PER_CALL = 512
GAPS_PER_CALL = 64  # of numbers on a bent scale, whose means take more memory


@torch.no_grad()
def best_guess(model: Model, x: Values, known: Mask) -> Values:
    """x with the means of numbers and the likeliest codes, each given what is known of its row."""
    out = x.clone()
    bent = {i: v.domain for i, v in enumerate(model.schema) if isinstance(v.domain, Recorded) and v.domain.curve}
    for rows in _rows_with_gaps(known):
        distributions = model(x[rows], known[rows])
        out[rows] = torch.where(known[rows], x[rows], distributions.best(at=~known[rows]).to(x.dtype))
        for i, domain in bent.items():
            for some in (~known[rows, i]).nonzero().squeeze(-1).split(GAPS_PER_CALL):
                distribution = distributions.distribution(i).map_tensors(itemgetter(some))
                assert isinstance(distribution, LatticeDistribution)
                out[rows[some], i] = mean_place(distribution, domain).to(x.dtype)
    return out


def drawn_together(
    model: Model, x: Values, known: Mask, draws: int, rng: Generator, order: Order = RandomOrder()
) -> Float[Tensor, "draw batch variable"]:
    """x several times, the gaps of a row drawn together given what is known of it."""
    filled = x.repeat(draws, 1, 1)
    for rows in _rows_with_gaps(known, FILLED_ROWS_PER_CALL // draws):
        given = known[rows].repeat(draws, 1)
        drawn = sample(model, x[rows].repeat(draws, 1), Question(given, ~given), rng, order=order)
        filled[:, rows] = drawn.unflatten(0, (draws, len(rows)))
    return filled


@torch.no_grad()
def interval(model: Model, x: Values, known: Mask, level: float, numbers: Bool[Tensor, " variable"]) -> tuple[Values, Values]:
    """The ends of what holds `level` of the probability of every gap of a number, given what is known of its row."""
    ends = torch.empty_like(x), torch.empty_like(x)
    for rows in _rows_with_gaps(known):
        cells = ~known[rows] & numbers
        distributions = model(x[rows], known[rows])
        for end, q in zip(ends, ((1 - level) / 2, (1 + level) / 2), strict=True):
            end[rows] = distributions.quantile(torch.full(cells.shape, q), at=cells).to(x.dtype)
    return ends


def _rows_with_gaps(known: Mask, most: int = FILLED_ROWS_PER_CALL) -> Iterator[Tensor]:
    """Some at a time."""
    yield from (rows for rows in (~known).any(-1).nonzero().squeeze(-1).split(max(1, most)) if len(rows))
