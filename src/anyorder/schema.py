"""What the variables are: their names and the values each may take in model space."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .errors import FormatError, InputError

Values = Float[Tensor, "batch variable"]  # one row = one table row, one flattened image, one text
Mask = Bool[Tensor, "batch variable"]  # True = known, asked for, or present, as the name says


@final
@dataclass(frozen=True)
class Real:
    """Any real number."""

    kind: ClassVar[str] = "real"


@dataclass(frozen=True)
class _Coded:
    levels: int

    def __post_init__(self) -> None:
        if not 2 <= self.levels <= 2**20:
            raise InputError(
                f"{type(self).__name__} got levels={self.levels}; expected between 2 and {2**20}. "
                "A variable with one value carries no information: leave it out."
            )


@final
@dataclass(frozen=True)
class Category(_Coded):
    """One of `levels` unordered values, written 0 .. levels-1."""

    kind: ClassVar[str] = "category"


@final
@dataclass(frozen=True)
class Ordinal(_Coded):
    """One of `levels` values whose order and distance mean something, written 0 .. levels-1: a pixel, a count."""

    kind: ClassVar[str] = "ordinal"


@final
@dataclass(frozen=True)
class Colour:
    """Red, green and blue of one pixel, each with `shades` levels, written as the one code (r shades + g) shades + b."""

    kind: ClassVar[str] = "colour"
    shades: int

    def __post_init__(self) -> None:
        if not 2 <= self.shades <= 256:  # float32 is exact up to 2^24
            raise InputError(f"Colour got shades={self.shades}; expected between 2 and 256.")

    @property
    def levels(self) -> int:
        return self.shades**3


@final
@dataclass(frozen=True)
class Recorded:
    """A number written down in whole multiples of `spacing`.

    `atoms` are values that repeat often enough to count alone; `knots` are rising values between which a network may see
    the number piece by piece; `bounds` are the least and the greatest value that is to be expected, both included.

    `curve` (scale, start, ratio) says that values lie on a scale that is even in the logarithm far from its start, and the
    spacing is only the finest that is told apart (see `curve.py`); without one they lie evenly.
    """

    kind: ClassVar[str] = "recorded"
    spacing: float
    atoms: tuple[float, ...] = ()
    knots: tuple[float, ...] = ()
    bounds: tuple[float, ...] = ()
    curve: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.curve and not (len(self.curve) == 3 and self.curve[0] > 0 and self.curve[2] >= 0):
            raise InputError(
                f"Recorded got curve={self.curve}; expected (scale, start, ratio), scale positive, ratio not negative."
            )
        if not 0 < self.spacing < float("inf"):
            raise InputError(f"Recorded got spacing={self.spacing}; expected a positive number.")
        if self.bounds and not (len(self.bounds) == 2 and -float("inf") < self.bounds[0] < self.bounds[1] < float("inf")):
            raise InputError(f"Recorded got bounds={self.bounds}; expected two rising numbers, or () for none.")


LEVELS_TOGETHER = (16, 64, 256)  # categories of at most so many levels share a table, as wide as the largest of them

Domain = Real | Category | Ordinal | Colour | Recorded


def levels_of(domain: Domain) -> int:
    """How many codes a variable has; 0 for a number."""
    return domain.levels if isinstance(domain, Category | Ordinal | Colour) else 0


def spacing_of(domain: Domain) -> float:
    """How far apart the values of a variable lie; 1 for codes."""
    return domain.spacing if isinstance(domain, Recorded) else 1.0


def bounds_of(domain: Domain) -> tuple[float, ...]:
    """The least and the greatest value to be expected; infinite where anything may come."""
    return (isinstance(domain, Recorded) and domain.bounds) or (-float("inf"), float("inf"))


def curve_of(domain: Domain) -> tuple[float, ...]:
    """How the scale of a variable's values bends; ratio 0 where its lattice is even."""
    return (isinstance(domain, Recorded) and domain.curve) or (1.0, 0.0, 0.0)


DOMAINS: dict[str, Any] = {c.kind: c for c in (Real, Category, Ordinal, Colour, Recorded)}


@final
@dataclass(frozen=True)
class Variable:
    """One scalar element of a data point."""

    name: str
    domain: Domain


