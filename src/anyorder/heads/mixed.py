"""Several laws of the same number, mixed with given weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import final

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..errors import InputError
from .lattice import LatticeLaw
from .law import Cells, DiscreteLaw, Law, draw_code


@final
@dataclass(frozen=True)
class MixedCodes(DiscreteLaw):
    """The table of probabilities is the weighted mean of the tables."""

    laws: tuple[DiscreteLaw, ...]
    log_weight: Float[Tensor, "*cells laws"]

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        tables = torch.stack([law.log_pmf() for law in self.laws], dim=-1)
        return (tables + self.log_weight.unsqueeze(-2)).logsumexp(-1)

    def log_prob(self, x: Cells) -> Cells:
        return (torch.stack([law.log_prob(x) for law in self.laws], dim=-1) + self.log_weight).logsumexp(-1)

    def tempered(self, temperature: float) -> "MixedCodes":
        laws = tuple(law.tempered(temperature) for law in self.laws)
        return MixedCodes(tuple(law for law in laws if isinstance(law, DiscreteLaw)), self.log_weight)


@final
@dataclass(frozen=True)
class MixedNumber(LatticeLaw):
    """Masses, distribution functions and means are weighted means; all laws live on the same lattice.

    Weights are made to sum to 1 in the precision at hand: a cdf must reach 1.
    """

    laws: tuple[LatticeLaw, ...]
    log_weight: Float[Tensor, "*cells laws"]

    def log_prob(self, x: Cells) -> Cells:
        return (torch.stack([law.log_prob(x) for law in self.laws], dim=-1) + self.log_weight).logsumexp(-1)

    def cdf(self, x: Cells) -> Cells:
        return (torch.stack([law.cdf(x) for law in self.laws], dim=-1) * self.log_weight.softmax(-1)).sum(-1)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        return (torch.stack([law.cdfs(x) for law in self.laws], dim=-1) * self.log_weight.softmax(-1).unsqueeze(-2)).sum(-1)

    def mean(self) -> Cells:
        return (torch.stack([law.mean() for law in self.laws], dim=-1) * self.log_weight.softmax(-1)).sum(-1)

    def sample(self, rng: Generator) -> Cells:
        """Every cell from one of its laws."""
        chosen = draw_code(self.log_weight, rng)
        drawn = torch.empty_like(self.spacing)
        for place, law in enumerate(self.laws):
            if (mine := chosen == place).any():
                drawn[mine] = law.each(itemgetter(mine)).sample(rng)
        return drawn

    def shortfall(self, x: Cells) -> Cells:
        return (torch.stack([law.shortfall(x) for law in self.laws], dim=-1) * self.log_weight.softmax(-1)).sum(-1)

    def shortfalls(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        weight = self.log_weight.softmax(-1).unsqueeze(-2)
        return (torch.stack([law.shortfalls(x) for law in self.laws], dim=-1) * weight).sum(-1)

    def reach(self) -> Cells:
        return reduce(torch.maximum, [law.reach() for law in self.laws])

    def tempered(self, temperature: float | Cells) -> "MixedNumber":
        """Every law is tempered; their weights stay."""
        return MixedNumber(self.spacing, tuple(law.tempered(temperature) for law in self.laws), self.log_weight)


def mixed(laws: Sequence[Law], log_weight: Float[Tensor, "*cells laws"]) -> Law:
    """The mixture of laws of one kind."""
    codes = tuple(law for law in laws if isinstance(law, DiscreteLaw))
    numbers = tuple(law for law in laws if isinstance(law, LatticeLaw))
    if len(codes) == len(laws):
        return MixedCodes(codes, log_weight)
    if len(numbers) == len(laws):
        return MixedNumber(numbers[0].spacing, numbers, log_weight)
    names = ", ".join(type(law).__name__ for law in laws)
    raise InputError(f"Cannot mix {names}: expected laws of codes, or laws of numbers on one lattice.")
