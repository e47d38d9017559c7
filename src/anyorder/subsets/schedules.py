"""How many targets are revealed per network call."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import InputError

TargetCounts = Int[Tensor, "batch 1"]


class Cut(NamedTuple):
    """One step of each row's path: how many targets are done before it, how many it reveals, of how many steps."""

    done: TargetCounts
    size: TargetCounts
    steps: TargetCounts


class Schedule(ABC):
    """How a path of c targets is cut into steps; the targets of one step are revealed independently of each other."""

    @abstractmethod
    def bounds(self, count: TargetCounts) -> Int[Tensor, "batch step"]:
        """For every row 0 = b_0 < b_1 < ... = count, then count again up to the longest row's number of steps."""

    def step(self, count: TargetCounts, u: Float[Tensor, "batch 1"]) -> Cut:
        """The step that lies at fraction u of each row's steps."""
        bounds = self.bounds(count)
        steps = (bounds.diff(dim=-1) > 0).sum(-1, keepdim=True)
        index = (u * steps).long()
        done = bounds.gather(-1, index)
        return Cut(done, bounds.gather(-1, index + 1) - done, steps)


@final
@dataclass(frozen=True)
class OneByOne(Schedule):
    """One target per step: exact, and the slowest."""

    def bounds(self, count: TargetCounts) -> Int[Tensor, "batch step"]:
        longest = max(int(count.max()), 1) if len(count) else 1
        return torch.arange(longest + 1, device=count.device).minimum(count)

    def step(self, count: TargetCounts, u: Float[Tensor, "batch 1"]) -> Cut:
        done = (u * count).long()
        return Cut(done, count.clamp(max=1), count)


class _Curve(Schedule):
    """A fraction of the targets is revealed by the end of every step."""

    @abstractmethod
    def fractions(self) -> list[float]:
        """Rising from 0 to 1, one more than there are steps."""

    def bounds(self, count: TargetCounts) -> Int[Tensor, "batch step"]:
        return spread(torch.tensor(self.fractions(), dtype=torch.float64, device=count.device), count)


@dataclass(frozen=True)
class _Timed(_Curve):
    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"{type(self).__name__} got steps={self.steps}; expected at least 1.")

    @abstractmethod
    def revealed(self, time: float) -> float:
        """The fraction revealed at a time from 0 to 1."""

    def fractions(self) -> list[float]:
        return [self.revealed(i / self.steps) for i in range(self.steps + 1)]


@final
@dataclass(frozen=True)
class Even(_Timed):
    """Steps of equal size."""

    def revealed(self, time: float) -> float:
        return time


@final
@dataclass(frozen=True)
class Cosine(_Timed):
    """Few targets at first, when little is known, more later: 1 - cos(time pi / 2)."""

    def revealed(self, time: float) -> float:
        return 1 - math.cos(time * math.pi / 2)


@final
@dataclass(frozen=True)
class Quadratic(_Timed):
    """Few targets at first, more later: time squared."""

    def revealed(self, time: float) -> float:
        return time**2


@final
@dataclass(frozen=True)
class Repeated(_Curve):
    """The same steps for every stage of an order whose stages are equally long, such as the digits of values.

    >>> Repeated(Quadratic(2), 3).bounds(torch.tensor([[12]]))
    tensor([[ 0,  1,  4,  5,  8,  9, 12]])
    """

    inner: _Curve
    stages: int

    def __post_init__(self) -> None:
        if self.stages < 1:
            raise InputError(f"Repeated got stages={self.stages}; expected at least 1.")

    def fractions(self) -> list[float]:
        inside = self.inner.fractions()[1:]
        return [0.0] + [(stage + fraction) / self.stages for stage in range(self.stages) for fraction in inside]


@final
@dataclass(frozen=True)
class Planned(_Curve):
    """Steps at fixed places 0 = b_0 < ... < b_S, such as `plan` finds; rows of another length scale them.

    >>> Planned((0, 1, 3, 8)).bounds(torch.tensor([[8], [4]]))
    tensor([[0, 1, 3, 8],
            [0, 1, 2, 4]])
    """

    places: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.places, self.places[1:], strict=False))
        if len(self.places) < 2 or self.places[0] != 0 or not rising:
            raise InputError(f"Planned got {self.places}; expected rising whole numbers that begin with 0, such as (0, 1, 3, 8).")

    def fractions(self) -> list[float]:
        return [place / self.places[-1] for place in self.places]


def spread(fractions: Float[Tensor, " step"], count: TargetCounts) -> Int[Tensor, "batch step"]:
    """Cut `count` at these fractions; a step that would be empty is dropped."""
    cuts = (fractions * count + 0.5).floor().long().minimum(count)
    cuts[:, :1], cuts[:, -1:] = 0, count
    repeated = torch.nn.functional.pad(cuts.diff(dim=-1) == 0, (1, 0))
    return torch.where(repeated, count, cuts).sort(-1).values
