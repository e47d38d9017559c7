"""How much each hidden variable's loss counts, once a row has stopped on its path: the four ways of the papers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..schema import Mask
from ..subsets import AnySize, CanonicalOrder, Order, Question, Questions
from .depths import Stopped

Weights = Float[Tensor, "batch variable"]
EULER = 0.5772156649015329


@final
@dataclass(frozen=True)
class Draw:
    """All that was drawn for a batch, and the laws it was drawn from."""

    questions: Questions
    order: Order
    present: Mask
    question: Question
    done: Mask
    given: Mask
    stopped: Stopped


class Weighing(ABC):
    """From all that was drawn to the weights of the hidden variables."""

    @abstractmethod
    def __call__(self, draw: Draw) -> Weights:
        """One weight per cell, 0 for what is not practised."""


@final
@dataclass(frozen=True)
class NextEdges(Weighing):
    """The edges the path takes next, by their probability: the expected loss is the nats of the question."""

    def __call__(self, draw: Draw) -> Weights:
        return draw.stopped.factor * draw.order.next_probs(draw.question, draw.done, draw.stopped.size)


@final
@dataclass(frozen=True)
class EveryHidden(Weighing):
    """Every hidden variable counts 1 (ACE)."""

    def __call__(self, draw: Draw) -> Weights:
        return hidden(draw)


@final
@dataclass(frozen=True)
class MeanOfHidden(Weighing):
    """Every hidden variable counts 1 / their number (MAC, eq. 7), whether the path leads there or not."""

    def __call__(self, draw: Draw) -> Weights:
        counted = hidden(draw)
        return counted / counted.sum(-1, keepdim=True).clamp(min=1)


@final
@dataclass(frozen=True)
class AllNextEdges(Weighing):
    r"""All edges that some question's path takes from here, by their exact posterior mass (MAC-RB).

    For `AnySize` and a canonical order, a set of s variables whose last stands at place l (of 0 .. n-1 in that order)
    is left towards the variable at place j > l, and the sum over all questions has a closed form:

    .. math:: w_j = \frac{(n + 1) \, B(s + 2, j - s + 1)}{B(s, l - s + 2) - B(s, n - s + 1)}

    with the n-th harmonic number as the denominator for s = 0. Other questions fix the next edges by themselves,
    or have no such form: there the edges of the drawn question are taken.
    """

    def __call__(self, draw: Draw) -> Weights:
        if not (draw.questions == AnySize() and isinstance(draw.order, CanonicalOrder)):
            return NextEdges()(draw)
        n = draw.present.sum(-1, keepdim=True)
        s = draw.done.sum(-1, keepdim=True)
        place = draw.order.count_along(draw.present) - 1  # among the present variables
        last = torch.where(draw.done, place, -1).amax(-1, keepdim=True)
        log_factorial = log_factorials(draw.present.shape[1] + 1).to(n.device)
        log_mass = self._log_arrival(s, last, n, log_factorial) - torch.log(n + 1.0)
        # log B(s + 2, j - s + 1), with the part that is the same for the whole row taken together first
        onward = log_factorial[(place - s).clamp_(min=0)] - log_factorial[place + 2] + (log_factorial[s + 1] - log_mass)
        return onward.float().exp_().masked_fill_(~draw.present | (place <= last), 0.0)

    def _log_arrival(self, s: Tensor, last: Tensor, n: Tensor, log_factorial: Tensor) -> Tensor:
        """The denominator: how likely this set is to be stopped at, times n."""
        stay = log_factorial[(last - s + 1).clamp(min=0)] - log_factorial[last + 1]  # log B(s, last - s + 2) / (s - 1)!
        full = log_factorial[(n - s).clamp(min=0)] - log_factorial[n]  # log B(s, n - s + 1) / (s - 1)!
        difference = stay + torch.log(-torch.expm1((full - stay).clamp(max=-1e-12)))
        harmonic = torch.special.digamma(n + 1.0) + EULER
        return torch.where(s == 0, harmonic.clamp(min=1).log(), log_factorial[(s - 1).clamp(min=0)] + difference)


def log_factorials(most: int) -> Float[Tensor, " number"]:
    """log 0!, log 1!, ..., log most!"""
    return torch.lgamma(torch.arange(1, most + 2, dtype=torch.float64))


def hidden(draw: Draw) -> Weights:
    return (draw.present & ~draw.given).float()
