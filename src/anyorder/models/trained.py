"""What training may end with: a model that describes itself, and is built again from that description and its tensors."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..errors import AnyOrderError, FormatError
from ..schema import Mask, Schema, Values
from .conditionals import Conditionals

# What reading nonsense may raise, from JSON, from our own classes and from torch.
BAD_CONTENT = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError, RuntimeError)
WHY_REFUSED = "The file is damaged, or of another version of anyorder: fit the model again and save it."
MOST_WEIGHT = 1e6  # training starts near 1 and goes in steps of some thousandths
Shapes = dict[str, tuple[int, ...]]
Description = dict[str, Any]  # plain JSON


class Trained(nn.Module, ABC):
    """A model with a schema and a `forward`, which a file may hold.

    A class that names its `kind` is known from then on: files say the kind, and `rebuilt` finds the class by it.
    """

    kinds: ClassVar[dict[str, type["Trained"]]] = {}
    kind: ClassVar[str]  # in files
    words: ClassVar[str]  # for people: "boosted trees"
    all_at_once: ClassVar[bool] = False  # whether one call computes the distributions of all variables anyway
    knows_rows: ClassVar[bool] = False  # whether `context` says which of its rows a row is, to be left out
    schema: Schema

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in vars(cls):
            Trained.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """Of its numbers."""

    @abstractmethod
    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        """The distribution of every variable of every row, each alone, given what is known."""

    def knows_probabilities(self) -> bool:
        """Whether it answers with numbers where nothing is known, and where everything is."""
        x, given = torch.zeros(2, len(self.schema)), torch.tensor([[False], [True]]).expand(2, len(self.schema))
        return not bool(self(x, given).log_prob(x).isnan().any())

    @abstractmethod
    def describe(self) -> Description:
        """What `rebuild` needs besides the tensors."""

    @classmethod
    @abstractmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "Trained":
        """From what `describe` said and the tensors of `state_dict`; nothing large is allocated before the sizes agree.

        Anything else than what was saved raises what `BAD_CONTENT` lists, or a FormatError that names the file.
        """

    def members(self) -> list["Trained"]:
        """The models that are blended in it, or itself."""
        return [self]

    @property
    def parts(self) -> list[str]:
        """What it is made of, in words."""
        return [self.words]

    @property
    def rows_held(self) -> int:
        """How many training rows it holds."""
        return 0

    def clear(self) -> None:
        """Drop what was kept of earlier questions to answer the next ones sooner: it may change their last bits."""

    def kernels(self) -> list[nn.Parameter]:
        """Weights of convolutions, which training treats differently."""
        return []


def described(model: Trained) -> Description:
    """The description of a model, with its kind."""
    return {"kind": model.kind, **model.describe()}


def rebuilt(name: str, about: Any, tensors: dict[str, Tensor]) -> Trained:
    """The described model with these tensors; FormatError if the description is none, or contradicts the tensors."""
    kind = about.get("kind") if isinstance(about, dict) else None
    found = Trained.kinds.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise FormatError(
            f"{name} describes a model of the kind {kind!r:.40}; known are {', '.join(Trained.kinds)}. {WHY_REFUSED}"
        )
    try:
        return found.rebuild(name, about, tensors).eval()
    except FormatError:
        raise
    except (*BAD_CONTENT, AnyOrderError) as error:
        raise FormatError(f"{name} describes no {found.words} this version can build ({error}). {WHY_REFUSED}") from error


def check_answers(name: str, model: Trained) -> None:
    """Refuse numbers that no training leads to, and a model that knows no probabilities, before anybody asks it."""
    for which, weights in model.named_parameters():
        largest = float(weights.detach().abs().max()) if weights.numel() else 0.0
        if largest > MOST_WEIGHT:
            raise FormatError(
                f"{name} is damaged: {which!r} holds a weight of {largest:.0e}, which no training leads to. "
                "Restore it from a copy or fit the model again."
            )
    try:
        with torch.no_grad():
            sane = model.knows_probabilities()
    except (*BAD_CONTENT, AnyOrderError):
        sane = False
    if not sane:
        raise FormatError(
            f"{name} is damaged: the model in it answers with no probabilities. Restore it from a copy or fit it again."
        )


def tensors_of(part: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of one part of a model: `part.weight` as `weight`."""
    return {name.removeprefix(f"{part}."): tensor for name, tensor in tensors.items() if name.startswith(f"{part}.")}


def shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_same(name: str, wanted: Shapes, found: Shapes) -> None:
    """The tensors must be those that a description asks for."""
    wrong = [one for one in wanted if found.get(one) != wanted[one]] + [one for one in found if one not in wanted]
    if wrong:
        first = wrong[0]
        raise FormatError(
            f"{name} contradicts itself: {len(wrong)} tensor(s) do not fit its description, first {first!r}: "
            f"expected shape {wanted.get(first, 'none')}, found {found.get(first, 'none')}. {WHY_REFUSED}"
        )
