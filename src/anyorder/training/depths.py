"""How far along its path a row stops to practise."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Int, Shaped
from torch import Generator, Tensor

from ..subsets import Blocks, OneByOne, Question
from ..subsets.draws import stratified

Counts = Int[Tensor, "batch 1"]


class Stopped(NamedTuple):
    """Where each row stops: targets done, targets revealed next, and what makes the loss the path's nats."""

    done: Counts
    size: Counts
    factor: Shaped[Tensor, "batch 1"]


class Depth(ABC):
    """A law over places on a path."""

    @abstractmethod
    def stop(self, question: Question, rng: Generator) -> Stopped:
        """A place for every row. Rows should come in random order: the places are spread evenly over the batch."""


@final
@dataclass(frozen=True)
class AnyStep(Depth):
    """Every step of the path is equally likely."""

    blocks: Blocks = OneByOne()

    def stop(self, question: Question, rng: Generator) -> Stopped:
        u = stratified(len(question), rng).unsqueeze(-1)
        stop = self.blocks.step(question.count, u)
        return Stopped(stop.done, stop.size, stop.steps)


@final
@dataclass(frozen=True)
class RandomTime(Depth):
    """Each target is hidden with probability t, for t uniform on (0, 1] (MDLM): m hidden ones count m / t."""

    def stop(self, question: Question, rng: Generator) -> Stopped:
        time = 1 - stratified(len(question), rng).unsqueeze(-1)
        count = question.count
        left = torch.binomial(count.double(), time, generator=rng).long()
        return Stopped(count - left, left.clamp(max=1), left / time)


@final
@dataclass(frozen=True)
class DeeperStep(Depth):
    r"""A step with s targets done is 1 + s times as likely: cardinality reweighting inside a path that begins with nothing.

    The first k steps hold :math:`k (k + 1) / 2` of the mass; u is sought in that.
    """

    def stop(self, question: Question, rng: Generator) -> Stopped:
        count = question.count
        mass = stratified(len(question), rng).unsqueeze(-1) * (count * (count + 1) / 2)
        done = ((0.25 + 2 * mass).sqrt() - 0.5).floor().long().minimum((count - 1).clamp(min=0))
        return Stopped(done, count.clamp(max=1), count)
