"""Numbers over many powers of ten: a column that is learned on a scale that is even in the logarithm."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, final

import narwhals as nw
import numpy as np
import torch

from ...distributions.lattice import place_of, steps_from
from ...errors import InputError
from ...schema import Recorded
from .columns import KNOTS, LARGEST_NUMBER, NumberColumn, Numbers, atoms_of, read_numbers

FINE_GRID, COARSE_GRID = 2.0**-18, 2.0**-15  # of a standard deviation: where steps were found in the values, and where none were
NATS_THAT_PAY = (
    1.5  # nats a value that a normal distribution must save on the bent scale: a standard deviation of the logarithm of about 1.4
)
REACH = 1e250  # of its width: how far a bent scale reaches; a float reaches little farther
COMMON, TRIMMED, FEWEST_SPREAD_VALUES = (
    0.05,
    0.005,
    30,
)  # share of a value that is left out, of values at either end, and how many must be left


@final
@dataclass(frozen=True)
class LogNumberColumn(NumberColumn):
    """A number on a scale that is even near its start and even in the logarithm far from it, on both sides.

    `centre` and `spacing` are those of the values as they were written down, `scale`, `start` and `ratio` the curve between
    them and model space, whose own lattice is `grid`. All of the curve is exact in float32: distributions must see the
    same cells.
    """

    kind: ClassVar[str] = "log number"
    start: float = 0.0
    ratio: float = 1.0
    grid: float = FINE_GRID

    @property
    def step(self) -> float:
        return self.grid

    @property
    def domain(self) -> Recorded:
        on_grid = lambda values: tuple(dict.fromkeys(self.places(np.array(values)).tolist()))  # noqa: E731
        curve = (self.scale, self.start, 0.0 if self.continuous else self.ratio)
        return Recorded(
            self.grid, on_grid(self.atoms), on_grid(self.knots), tuple(self.places(np.array(self.bounds)).tolist()), curve
        )

    def places(self, values: Numbers) -> Numbers:
        return self.to_grid(self.place_exactly(values))

    def place_exactly(self, values: Numbers) -> Numbers:
        """Of recorded values in model space, before they are put on its lattice."""
        steps = np.atleast_1d((values - self.centre) / self.spacing)
        return np.asarray(place_of(torch.from_numpy(steps if self.continuous else np.round(steps)), self._curve))

    def to_grid(self, places: Numbers, to_whole: Any = np.round) -> Numbers:
        return np.asarray(to_whole(places / self.grid) * self.grid)

    def place(self, number: float, to_whole: Any = np.round) -> float:
        """A plain number in model space; what is just off a recorded value by rounding error is on it."""
        steps = (number - self.centre) / self.spacing
        if self.continuous:
            off = self.place_exactly(np.array([number]))
            near = self.to_grid(off)
            return float(near[0] if abs(off[0] - near[0]) < 1e-6 * self.grid else self.to_grid(off, to_whole)[0])
        whole = np.round(steps) if abs(steps - np.round(steps)) < 1e-6 * max(1.0, abs(steps)) else to_whole(steps)
        return float(self.places(np.array([self.centre + whole * self.spacing]))[0])

    def neighbour(self, number: float, up: bool) -> Any:
        if self.continuous:
            return super().neighbour(number, up)
        steps = round((number - self.centre) / self.spacing, 6)  # less than a millionth of a step is a rounding error
        next_one = math.floor(steps) + 1 if up else math.ceil(steps) - 1
        return self.decode(self.places(np.array([self.centre + next_one * self.spacing])))[0]

    def number(self, place: Numbers) -> Numbers:
        steps = steps_from(torch.from_numpy(np.atleast_1d(np.asarray(place, dtype=np.float64))), self._curve)
        return self.centre + self.spacing * np.asarray(steps)

    def written(self, values: Numbers) -> Numbers:
        """As such values are written down: with the decimals that were found, else with as many digits as tell them apart."""
        numbers = self.number(self.to_grid(np.asarray(values, dtype=np.float64)))
        if not self.continuous:
            steps = np.round((numbers - self.centre) / self.spacing)
            return np.asarray(np.round(self.centre + steps * self.spacing, self.decimals))
        finest = self.grid * self.scale * np.maximum(np.abs(numbers - self._origin), self._width) / 8
        digits = -np.floor(np.log10(finest)).astype(int)
        return np.array([round(float(v), int(d)) for v, d in zip(numbers, digits, strict=True)])

    @property
    def _curve(self) -> torch.Tensor:
        return torch.tensor([self.scale, self.start, self.ratio], dtype=torch.float64)

    @property
    def _width(self) -> float:
        """How far from its start the scale is about even."""
        return self.ratio * self.spacing

    @property
    def _origin(self) -> float:
        return self.centre - self._width * math.sinh(self.start)

    @classmethod
    def of(cls, plain: NumberColumn, values: Numbers) -> "LogNumberColumn":
        """The same column on the scale on which these values are nearest to normal."""
        origin, width = nearest_to_normal(values)[1]
        spacing = width * COARSE_GRID if plain.continuous else finest_step(values, plain.decimals)
        start, ratio = float32(np.arcsinh((plain.centre - origin) / width)), float32(width / spacing)
        places = np.arcsinh((values - plain.centre) / spacing / ratio + math.sinh(start)) - start
        kept = {field.name: getattr(plain, field.name) for field in fields(NumberColumn)}
        kept |= {"scale": float32(places.std()), "spacing": spacing, "atoms": atoms_of(values, spacing), "bounds": ()}
        column = cls(**kept, start=start, ratio=ratio, grid=COARSE_GRID if plain.continuous else FINE_GRID)
        knots = column.written(column.places(np.quantile(values, np.linspace(0, 1, KNOTS))))
        return replace(column, knots=tuple(knots.tolist()), bounds=column.expected(values))

    def expected(self, values: Numbers) -> tuple[float, ...]:
        """What was seen and half as much on either side, on the bent scale; nothing beyond 0 if nothing was there."""
        low, high = self.places(np.array([values.min(), values.max()]))
        more = self.to_grid(np.array([(high - low) / 2]))[0]
        zero = self.place(0.0)
        farthest = min(LARGEST_NUMBER, REACH * self._width)
        far = self.places(np.array([-farthest, farthest]))
        least = max(low - more, min(low, zero) if values.min() >= 0 else far[0])
        most = min(high + more, max(high, zero) if values.max() <= 0 else far[1])
        return tuple(self.written(np.array([least, most])).tolist())


def finest_step(values: Numbers, decimals: int) -> float:
    """The greatest step of which all differences of recorded values are multiples."""
    different = np.unique(values)
    if decimals or len(different) < 8:
        return float(10.0**-decimals)
    return float(np.gcd.reduce(np.diff(different).astype(np.int64)))


def as_learned(plain: NumberColumn, series: "nw.Series[Any]", kind: str | None) -> NumberColumn:
    """The column, on a bent scale if `kind` is "log", or if that is much nearer to normal and `kind` is not "linear"."""
    if kind == "log" and plain.is_moment:
        raise InputError(f"kinds[{plain.name!r}] is 'log', but the column {plain.says()}. Use 'log' for plain numbers.")
    if kind == "linear" or plain.is_moment:
        return plain
    values = read_numbers(series)
    values = values[~np.isnan(values)]
    return LogNumberColumn.of(plain, values) if kind == "log" or spans_powers_of_ten(values) else plain


def spans_powers_of_ten(values: Numbers) -> bool:
    """Whether most values, without those that are very common and the outermost, lie far closer to a normal
    distribution when bent.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    rest = np.sort(values[count[place] < max(2.0, COMMON * len(values))])
    cut = int(TRIMMED * len(rest))
    rest = rest[cut : len(rest) - cut]
    if len(rest) < max(FEWEST_SPREAD_VALUES, len(values) / 4) or rest[0] == rest[-1]:
        return False
    return bool(nearest_to_normal(rest)[0] > NATS_THAT_PAY)


