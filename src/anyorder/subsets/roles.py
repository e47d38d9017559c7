"""From names to a question, and the checks every question passes at the border."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..errors import InputError
from ..schema import Mask, Schema
from .questions import Question


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
