"""One of several unordered values from a score for each."""

from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float
from torch import Tensor

from .law import DiscreteLaw, Head

IMPOSSIBLE = -1e9  # the score of a code that a variable does not have, where it shares a table with others that do


@final
@dataclass(frozen=True)
class CategoricalLaw(DiscreteLaw):
    r""":math:`P(X = k) \propto e^{\text{logits}_k}`."""

    logits: Float[Tensor, "*cells levels"]

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        return self.logits.log_softmax(-1)

    def tempered(self, temperature: float) -> "CategoricalLaw":
        return CategoricalLaw(self.log_pmf() / temperature)


@final
@dataclass(frozen=True)
class Categorical(Head):
    """A code 0 .. levels-1."""

    kind: ClassVar[str] = "categorical"
    levels: int

    @property
    def width(self) -> int:
        return self.levels

    def __call__(self, params: Float[Tensor, "*cells width"]) -> CategoricalLaw:
        return CategoricalLaw(params)
