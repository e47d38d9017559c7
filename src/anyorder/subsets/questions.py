"""Random draws that the distributions of questions, orders and edges share."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..schema import Mask, Schema


def uniform(*shape: int, rng: Generator) -> Tensor:
    """Uniform on [0, 1) with 53 bits, so that no two of a row's numbers are ever equal in practice."""
    return torch.rand(*shape, generator=rng, device=rng.device, dtype=torch.float64)


def stratified(count: int, rng: Generator) -> Float[Tensor, " count"]:
    """`count` numbers, each uniform on [0, 1), spread evenly: one in every interval of length 1/count.

    Each number alone is exactly uniform; their mean varies far less than that of independent draws.
    """
    grid = torch.arange(count, device=rng.device, dtype=torch.float64) / count
    return (grid + uniform(1, rng=rng)).frac()


def smallest(keys: Float[Tensor, "batch variable"], count: Int[Tensor, "batch 1"]) -> Bool[Tensor, "batch variable"]:
    """The `count` smallest keys of every row. Infinite keys are never taken."""
    # numpy sorts rows several times faster than torch on CPU, and only the values are needed.
    ordered = torch.from_numpy(np.sort(keys.numpy(), axis=-1)) if keys.device.type == "cpu" else keys.sort(-1).values
    bound = ordered.gather(-1, (count - 1).clamp(min=0))
    return (keys <= bound) & (count > 0) & keys.isfinite()


def pick(weights: tuple[float, ...], count: int, rng: Generator) -> Int[Tensor, " count"]:
    """Which of several alternatives each of `count` rows takes."""
    bounds = torch.tensor(weights, dtype=torch.float64, device=rng.device).cumsum(0)
    return torch.searchsorted(bounds / bounds[-1], uniform(count, rng=rng), right=True)


def all_true(mask: Bool[Tensor, "batch variable"]) -> bool:
    """`mask.all()`, several times faster on CPU."""
    return mask.numel() == 0 or bool(mask.view(torch.uint8).amin())


def check_weights(what: str, count: int, weights: tuple[float, ...]) -> None:
    """No weights at all (then all are equal), or one for each."""
    if count == 0:
        raise InputError(f"{what} is empty; expected at least one part.")
    if weights and (len(weights) != count or not all(w >= 0 for w in weights) or not 0 < sum(weights) < float("inf")):
        raise InputError(f"{what} has {count} part(s) and weights {weights}; expected one weight from 0 up for each, not all 0.")


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


class QuestionDistribution(ABC):
    """A distribution over questions, MAC's test mask distribution: what the model will be asked.

    Every distribution respects gaps: only present variables are given or asked for.
    """

    @abstractmethod
    def sample(self, present: Mask, rng: Generator) -> Question:
        """One question for every row."""

    def longer(self) -> "QuestionDistribution | None":
        """This distribution with every question of c targets and g given variables made g + (c + 1) / 2 times as likely.

        It is what cardinality reweighting asks for in closed form; None where there is no closed form.
        """
        return None


@final
@dataclass(frozen=True)
class Everything(QuestionDistribution):
    """The joint: all variables at once, nothing given."""

    def sample(self, present: Mask, rng: Generator) -> Question:
        return Question.joint(present)

    def longer(self) -> QuestionDistribution:
        return self  # a row has one question only


