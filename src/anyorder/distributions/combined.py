"""Several distributions of the same number, mixed with given weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import itemgetter
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from .distribution import Cells, DiscreteDistribution, Distribution, draw_code, take
from .lattice import LEAST_POSITIVE, LatticeDistribution, at_or_below, for_all


@final
@dataclass(frozen=True)
class MixedCodes(DiscreteDistribution):
    """The table of probabilities is the weighted mean of the tables."""

    distributions: tuple[DiscreteDistribution, ...]
    log_weight: Float[Tensor, "*cells distributions"]

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        tables = torch.stack([distribution.log_pmf() for distribution in self.distributions], dim=-1)
        return (tables + self.log_weight.unsqueeze(-2)).logsumexp(-1)

    def log_prob(self, x: Cells) -> Cells:
        return (
            torch.stack([distribution.log_prob(x) for distribution in self.distributions], dim=-1) + self.log_weight
        ).logsumexp(-1)

    def tempered(self, temperature: float) -> "MixedCodes":
        distributions = tuple(distribution.tempered(temperature) for distribution in self.distributions)
        return MixedCodes(
            tuple(distribution for distribution in distributions if isinstance(distribution, DiscreteDistribution)),
            self.log_weight,
        )


@final
@dataclass(frozen=True)
class MixedNumber(LatticeDistribution):
    """Masses, distribution functions and means are weighted means; all distributions live on the same lattice.

    Weights are made to sum to 1 in the precision at hand: a cdf must reach 1.
    """

    distributions: tuple[LatticeDistribution, ...]
    log_weight: Float[Tensor, "*cells distributions"]

    def log_prob(self, x: Cells) -> Cells:
        return (
            torch.stack([distribution.log_prob(x) for distribution in self.distributions], dim=-1) + self.log_weight
        ).logsumexp(-1)

    def cdf(self, x: Cells) -> Cells:
        return (
            torch.stack([distribution.cdf(x) for distribution in self.distributions], dim=-1) * self.log_weight.softmax(-1)
        ).sum(-1)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        return (
            torch.stack([distribution.cdfs(x) for distribution in self.distributions], dim=-1)
            * self.log_weight.softmax(-1).unsqueeze(-2)
        ).sum(-1)

    def mean(self) -> Cells:
        return (
            torch.stack([distribution.mean() for distribution in self.distributions], dim=-1) * self.log_weight.softmax(-1)
        ).sum(-1)

    def sample(self, rng: Generator) -> Cells:
        """Every cell from one of its distributions."""
        chosen = draw_code(self.log_weight, rng)
        drawn = torch.empty_like(self.spacing)
        for place, distribution in enumerate(self.distributions):
            if (mine := chosen == place).any():
                drawn[mine] = distribution.map_tensors(itemgetter(mine)).sample(rng)
        return drawn

    def integrated_cdf(self, x: Cells) -> Cells:
        return (
            torch.stack([distribution.integrated_cdf(x) for distribution in self.distributions], dim=-1)
            * self.log_weight.softmax(-1)
        ).sum(-1)

    def integrated_cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        weight = self.log_weight.softmax(-1).unsqueeze(-2)
        return (torch.stack([distribution.integrated_cdfs(x) for distribution in self.distributions], dim=-1) * weight).sum(-1)

    def reach(self) -> Cells:
        return reduce(torch.maximum, [distribution.reach() for distribution in self.distributions])

    def tempered(self, temperature: float | Cells) -> "MixedNumber":
        """Every distribution is tempered; their weights stay."""
        return MixedNumber(
            self.spacing, tuple(distribution.tempered(temperature) for distribution in self.distributions), self.log_weight
        )


def mixed(distributions: Sequence[Distribution], log_weight: Float[Tensor, "*cells distributions"]) -> Distribution:
    """The mixture of distributions of one kind."""
    codes = tuple(distribution for distribution in distributions if isinstance(distribution, DiscreteDistribution))
    numbers = tuple(distribution for distribution in distributions if isinstance(distribution, LatticeDistribution))
    if len(codes) == len(distributions):
        return MixedCodes(codes, log_weight)
    if len(numbers) == len(distributions):
        return MixedNumber(numbers[0].spacing, numbers, log_weight)
    names = ", ".join(type(distribution).__name__ for distribution in distributions)
    raise InputError(f"Cannot mix {names}: expected distributions of codes, or distributions of numbers on one lattice.")


LEAST_TRIES, MOST_TRIES = 16, 256  # more draws, all at once, of which the first that is accepted counts; then by a quantile
DRAWS_AT_ONCE = 2**14
TRIES_FOR_ONE = 7  # times as many as one draw takes on average: then one cell in a thousand is left


class Pieces(NamedTuple):
    """The distribution function, bin by bin: offset + ratio F(x)."""

    ratio: Float[Tensor, "*cells bin"]
    offset: Float[Tensor, "*cells bin"]


@final
@dataclass(frozen=True)
class ReweightedNumber(LatticeDistribution):
    r"""Every bin's probability times its weight, made to sum to 1.

    .. math:: P(x) = P_0(x) \, w_{b(x)} / \sum_b P_0(b) \, w_b

    Bins lie between edges, the first below all of them. Edges rise and lie between points of the lattice; where two are the
    same, the bin between them is empty.
    """

    distribution: LatticeDistribution
    edges: Float[Tensor, "*cells edge"]
    weight: Float[Tensor, "*cells bin"]

    def log_prob(self, x: Cells) -> Cells:
        return self.distribution.log_prob(x) + take(self._pieces.ratio, self._bin(x)).clamp(min=LEAST_POSITIVE).log()

    def cdf(self, x: Cells) -> Cells:
        x = at_or_below(x, self.spacing)
        which = self._bin(x)
        ratio, offset = (take(piece, which) for piece in self._pieces)
        return (offset + ratio * self.distribution.cdf(x)).clamp(0.0, 1.0)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        x = at_or_below(x, self.spacing.unsqueeze(-1))
        which = (self.edges.unsqueeze(-2) < x.unsqueeze(-1)).sum(-1)
        ratio, offset = (piece.gather(-1, which) for piece in self._pieces)
        return (offset + ratio * self.distribution.cdfs(x)).clamp(0.0, 1.0)

    def reach(self) -> Cells:
        return self.distribution.reach()

    def mean(self) -> Cells:
        if self._changed.all():
            return self._changed_mean()
        mean = self.distribution.mean()
        mean[self._changed] = self.map_tensors(itemgetter(self._changed))._changed_mean()
        return mean

    def _changed_mean(self) -> Cells:
        """Before rounding: the mean inside every bin times its new probability."""
        ends = self.distribution.means_upto(self.edges)
        upto = torch.cat([torch.zeros_like(ends[..., :1]), ends, self.distribution.mean().unsqueeze(-1)], dim=-1)
        return (self._pieces.ratio * upto.diff(dim=-1)).sum(-1)

    def integrated_cdf(self, x: Cells) -> Cells:
        """The area under the distribution function: that of all bins below, and of the part of the last one."""
        ratio, offset = self._pieces
        start = torch.cat([self.edges[..., :1], self.edges], dim=-1)  # the first bin has no offset, so its start is of no matter
        area = torch.cat([torch.zeros_like(ratio[..., :1]), self._shortfalls], dim=-1)  # under the distribution, up to the start
        whole = (offset * torch.cat([self.edges, self.edges[..., -1:]], dim=-1).sub(start))[..., :-1]
        whole = whole + ratio[..., :-1] * area.diff(dim=-1)
        below = torch.cat([torch.zeros_like(whole[..., :1]), whole.cumsum(-1)], dim=-1)
        which = self._bin(x)
        begun = take(offset, which) * (x - take(start, which)) + take(ratio, which) * (
            self.distribution.integrated_cdf(x) - take(area, which)
        )
        return take(below, which) + begun

    def sample(self, rng: Generator) -> Cells:
        """Drawn from the distribution, and accepted as often as its bin's weight says; the last few by a quantile."""
        most = self._pieces.ratio.amax(-1, keepdim=True)  # one of so many draws is accepted
        accept = self._pieces.ratio / most
        drawn = self.distribution.sample(rng)
        lost = ~accepted(take(accept, self._bin(drawn)), rng)
        if not lost.any():
            return drawn
        enough = math.ceil(TRIES_FOR_ONE * min(float(most[lost].max()), MOST_TRIES))
        count = min(enough, MOST_TRIES, max(LEAST_TRIES, DRAWS_AT_ONCE // int(lost.sum())))
        few = self.map_tensors(lambda t: t[lost].unsqueeze(1).expand(-1, count, *t.shape[lost.ndim :]))
        tries = few.distribution.sample(rng)
        good = accepted(take(accept[lost].unsqueeze(1).expand(-1, count, -1), few._bin(tries)), rng)
        again = take(tries, good.int().argmax(-1))
        if not good.any(-1).all():
            hard = ~good.any(-1)
            u = torch.rand(int(hard.sum()), generator=rng, device=rng.device, dtype=torch.float64).to(drawn.device)
            again[hard] = self.map_tensors(lambda t: t[lost][hard]).quantile(u)
        drawn[lost] = again
        return drawn

    def tempered(self, temperature: float | Cells) -> "ReweightedNumber":
        return ReweightedNumber(
            self.spacing, self.distribution.tempered(temperature), self.edges, self.weight.pow(1 / for_all(temperature))
        )

    def _bin(self, x: Cells) -> Int[Tensor, "*cells"]:
        return (self.edges < x.unsqueeze(-1)).sum(-1)

    @cached_property
    def _changed(self) -> Bool[Tensor, "*cells"]:
        """Cells whose bins do not all have the same weight."""
        return (self.weight != self.weight[..., :1]).any(-1)

    @cached_property
    def _pieces(self) -> Pieces:
        """The distribution is asked only about cells that were changed."""
        if self._changed.all():
            return self._all_pieces()
        ratio, offset = torch.ones_like(self.weight), torch.zeros_like(self.weight)
        ratio[self._changed], offset[self._changed] = self.map_tensors(itemgetter(self._changed))._all_pieces()
        return Pieces(ratio, offset)

    def _all_pieces(self) -> Pieces:
        cdf = self.distribution.cdfs_between_bins(self.edges)
        none = torch.zeros_like(cdf[..., :1])
        mass = torch.cat([none, cdf, none + 1], dim=-1).diff(dim=-1).clamp(min=0.0)
        ratio = self.weight / (mass * self.weight).sum(-1, keepdim=True).clamp(min=LEAST_POSITIVE)
        below = torch.cat([none, (mass * ratio).cumsum(-1)[..., :-1]], dim=-1)
        return Pieces(ratio, below - ratio * torch.cat([none, cdf], dim=-1))

    @cached_property
    def _shortfalls(self) -> Float[Tensor, "*cells edge"]:
        """Of the distribution, at every edge."""
        return self.distribution.integrated_cdfs(self.edges)


def accepted(share: Cells, rng: Generator) -> Bool[Tensor, "*cells"]:
    return torch.rand(share.shape, generator=rng, device=rng.device).to(share.device) < share
