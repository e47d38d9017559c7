"""What `fit_baseline` trains: a model that can say, up to noise, how good it is on a batch of rows."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from ..schema import Mask, Schema, Values
from ..subsets import Everything, QuestionDistribution


class Baseline(nn.Module, ABC):
    """A model with a schema and something to raise in training; what else it can answer is its own affair."""

    schema: Schema
    shown: ClassVar[QuestionDistribution] = Everything()  # their targets are what a training row shows

    @abstractmethod
    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """What training raises, row by row: a lower bound of log p(x_shown) in nats, or an estimate of one."""

    @torch.no_grad()
    def held_out(self, x: Values, present: Mask, rng: Generator) -> float:
        """What rows that were not trained on cost on average, in nats."""
        return -self.bound(x, present, rng).mean().item()
