"""How much each model of a blend counts: fitted on rows that no model was trained on."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn import functional as F

from ..blend import Blend, Circumstances, Mixed
from ..conditionals import sharpened
from ..heads import LatticeLaw, Law
from ..model import Context
from ..schema import Mask, Values
from .edges import Edges, EdgeSampler
from .loss import usual_loss

QUESTIONS, STEPS, RIDGE = 2048, 200, 0.003
ALL_ELSE = 1024  # questions about a value given all else, at most
FEWER_QUESTIONS, TEMPERATURES = 1024, (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
ENOUGH_ROWS = 30  # kept back; fewer cannot tell how sharp laws should be
MARGIN = 0.5  # standard errors over rows by which a lower temperature must be better than none
ROWS_PER_CALL = 256
MOST_KINDS = 12  # of questions that errors are compared within, by how much is known: in wide tables they would be few of each
ERROR, SPREAD = 1.0, 1.0  # nats that a squared error, and a CRPS, as large as the best model's is worth
DRAWS = 8  # of every model's law


class Answered(NamedTuple):
    """What every model said to cells that are known after all."""

    at: Circumstances
    log_p: Float[Tensor, "cell model"]
    off: Float[Tensor, "cell model"]  # how far the best guess of a number is off; 0 for codes
    away: Float[Tensor, "cell model"]  # how far draws are from the truth on average; 0 for codes
    apart: Float[Tensor, "cell model model"]  # how far draws of two models are from each other, or two draws of one
    weight: Float[Tensor, " cell"]

    def crps(self, mix: Float[Tensor, "cell model"]) -> Float[Tensor, " cell"]:
        """Of the mixture: E|X - y| - E|X - X'| / 2, linear and quadratic in the weights."""
        return (mix * self.away).sum(-1) - torch.einsum("cm,cmn,cn->c", mix, self.apart, mix) / 2

    def usual(self, loss: Float[Tensor, "cell model"], width: int) -> Float[Tensor, " cell"]:
        """For the same variable when about as many are known."""
        kinds = min(width, MOST_KINDS)
        alike = self.at.variable * (kinds + 1) + (self.at.known * kinds).round().long()
        return usual_loss(loss, alike, width * (kinds + 1))


def fit_weights(
    blend: Blend,
    x: Values,
    present: Mask,
    law: EdgeSampler,
    context: Context | None,
    rng: Generator,
    steps: int = STEPS,
) -> None:
    """Give every model the weights at which the mixture needs the fewest nats and its best guesses and its draws are near.

    Nats alone would leave best guesses and draws to whoever knows the last digits. `context` says which of the memory's own rows
    these are.
    """
    rows, edges = questions(present, law, rng)
    said = answers(blend, torch.where(present, x, 0.0)[rows], edges, None if context is None else context[rows], rng)
    shared = torch.zeros(len(blend.weight), 1, 3, requires_grad=True)  # what is best when all else is known is nobody's guide
    own = torch.zeros_like(blend.weight, requires_grad=True)  # how a variable differs from the others, where it pays
    usual_error = said.usual(said.off.square(), x.shape[1])
    usual_crps = said.usual(said.away - said.apart.diagonal(dim1=-2, dim2=-1) / 2, x.shape[1])
    optimizer = torch.optim.Adam([shared, own], lr=0.1)
    for _ in range(steps):
        mix = blend.log_weight(said.at, F.pad(shared, (0, 1)) + own)
        nats = -(said.log_p + mix).logsumexp(-1)
        error = (said.off * mix.exp()).sum(-1).square() / usual_error
        spread = said.crps(mix.exp()) / usual_crps
        loss = (said.weight * (nats + ERROR * error + SPREAD * spread)).sum() / x.shape[1] / len(rows)
        optimizer.zero_grad()
        (loss + RIDGE * own.square().mean()).backward()
        optimizer.step()
    blend.weight.data = (F.pad(shared, (0, 1)) + own).detach()


