"""What would be done with a table, before anything is trained: the kind of every column, why, and how to overrule it."""

import html
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any, final

import numpy as np

from .columns import CategoryColumn
from .dataframes import Frame, Sentinels, as_frame
from .encoder import Finding, encode_column, look_at

PREVIEW_BARS, PREVIEW_HEIGHTS = 10, "▁▂▃▄▅▆▇█"
PREVIEW_HEADINGS = "column", "kind", "distinct", "gaps", "values", "why"
WIDEST = 28
PYTHON = "To overrule: AnyOrder(kinds={'column': 'category'}), or 'number' or 'leave out'; na={'column': 999} names gaps."
COMMAND_LINE = "To overrule: --kind COLUMN=category, or number or 'leave out'; --na COLUMN=999 names gaps."


@final
@dataclass(frozen=True)
class ColumnPreview:
    """One column: what it is taken for, and why; how many different values and gaps it has; a tiny histogram."""

    name: str
    kind: str
    why: str
    distinct: int
    gaps: int
    histogram: str


@final
@dataclass(frozen=True)
class Preview:
    """What every column of a table is taken for."""

    columns: tuple[ColumnPreview, ...]
    rows: int

    @classmethod
    def of(cls, table: Frame, kinds: Mapping[Any, str] | None = None, na: Any = None) -> "Preview":
        frame, sentinels = as_frame(table), Sentinels.of(na)
        found = look_at(table, kinds, na)
        return cls(tuple(preview(one, sentinels.without(frame[one.name])) for one in found), len(frame))

    def text(self, advice: str = PYTHON) -> str:
        """A table of plain text, a line for each column, and how to overrule."""
        cells = [PREVIEW_HEADINGS, *map(preview_cells, self.columns)]
        widths = [min(WIDEST, max(len(row[place]) for row in cells)) for place in range(len(PREVIEW_HEADINGS) - 1)]
        lines = [
            "  ".join([*(f"{fit_width(c, w):{w}}" for c, w in zip(row[:-1], widths, strict=True)), row[-1]]) for row in cells
        ]
        return "\n".join([*(line.rstrip() for line in lines), "", f"{self.rows} rows. {advice}"])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows = [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in preview_cells(one))}</tr>" for one in self.columns]
        head = "".join(f"<th>{heading}</th>" for heading in PREVIEW_HEADINGS)
        return f"<table><tr>{head}</tr>{''.join(rows)}</table><p>{self.rows} rows. {html.escape(PYTHON)}</p>"


def preview(found: Finding, series: Any) -> ColumnPreview:
    why = found.why
    if found.strays:
        shown = ", ".join(map(repr, list(found.strays)[:3])) + (", ..." if len(found.strays) > 3 else "")
        count = sum(found.strays.values())
        why += f"; {count} text{'s are gaps' if count > 1 else ' is a gap'}: {shown}"
    if note := found.note():
        why += f"; {str(note).split('. ')[0].partition(' is text and ')[2]}" if " is text and " in str(note) else ""
    return ColumnPreview(found.name, found.label, why, found.distinct, found.gaps, histogram(found, series))


def histogram(found: Finding, series: Any) -> str:
    """Bars of a number's range, or of the most frequent levels of a category; nothing for what is left out."""
    if found.column is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = encode_column(found.column, series)
    values = values[~np.isnan(values)]
    if isinstance(found.column, CategoryColumn):
        counts = np.sort(np.bincount(values.astype(int)))[::-1][:PREVIEW_BARS]
    else:
        counts, _ = np.histogram(values, bins=min(PREVIEW_BARS, max(found.distinct, 1)))
    return "".join(
        PREVIEW_HEIGHTS[round(count / counts.max() * (len(PREVIEW_HEIGHTS) - 1))] if count else " " for count in counts
    )


def preview_cells(one: ColumnPreview) -> tuple[str, ...]:
    return one.name, one.kind, str(one.distinct), str(one.gaps), one.histogram, one.why


def fit_width(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


class OnClassToo:
    """A method of an estimator that may be called on its class, which is then an estimator with the usual settings."""

    def __init__(self, method: Any) -> None:
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        return MethodType(self.method, owner() if instance is None else instance)