@final
@dataclass(frozen=True)
class Schema:
    """The variables of a data point, in order.

    >>> schema = Schema.of(age=Real(), city=Category(3))
    >>> schema.names
    ('age', 'city')
    >>> schema.mask_of(["city"])
    tensor([False,  True])
    >>> schema.mask_of(["cty"])
    Traceback (most recent call last):
    anyorder.errors.InputError: There is no variable 'cty'. Did you mean 'city'? The variables are: age, city.
    """

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        if not self.variables:
            raise InputError("A schema needs at least one variable; got none.")
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise InputError(f"Two variables are named {name!r}. Names must differ: rename one of them.")
            seen.add(name)

    @classmethod
    def of(cls, **domains: Domain) -> "Schema":
        """A schema from `name=domain` pairs."""
        return cls(tuple(Variable(name, domain) for name, domain in domains.items()))

    @classmethod
    def repeat(cls, domain: Domain, count: int) -> "Schema":
        """`count` variables of one domain, named by their number: pixels, characters."""
        return cls(tuple(Variable(str(i), domain) for i in range(count)))

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables)

    def index(self, name: object) -> int:
        """The position of a variable; an unknown name is answered with the nearest known one."""
        if str(name) in self.names:
            return self.names.index(str(name))
        near = difflib.get_close_matches(str(name), self.names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(self.names[:20]) + (", ..." if len(self) > 20 else "")
        raise InputError(f"There is no variable {name!r}.{hint} The variables are: {shown}.")

    def mask_of(self, names: Iterable[str]) -> Bool[Tensor, " variable"]:
        """True for the named variables."""
        if isinstance(names, str):
            raise InputError(f"Expected a list of names, got the text {names!r}. Write [{names!r}].")
        place = {name: i for i, name in enumerate(self.names)}
        mask = torch.zeros(len(self), dtype=torch.bool)
        mask[[place[name] if name in place else self.index(name) for name in names]] = True
        return mask

    def names_of(self, mask: Bool[Tensor, " variable"]) -> list[str]:
        """The names where the mask is True."""
        return [name for name, chosen in zip(self.names, mask.tolist(), strict=True) if chosen]

    def check(self, x: Any, present: Any) -> None:
        """Refuse values that no distribution of this schema can have produced; without `present`, only a wrong shape or type."""
        expected = f"expected a 2-D tensor (rows, {len(self)} variables)"
        present = torch.zeros_like(x, dtype=torch.bool) if present is None and isinstance(x, Tensor) else present
        for name, value in (("x", x), ("present", present)):
            if not isinstance(value, Tensor):
                raise InputError(f"`{name}` is a {type(value).__name__}; {expected}. Call torch.as_tensor(...) on it first.")
        if x.ndim != 2 or x.shape[1] != len(self):
            raise InputError(f"x has shape {tuple(x.shape)}; {expected}: {_shortlist(self.names)}.")
        if not x.is_floating_point():
            raise InputError(f"x has dtype {x.dtype}; expected floating point. Call x.float().")
        if present.shape != x.shape or present.dtype != torch.bool:
            raise InputError(
                f"`present` is {present.dtype} of shape {tuple(present.shape)}; expected torch.bool of shape {tuple(x.shape)}."
            )
        self._refuse(present & ~torch.isfinite(x), x, "is not a finite number", "Mark gaps as not present, and mend infinities.")
        coded = [i for i, v in enumerate(self) if isinstance(v.domain, Category | Ordinal | Colour)]
        if coded:
            levels = torch.tensor([getattr(v.domain, "levels", 0) for v in self], device=x.device)[coded]
            part = x[:, coded]
            wrong = torch.zeros_like(present)
            wrong[:, coded] = (part != part.round()) | (part < 0) | (part >= levels)
            self._refuse(wrong & present, x, "is no code of its variable", "Codes are whole numbers 0 .. levels-1.")

    def _refuse(self, wrong: Tensor, x: Tensor, what: str, remedy: str) -> None:
        if not wrong.any():
            return
        row, column = (int(n) for n in wrong.nonzero()[0])
        variable = self.variables[column]
        raise InputError(
            f"x[{row}, {column}] = {x[row, column].item():g} of variable {variable.name!r} ({variable.domain}) {what} "
            f"({int(wrong.sum())} such cell(s) in all). {remedy}"
        )

    def to_json(self) -> list[dict[str, Any]]:
        return [{"name": v.name, "kind": v.domain.kind, **asdict(v.domain)} for v in self]

    @classmethod
    def from_json(cls, items: Sequence[dict[str, Any]]) -> "Schema":
        try:
            return cls(tuple(_variable_from_json(item) for item in items))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise FormatError(f"The schema cannot be read: {error!r}. The file is damaged or from another program.") from error


def _variable_from_json(item: dict[str, Any]) -> Variable:
    own = {key: value for key, value in item.items() if key not in ("name", "kind")}
    sizes = {key: tuple(map(float, value)) if isinstance(value, list) else value for key, value in own.items()}
    return Variable(str(item["name"]), DOMAINS[item["kind"]](**sizes))


def _shortlist(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def alike(schema: Schema) -> list[list[int]]:
    """The variables grouped by the kind of their distribution, in order of appearance: numbers, and codes of about the
    same size.
    """
    groups: dict[object, list[int]] = {}
    for i, variable in enumerate(schema):
        domain = variable.domain
        key: object = Recorded if isinstance(domain, Recorded) else domain
        if isinstance(domain, Category):
            key = next((size for size in LEVELS_TOGETHER if domain.levels <= size), domain)
        groups.setdefault(key, []).append(i)
    return list(groups.values())
