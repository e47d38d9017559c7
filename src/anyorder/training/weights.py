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
        return draw.stopped.factor.float() * draw.order.next_probs(draw.question, draw.done, draw.stopped.size)


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
        by_order = draw.order.stages(draw.present.shape[1]).to(draw.present.device).argsort()
        present, done = draw.present[:, by_order], draw.done[:, by_order]
        n = present.sum(-1, keepdim=True)
        s = done.sum(-1, keepdim=True)
        place = present.cumsum(-1) - 1  # among the present variables
        last = torch.where(done, place, -1).amax(-1, keepdim=True)
        legal = present & (place > last)
        onward, stay, full = log_beta(s + 2, place - s + 1, n), log_beta(s, last - s + 2, n), log_beta(s, n - s + 1, n)
        arrive = stay + torch.log(-torch.expm1((full - stay).clamp(max=-1e-12)))
        harmonic = torch.special.digamma(n + 1.0) + EULER
        log_mass = torch.where(s == 0, harmonic.clamp(min=1).log(), arrive)
        weight = torch.where(legal, (n + 1) * (onward - log_mass).exp(), 0.0)
        return weight[:, by_order.argsort()]


def log_beta(a: Tensor, b: Tensor, most: Tensor) -> Tensor:
    """The logarithm of the beta function of whole numbers, from one short table; a + b is at most `most` + 2."""
    factorial = torch.lgamma(torch.arange(1, int(most.max()) + 3, dtype=torch.float64, device=a.device))  # log k!
    return factorial[(a - 1).clamp(min=0)] + factorial[(b - 1).clamp(min=0)] - factorial[(a + b - 1).clamp(min=0)]


def hidden(draw: Draw) -> Weights:
    return (draw.present & ~draw.question.given & ~draw.done).float()

