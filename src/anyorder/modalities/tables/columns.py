"""The values of a category as JSON and back: what is neither text nor number is written as text with the name of its type."""

import datetime as dt
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, NamedTuple, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...schema import Category, Domain, Recorded

MICROSECOND = dt.timedelta(microseconds=1)
DAY_IN_MS = 24 * 3600 * 1000  # in milliseconds, the unit of instants


class LevelWriter(NamedTuple):
    """How values of a type become text, and text becomes values."""

    type: type
    to_text: Callable[[Any], str]
    from_text: Callable[[str], Any]


def read_interval(text: str) -> Any:
    from pandas import Interval  # only where there are some

    low, high, closed = text.split(" ")
    return Interval(float(low), float(high), closed=closed)


# The first that fits counts: an instant is a day, too.
LEVEL_WRITERS = {
    "instant": LevelWriter(dt.datetime, lambda v: str(v.isoformat()), dt.datetime.fromisoformat),
    "day": LevelWriter(dt.date, lambda v: str(v.isoformat()), dt.date.fromisoformat),
    "time": LevelWriter(dt.time, lambda v: str(v.isoformat()), dt.time.fromisoformat),
    "duration": LevelWriter(dt.timedelta, lambda v: str(v // MICROSECOND), lambda text: int(text) * MICROSECOND),
    "decimal": LevelWriter(Decimal, str, Decimal),
    "bytes": LevelWriter(bytes, lambda v: str(v.hex()), bytes.fromhex),
}


def level_to_json(level: Any) -> Any:
    """The level, or {type: text}; TypeError if no file can keep it."""
    if isinstance(level, (str, bool, int, float)):
        return level
    for name, written in LEVEL_WRITERS.items():
        if isinstance(level, written.type):
            return {name: written.to_text(level)}
    if type(level).__name__ == "Interval" and isinstance(level.left, (int, float)):
        return {"interval": f"{float(level.left)!r} {float(level.right)!r} {level.closed}"}
    raise TypeError(f"{type(level).__name__} cannot be kept in a file")


def level_from_json(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    ((name, text),) = item.items()
    return read_interval(text) if name == "interval" else LEVEL_WRITERS[name].from_text(text)


Numbers = NDArray[np.float64]
EPOCH = dt.datetime(1970, 1, 1)
DAYS = float((dt.date.min - EPOCH.date()).days), float((dt.date.max - EPOCH.date()).days)
CALENDAR = {"day": DAYS, "instant": (DAYS[0] * 86_400_000, DAYS[1] * 86_400_000)}
MOST_ATOMS, KNOTS = 48, 12
MOST_DISCRETE, ROWS_PER_VALUE = 48, 4  # different values of a number that is discrete, and rows for each on average
OWN_LEVELS = 200  # of a category; the others, which are rare, share one code
MOST_DECIMALS = 400
LARGEST_NUMBER = 1e306  # of a number: a float reaches little farther
UNITS = ("number", "whole", "day", "instant")
COLUMN_KINDS: dict[str, Any] = {}  # every class of column by its name
FARTHEST_IN_SCALES = 1e4  # standard deviations: a number beyond is as far out as this


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
    def encode(self, series: "nw.Series[Any]") -> Numbers:
        """Cells to model space."""

    @abstractmethod
    def decode(self, values: Numbers) -> list[Any]:
        """Model space to cells."""

    def best_guess(self, values: Numbers) -> NDArray[Any]:
        """What is closest to a best guess in model space: a level, a date, or a plain number, which need not be rounded."""
        return np.array(self.decode(values))

    def __init_subclass__(cls) -> None:
        COLUMN_KINDS[cls.kind] = cls

    @abstractmethod
    def says(self) -> str:
        """What its values are, for a message: 'which ...'."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@final
@dataclass(frozen=True)
class CategoryColumn(Column):
    """Text, booleans or numbers that are codes. Each of the `common` values has its own code, all `rare` ones share the last.

    Which of the rare values a cell with that code has is independent of all else: each with its `shares` of their rows.
    """

    kind: ClassVar[str] = "category"
    common: tuple[Any, ...]
    rare: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def levels(self) -> tuple[Any, ...]:
        """All values that were seen."""
        return self.common + self.rare

    @property
    def domain(self) -> Domain:
        return Category(max(2, len(self.common) + bool(self.rare)))

    @property
    def holds_numbers(self) -> bool:
        """Codes that are numbers have an order and a mean."""
        return all(isinstance(level, Real) and not isinstance(level, bool) for level in self.levels)

    def codes(self) -> dict[Any, float]:
        codes = dict.fromkeys(self.rare, float(len(self.common)))
        return codes | {level: float(code) for code, level in enumerate(self.common)}

    def code_of(self, value: Any) -> float:
        """NaN if it is no level; 2 and 2.0 are the same level, and so is "2" where levels are numbers."""
        code = self.codes().get(value, np.nan)
        return self.codes().get(float(value), np.nan) if isinstance(value, str) and self.holds_numbers else code

    def within(self, low: Any, high: Any) -> tuple[Any, ...]:
        """The levels in a range whose ends belong to it, if they are numbers; None is an open end."""
        return tuple(v for v in self.levels if (low is None or v >= low) and (high is None or v <= high))

    def encode(self, series: "nw.Series[Any]") -> Numbers:
        codes = self.codes()
        return np.array([codes.get(value, np.nan) for value in series.to_list()], dtype=np.float64)

    def log_shares(self, series: "nw.Series[Any]") -> Numbers:
        """What the probability of the code of a value is to be multiplied with for that of the value: 0 unless it is rare."""
        shares = {level: float(np.log(share)) for level, share in zip(self.rare, self.shares, strict=True)}
        return np.array([shares.get(value, 0.0) for value in series.to_list()], dtype=np.float64)

    def spread(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities of all levels from those of all codes, which are in the last axis."""
        if not self.rare:
            return table[..., : max(2, len(self.common))]
        own = len(self.common)
        return np.concatenate([table[..., :own], table[..., own : own + 1] * np.array(self.shares)], axis=-1)

    def says(self) -> str:
        shown = ", ".join(repr(level) for level in self.levels[:8])
        return f"is one of {shown}{', ...' if len(self.levels) > 8 else ''}"

    def unseen(self, series: "nw.Series[Any]") -> set[Any]:
        """Values that are no level."""
        others = set(series.to_list()) - set(self.levels)
        if all(v is None or (isinstance(v, float) and v != v) for v in others):
            return set()  # nothing but gaps, found without asking the dataframe library what they are
        return {v for v in series.drop_nulls().unique().to_list() if v == v} - set(self.levels)

    def decode(self, values: Numbers, rng: np.random.Generator | None = None) -> list[Any]:
        """Rare values are drawn by their shares, or the most frequent of them is taken."""
        codes = np.minimum(values.astype(int), len(self.common) + bool(self.rare) - 1)
        drawn = np.zeros(len(codes), dtype=int)
        if rng is not None and self.rare:
            drawn = rng.choice(len(self.rare), len(codes), p=np.array(self.shares) / sum(self.shares))
        return [self.common[c] if c < len(self.common) else self.rare[r] for c, r in zip(codes, drawn, strict=True)]

    def to_json(self) -> dict[str, Any]:
        item = super().to_json() | {"levels": [level_to_json(level) for level in self.common]}
        del item["common"]
        return item | {"rare": [level_to_json(level) for level in self.rare]} if self.rare else without(item, "rare", "shares")

    @classmethod
    def learn(cls, name: str, series: "nw.Series[Any]") -> "CategoryColumn":
        counts = Counter(v for v in series.drop_nulls().to_list() if v == v)
        found = sorted(counts, key=lambda v: (str(type(v)), v))
        if len(found) <= OWN_LEVELS:
            return cls(name, tuple(found))
        often = sorted(found, key=lambda v: -counts[v])
        own, rare = set(often[: OWN_LEVELS - 1]), tuple(often[OWN_LEVELS - 1 :])
        total = sum(counts[level] for level in rare)
        return cls(name, tuple(v for v in found if v in own), rare, tuple(counts[level] / total for level in rare))


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
    only: tuple[float, ...] = ()  # all values that occur, if they are few: what is filled in and drawn is one of them
    form: tuple[str, ...] = ()  # how the numbers were written, if they were text

    @property
    def domain(self) -> Domain:
        model_space = lambda values: tuple(float((v - self.centre) / self.scale) for v in values)  # noqa: E731
        return Recorded(self.spacing / self.scale, model_space(self.atoms), model_space(self.knots), model_space(self.bounds))

    def encode(self, series: "nw.Series[Any]") -> Numbers:
        values = read_numbers(series)
        refuse_infinities(self.name, values)
        return np.clip(self.places(values), -FARTHEST_IN_SCALES, FARTHEST_IN_SCALES)

    @property
    def step(self) -> float:
        """How far apart values lie in model space."""
        return self.spacing / self.scale

    def places(self, values: Numbers) -> Numbers:
        """Plain numbers in model space, on its lattice."""
        cells: Numbers = np.round((values - self.centre) / self.spacing) * (self.spacing / self.scale)
        return cells

    def written(self, values: Numbers) -> Numbers:
        """The numbers at places in model space, as such values are written down."""
        steps = np.round(np.asarray(values, dtype=np.float64) * (self.scale / self.spacing))
        cells: Numbers = self.centre + steps * self.spacing
        return np.round(cells, self.decimals) if self.decimals <= 15 else cells

    def place(self, number: float, to_whole: Callable[[Any], Any] = np.round) -> float:
        """A plain number (days, milliseconds) in model space; what is just off a lattice point by rounding error is on it."""
        steps = (number - self.centre) / self.spacing
        near = np.round(steps)
        place = (near if abs(steps - near) < 1e-6 else to_whole(steps)) * (self.spacing / self.scale)
        return float(np.clip(place, -FARTHEST_IN_SCALES, FARTHEST_IN_SCALES))

    def neighbour(self, number: float, up: bool) -> Any:
        """The first cell value above or below a plain number."""
        place = self.place(number, np.floor) + self.step if up else self.place(number, np.ceil) - self.step
        return self.decode(np.array([place]))[0]

    def number(self, place: Numbers) -> Numbers:
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

    def best_guess(self, values: Numbers) -> NDArray[Any]:
        """Of a number with few values the one that is nearest to its mean."""
        return np.array(self.cells(values)) if self.only else self.means(values)

    def means(self, values: Numbers) -> NDArray[Any]:
        """Plain numbers, not rounded to what could be written down; dates are."""
        return np.array(self.decode(values)) if self.is_moment else self.number(values)

    def cells(self, values: Numbers) -> list[Any]:
        """Model space to cells that may occur: of a column with few values the nearest of them."""
        if not self.only:
            return self.decode(values)
        middles = (np.array(self.only[1:]) + self.only[:-1]) / 2
        nearest = np.array(self.only)[np.searchsorted(middles, self.number(np.asarray(values, dtype=np.float64)))]
        return [int(v) for v in nearest] if self.unit == "whole" else nearest.tolist()

    def decode(self, values: Numbers) -> list[Any]:
        cells = self.written(values)
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
        scale = spread_of(values)
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
        bounds = numbers_on_lattice(expected_range(values, unit), values, centre, spacing)
        found = atoms_of(values, spacing), tuple(knots.tolist())
        few = len(different) <= min(MOST_DISCRETE, len(values) / ROWS_PER_VALUE) and unit not in CALENDAR
        only = tuple(different.tolist()) if few else ()
        return cls(name, centre, scale, spacing, decimals, *found, unit, continuous, bounds, only)

    def to_json(self) -> dict[str, Any]:
        return without(super().to_json(), *(name for name in ("only", "form") if not getattr(self, name)))


def read_numbers(series: "nw.Series[Any]") -> Numbers:
    """The column as float64 with NaN for gaps; days since 1970 for dates, milliseconds for instants."""
    if holds_days(series):
        return np.array(
            [(v - EPOCH.date()).days if isinstance(v, dt.date) else np.nan for v in series.to_list()], dtype=np.float64
        )
    if series.dtype == nw.Datetime:
        series = series.dt.timestamp("ms")
    if series.dtype.is_float():  # gaps come as NaN
        return np.asarray(series.to_numpy(), dtype=np.float64)
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


def refuse_infinities(name: str, values: Numbers) -> None:
    if np.isinf(values).any():
        raise InputError(
            f"Column {name!r} holds {int(np.isinf(values).sum())} infinite value(s). "
            "Replace them by a number, or by NaN for a gap."
        )
    if (np.abs(values) > LARGEST_NUMBER).any():
        raise InputError(
            f"Column {name!r} holds {int((np.abs(values) > LARGEST_NUMBER).sum())} number(s) beyond {LARGEST_NUMBER:g}, where "
            "differences have no room. Divide the column by a power of ten, or take such numbers for gaps (NaN)."
        )


def precision(values: Numbers, rounding: float = 1e-12) -> tuple[int, float, bool]:
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
    exponent = int(np.floor(np.log10(spread_of(values)) - 4))
    return max(0, -exponent), 10.0**exponent, True


def expected_range(values: Numbers, unit: str) -> Numbers:
    """What was seen and half as much on either side, but nothing on the other side of 0 if nothing was ever there.

    Days and instants have no sign; they end where the calendar does.
    """
    low, high = float(values.min()), float(values.max())
    more = high / 2 - low / 2
    least, greatest = CALENDAR.get(unit, (0.0 if low >= 0 else -np.inf, 0.0 if high <= 0 else np.inf))
    return np.clip([low - more, high + more], least, greatest)


def numbers_on_lattice(ends: Numbers, values: Numbers, centre: float, spacing: float) -> tuple[float, ...]:
    """The outermost points of the lattice between two ends, or of the values themselves; none if no number is so large."""
    within = np.fix((ends - centre) / spacing + (-1e-6, 1e-6))
    written = np.round((np.array([values.min(), values.max()]) - centre) / spacing)
    points = centre + spacing * np.array([min(within[0], written[0]), max(within[1], written[1])])
    return tuple(points.tolist()) if np.isfinite(points).all() else ()


def spread_of(values: Numbers) -> float:
    """The standard deviation, without overflow for huge numbers or underflow for tiny ones."""
    top = np.abs(values).max() or 1.0
    return float((values / top).std() * top) or float(top)


def atoms_of(values: Numbers, spacing: float) -> tuple[float, ...]:
    """Values that stand out: at least three times, in one of 500 rows, and thrice as often as their neighbourhood suggests.

    Where there are few different values, all that repeat stand out.
    """
    found, counts = np.unique(values, return_counts=True)
    often = counts >= max(3, len(values) / 500)
    if len(found) > 30:
        reach = max(spread_of(values) / 4, spacing)
        near = np.searchsorted(np.sort(values), [found - reach, found + reach])
        often &= counts >= 3 * (near[1] - near[0]) / (2 * reach / spacing + 1)
    order = np.argsort(-counts[often], kind="stable")[:MOST_ATOMS]
    return tuple(sorted(found[often][order].tolist()))


def without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in names}


def column_from_json(item: dict[str, Any]) -> Column:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in item.items() if key != "kind"}
    if item["kind"] == CategoryColumn.kind:
        fields["common"] = tuple(map(level_from_json, fields.pop("levels")))
        fields["rare"] = tuple(map(level_from_json, fields.get("rare", ())))
    column: Column = COLUMN_KINDS[item["kind"]](**fields)
    check_column(column)
    return column


def check_column(column: Column) -> None:
    """Refuse what no table leads to: text in the place of a number, a scale of nothing, a unit that there is not."""
    if not isinstance(column.name, str) or (isinstance(column, CategoryColumn) and not column.levels):
        raise ValueError(f"column {column.name!r:.40} has no name, or no levels")
    if not isinstance(column, NumberColumn):
        return
    sizes = (column.scale, column.spacing)
    numbers = (*sizes, column.centre, column.decimals, *column.atoms, *column.knots, *column.bounds)
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and np.isfinite(float(n)) for n in numbers):
        raise ValueError(f"column {column.name!r} is described by something that is no number")
    if min(sizes) <= 0 or not 0 <= column.decimals <= MOST_DECIMALS or column.unit not in UNITS:
        raise ValueError(f"column {column.name!r} has a scale, decimals or a unit that cannot be")


def plain(column: Column | None, value: Any) -> Any:
    """The value as JSON can hold it, dates in ISO form."""
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if only_days(column) else value.isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else value


def only_days(column: Column | None) -> bool:
    """Whether the column holds instants that are all at midnight, as dates from a csv file are."""
    return isinstance(column, NumberColumn) and column.spacing % DAY_IN_MS == 0 and column.centre % DAY_IN_MS == 0


def kind_of_column(column: Column) -> str:
    """The kind of a column in one or two words."""
    if not isinstance(column, NumberColumn):
        return "category"
    if column.unit == "instant":
        return "date" if only_days(column) else "instant"
    return {"day": "date", "whole": "whole number"}.get(column.unit, "number")
