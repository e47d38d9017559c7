"""How much each model of a blend counts: fitted on rows that no model was trained on."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..blend import Blend, Circumstances, Mixed
from ..heads import LatticeLaw
from ..model import Context
from ..schema import Mask, Values
from .edges import Edges, EdgeSampler

QUESTIONS, STEPS, RIDGE = 2048, 200, 0.01
FEWER_QUESTIONS, TEMPERATURES = 512, (1.0, 0.95, 0.9, 0.85)
ROWS_PER_CALL = 256
ERROR, LEAST_ERROR = 2.0, 1e-4  # nats that a squared error as large as the best model's is worth; the least error to divide by


class Answered(NamedTuple):
    """What every model said to cells that are known after all."""

    at: Circumstances
    log_p: Float[Tensor, "cell model"]
    off: Float[Tensor, "cell model"]  # how far the best guess of a number is off; 0 for codes
    weight: Float[Tensor, " cell"]

    def usual_error(self, width: int) -> Float[Tensor, " cell"]:
        """The mean squared error, of the model that is best at it, for the same variable when as many are known."""
        alike = self.at.variable * (width + 1) + (self.at.known * width).round().long()
        groups = torch.zeros(width * (width + 1), len(self.off[0]) if len(self.off) else 1)
        total = groups.index_add(0, alike, self.off.square())
        count = torch.bincount(alike, minlength=len(groups)).clamp(min=1)
        return (total.amin(-1) / count).clamp(min=LEAST_ERROR)[alike]


def fit_weights(blend: Blend, x: Values, present: Mask, law: EdgeSampler, context: Context | None, rng: Generator) -> None:
    """Give every model the weights at which the mixture needs the fewest nats and its best guesses are near.

    Nats alone would leave best guesses to whoever knows the last digits. `context` says which of the memory's own rows
    these are.
    """
    rows = torch.arange(len(x)).repeat(max(1, QUESTIONS // len(x)))
    edges = law.sample(present[rows], rng)
    said = answers(blend, torch.where(present, x, 0.0)[rows], edges, None if context is None else context[rows])
    shared = torch.zeros(len(blend.weight), 1, 4, requires_grad=True)
    own = torch.zeros_like(blend.weight, requires_grad=True)  # how a variable differs from the others, where it pays
    usual = said.usual_error(x.shape[1])
    optimizer = torch.optim.Adam([shared, own], lr=0.1)
    for _ in range(STEPS):
        mix = blend.log_weight(said.at, shared + own)
        nats = -(said.log_p + mix).logsumexp(-1)
        error = (said.off * mix.exp()).sum(-1).square() / usual
        loss = (said.weight * (nats + ERROR * error)).sum() / x.shape[1] / len(rows)
        optimizer.zero_grad()
        (loss + RIDGE * own.square().mean()).backward()
        optimizer.step()
    blend.weight.data = (shared + own).detach()


@torch.no_grad()
def fit_temperature(blend: Blend, x: Values, present: Mask, law: EdgeSampler, context: Context | None, rng: Generator) -> None:
    """Sharpen the laws of numbers to where the mixture needs the fewest nats; its intervals become narrower too."""
    rows = torch.arange(len(x)).repeat(max(1, FEWER_QUESTIONS // len(x)))[:FEWER_QUESTIONS]
    edges = law.sample(present[rows], rng)
    x, own = torch.where(present, x, 0.0)[rows], None if context is None else context[rows]
    nats = dict[float, float]()
    for temperature in TEMPERATURES:
        blend.temperature.fill_(temperature)
        terms = [
            blend(x[some], edges.given[some], None if own is None else own[some]).log_prob(x[some], at=edges.weight[some] > 0)
            for some in torch.arange(len(x)).split(ROWS_PER_CALL)
        ]
        nats[temperature] = -(edges.weight * torch.cat(terms)).sum().item()
    blend.temperature.fill_(min(nats, key=lambda temperature: nats[temperature]))


@torch.no_grad()
def answers(blend: Blend, x: Values, edges: Edges, context: Context | None) -> Answered:
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
            off = torch.stack(
                [law.mean() - truth if isinstance(law, LatticeLaw) else torch.zeros_like(truth) for law in laws], -1
            )
            out.append(Answered(at, log_p, off, weight[:, part.index][cells]))
    where, *rest = zip(*out, strict=True)
    return Answered(Circumstances(*map(torch.cat, zip(*where, strict=True))), *map(torch.cat, rest))
