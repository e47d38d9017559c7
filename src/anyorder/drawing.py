"""Laws as pictures of text: bars with a precision of an eighth of a character; values and numbers as a person reads them."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"
# Controls but for the end of a line, separators of lines, marks that turn the direction of writing, halves of characters.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HEIGHTS = "▁▂▃▄▅▆▇█"


class Bar(NamedTuple):
    """One line of a picture."""

    label: str
    probability: float


def draw(bars: Sequence[Bar], width: int) -> list[str]:
    """Lines of label, percent and bar; the longest bar fills the width.

    >>> print("|\\n".join(draw([Bar("yes", 0.75), Bar("no", 0.25)], width=24)))
    yes   75.0 %  ██████████|
    no    25.0 %  ███▍
    """
    labels = [shorten(bar.label, max(8, width // 2)) for bar in bars]
    room = max(map(cell_len, labels))
    length = max(4, width - room - 11)
    top = max(bar.probability for bar in bars) or 1.0
    return [
        f"{set_cell_size(label, room)}  {percent(bar.probability)}  {block(bar.probability / top * length)}".rstrip()
        for label, bar in zip(labels, bars, strict=True)
    ]


def block(length: float) -> str:
    """A bar of so many characters."""
    eighths = round(length * 8)
    return (FULL * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def percent(probability: float) -> str:
    """Seven characters, honest about what is almost nothing and almost certain."""
    if 0 < probability < 0.0005:
        return " <0.1 %"
    if 0.9995 <= probability < 1:
        return ">99.9 %"
    return f"{100 * probability:5.1f} %"


def visible(text: str) -> str:
    """Text of files, columns and cells as a terminal may have it: what it would obey is written out, such as \\x1b.

    >>> visible("a\\x1b[31mb\\u202ec")
    'a\\\\x1b[31mb\\\\u202ec'
    """
    return "".join(mark if OBEYED.fullmatch(mark) is None else mark.encode("unicode_escape").decode() for mark in text)


def shorten(text: str, most: int) -> str:
    """On one line, with nothing a terminal would obey, and no wider than so many characters."""
    text = "".join(mark if mark.isprintable() else " " for mark in text) or '""'
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"


def sparkline(heights: Sequence[float]) -> str:
    """A histogram in one line; what is there at all can be seen.

    >>> sparkline([0.0, 0.1, 0.5, 0.3])
    ' ▂█▅'
    """
    top = max(heights, default=0.0) or 1.0
    return "".join(HEIGHTS[min(7, int(8 * height / top))] if height > 0.001 * top else " " for height in heights)


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int = 100) -> list[str]:
    """Cells below each other; where the width ends, the last one is cut."""
    rooms = [max(map(cell_len, cells)) for cells in zip(headings, *rows, strict=True)]
    rooms[-1] = max(8, min(rooms[-1], width - sum(rooms[:-1]) - 2 * len(rooms)))
    fitted = [
        [set_cell_size(shorten(cell, room), room) for cell, room in zip(row, rooms, strict=True)] for row in (headings, *rows)
    ]
    return ["  " + "  ".join(row).rstrip() for row in fitted]


def number_text(value: object) -> str:
    """A number without the noise of its floating point, and no zero below zero; anything else as it is."""
    return f"{value + 0.0:.10g}" if isinstance(value, float) else str(value)


def value_text(value: Any) -> str:
    """A value of any column: an instant to the minute, and at midnight only its day."""
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(" ", "minutes")
    return number_text(value.item() if hasattr(value, "item") else value)


def span_labels(lows: Sequence[str], highs: Sequence[str]) -> list[str]:
    """Ranges below each other, their ends to the right."""
    room = max(map(len, lows)), max(map(len, highs))
    return [f"{low:>{room[0]}} .. {high:>{room[1]}}" for low, high in zip(lows, highs, strict=True)]


def chance_text(chance: float) -> str:
    """How often something comes up.

    >>> chance_text(0.0004), chance_text(0.3), chance_text(0.0)
    ('1 in 2,500', '1 in 3', 'never')
    """
    if chance <= 0:
        return "never"
    return f"1 in {round(1 / chance):,}" if chance > 1e-6 else "less than 1 in a million"


def probability_text(probability: float) -> str:
    """A probability that may be very small."""
    return f"{100 * probability:.3g} %" if probability >= 1e-6 else f"{probability:.2e}"


def bytes_text(size: int) -> str:
    for power, unit in enumerate(("bytes", "kB", "MB")):
        if size < 1000 ** (power + 1):
            return f"{size / 1000**power:.3g} {unit}"
    return f"{size / 1000**3:.3g} GB"


def seconds_text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
