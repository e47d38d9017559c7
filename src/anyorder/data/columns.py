"""One column of a table as one variable: how its cells become numbers in model space, and numbers become cells again."""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, ClassVar, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..schema import Category, Domain, Recorded
from .levels import level_from_json, level_to_json

Cells = NDArray[np.float64]
EPOCH = dt.datetime(1970, 1, 1)
DAYS = float((dt.date.min - EPOCH.date()).days), float((dt.date.max - EPOCH.date()).days)
CALENDAR = {"day": DAYS, "instant": (DAYS[0] * 86_400_000, DAYS[1] * 86_400_000)}
MOST_ATOMS, MOST_LEVELS, KNOTS = 48, 200, 12
FARTHEST = 1e4  # standard deviations: a number beyond is as far out as this


@dataclass(frozen=True)
class Column(ABC):
    """How one column is read and written. `encode` gives NaN for a gap."""

    kind: ClassVar[str]
    name: str

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The values the variable may take in model space."""

    @abstractmethod
    def encode(self, series: "nw.Series[Any]") -> Cells:
        """Cells to model space."""

    @abstractmethod
    def decode(self, values: Cells) -> list[Any]:
        """Model space to cells."""

    def best_guess(self, values: Cells) -> NDArray[Any]:
        """What is closest to a best guess in model space: a level, a date, or a plain number, which need not be rounded."""
        return np.array(self.decode(values))

    @abstractmethod
    def says(self) -> str:
        """What its values are, for a message: 'which ...'."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@final
@dataclass(frozen=True)
class CategoryColumn(Column):
    """Text, booleans or numbers without order, each value a code."""

    kind: ClassVar[str] = "category"
    levels: tuple[Any, ...]

    @property
    def domain(self) -> Domain:
        return Category(max(2, len(self.levels)))

    def encode(self, series: "nw.Series[Any]") -> Cells:
        codes = {level: float(code) for code, level in enumerate(self.levels)}
        return np.array([codes.get(value, np.nan) for value in series.to_list()], dtype=np.float64)

    def says(self) -> str:
        shown = ", ".join(repr(level) for level in self.levels[:8])
        return f"is one of {shown}{', ...' if len(self.levels) > 8 else ''}"

    def unseen(self, series: "nw.Series[Any]") -> set[Any]:
        """Values that are no level."""
        return {v for v in series.drop_nulls().unique().to_list() if v == v} - set(self.levels)

    def decode(self, values: Cells) -> list[Any]:
        return [self.levels[min(int(code), len(self.levels) - 1)] for code in values]

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"levels": [level_to_json(level) for level in self.levels]}

    @classmethod
    def learn(cls, name: str, series: "nw.Series[Any]") -> "CategoryColumn":
        found = [v for v in series.drop_nulls().unique().to_list() if v == v]
        return cls(name, tuple(sorted(found, key=lambda v: (str(type(v)), v))))


