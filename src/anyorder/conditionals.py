"""The laws of all variables of every row, each alone, given what is known: what a model's `forward` returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from .heads import Law
from .schema import Mask, Values


@final
@dataclass(frozen=True)
class Part:
    """Some of the variables, all with the same kind of law."""

    index: Int[Tensor, " part"]
    head: Callable[[Tensor], Law]
    params: Float[Tensor, "batch part width"]

    @property
    def law(self) -> Law:
        return self.head(self.params)


@final
@dataclass(frozen=True)
class Conditionals:
    """p(x_i | x_given) for every row and every variable i. Every method answers for all variables at once."""

    parts: Sequence[Part]

    def log_prob(self, x: Values, at: Mask | None = None) -> Values:
        """Log density (real) or log probability (codes) of each value alone; only where `at`, if given, and 0 elsewhere."""
        if at is None:
            return self._each(lambda part: part.law.log_prob(x[:, part.index]))
        return self._each(lambda part: _at(part, at, lambda law, cells: law.log_prob(x[:, part.index][cells])))

    def sample(self, rng: Generator, temperature: float = 1.0) -> Values:
        """Each variable drawn from its own law, independently of the others."""
        return self._each(lambda part: _tempered(part.law, temperature).sample(rng))

    def cdf(self, x: Values) -> Values:
        return self._each(lambda part: part.law.cdf(x[:, part.index]))

    def quantile(self, q: Values) -> Values:
        return self._each(lambda part: part.law.quantile(q[:, part.index]))

    def mean(self) -> Values:
        return self._each(lambda part: part.law.mean())

    def entropy(self, at: Mask | None = None) -> Values:
        """In nats, row by row and variable by variable; only where `at`, if given, and 0 elsewhere."""
        if at is None:
            return self._each(lambda part: part.law.entropy())
        return self._each(lambda part: _at(part, at, lambda law, cells: law.entropy()))

    def law(self, variable: int) -> Law:
        """The law of one variable in every row; a discrete one also has `pmf()`."""
        for part in self.parts:
            place = (part.index == variable).nonzero()
            if len(place):
                return part.head(part.params[:, int(place[0, 0])])
        raise IndexError(f"there is no variable number {variable}")

    def _each(self, answer: Callable[[Part], Tensor]) -> Values:
        if len(self.parts) == 1 and _is_everything(self.parts[0].index):
            return answer(self.parts[0])
        answers = [answer(part) for part in self.parts]
        places = torch.cat([part.index for part in self.parts])
        return torch.cat(answers, dim=-1)[:, places.argsort()]


def _at(part: Part, at: Mask, answer: Callable[[Law, Tensor], Tensor]) -> Float[Tensor, "batch part"]:
    """Only the wanted cells' laws are made: a path asks for one variable of many."""
    cells = at[:, part.index]
    found = answer(part.head(part.params[cells]), cells)
    out = torch.zeros(cells.shape, dtype=found.dtype, device=found.device)
    out[cells] = found
    return out


def _tempered(law: Law, temperature: float) -> Law:
    return law if temperature == 1.0 else law.tempered(temperature)


def _is_everything(index: Tensor) -> bool:
    return bool((index.diff() == 1).all())