def nearest_to_normal(values: Numbers) -> tuple[float, tuple[float, float]]:
    """How many nats a value a normal distribution saves on the best of some bent scales, against an even one; its
    origin and width.
    """
    tried = [(0.0, *np.quantile(np.abs(values[values != 0]), [0.02, 0.25, 0.5]))]
    middle = float(np.median(values))
    if (values != middle).any():
        tried.append((middle, *np.quantile(np.abs(values[values != middle] - middle), [0.02, 0.25, 0.5])))
    narrowest = np.abs(values).max() / REACH
    best = [
        (normal_nats(values) - bent_nats(values, origin, width), (origin, float(width)))
        for origin, *widths in tried
        for width in np.maximum(widths, narrowest)
    ]
    return max(best)


def normal_nats(values: Numbers) -> float:
    """Of values, by a normal distribution; their squares may be too large or too small for a float."""
    largest = np.abs(values).max()
    return float(np.log((values / largest).std()) + np.log(largest))


def bent_nats(values: Numbers, origin: float, width: float) -> float:
    """Of values, by a normal distribution of their bent places."""
    from_origin = values / width - origin / width
    stretched = np.log(np.hypot(1.0, from_origin)).mean()  # the logarithm of how much wider a unit is out there
    return float(np.log(max(np.arcsinh(from_origin).std(), 1e-300)) + np.log(width) + stretched)


def float32(number: Any) -> float:
    return float(np.float32(number))