@final
@dataclass(frozen=True)
class FirstK(QuestionDistribution):
    """The marginal of the first `k` variables: the protocol of ACE's and MAC's Table 4."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"FirstK got k={self.k}; expected at least 1.")

    def sample(self, present: Mask, rng: Generator) -> Question:
        first = torch.arange(present.shape[1], device=present.device) < self.k
        return Question(torch.zeros_like(present), present & first)

    def longer(self) -> QuestionDistribution:
        return self  # a row has one question only


@final
@dataclass(frozen=True)
class AnySize(QuestionDistribution):
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

    def longer(self) -> QuestionDistribution | None:
        return None if self.favour_large else AnySize(favour_large=True)


@final
@dataclass(frozen=True)
class GivenAnySize(QuestionDistribution):
    """The rest given a random subset: any number from none to all but one is known (ACE's questions)."""

    def sample(self, present: Mask, rng: Generator) -> Question:
        count = present.sum(-1, keepdim=True)
        size = (uniform(len(present), 1, rng=rng) * count).long()
        keys = uniform(*present.shape, rng=rng).masked_fill(~present, torch.inf)
        given = smallest(keys, size)
        return Question(given, present & ~given)


@final
@dataclass(frozen=True)
class EachWithProbability(QuestionDistribution):
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
class Observed(QuestionDistribution):
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
class Mixture(QuestionDistribution):
    """One of several distributions for every row, with these weights (equal if none are given)."""

    distributions: Sequence[QuestionDistribution]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_weights("Mixture", len(self.distributions), self.weights)

    def sample(self, present: Mask, rng: Generator) -> Question:
        chosen = pick(self.weights or (1.0,) * len(self.distributions), len(present), rng)
        question = Question(torch.zeros_like(present), torch.zeros_like(present))
        for i, distribution in enumerate(self.distributions):
            rows = chosen == i
            part = distribution.sample(present[rows], rng)
            question.given[rows], question.target[rows] = part.given, part.target
        return question


def check_pattern_width(masks: Tensor, present: Tensor) -> None:
    if masks.shape[-1] != present.shape[-1]:
        raise InputError(
            f"The patterns have {masks.shape[-1]} variables, the data have {present.shape[-1]}. "
            "Make one pattern entry per variable."
        )


def ask(schema: Schema, present: Any, target: Iterable[str] | None = None, given: Iterable[str] = ()) -> Question:
    """The question p(target | given) for every row; without a target, all that is not given.

    A given variable that is a gap in some row is simply not known there; a target that is a gap is not scored.

    >>> from anyorder import Real
    >>> schema = Schema.of(age=Real(), city=Real(), income=Real())
    >>> ask(schema, torch.ones(1, 3, dtype=torch.bool), target=["income"], given=["age"])
    Question(given=tensor([[ True, False, False]]), target=tensor([[False, False,  True]]))
    """
    if not isinstance(present, Tensor) or present.dtype != torch.bool or present.ndim != 2 or present.shape[1] != len(schema):
        found = f"{present.dtype} of shape {tuple(present.shape)}" if isinstance(present, Tensor) else type(present).__name__
        raise InputError(f"`present` is {found}; expected a torch.bool tensor (rows, {len(schema)}), such as x.isfinite().")
    known = schema.mask_of(given).to(present.device)
    wanted = ~known if target is None else schema.mask_of(target).to(present.device)
    refuse_overlap(schema, known & wanted)
    if not wanted.any():
        raise InputError("`target` is empty: nothing is asked for. Name at least one variable, or leave `target` out.")
    return Question(given=known & present, target=wanted & present)


def mode_and_step(mode: int, given: Mask) -> Int[Tensor, "batch 2"]:
    """SFARM's context: the mode, and how far the walk is, told by the number of known variables."""
    step = given.sum(-1)
    return torch.stack([torch.full_like(step, mode), step], dim=-1)


def check_question(schema: Schema, x: Tensor, question: Question) -> None:
    """Refuse a question that does not fit the rows or contradicts itself."""
    for name, mask in (("given", question.given), ("target", question.target)):
        if mask.dtype != torch.bool or mask.shape != x.shape:
            raise InputError(
                f"question.{name} is {mask.dtype} of shape {tuple(mask.shape)}; "
                f"expected torch.bool of shape {tuple(x.shape)}, one entry per cell of x."
            )
    refuse_overlap(schema, (question.given & question.target).any(0))


def refuse_overlap(schema: Schema, both: Bool[Tensor, " variable"]) -> None:
    if both.any():
        names = schema.names_of(both)
        raise InputError(
            f"`target` and `given` share {len(names)} variable(s): {', '.join(names)}. "
            "A variable is either known or asked for: remove it from one of the two."
        )
