"""The distributions of all variables of every row, each alone, given what is known: what a model's `forward` returns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from ..distributions import CategoricalDistribution, DiscreteDistribution, Distribution, LatticeDistribution
from ..schema import Mask, Values

Temperatures = Float[Tensor, " place"]
CellIndex = Any  # what selects cells of (batch, part): `...`, a mask, or (slice(None), place)


@dataclass(frozen=True)
class Distributions(ABC):
    """The distributions of some of the variables, all of the same kind, in every row."""

    index: Int[Tensor, " part"]
    copies_values: ClassVar[bool] = False  # whether values that were seen have a share of their own already

    @abstractmethod
    def at(self, cells: CellIndex) -> Distribution:
        """The distributions of these cells. Only what is asked for is computed: a path asks for one variable of many.

        Codes of several sizes may share a table: those that a variable does not have come after its own and are impossible.
        """

    @property
    def levels(self) -> Sequence[int]:
        """How many codes every variable has, if the tables of some are longer; else nothing."""
        return ()

    def cells_at(self, cells: CellIndex, rows: int) -> tuple[Int[Tensor, "*cells"], Int[Tensor, "*cells"]]:
        """The row and the variable of each of these cells."""
        row = torch.arange(rows, device=self.index.device)[:, None].expand(-1, len(self.index))
        return row[cells], self.index.expand(rows, -1)[cells]

    def masses(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None = None
    ) -> Float[Tensor, "batch place bin"]:
        """How likely each of these variables is to lie between edges, the first bin below all of them, the last above.

        An edge belongs to the bin below it. Of codes the probability of each, whatever the edges and the temperature.
        """
        distribution = self.at((slice(None), places))
        distribution = distribution if temperature is None else sharpened(distribution, temperature)
        if isinstance(distribution, DiscreteDistribution):
            return distribution.pmf()
        rows = len(distribution.spacing) if isinstance(distribution, LatticeDistribution) else len(distribution.mean())
        return between(distribution.cdfs(edges.expand(rows, -1, -1)))

    def with_distance(self, cells: CellIndex) -> tuple[Distribution, Float[Tensor, "*cells"] | None]:
        """And how far the nearest row is that the model remembers, if it remembers any: a blend looks at that."""
        return self.at(cells), None

    def masses_with_distance(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None
    ) -> tuple[Float[Tensor, "batch place bin"], Float[Tensor, "batch place"] | None]:
        """The same of `masses`."""
        return self.masses(places, edges, temperature), None


def sharpened(distribution: Distribution, temperature: Tensor) -> Distribution:
    """The distributions of numbers, each cell at its own temperature; codes stay as they are."""
    return (
        distribution.tempered(temperature)
        if isinstance(distribution, LatticeDistribution) and (temperature != 1).any()
        else distribution
    )


def between(cdf: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells bin"]:
    """What lies between neighbouring edges, below the first and above the last."""
    ends = torch.zeros_like(cdf[..., :1])
    return torch.cat([ends, cdf, ends + 1], dim=-1).diff(dim=-1).clamp(min=0.0)


@final
@dataclass(frozen=True)
class NetworkDistributions(Distributions):
    """Distributions made by a head from numbers."""

    head: Callable[[Tensor], Distribution]
    params: Float[Tensor, "batch part width"]
    sizes: tuple[int, ...] = ()

    @property
    def levels(self) -> Sequence[int]:
        return self.sizes

    def at(self, cells: CellIndex) -> Distribution:
        return self.head(self.params[cells])


@final
@dataclass(frozen=True)
class Conditionals:
    """p(x_i | x_given) for every row and every variable i. Every method answers for all variables at once."""

    parts: Sequence[Distributions]

    def log_prob(self, x: Values, at: Mask | None = None) -> Values:
        """Log density (real) or log probability (codes) of each value alone; only where `at`, if given, and 0 elsewhere."""
        if at is None:
            return self._each(lambda part: part.at(...).log_prob(x[:, part.index]))
        return self._each(lambda part: _at(part, at, lambda distribution, cells: distribution.log_prob(x[:, part.index][cells])))

    def sample(self, rng: Generator, temperature: float = 1.0, at: Mask | None = None) -> Values:
        """Each variable drawn from its own distribution, independently of the others; only where `at`, if given, and 0
        elsewhere.
        """
        if at is None:
            return self._each(lambda part: _tempered(part.at(...), temperature).sample(rng))
        return self._each(
            lambda part: _at(part, at, lambda distribution, cells: _tempered(distribution, temperature).sample(rng))
        )

    def cdf(self, x: Values) -> Values:
        return self._each(lambda part: part.at(...).cdf(x[:, part.index]))

    def quantile(self, q: Values, at: Mask | None = None) -> Values:
        """Of each variable alone; only where `at`, if given, and 0 elsewhere."""
        if at is None:
            return self._each(lambda part: part.at(...).quantile(q[:, part.index]))
        return self._each(lambda part: _at(part, at, lambda distribution, cells: distribution.quantile(q[:, part.index][cells])))

    def mean(self, at: Mask | None = None) -> Values:
        """Of each variable alone; only where `at`, if given, and 0 elsewhere."""
        if at is None:
            return self._each(lambda part: part.at(...).mean())
        return self._each(lambda part: _at(part, at, lambda distribution, cells: distribution.mean()))

    def best(self, at: Mask) -> Values:
        """The best single guess where `at`, and 0 elsewhere: the mean of a number, the likeliest code."""
        return self._each(lambda part: _at(part, at, lambda distribution, cells: _best(distribution)))

    def entropy(self, at: Mask | None = None) -> Values:
        """In nats, row by row and variable by variable; only where `at`, if given, and 0 elsewhere."""
        if at is None:
            return self._each(lambda part: part.at(...).entropy())
        return self._each(lambda part: _at(part, at, lambda distribution, cells: distribution.entropy()))

    def distribution(self, variable: int) -> Distribution:
        """The distribution of one variable in every row; a discrete one also has `pmf()`."""
        for part in self.parts:
            place = (part.index == variable).nonzero()
            if len(place):
                here = int(place[0, 0])
                distribution = part.at((slice(None), here))
                if part.levels and isinstance(distribution, DiscreteDistribution):
                    return CategoricalDistribution(distribution.log_pmf()[..., : part.levels[here]])
                return distribution
        raise IndexError(f"there is no variable number {variable}")

    def _each(self, answer: Callable[[Distributions], Tensor]) -> Values:
        if len(self.parts) == 1 and _is_everything(self.parts[0].index):
            return answer(self.parts[0])
        answers = [answer(part) for part in self.parts]
        places = torch.cat([part.index for part in self.parts])
        return torch.cat(answers, dim=-1)[:, places.argsort()]


def _at(part: Distributions, at: Mask, answer: Callable[[Distribution, Tensor], Tensor]) -> Float[Tensor, "batch part"]:
    cells = at[:, part.index]
    if not cells.any():
        return torch.zeros(cells.shape, device=cells.device)
    found = answer(part.at(cells), cells)
    out = torch.zeros(cells.shape, dtype=found.dtype, device=found.device)
    out[cells] = found
    return out


def _best(distribution: Distribution) -> Tensor:
    return distribution.pmf().argmax(-1).float() if isinstance(distribution, DiscreteDistribution) else distribution.mean()


def _tempered(distribution: Distribution, temperature: float) -> Distribution:
    return distribution if temperature == 1.0 else distribution.tempered(temperature)


def _is_everything(index: Tensor) -> bool:
    return bool((index.diff() == 1).all())
