"""Laws as pictures of text: bars with a precision of an eighth of a character."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"


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


def shorten(text: str, most: int) -> str:
    """On one line, with nothing a terminal would obey, and no wider than so many characters."""
    text = "".join(mark if mark.isprintable() else " " for mark in text) or '""'
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"


def number_text(value: object) -> str:
    """A number without the noise of its floating point; anything else as it is."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


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
