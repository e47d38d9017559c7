"""How much each model of a blend counts: fitted on rows that no model was trained on."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn import functional as F

from ..blend import Blend, Circumstances, Mixed
from ..heads import LatticeLaw, Law
from ..model import Context
from ..schema import Mask, Values
from .edges import Edges, EdgeSampler
from .loss import usual_loss

QUESTIONS, STEPS, RIDGE = 2048, 200, 0.003
ALL_ELSE = 1024  # questions about a value given all else, at most
FEWER_QUESTIONS, TEMPERATURES = 512, (1.0, 0.95, 0.9, 0.85, 0.8)
ROWS_PER_CALL = 256
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
        """For the same variable when as many are known."""
        alike = self.at.variable * (width + 1) + (self.at.known * width).round().long()
        return usual_loss(loss, alike, width * (width + 1))


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
    """Sharpen the laws of numbers to where the mixture needs the fewest nats; its intervals become narrower too.

    Of temperatures that are as good within a standard error over rows it takes the lowest: the models will know these rows too
    in the end, and so be nearer to the truth elsewhere than they are here.
    """
    count = min(len(x), FEWER_QUESTIONS)
    rows = torch.arange(count).repeat(FEWER_QUESTIONS // count)
    edges = law.sample(present[rows], rng)
    x, own = torch.where(present, x, 0.0)[rows], None if context is None else context[rows]
    nats = dict[float, Float[Tensor, " row"]]()
    for temperature in TEMPERATURES:
        blend.temperature.fill_(temperature)
        terms = [
            blend(x[some], edges.given[some], None if own is None else own[some]).log_prob(x[some], at=edges.weight[some] > 0)
            for some in torch.arange(len(x)).split(ROWS_PER_CALL)
        ]
        nats[temperature] = -(edges.weight * torch.cat(terms)).sum(-1).view(-1, count).mean(0)
    best = min(nats.values(), key=lambda each: each.mean().item())
    lowest = min(at for at, each in nats.items() if (each - best).mean() <= standard_error(each - best))
    blend.temperature.fill_(lowest)


def standard_error(x: Float[Tensor, " row"]) -> Float[Tensor, ""]:
    """Of the mean over rows."""
    return x.std(correction=0) / len(x) ** 0.5


@torch.no_grad()
def answers(blend: Blend, x: Values, edges: Edges, context: Context | None, rng: Generator) -> Answered:
    """Every model about every cell that counts."""
    out = []
    for rows in torch.arange(len(x)).split(ROWS_PER_CALL):
        weight = edges.weight[rows]
        for part in blend(x[rows], edges.given[rows], None if context is None else context[rows]).parts:
            assert isinstance(part, Mixed)
            cells = weight[:, part.index] > 0
            laws, at = part.each_at(cells)
            truth = x[rows][:, part.index][cells]
            log_p = torch.stack([law.log_prob(truth) for law in laws], dim=-1)
            out.append(Answered(at, log_p, *distances(laws, truth, rng), weight[:, part.index][cells]))
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
