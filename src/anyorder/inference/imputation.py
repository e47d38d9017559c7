"""Gaps filled: by best guesses, by draws, or by the ends of an interval."""

from collections.abc import Iterator
from operator import itemgetter

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from ..heads import LatticeLaw, mean_place
from ..model import Model
from ..schema import Mask, Recorded, Values
from ..subsets import Order, Question, RandomOrder
from .sampling import sample

ROWS_PER_CALL = 512
CELLS_PER_CALL = 64  # of numbers on a bent scale, whose means take more memory


@torch.no_grad()
def best_guess(model: Model, x: Values, known: Mask) -> Values:
    """x with the means of numbers and the likeliest codes, each given what is known of its row."""
    out = x.clone()
    bent = {i: v.domain for i, v in enumerate(model.schema) if isinstance(v.domain, Recorded) and v.domain.curve}
    for rows in _rows_with_gaps(known):
        laws = model(x[rows], known[rows])
        out[rows] = torch.where(known[rows], x[rows], laws.best(at=~known[rows]).to(x.dtype))
        for i, domain in bent.items():
            for some in (~known[rows, i]).nonzero().squeeze(-1).split(CELLS_PER_CALL):
                law = laws.law(i).each(itemgetter(some))
                assert isinstance(law, LatticeLaw)
                out[rows[some], i] = mean_place(law, domain).to(x.dtype)
    return out


def drawn_together(
    model: Model, x: Values, known: Mask, draws: int, rng: Generator, order: Order = RandomOrder()
) -> Float[Tensor, "draw batch variable"]:
    """x several times, the gaps of a row drawn together given what is known of it."""
    filled = x.repeat(draws, 1, 1)
    for rows in _rows_with_gaps(known, ROWS_PER_CALL // draws):
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
        laws = model(x[rows], known[rows])
        for end, q in zip(ends, ((1 - level) / 2, (1 + level) / 2), strict=True):
            end[rows] = laws.quantile(torch.full(cells.shape, q), at=cells).to(x.dtype)
    return ends


def _rows_with_gaps(known: Mask, most: int = ROWS_PER_CALL) -> Iterator[Tensor]:
    """Some at a time."""
    yield from (rows for rows in (~known).any(-1).nonzero().squeeze(-1).split(max(1, most)) if len(rows))