@final
@dataclass(frozen=True)
class NumberColumn(Column):
    """A number, written down with so many decimals; `unit` tells days and instants from plain numbers."""

    kind: ClassVar[str] = "number"
    centre: float
    scale: float
    spacing: float
    decimals: int
    atoms: tuple[float, ...] = ()
    knots: tuple[float, ...] = ()
    unit: str = "number"  # number, whole, day, instant
    continuous: bool = False  # no lattice was found: the spacing is a choice, not a finding
    bounds: tuple[float, ...] = ()  # the least and the greatest value that is to be expected

    @property
    def domain(self) -> Domain:
        model_space = lambda values: tuple(float((v - self.centre) / self.scale) for v in values)  # noqa: E731
        return Recorded(self.spacing / self.scale, model_space(self.atoms), model_space(self.knots), model_space(self.bounds))

    def encode(self, series: "nw.Series[Any]") -> Cells:
        values = read_numbers(series)
        refuse_infinities(self.name, values)
        cells = np.round((values - self.centre) / self.spacing)
        return np.clip(cells * (self.spacing / self.scale), -FARTHEST, FARTHEST)

    def place(self, number: float, to_whole: Callable[[Any], Any] = np.round) -> float:
        """A plain number (days, milliseconds) in model space; what is just off a lattice point by rounding error is on it."""
        steps = (number - self.centre) / self.spacing
        near = np.round(steps)
        place = (near if abs(steps - near) < 1e-6 else to_whole(steps)) * (self.spacing / self.scale)
        return float(np.clip(place, -FARTHEST, FARTHEST))

    def number(self, place: Cells) -> Cells:
        """The plain numbers at places in model space, not rounded."""
        return self.centre + place * self.scale

    def says(self) -> str:
        return {"day": "holds days", "instant": "holds instants"}.get(self.unit, "holds numbers")

    @property
    def is_moment(self) -> bool:
        """Days or instants."""
        return self.unit in CALENDAR

    def holds(self, value: Any) -> bool:
        """Whether the value is of the column's own kind, however fine the lattice."""
        match self.unit:
            case "day":
                return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
            case "instant":
                return isinstance(value, dt.datetime) and value.tzinfo is None
        return isinstance(value, Real) and (self.unit == "number" or float(value).is_integer())

    def best_guess(self, values: Cells) -> NDArray[Any]:
        return super().best_guess(values) if self.is_moment else self.number(values)

    def decode(self, values: Cells) -> list[Any]:
        steps = np.round(np.asarray(values, dtype=np.float64) * (self.scale / self.spacing))
        cells = self.centre + steps * self.spacing
        cells = np.round(cells, self.decimals) if self.decimals <= 15 else cells
        match self.unit:
            case "whole":
                return [int(v) for v in cells]
            case "day":
                return [(EPOCH + dt.timedelta(days=round(v))).date() for v in cells]
            case "instant":
                return [EPOCH + dt.timedelta(milliseconds=round(v)) for v in cells]
        return cells.tolist()

    @classmethod
    def learn(cls, name: str, series: "nw.Series[Any]") -> "NumberColumn":
        values = read_numbers(series)
        refuse_infinities(name, values)
        values = values[~np.isnan(values)]
        decimals, spacing, continuous = precision(values, 2e-7 if series.dtype == nw.Float32 else 1e-12)
        different = np.unique(values)
        if decimals == 0 and not continuous and (len(different) >= 8 or series.dtype == nw.Datetime):
            spacing = float(np.gcd.reduce(np.diff(different).astype(np.int64)))  # whole seconds, multiples of ten
        scale = spread(values)
        spacing *= max(1.0, float(np.ceil(scale * 1e-6 / spacing)))  # float32 tells no more apart
        centre = float(np.median(values))
        centre = float(values[np.abs(values - centre).argmin()])  # a value of the lattice
        unit = "number"
        if series.dtype.is_integer():
            unit = "whole"
        elif holds_days(series):
            unit = "day"
        elif series.dtype == nw.Datetime:
            unit = "instant"
        knots = np.unique(np.round((np.quantile(values, np.linspace(0, 1, KNOTS)) - centre) / spacing)) * spacing + centre
        bounds = on_lattice(expected_range(values, unit), values, centre, spacing)
        found = atoms_of(values, spacing), tuple(knots.tolist())
        return cls(name, centre, scale, spacing, decimals, *found, unit, continuous, bounds)


def read_numbers(series: "nw.Series[Any]") -> Cells:
    """The column as float64 with NaN for gaps; days since 1970 for dates, milliseconds for instants."""
    if holds_days(series):
        return np.array(
            [(v - EPOCH.date()).days if isinstance(v, dt.date) else np.nan for v in series.to_list()], dtype=np.float64
        )
    if series.dtype == nw.Datetime:
        series = series.dt.timestamp("ms")
    gaps = series.is_null().to_numpy()
    values = np.full(len(series), np.nan)
    values[~gaps] = series.drop_nulls().cast(nw.Float64).to_numpy()
    return values


def holds_numbers(series: "nw.Series[Any]") -> bool:
    """Numbers, days, instants, or lengths of time."""
    return series.dtype.is_numeric() or series.dtype.is_temporal() or holds_days(series)


