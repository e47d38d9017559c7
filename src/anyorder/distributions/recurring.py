"""Numbers that recur, such as rounded prices or favourite digits: a distribution with a share of values that were seen before."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from .distribution import Cells
from .lattice import LEAST_POSITIVE, LatticeDistribution, at_or_below

STRIDE = 3e4  # between the values of neighbouring variables, where all of them stand in one row
FAR_IN_STEPS = 1e4  # in place of an end that is open: no distribution has mass there


@final
@dataclass(frozen=True)
class ValueTable:
    """How often every value of every variable was seen, in narrow bins; variables without any have an empty one.

    Values and bins of all variables stand in one row each, those of a variable together and rising.
    """

    keys: Float[Tensor, " value"]  # in double precision: the value, and its variable times the stride
    upto: Int[Tensor, " value"]  # rows of its bin that have this value or a lower one
    ends: Float[Tensor, " bin"]  # the keys of the bins' upper ends
    low: Float[Tensor, " bin"]
    high: Float[Tensor, " bin"]
    rows: Int[Tensor, " bin"]  # how many are in it
    first: Int[Tensor, " bin"]  # the place of its first value
    total: Float[Tensor, " value"]  # of the values of those rows, from its bin's first value up to this one
    begin: Int[Tensor, " variable"]  # the first bin of every variable, and at last how many there are
    share: Float[Tensor, " bin"]  # how much of its probability belongs to values that were seen

    @classmethod
    def of(cls, columns: list[Tensor], edges: list[Tensor]) -> "ValueTable":
        """The values of every variable and the edges between its bins."""
        parts = [one_table(place, values, cuts) for place, (values, cuts) in enumerate(zip(columns, edges, strict=True))]
        keys, upto, ends, low, high, rows, first, total = (torch.cat(part) for part in zip(*parts, strict=True))
        sizes = torch.tensor([len(part[0]) for part in parts])
        bins = torch.tensor([len(part[2]) for part in parts])
        first = first + (sizes.cumsum(0) - sizes).repeat_interleave(bins)
        begin = torch.cat([bins.new_zeros(1), bins.cumsum(0)])
        return cls(keys, upto, ends, low, high, rows, first, total, begin, torch.zeros(len(ends)))

    def with_share(self, share: Float[Tensor, " bin"]) -> "ValueTable":
        return replace(self, share=share)

    def bin(self, variable: Int[Tensor, "*cells"], x: Cells) -> Int[Tensor, "*cells"]:
        """In which bin a value lies."""
        key = variable.double() * STRIDE + x.double().clamp(-FAR_IN_STEPS, FAR_IN_STEPS)
        return torch.searchsorted(self.ends, key.contiguous())

    def upto_and_at(
        self, variable: Int[Tensor, "*cells"], x: Cells, half: Cells, bins: Int[Tensor, "*cells"]
    ) -> tuple[Float[Tensor, "*cells"], Float[Tensor, "*cells"], Float[Tensor, "*cells"]]:
        """How many rows of its bin have a value up to x, how many x itself, and the sum of those up to x."""
        key = variable.double() * STRIDE + x.double().clamp(-FAR_IN_STEPS, FAR_IN_STEPS)
        last = torch.searchsorted(self.keys, (key + half.double()).contiguous()) - 1  # the greatest value not above x
        before = torch.searchsorted(self.keys, (key - half.double()).contiguous()) - 1
        first = self.first[bins]
        count = lambda place: torch.where(place >= first, self.upto[place.clamp(min=0)], 0)  # noqa: E731
        upto = count(last)
        total = torch.where(last >= first, self.total[last.clamp(min=0)], 0.0)
        return upto.to(x.dtype), (upto - count(before)).to(x.dtype), total.to(x.dtype)


def one_table(place: int, values: Float[Tensor, " row"], cuts: Float[Tensor, " edge"]) -> tuple[Tensor, ...]:
    """The keys, running counts and bins of one variable; none for one without values."""
    none = values.new_zeros(0)
    if not len(values):
        return none.double(), none.long(), none.double(), none, none, none.long(), none.long(), none.double()
    values = values.clamp(-FAR_IN_STEPS, FAR_IN_STEPS)
    value, count = values.sort().values.unique_consecutive(return_counts=True)
    inside = torch.bucketize(value, cuts)
    running = count.cumsum(0)
    first = torch.searchsorted(inside, torch.arange(len(cuts) + 1))
    before = torch.cat([running.new_zeros(1), running])[first]
    far = values.new_tensor([FAR_IN_STEPS])
    low, high = torch.cat([-far, cuts]), torch.cat([cuts, far])
    ends = high.double() + place * STRIDE
    ends[-1] += 1.0  # whatever lies beyond
    rows = torch.cat([before[1:], running[-1:]]) - before
    sums = (value.double() * count).cumsum(0)
    earlier = torch.cat([sums.new_zeros(1), sums])[first]
    return value.double() + place * STRIDE, running - before[inside], ends, low, high, rows, first, sums - earlier[inside]


class BinPart(NamedTuple):
    """What is needed of the bin of a value."""

    share: Cells
    below: Cells  # the distribution's distribution function at its lower end
    inside: Cells  # what the distribution gives to it
    smooth: Cells  # the distribution's distribution function at x
    upto: Cells  # the share of its rows with a value up to x
    at: Cells  # the share of its rows with x itself
    total: Cells  # the mean over its rows of their value, if it is not above x, else 0


class ValueBins(NamedTuple):
    """All bins of a cell's variable."""

    share: Float[Tensor, "*cells bin"]
    low: Float[Tensor, "*cells bin"]
    high: Float[Tensor, "*cells bin"]
    below: Float[Tensor, "*cells bin"]  # the distribution's distribution function at the lower end
    upper: Float[Tensor, "*cells bin"]  # and at the upper end
    area_low: Float[Tensor, "*cells bin"]  # under it, up to the lower end
    area_high: Float[Tensor, "*cells bin"]
    mean: Float[Tensor, "*cells bin"]  # of the values that were seen


