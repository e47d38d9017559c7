"""The distribution of one number, for a whole batch of them at once, and the head that makes distributions from a
network's output.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor

from ..errors import InputError
from ..schema import Domain

Cells = Float[Tensor, "*cells"]
L = TypeVar("L", bound="Distribution")


@dataclass(frozen=True)
class Distribution(ABC):
    """The distribution of one number per cell. All tensors of a distribution begin with the shape of its cells."""

    @abstractmethod
    def log_prob(self, x: Cells) -> Cells:
        """Log density of a real number, log probability of a code."""

    @abstractmethod
    def sample(self, rng: Generator) -> Cells:
        """One draw per cell."""

    @abstractmethod
    def cdf(self, x: Cells) -> Cells:
        """P(X <= x)."""

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        """P(X <= x) at several places of every cell."""
        cells = x.ndim - 1
        wide = self.map_tensors(lambda t: t.unsqueeze(cells).expand(*t.shape[:cells], x.shape[-1], *t.shape[cells:]))
        return wide.cdf(x)

    @abstractmethod
    def quantile(self, q: Cells) -> Cells:
        """The smallest x with P(X <= x) >= q."""

    @abstractmethod
    def mean(self) -> Cells: ...

    @abstractmethod
    def entropy(self) -> Cells:
        """Minus the expected `log_prob`, in nats."""

    def map_tensors(self: L, change: Callable[[Tensor], Tensor]) -> L:
        """The same distribution with every tensor changed alike: other cells, more of them, another precision."""

        def of(value: Any) -> Any:
            if isinstance(value, Tensor):
                return change(value)
            if isinstance(value, Distribution):
                return value.map_tensors(change)
            return tuple(of(one) for one in value) if isinstance(value, tuple) else value

        return replace(self, **{field.name: of(getattr(self, field.name)) for field in fields(self)})

    @abstractmethod
    def tempered(self, temperature: float) -> "Distribution":
        """Sharper below temperature 1, flatter above it."""


@dataclass(frozen=True)
class DiscreteDistribution(Distribution):
    """A distribution over the codes 0 .. levels-1. All follows from the table of probabilities; heads override what
    they do faster.
    """

    @abstractmethod
    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        """The log probability of every code."""

    def pmf(self) -> Float[Tensor, "*cells levels"]:
        """The probability of every code."""
        return self.log_pmf().exp()

    def log_prob(self, x: Cells) -> Cells:
        return self.log_pmf().gather(-1, x.long().unsqueeze(-1)).squeeze(-1)

    def sample(self, rng: Generator) -> Cells:
        table = self.log_pmf()
        return draw_code(table, rng).to(table.dtype)

    def cdf(self, x: Cells) -> Cells:
        table = self.pmf().cumsum(-1)
        levels = table.shape[-1]
        inside = table.gather(-1, x.floor().long().clamp(0, levels - 1).unsqueeze(-1)).squeeze(-1)
        return torch.where(x < 0, 0.0, torch.where(x >= levels - 1, 1.0, inside)).to(table.dtype)

    def quantile(self, q: Cells) -> Cells:
        table = self.pmf().cumsum(-1)
        code = (table < q.unsqueeze(-1)).sum(-1).clamp(max=table.shape[-1] - 1)
        return code.to(table.dtype)

    def mean(self) -> Cells:
        pmf = self.pmf()
        return (pmf * torch.arange(pmf.shape[-1], device=pmf.device)).sum(-1)

    def entropy(self) -> Cells:
        log_pmf = self.log_pmf()
        return -(log_pmf.exp() * log_pmf.clamp(min=torch.finfo(log_pmf.dtype).min)).sum(-1)


def draw_code(log_pmf: Float[Tensor, "*cells levels"], rng: Generator) -> Int[Tensor, "*cells"]:
    """A code per cell, from logarithms of what is proportional to its probabilities."""
    return draw_place(log_pmf.double().softmax(-1), rng)


def draw_place(mass: Float[Tensor, "*cells levels"], rng: Generator) -> Int[Tensor, "*cells"]:
    """A code per cell by inverting the cdf in float64: probability 0 is never drawn, a rare code as often as it should be."""
    table = mass.cumsum(-1, dtype=torch.float64)
    u = torch.rand(table.shape[:-1], generator=rng, device=rng.device, dtype=torch.float64).to(table.device)
    return torch.searchsorted(table / table[..., -1:], u.unsqueeze(-1), right=True).squeeze(-1)


def take(values: Shaped[Tensor, "*cells components"], index: Int[Tensor, "*cells"]) -> Shaped[Tensor, "*cells"]:
    """One of a cell's components."""
    return values.gather(-1, index.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class Head(ABC):
    """How many numbers a distribution needs, and what they mean. Heads are equal if they have the same sizes."""

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not 0 <= value <= 2**20 or (value == 0 and field.name != "atoms"):
                raise InputError(f"{type(self).__name__} got {field.name}={value!r}; expected a positive number.")

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers the network must give per variable."""

    @abstractmethod
    def __call__(self, params: Float[Tensor, "*cells width"]) -> Distribution:
        """The distributions these numbers stand for: the network's, then the constants."""

    def constants(self, domain: Domain) -> tuple[float, ...]:
        """What is fixed for a variable and known beforehand, such as its spacing."""
        return ()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}
