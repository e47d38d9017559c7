"""What does not fit in a table: how odd every cell is given the rest of its row, on one scale for all columns."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ...distributions import DiscreteDistribution, Distribution, LatticeDistribution
from ...models.any_order import Model
from ...models.counts import Counted
from ...schema import Mask, Values
from ..displays import Bar, Markup, bar, chance_text, literal, percent, plot_bars, shorten, table, tag, text_grid, value_text
from .columns import CategoryColumn, Column, NumberColumn
from .dataframes import Frame, as_frame
from .encoder import TableEncoder

RARE_SHARE = 0.001  # the chance from which a cell is called odd: one cell of a thousand is, in a table without errors
ANOMALY_ROWS_PER_CALL, ANOMALY_NUMBERS_AT_ONCE = 512, 128
CELLS_SHOWN = 12
OUTERMOST, TAIL, PASSES = 1e-7, 0.02, 2
INTERVAL_LEVEL = 0.9


@final
@dataclass(frozen=True)
class CellChances:
    """The distributions of single cells given the rest of their rows.

    Training rows among them are left out of what speaks for them (`own` is their number among the training rows, else -1).
    """

    model: Model
    x: Values
    known: Mask
    own: Int[Tensor, " row"]

    def distributions(self, place: int, rows: Int[Tensor, " some"]) -> Iterator[tuple[Int[Tensor, " some"], Distribution]]:
        """Of one column in some rows, some hundred at a time."""
        for some in rows.split(ANOMALY_ROWS_PER_CALL):
            given = self.known[some].clone()
            given[:, place] = False
            context = self.own[some][:, None] if (self.own[some] >= 0).any() else None
            with torch.no_grad():
                yield some, self.model(self.x[some], given, context).distribution(place)


def places_among_training(model: Model, x: Values, present: Mask) -> Int[Tensor, " row"]:
    """Which row of the training every row is, -1 for none: a row is not to be judged by itself."""
    if not isinstance(model, Counted):
        return torch.full((len(x),), -1)
    keys = [byte_rows(rows, held) for rows, held in ((model.rows.cpu(), model.held.cpu().bool()), (x, present))]
    numbers = {key: number for number, key in enumerate(keys[0])}
    return torch.tensor([numbers.get(key, -1) for key in keys[1]], dtype=torch.long)


def byte_rows(x: Values, held: Mask) -> list[bytes]:
    cells = torch.where(held, x, torch.inf).float().numpy() + np.float32(0.0)
    return [row.tobytes() for row in cells]


def chances(distribution: Distribution, x: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    """How likely a value is that is as unlikely as this one, or more so.

    Of a number: that lies where values are as thin as here, or thinner, so that it does not matter how finely it is written.
    """
    if isinstance(distribution, DiscreteDistribution):
        table = distribution.pmf().double()
        own = table.gather(-1, x.long()[:, None])
        return (table * (table <= own * (1 + 1e-6))).sum(-1).clamp(max=1.0)
    assert isinstance(distribution, LatticeDistribution)
    parts = torch.arange(len(x)).split(ANOMALY_NUMBERS_AT_ONCE)
    return torch.cat([chances_of_numbers(distribution.map_tensors(itemgetter(some)), x[some]) for some in parts])


def chances_of_numbers(distribution: LatticeDistribution, x: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    wide = distribution.map_tensors(lambda t: t.double())
    step = wide.spacing[:, None]
    edges = ((spread_places(distribution).double() / step).floor() + 0.5) * step
    cdf = wide.cdfs(edges).clamp(0.0, 1.0).cummax(-1).values
    mass = torch.diff(cdf, prepend=torch.zeros_like(step), append=torch.ones_like(step))
    values = (torch.diff(edges) / step).round()
    density = torch.nn.functional.pad(mass[:, 1:-1] / values, (1, 1))  # beyond the edges no value is worth its name
    density = torch.where(torch.nn.functional.pad(values == 0, (1, 1)), torch.inf, density)
    own = density.gather(-1, torch.searchsorted(edges.contiguous(), x.double()[:, None].contiguous()))
    return (mass * (density <= own * (1 + 1e-6))).sum(-1).clamp(max=1.0)


def spread_places(distribution: LatticeDistribution) -> Float[Tensor, "cell place"]:
    """Places that cut every distribution into parts of about two percent, and into ever smaller ones in its tails; rising.

    They come from straight lines between places, nearer and nearer: where exactly they are is of no matter.
    """
    places = torch.sinh(torch.linspace(-9.9, 9.9, 65)).expand(len(distribution.spacing), -1).contiguous()
    for count in (*(24,) * PASSES, 42):
        levels = part_levels(count).expand(len(places), -1).contiguous()
        cdf = distribution.cdfs(places).clamp(0.0, 1.0).double().cummax(-1).values.contiguous()
        right = torch.searchsorted(cdf, levels).clamp(1, cdf.shape[1] - 1)
        low, high = cdf.gather(-1, right - 1), cdf.gather(-1, right)
        share = ((levels - low) / (high - low).clamp(min=1e-300)).clamp(0.0, 1.0).float()
        start = places.gather(-1, right - 1)
        places = (start + share * (places.gather(-1, right) - start)).cummax(-1).values.contiguous()
    return places


def part_levels(count: int) -> Float[Tensor, " level"]:
    """The probability below every place: so many geometric in each tail, as many even between them."""
    tail = torch.logspace(math.log10(OUTERMOST), math.log10(TAIL), count, dtype=torch.float64)
    inner = torch.linspace(TAIL, 1 - TAIL, count + 2, dtype=torch.float64)[1:-1]
    return torch.cat([tail, inner, 1 - tail.flip(0)])


class Expected(NamedTuple):
    """What a cell was expected to be: the likeliest category or the median, and the middle 90 % of a number."""

    value: Any
    low: Any
    high: Any
    likely: float  # how likely the value expected is


def expected_of(column: Column, distribution: Distribution) -> list[Expected]:
    """Of every cell of a distribution."""
    if isinstance(distribution, DiscreteDistribution):
        likely, best = distribution.pmf().max(-1)
        values = column.decode(best.double().numpy())
        return [Expected(value, None, None, float(p)) for value, p in zip(values, likely, strict=True)]
    assert isinstance(distribution, LatticeDistribution)
    shares = (0.5, (1 - INTERVAL_LEVEL) / 2, (1 + INTERVAL_LEVEL) / 2)
    columns = [
        column.decode(distribution.quantile(torch.full_like(distribution.spacing, q).double()).double().numpy()) for q in shares
    ]
    middle, low, high = columns
    return [Expected(*each, 0.0) for each in zip(middle, low, high, strict=True)]


@final
@dataclass(frozen=True, eq=False)
class Anomalies:
    """How surprising every row and every cell of a table is. `to_frame()` lists what is odd, the oddest first.

    `rows` and `cells` are nats: of a row as a whole, and of a cell given the rest of its row. Nats depend on how finely a number
    was written, `chance` does not: how likely a value is that is as unlikely as this one, or more so. In a table without errors
    one cell of a thousand has a chance below 0.001. Gaps are NaN; a category that was never seen in training has the chance 0.
    """

    rows: NDArray[np.float64]
    cells: NDArray[np.float64]
    columns: list[str]
    chance: NDArray[np.float64]
    table: Frame = field(repr=False)
    encoder: TableEncoder = field(repr=False)
    distributions: CellChances = field(repr=False)

    def to_frame(self, threshold: float = RARE_SHARE) -> Frame:
        """The cells with a chance below the threshold as a table, the oddest first; 1 lists all cells.

        Its columns: row (counted from 0), column, value, expected (the likeliest category, the median of a number), low and high
        (90 % of a number), probability (of the value as it was written), chance, why. In pandas if the table is.
        """
        import pandas as pd

        lines = self.lines(threshold)
        names = ["row", "column", "value", "expected", "low", "high", "probability", "chance", "why"]
        made = pd.DataFrame({name: pd.Series([line[name] for line in lines], dtype=DTYPES.get(name, object)) for name in names})
        backend = as_frame(self.table, self.encoder.names).implementation
        if backend.is_pandas() or not backend.is_polars():
            return made
        import polars as pl

        texts = ("column", "value", "expected", "low", "high", "why")  # values of many types do not share a column
        return pl.DataFrame(
            {name: [None if v is None else value_text(v) if name in texts else v for v in made[name].tolist()] for name in names}
        )

    def lines(self, threshold: float = RARE_SHARE, most: int | None = None) -> list[dict[str, Any]]:
        """The odd cells, each as a mapping, the oddest first."""
        odd = self.ranked(threshold)[:most]
        values = {place: self._values(place) for place in {place for _, place in odd}}
        expected = self._expected(odd)
        return [self._line(row, place, values[place][row], expected[row, place]) for row, place in odd]

    def ranked(self, threshold: float = RARE_SHARE) -> list[tuple[int, int]]:
        """(row, place of the column) of the odd cells: values never seen first, then by chance, then by nats."""
        rows, places = np.nonzero(self.chance <= 1 if threshold >= 1 else self.chance < threshold)
        order = np.lexsort((rows, -np.nan_to_num(self.cells[rows, places]), self.chance[rows, places]))
        return [(int(rows[k]), int(places[k])) for k in order]

    def _values(self, place: int) -> list[Any]:
        return as_frame(self.table, self.encoder.names)[self.columns[place]].to_list()

    def _expected(self, odd: list[tuple[int, int]]) -> dict[tuple[int, int], Expected]:
        found: dict[tuple[int, int], Expected] = {}
        for place in {place for _, place in odd}:
            rows = torch.tensor(sorted(row for row, other in odd if other == place))
            for some, distribution in self.distributions.distributions(place, rows):
                each = expected_of(self.encoder.columns[place], distribution)
                found |= {(row, place): one for row, one in zip(some.tolist(), each, strict=True)}
        return found

    def _line(self, row: int, place: int, value: Any, expected: Expected) -> dict[str, Any]:
        column, nats = self.encoder.columns[place], self.cells[row, place]
        return {
            "row": row,
            "column": column.name,
            "value": value,
            "expected": expected.value,
            "low": expected.low,
            "high": expected.high,
            "probability": 0.0 if np.isnan(nats) else float(np.exp(-nats)),
            "chance": float(self.chance[row, place]),
            "why": reason(column, float(self.distributions.x[row, place]), expected, bool(np.isnan(nats))),
        }

    @property
    def checked(self) -> int:
        """How many cells were looked at."""
        return int(np.isfinite(self.chance).sum())

    @property
    def question(self) -> str:
        """How many cells are odd, and how many would be without errors, in a line."""
        odd = int((self.chance < RARE_SHARE).sum())
        by_chance = f"{RARE_SHARE * self.checked:.2g}"
        return f"{odd} of {self.checked:,} cells have a chance below {RARE_SHARE:g}; without errors about {by_chance} would"

    def texts(self, most: int = CELLS_SHOWN) -> list[list[str]]:
        """Lines of a table as texts: row, column, value, expected, chance."""
        return [
            [str(line["row"]), line["column"], value_text(line["value"]), line["why"], chance_text(line["chance"])]
            for line in self.lines(most=most)
        ]

    def __repr__(self) -> str:
        found = self.texts()
        body = text_grid(
            ANOMALY_HEADINGS, [[shorten(text, room) for text, room in zip(row, COLUMN_WIDTHS, strict=True)] for row in found], 120
        )
        return "\n".join([self.question, *(body if found else [])])

    def _repr_html_(self) -> str:
        found = self.texts()
        rows: list[list[object]] = [
            [*text[:4], Markup(bar(strength(line["chance"]) / 8, width=90)), text[4]]
            for text, line in zip(found, self.lines(most=CELLS_SHOWN), strict=True)
        ]
        return tag(
            "div",
            tag("p", tag("b", self.question)),
            table([*ANOMALY_HEADINGS[:4], "", ANOMALY_HEADINGS[4]], rows) if rows else "",
        )

    def plot(self, ax: Any = None, most: int = CELLS_SHOWN) -> Any:
        """The oddest cells as bars, ten times as rare from line to line; the axes of matplotlib."""
        lines = self.lines(1.0, most)
        labels = [f"row {line['row']}: {line['column']} = {value_text(line['value'])}" for line in lines]
        ax = plot_bars([Bar(label, strength(line["chance"])) for label, line in zip(labels, lines, strict=True)], "", ax)
        ticks = [1, 2, 3, 4, 6, 8]
        ax.set_xticks(ticks, [f"1 in\n$10^{power}$" if power > 3 else f"1 in\n{10**power:,}" for power in ticks])
        ax.axvline(strength(RARE_SHARE), color="black", lw=1, ls=":")
        ax.set_xlabel("a value as unlikely, or more so")
        ax.set_title(literal(self.question.replace("; ", ";\n")), fontsize="medium", loc="left")
        return ax


ANOMALY_HEADINGS = ["row", "column", "value", "why", "as unlikely"]
COLUMN_WIDTHS = [8, 24, 24, 60, 26]
DTYPES = {"row": "int64", "probability": "float64", "chance": "float64"}


def strength(chance: float) -> float:
    """Tens of rareness, at most 8."""
    return float(-np.log10(max(chance, 1e-8)))


def reason(column: Column, x: float, expected: Expected, unseen: bool) -> str:
    """Why a cell is odd, in words."""
    if isinstance(column, CategoryColumn):
        usual = f"{shorten(value_text(expected.value), 24)} is likeliest ({percent(expected.likely).strip()})"
        return f"never seen in training; {usual}" if unseen else usual
    assert isinstance(column, NumberColumn)
    low, high = (column.place(plain_of(column, end)) for end in (expected.low, expected.high))
    where = "above" if x > high else "below" if x < low else "a rare value within"
    said = f"{where} {value_text(expected.low)} to {value_text(expected.high)} ({100 * INTERVAL_LEVEL:g} %)"
    seen = [column.place(end) for end in (column.knots[0], column.knots[-1])] if len(column.knots) > 1 else [x, x]
    return said if seen[0] <= x <= seen[1] else f"beyond all values seen; {said}"


def plain_of(column: NumberColumn, value: Any) -> float:
    from .columns import read_moment

    return read_moment(column.unit, value) if column.is_moment else float(value)


def find_anomalies(
    model: Model, encoder: TableEncoder, table: Frame, x: Values, present: Mask, row_nats: Callable[[Tensor], Tensor]
) -> Anomalies:
    """Every cell of a table looked at given the rest of its row; `row_nats` are told which training row every row is."""
    cells = CellChances(model, x, present, places_among_training(model, x, present))
    nats, chance = torch.full(x.shape, torch.nan).double(), torch.full(x.shape, torch.nan).double()
    for place in range(x.shape[1]):
        for some, distribution in cells.distributions(place, present[:, place].nonzero().squeeze(-1)):
            nats[some, place] = -distribution.log_prob(x[some, place]).double()
            chance[some, place] = chances(distribution, x[some, place])
    chance[torch.from_numpy(said_something(encoder, table)) & ~present] = 0.0
    names, shares = [column.name for column in encoder.columns], encoder.log_shares(table)
    rows = row_nats(cells.own).double().numpy() - shares.sum(-1)
    return Anomalies(rows, nats.numpy() - shares, names, chance.numpy(), table, encoder, cells)


def said_something(encoder: TableEncoder, table: Frame) -> NDArray[np.bool_]:
    """Cells of categories that are no gaps: if the model takes one of them for a gap, no training row had its value."""
    frame = as_frame(table, names=encoder.names)
    found = np.zeros((len(frame), len(encoder.columns)), dtype=bool)
    for place, column in enumerate(encoder.columns):
        if isinstance(column, CategoryColumn) and column.name in frame.columns:
            found[:, place] = ~encoder.gaps(column, frame[column.name])
    return found