def holds_days(series: "nw.Series[Any]") -> bool:
    """Days, be it as objects of Python's own."""
    if series.dtype != nw.Object:
        return series.dtype == nw.Date
    found = series.drop_nulls().to_list()
    return bool(found) and all(isinstance(v, dt.date) and not isinstance(v, dt.datetime) for v in found)


def read_moment(unit: str, value: Any) -> float:
    """A day, an instant or an ISO text as days or milliseconds since 1970; without a time zone it is that of Greenwich."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[ms]").item()
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return float((value.date() - EPOCH.date()).days) if unit == "day" else (value - EPOCH) / dt.timedelta(milliseconds=1)


def refuse_infinities(name: str, values: Cells) -> None:
    if np.isinf(values).any():
        raise InputError(
            f"Column {name!r} holds {int(np.isinf(values).sum())} infinite value(s). "
            "Replace them by a number, or by NaN for a gap."
        )


def precision(values: Cells, rounding: float = 1e-12) -> tuple[int, float, bool]:
    """With how many decimals the values were written down, the spacing of their lattice, and whether none was found.

    `rounding` is the relative error of the numbers themselves, as large as that of their data type.
    """
    top = float(np.abs(values).max())
    for decimals in range(9):
        if top * 10.0**decimals >= 2**50:
            break
        whole = values * 10.0**decimals
        if (np.abs(whole - np.round(whole)) <= np.minimum(rounding * np.abs(whole), 1e-3)).all():
            return decimals, 10.0**-decimals, False
    exponent = int(np.floor(np.log10(spread(values)) - 4))
    return max(0, -exponent), 10.0**exponent, True


def expected_range(values: Cells, unit: str) -> Cells:
    """What was seen and half as much on either side, but nothing on the other side of 0 if nothing was ever there.

    Days and instants have no sign; they end where the calendar does.
    """
    low, high = float(values.min()), float(values.max())
    more = high / 2 - low / 2
    least, greatest = CALENDAR.get(unit, (0.0 if low >= 0 else -np.inf, 0.0 if high <= 0 else np.inf))
    return np.clip([low - more, high + more], least, greatest)


def on_lattice(ends: Cells, values: Cells, centre: float, spacing: float) -> tuple[float, ...]:
    """The outermost points of the lattice between two ends, or of the values themselves; none if no number is so large."""
    within = np.fix((ends - centre) / spacing + (-1e-6, 1e-6))
    written = np.round((np.array([values.min(), values.max()]) - centre) / spacing)
    points = centre + spacing * np.array([min(within[0], written[0]), max(within[1], written[1])])
    return tuple(points.tolist()) if np.isfinite(points).all() else ()


def spread(values: Cells) -> float:
    """The standard deviation, without overflow for huge numbers or underflow for tiny ones."""
    top = np.abs(values).max() or 1.0
    return float((values / top).std() * top) or float(top)


def atoms_of(values: Cells, spacing: float) -> tuple[float, ...]:
    """Values that stand out: at least three times, in one of 500 rows, and thrice as often as their neighbourhood suggests.

    Where there are few different values, all that repeat stand out.
    """
    found, counts = np.unique(values, return_counts=True)
    often = counts >= max(3, len(values) / 500)
    if len(found) > 30:
        reach = max(spread(values) / 4, spacing)
        near = np.searchsorted(np.sort(values), [found - reach, found + reach])
        often &= counts >= 3 * (near[1] - near[0]) / (2 * reach / spacing + 1)
    order = np.argsort(-counts[often], kind="stable")[:MOST_ATOMS]
    return tuple(sorted(found[often][order].tolist()))


def looks_like_text_or_names(series: "nw.Series[Any]") -> bool:
    """So many different values that each row has almost its own: an identifier or free text, not a category."""
    values = series.drop_nulls()
    different = values.n_unique()
    return different > MOST_LEVELS or (different > 20 and different > 0.5 * len(values))


def column_from_json(item: dict[str, Any]) -> Column:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in item.items() if key != "kind"}
    if "levels" in fields:
        fields["levels"] = tuple(map(level_from_json, fields["levels"]))
    kinds: dict[str, Any] = {c.kind: c for c in (CategoryColumn, NumberColumn)}
    column: Column = kinds[item["kind"]](**fields)
    return column