@final
@dataclass(frozen=True)
class RecurringNumber(LatticeDistribution):
    r"""Of every narrow bin's probability a share goes to the values that were seen in it, each as often as it was seen.

    .. math:: P(x) = (1 - \lambda_b) P_0(x) + \lambda_b P_0(b) \, \frac{c(x)}{\sum_{x' \in b} c(x')}

    `own` is a value that is not counted once: that of a training row about which the distribution is (NaN: none).
    """

    distribution: LatticeDistribution
    variable: Cells  # its number, as a float so that all of a distribution's tensors can change alike
    own: Cells
    table: ValueTable

    def log_prob(self, x: Cells) -> Cells:
        part = self._part(x)
        smooth = torch.log1p(-part.share) + self.distribution.log_prob(x)
        seen = part.share * part.inside * part.at
        return torch.where(seen > LEAST_POSITIVE, torch.logaddexp(smooth, seen.clamp(min=LEAST_POSITIVE).log()), smooth)

    def cdf(self, x: Cells) -> Cells:
        return self.cdfs(x.unsqueeze(-1)).squeeze(-1)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        x = at_or_below(x, self.spacing.unsqueeze(-1))
        part = self._parts(x)
        smooth = (part.smooth - part.below).clamp(min=0.0)
        return (part.below + (1 - part.share) * smooth + part.share * part.inside * part.upto).clamp(0.0, 1.0)

    def reach(self) -> Cells:
        return self.distribution.reach()

    def mean(self) -> Cells:
        """Before rounding: every bin's share moves from the distribution's own mean in it to that of its values."""
        return self.distribution.mean() + self._moved.sum(-1)

    def cdfs_between_bins(self, edges: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells edge"]:
        return self.distribution.cdfs_between_bins(edges)

    def means_upto(self, edges: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells edge"]:
        below = self._bins.high.unsqueeze(-2) <= edges.unsqueeze(-1)
        return self.distribution.means_upto(edges) + (below * self._moved.unsqueeze(-2)).sum(-1)

    @cached_property
    def _moved(self) -> Float[Tensor, "*cells bin"]:
        """How far the mean moves by what every bin's values share."""
        bins = self._bins
        ends = torch.where(
            bins.high < FAR_IN_STEPS, bins.high * bins.upper - bins.area_high, self.distribution.mean().unsqueeze(-1)
        )
        start = torch.where(bins.low > -FAR_IN_STEPS, bins.low * bins.below - bins.area_low, 0.0)
        return bins.share * ((bins.upper - bins.below) * bins.mean - (ends - start))

    def integrated_cdf(self, x: Cells) -> Cells:
        """The area under the distribution function: the distribution's, and in every bin up to x what its values add to it."""
        bins, at, part, area = self._bins, x.unsqueeze(-1), self._part(x), self.distribution.integrated_cdf(x)
        low = torch.where(bins.low > -FAR_IN_STEPS, bins.low, 0.0)  # nothing lies below the first bin
        whole = (
            bins.below * (bins.high - low)
            + (bins.upper - bins.below) * (bins.high - bins.mean)
            - (bins.area_high - bins.area_low)
        )
        begun = bins.below * (at - low) - (area.unsqueeze(-1) - bins.area_low)
        begun = begun + (part.inside * (x * part.upto - part.total)).unsqueeze(-1)
        more = torch.where(bins.high <= at, whole, torch.where(bins.low < at, begun, 0.0))
        return area + (bins.share * more).sum(-1)

    def sample(self, rng: Generator) -> Cells:
        """Drawn from the distribution; of every bin its share is put onto one of the values seen there."""
        drawn = self.distribution.sample(rng)
        bins = self.table.bin(self._variable, drawn)
        u, v = torch.rand(2, *drawn.shape, generator=rng, device=rng.device, dtype=torch.float64).to(drawn.device)
        own, here = self._own(bins)
        rows = self.table.rows[bins] - here
        again = (u < self.table.share[bins]) & (rows > 0)
        if not again.any():
            return drawn
        bins, own, here = bins[again], own[again], here[again]
        rank = (v[again] * rows[again]).long()  # which of the bin's rows, its own one left out
        rank = rank + ((here > 0) & (rank >= own - 1)).long()
        value = self._seen(bins, rank)
        drawn[again] = (value - self._variable[again].double() * STRIDE).to(drawn.dtype)
        return self.nearest(drawn)

    def tempered(self, temperature: float | Cells) -> "RecurringNumber":
        return replace(self, distribution=self.distribution.tempered(temperature))

    def parts(self, x: Cells) -> tuple[Cells, Cells, Int[Tensor, "*cells"]]:
        """The probability of x by the distribution below and by the values seen in its bin, and the bin: what shares
        are learned from.
        """
        part = self._part(x)
        return self.distribution.log_prob(x).exp(), part.inside * part.at, self.table.bin(self._variable, x)

    @property
    def _variable(self) -> Int[Tensor, "*cells"]:
        return self.variable.long()

    def _own(self, bins: Int[Tensor, "*cells"]) -> tuple[Int[Tensor, "*cells"], Int[Tensor, "*cells"]]:
        """How many rows of a bin have the own value or a lower one, and 1 where that value lies in the bin."""
        own = self.own.nan_to_num(0.0)
        inside = ~self.own.isnan() & (self.table.bin(self._variable, own) == bins)
        upto, _, _ = self.table.upto_and_at(self._variable, own, self.spacing / 2, bins)
        return upto.long(), inside.long()

    def _part(self, x: Cells) -> BinPart:
        return BinPart(*(values.squeeze(-1) for values in self._parts(x.unsqueeze(-1))))

    def _parts(self, x: Float[Tensor, "*cells place"]) -> BinPart:
        """Of several places of every cell."""
        variable, own, half = (t.unsqueeze(-1).expand_as(x) for t in (self._variable, self.own, self.spacing / 2))
        bins = self.table.bin(variable, x)
        low, high = self.table.low[bins].to(x.dtype), self.table.high[bins].to(x.dtype)
        below, upper, smooth = self.distribution.cdfs(torch.cat([low, high, x], dim=-1)).chunk(3, dim=-1)
        below = torch.where(low <= -FAR_IN_STEPS, 0.0, below)
        upper = torch.where(high >= FAR_IN_STEPS, 1.0, upper)
        upto, at, total = self.table.upto_and_at(variable, x, half, bins)
        rows = self.table.rows[bins].to(x.dtype)
        if not own.isnan().all():
            here = ~own.isnan() & (self.table.bin(variable, own.nan_to_num(0.0)) == bins)
            counted = here & (own <= x + half)
            upto, total = upto - counted.to(x.dtype), total - torch.where(counted, own, 0.0)
            at, rows = at - (here & ((x - own).abs() < half)).to(x.dtype), rows - here.to(x.dtype)
        share = torch.where(rows > 0, self.table.share[bins].to(x.dtype), 0.0)
        rows = rows.clamp(min=1)
        inside = (upper - below).clamp(min=0.0)
        return BinPart(share, below, inside, smooth, upto / rows, at / rows, total / rows)

    @cached_property
    def _bins(self) -> "ValueBins":
        """Of every cell's variable, side by side; those with fewer bins have some without a share."""
        begin = self.table.begin[self._variable].unsqueeze(-1)
        count = self.table.begin[self._variable + 1].unsqueeze(-1) - begin
        place = torch.arange(int(self.table.begin.diff().max()))
        bins = (begin + place).clamp(max=max(0, len(self.table.rows) - 1))
        of = lambda values: values[bins].to(self.spacing.dtype)  # noqa: E731
        last = (torch.cat([self.table.first[1:], self.table.first.new_tensor([len(self.table.keys)])]) - 1)[bins]
        own = self.own.unsqueeze(-1)
        low, high = of(self.table.low), of(self.table.high)
        here = ~own.isnan() & (own > low) & (own < high)
        rows = of(self.table.rows) - here.to(low.dtype)
        total = torch.where(of(self.table.rows) > 0, self.table.total[last.clamp(min=0)].to(low.dtype), 0.0)
        share = torch.where((place < count) & (rows > 0), of(self.table.share), 0.0)
        cdf, area = (
            self.distribution.cdfs(high[..., :-1]),
            self.distribution.integrated_cdfs(high[..., :-1]),
        )  # bins follow each other
        none = torch.zeros_like(share[..., :1])
        top = torch.where(low[..., -1:] < FAR_IN_STEPS, self.distribution.integrated_cdfs(high[..., -1:]), 0.0)
        return ValueBins(
            share,
            low,
            high,
            torch.cat([none, cdf], dim=-1),
            torch.where(high >= FAR_IN_STEPS, 1.0, torch.cat([cdf, none + 1], dim=-1)),
            torch.cat([none, area], dim=-1),
            torch.cat([area, top], dim=-1),
            (total - torch.where(here, own, 0.0)) / rows.clamp(min=1),
        )

    def _seen(self, bins: Int[Tensor, " cell"], rank: Int[Tensor, " cell"]) -> Float[Tensor, " cell"]:
        """The key of the row with this rank in its bin: bisection over the running counts."""
        after = torch.cat([self.table.first[1:], self.table.first.new_tensor([len(self.table.keys)])])
        low, high = self.table.first[bins], after[bins] - 1
        while (low < high).any():
            middle = (low + high) // 2
            enough = self.table.upto[middle] > rank
            low, high = torch.where(enough, low, middle + 1), torch.where(enough, middle, high)
        return self.table.keys[low]
