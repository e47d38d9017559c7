"""A law of numbers whose bins have got other probabilities; inside a bin it keeps its shape."""

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from .lattice import TINY, LatticeLaw, at_or_below, for_all
from .law import Cells, take

LEAST_TRIES, MOST_TRIES = 16, 256  # more draws, all at once, of which the first that is accepted counts; then by a quantile
DRAWS_AT_ONCE = 2**14


class Pieces(NamedTuple):
    """The distribution function, bin by bin: offset + ratio F(x)."""

    ratio: Float[Tensor, "*cells bin"]
    offset: Float[Tensor, "*cells bin"]


@final
@dataclass(frozen=True)
class ReweightedNumber(LatticeLaw):
    r"""Every bin's probability times its weight, made to sum to 1.

    .. math:: P(x) = P_0(x) \, w_{b(x)} / \sum_b P_0(b) \, w_b

    Bins lie between edges, the first below all of them. Edges rise and lie between points of the lattice; where two are the
    same, the bin between them is empty.
    """

    law: LatticeLaw
    edges: Float[Tensor, "*cells edge"]
    weight: Float[Tensor, "*cells bin"]

    def log_prob(self, x: Cells) -> Cells:
        return self.law.log_prob(x) + take(self._pieces.ratio, self._bin(x)).clamp(min=TINY).log()

    def cdf(self, x: Cells) -> Cells:
        x = at_or_below(x, self.spacing)
        which = self._bin(x)
        ratio, offset = (take(piece, which) for piece in self._pieces)
        return (offset + ratio * self.law.cdf(x)).clamp(0.0, 1.0)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        x = at_or_below(x, self.spacing.unsqueeze(-1))
        which = (self.edges.unsqueeze(-2) < x.unsqueeze(-1)).sum(-1)
        ratio, offset = (piece.gather(-1, which) for piece in self._pieces)
        return (offset + ratio * self.law.cdfs(x)).clamp(0.0, 1.0)

    def reach(self) -> Cells:
        return self.law.reach()

    def mean(self) -> Cells:
        if self._changed.all():
            return self._changed_mean()
        mean = self.law.mean()
        mean[self._changed] = self.each(itemgetter(self._changed))._changed_mean()
        return mean

    def _changed_mean(self) -> Cells:
        """Before rounding: the mean inside every bin times its new probability."""
        ends = self.law.means_upto(self.edges)
        upto = torch.cat([torch.zeros_like(ends[..., :1]), ends, self.law.mean().unsqueeze(-1)], dim=-1)
        return (self._pieces.ratio * upto.diff(dim=-1)).sum(-1)

    def shortfall(self, x: Cells) -> Cells:
        """The area under the distribution function: that of all bins below, and of the part of the last one."""
        ratio, offset = self._pieces
        start = torch.cat([self.edges[..., :1], self.edges], dim=-1)  # the first bin has no offset, so its start is of no matter
        area = torch.cat([torch.zeros_like(ratio[..., :1]), self._shortfalls], dim=-1)  # under the law, up to the start
        whole = (offset * torch.cat([self.edges, self.edges[..., -1:]], dim=-1).sub(start))[..., :-1]
        whole = whole + ratio[..., :-1] * area.diff(dim=-1)
        below = torch.cat([torch.zeros_like(whole[..., :1]), whole.cumsum(-1)], dim=-1)
        which = self._bin(x)
        begun = take(offset, which) * (x - take(start, which)) + take(ratio, which) * (self.law.shortfall(x) - take(area, which))
        return take(below, which) + begun

    def sample(self, rng: Generator) -> Cells:
        """Drawn from the law, and accepted as often as its bin's weight says; the last few by a quantile."""
        accept = self._pieces.ratio / self._pieces.ratio.amax(-1, keepdim=True)
        drawn = self.law.sample(rng)
        lost = ~accepted(take(accept, self._bin(drawn)), rng)
        if not lost.any():
            return drawn
        count = min(MOST_TRIES, max(LEAST_TRIES, DRAWS_AT_ONCE // int(lost.sum())))
        few = self.each(lambda t: t[lost].unsqueeze(1).expand(-1, count, *t.shape[lost.ndim :]))
        tries = few.law.sample(rng)
        good = accepted(take(accept[lost].unsqueeze(1).expand(-1, count, -1), few._bin(tries)), rng)
        again = take(tries, good.int().argmax(-1))
        if not good.any(-1).all():
            hard = ~good.any(-1)
            u = torch.rand(int(hard.sum()), generator=rng, device=rng.device, dtype=torch.float64).to(drawn.device)
            again[hard] = self.each(lambda t: t[lost][hard]).quantile(u)
        drawn[lost] = again
        return drawn

    def tempered(self, temperature: float | Cells) -> "ReweightedNumber":
        return ReweightedNumber(
            self.spacing, self.law.tempered(temperature), self.edges, self.weight.pow(1 / for_all(temperature))
        )

    def _bin(self, x: Cells) -> Int[Tensor, "*cells"]:
        return (self.edges < x.unsqueeze(-1)).sum(-1)

    @cached_property
    def _changed(self) -> Bool[Tensor, "*cells"]:
        """Cells whose bins do not all have the same weight."""
        return (self.weight != self.weight[..., :1]).any(-1)

    @cached_property
    def _pieces(self) -> Pieces:
        """The law is asked only about cells that were changed."""
        if self._changed.all():
            return self._all_pieces()
        ratio, offset = torch.ones_like(self.weight), torch.zeros_like(self.weight)
        ratio[self._changed], offset[self._changed] = self.each(itemgetter(self._changed))._all_pieces()
        return Pieces(ratio, offset)

    def _all_pieces(self) -> Pieces:
        cdf = self.law.cdfs_between_bins(self.edges)
        none = torch.zeros_like(cdf[..., :1])
        mass = torch.cat([none, cdf, none + 1], dim=-1).diff(dim=-1).clamp(min=0.0)
        ratio = self.weight / (mass * self.weight).sum(-1, keepdim=True).clamp(min=TINY)
        below = torch.cat([none, (mass * ratio).cumsum(-1)[..., :-1]], dim=-1)
        return Pieces(ratio, below - ratio * torch.cat([none, cdf], dim=-1))

    @cached_property
    def _shortfalls(self) -> Float[Tensor, "*cells edge"]:
        """Of the law, at every edge."""
        return self.law.shortfalls(self.edges)


def accepted(share: Cells, rng: Generator) -> Bool[Tensor, "*cells"]:
    return torch.rand(share.shape, generator=rng, device=rng.device).to(share.device) < share
