"""What somebody asks, and laws over what will be asked."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..schema import Mask
from .draws import all_true, check_weights, pick, smallest, uniform


@final
@dataclass(frozen=True)
class Question:
    """Which variables are known and which are asked for, row by row; the rest is marginalised."""

    given: Mask
    target: Mask

    @classmethod
    def joint(cls, present: Mask) -> "Question":
        """Everything present is asked for, nothing is known."""
        return cls(torch.zeros_like(present), present)

    @property
    def count(self) -> Int[Tensor, "batch 1"]:
        """How many variables are asked for, row by row."""
        return self.target.sum(-1, keepdim=True)

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, rows: Tensor | slice) -> "Question":
        return Question(self.given[rows], self.target[rows])


class Questions(ABC):
    """A law over questions, MAC's test mask distribution: what the model will be asked.

    Every law respects gaps: only present variables are given or asked for.
    """

    @abstractmethod
    def sample(self, present: Mask, rng: Generator) -> Question:
        """One question for every row."""

    def longer(self) -> "Questions | None":
        """This law with every question of c targets and g given variables made g + (c + 1) / 2 times as likely.

        It is what cardinality reweighting asks for in closed form; None where there is no closed form.
        """
        return None


@final
@dataclass(frozen=True)
class Everything(Questions):
    """The joint: all variables at once, nothing given."""

    def sample(self, present: Mask, rng: Generator) -> Question:
        return Question.joint(present)

    def longer(self) -> Questions:
        return self  # a row has one question only


@final
@dataclass(frozen=True)
class FirstK(Questions):
    """The marginal of the first `k` variables: the protocol of ACE's and MAC's Table 4."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"FirstK got k={self.k}; expected at least 1.")

    def sample(self, present: Mask, rng: Generator) -> Question:
        first = torch.arange(present.shape[1], device=present.device) < self.k
        return Question(torch.zeros_like(present), present & first)

    def longer(self) -> Questions:
        return self  # a row has one question only


@final
@dataclass(frozen=True)
class AnySize(Questions):
    r"""The marginal of a random subset: any size from 1 to all, then any subset of that size (MAC's card-mask).

    One variable is in for certain, each other one with probability u, for u uniform: that makes the number of the
    others 0 .. n-1 equally likely and all subsets of a size equally likely, without sorting. With `favour_large`,
    size c is c + 1 times as likely, which is what cardinality reweighting asks for.
    """

    favour_large: bool = False

    def sample(self, present: Mask, rng: Generator) -> Question:
        # With 24 random bits a cell two keys may tie for the least: in fewer than D / 2**24 of the rows one too many is in.
        keys = torch.rand(present.shape, generator=rng, device=rng.device)
        if not all_true(present):
            keys.masked_fill_(~present, 2.0)
        least = keys.amin(-1, keepdim=True)
        level = torch.rand(len(present), 1, generator=rng, device=rng.device)
        if self.favour_large:
            level = self._larger(level, present.sum(-1, keepdim=True), rng)
        # The least key is as likely any variable's, and the others lie evenly between it and 1.
        target = (keys <= level.addcmul(least, 1 - level)) & present
        return Question(torch.zeros_like(present), target)

    def _larger(self, level: Tensor, count: Tensor, rng: Generator) -> Tensor:
        """k others with weight k + 2 = (k + 1) + 1: the root of a uniform number gives the first part, itself the second."""
        first = torch.rand(level.shape, generator=rng, device=rng.device) < (count + 1) / (count + 3)
        return torch.where(first, level.sqrt(), level)

    def longer(self) -> Questions | None:
        return None if self.favour_large else AnySize(favour_large=True)


@final
@dataclass(frozen=True)
class GivenAnySize(Questions):
    """The rest given a random subset: any number from none to all but one is known (ACE's questions)."""

    def sample(self, present: Mask, rng: Generator) -> Question:
        count = present.sum(-1, keepdim=True)
        size = (uniform(len(present), 1, rng=rng) * count).long()
        keys = uniform(*present.shape, rng=rng).masked_fill(~present, torch.inf)
        given = smallest(keys, size)
        return Question(given, present & ~given)


@final
@dataclass(frozen=True)
class EachWithProbability(Questions):
    """The rest given a random subset: each variable is known with probability `p` (p = 0.5: ACE's and MAC's Table 5)."""

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise InputError(f"EachWithProbability got p={self.p}; expected a probability between 0 and 1.")

    def sample(self, present: Mask, rng: Generator) -> Question:
        given = (uniform(*present.shape, rng=rng) < self.p) & present
        return Question(given, present & ~given)


@final
@dataclass(frozen=True, eq=False)
class Observed(Questions):
    """The rest given one of these patterns, drawn uniformly: rows of True = known, such as the gaps of a data set."""

    masks: Bool[Tensor, "pattern variable"]

    def __repr__(self) -> str:
        digest = hashlib.blake2b(self.masks.cpu().contiguous().numpy().tobytes(), digest_size=6).hexdigest()
        return f"Observed({len(self.masks)} patterns, {digest})"

    def sample(self, present: Mask, rng: Generator) -> Question:
        check_pattern_width(self.masks, present)
        chosen = torch.randint(len(self.masks), (len(present),), generator=rng, device=rng.device)
        given = self.masks.to(present.device)[chosen] & present
        return Question(given, present & ~given)


def Regions(masks: Bool[Tensor, "region variable"]) -> Observed:
    """One of these regions, drawn uniformly, given all that lies outside it: inpainting."""
    return Observed(~masks)


@final
@dataclass(frozen=True)
class Mixture(Questions):
    """One of several laws for every row, with these weights (equal if none are given)."""

    laws: Sequence[Questions]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_weights("Mixture", len(self.laws), self.weights)

    def sample(self, present: Mask, rng: Generator) -> Question:
        chosen = pick(self.weights or (1.0,) * len(self.laws), len(present), rng)
        question = Question(torch.zeros_like(present), torch.zeros_like(present))
        for i, law in enumerate(self.laws):
            rows = chosen == i
            part = law.sample(present[rows], rng)
            question.given[rows], question.target[rows] = part.given, part.target
        return question


def check_pattern_width(masks: Tensor, present: Tensor) -> None:
    if masks.shape[-1] != present.shape[-1]:
        raise InputError(
            f"The patterns have {masks.shape[-1]} variables, the data have {present.shape[-1]}. "
            "Make one pattern entry per variable."
        )