def questions(present: Mask, law: EdgeSampler, rng: Generator) -> tuple[Int[Tensor, " question"], Edges]:
    """Rows and what is asked about each: any subset, as in training, and every value given all else.

    The second is what people ask most, and of few rows the first would hold it a few times only.
    """
    count, width = present.shape
    rows = torch.arange(count).repeat(max(1, QUESTIONS // count))
    drawn = law.sample(present[rows], rng)
    each = torch.arange(min(count, max(1, ALL_ELSE // width))).repeat_interleave(width)
    alone = torch.eye(width, dtype=torch.bool).repeat(len(each) // width, 1) & present[each]
    weight = alone * (len(rows) / len(each))  # as much as those that were drawn have by themselves
    edges = Edges(torch.cat([drawn.given, present[each] & ~alone]), torch.cat([drawn.weight, weight.to(drawn.weight)]), None)
    return torch.cat([rows, each]), edges


@torch.no_grad()
def fit_temperature(blend: Blend, x: Values, present: Mask, law: EdgeSampler, context: Context | None, rng: Generator) -> None:
    """Sharpen the laws of every number as far as the mixture needs no more nats than without; its intervals become narrower.

    A few rows cannot tell that, and would make laws too narrow: then there is no temperature.
    """
    blend.temperature.fill_(1.0)
    if len(x) < ENOUGH_ROWS:
        return
    count = min(len(x), FEWER_QUESTIONS)
    rows = torch.arange(count).repeat(FEWER_QUESTIONS // count)
    edges = law.sample(present[rows], rng)
    x, own = torch.where(present, x, 0.0)[rows], None if context is None else context[rows]
    nats = nats_when_tempered(blend, x, edges, own).unflatten(1, (-1, count)).mean(1)  # (temperature, row, variable)
    more = nats - nats[0]
    fine = more.mean(1) + MARGIN * more.std(1, correction=0) / count**0.5 <= 0
    lowest = torch.where(fine, torch.tensor(TEMPERATURES)[:, None], torch.inf).amin(0)
    blend.temperature.copy_(torch.where((more == 0).all(0).all(0), 1.0, lowest))  # codes, and what was not asked for


def nats_when_tempered(
    blend: Blend, x: Values, edges: Edges, context: Context | None
) -> Float[Tensor, "temperature question variable"]:
    """What the mixture, which has no temperature yet, needs for every cell that counts, times its weight."""
    nats = torch.zeros(len(TEMPERATURES), *x.shape)
    for one in asked(blend, x, edges, context):
        if not isinstance(one.laws[0], LatticeLaw):
            continue  # codes have no temperature
        mix = blend.log_weight(one.at)
        for place, temperature in enumerate(TEMPERATURES):
            laws = [sharpened(law, torch.full_like(one.truth, temperature)) for law in one.laws]
            log_p = torch.stack([law.log_prob(one.truth) for law in laws], dim=-1)
            nats[place, one.row, one.at.variable] = -one.weight * (log_p + mix).logsumexp(-1)
    return nats


class Asked(NamedTuple):
    """Cells that are known after all, and the laws of them by every model."""

    row: Int[Tensor, " cell"]
    at: Circumstances
    laws: list[Law]
    truth: Float[Tensor, " cell"]
    weight: Float[Tensor, " cell"]


def asked(blend: Blend, x: Values, edges: Edges, context: Context | None) -> Iterator[Asked]:
    """Every cell that counts, some rows and variables of one kind at a time."""
    for rows in torch.arange(len(x)).split(ROWS_PER_CALL):
        for part in blend(x[rows], edges.given[rows], None if context is None else context[rows]).parts:
            assert isinstance(part, Mixed)
            weight = edges.weight[rows][:, part.index]
            cells = weight > 0
            laws, at = part.each_at(cells)
            yield Asked(rows[cells.nonzero()[:, 0]], at, laws, x[rows][:, part.index][cells], weight[cells])


@torch.no_grad()
def answers(blend: Blend, x: Values, edges: Edges, context: Context | None, rng: Generator) -> Answered:
    """Every model about every cell that counts."""
    out = []
    for one in asked(blend, x, edges, context):
        log_p = torch.stack([law.log_prob(one.truth) for law in one.laws], dim=-1)
        out.append(Answered(one.at, log_p, *distances(one.laws, one.truth, rng), one.weight))
    where, *rest = zip(*out, strict=True)
    return Answered(Circumstances(*map(torch.cat, zip(*where, strict=True))), *map(torch.cat, rest))


def distances(laws: list[Law], truth: Float[Tensor, " cell"], rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Of best guesses and draws to the truth, and of draws to each other; codes have none."""
    numbers = [law for law in laws if isinstance(law, LatticeLaw)]
    if not numbers:
        none = torch.zeros(len(truth), len(laws))
        return none, none, none.unsqueeze(-1).expand(-1, -1, len(laws))
    off = torch.stack([law.mean() for law in numbers], dim=-1) - truth[:, None]
    draws = torch.stack([torch.stack([law.sample(rng) for _ in range(DRAWS)], dim=-1) for law in numbers], dim=1)
    pairs = torch.cdist(draws.flatten(1).unsqueeze(-1), draws.flatten(1).unsqueeze(-1), p=1)
    apart = pairs.unflatten(1, draws.shape[1:]).unflatten(3, draws.shape[1:]).mean((2, 4))
    itself = torch.eye(len(laws), dtype=torch.bool)
    return off, (draws - truth[:, None, None]).abs().mean(-1), torch.where(itself, apart * DRAWS / (DRAWS - 1), apart)
