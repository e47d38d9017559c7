"""Distributions as pictures of text: bars with a precision of an eighth of a character; values and numbers as a person
reads them.
"""

import datetime as dt
import re
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from ..errors import InputError

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


def text_grid(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int = 100) -> list[str]:
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


BLUE, FAINT = "#4a8ac9", "fill-opacity='.3'"
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1c1e; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e8; background: #17181a; } }
"""


@final
class Markup(str):
    """Text that is markup already; all other text is escaped."""


def safe(content: object) -> str:
    return content if isinstance(content, Markup) else escape("".join(c if c.isprintable() else " " for c in str(content)))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element; `class_` is its class.

    >>> tag("b", "1 < 2", title='"x"')
    '<b title="&quot;x&quot;">1 &lt; 2</b>'
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{''.join(map(safe, content))}</{name}>")


def table(headings: Sequence[object], rows: Sequence[Sequence[object]]) -> Markup:
    """A table; numbers stand to the right."""
    line = "border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent)"
    cell = f"padding: 3px 10px; vertical-align: middle; {line}"
    head = tag("tr", *(tag("th", one, style=f"{cell}; text-align: left; font-weight: 600") for one in headings))
    body = [tag("tr", *(tag("td", one, style=f"{cell}; text-align: {side_of(one)}") for one in row)) for row in rows]
    return tag("div", tag("table", head, *body, style="border-collapse: collapse; font-size: 90%"), style="overflow-x: auto")


def side_of(content: object) -> str:
    text = "" if isinstance(content, Markup) else str(content)
    return "right" if text[:1].isdigit() or (text[:1] in "-+<>" and text[1:2].isdigit()) else "left"


def bar(length: float, beside: float | None = None, width: int = 220) -> Markup:
    """A bar of a share of the width; a grey one below it to compare with."""
    rects = f"<rect width='{clipped(length) * width:.1f}' height='{14 if beside is None else 9}' rx='1' fill='{BLUE}'/>"
    if beside is not None:
        rects += f"<rect y='10' width='{clipped(beside) * width:.1f}' height='4' rx='1' fill='currentColor' {FAINT}/>"
    return Markup(f"<svg width='{width}' height='14' role='img'>{rects}</svg>")


def clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def bar_rows(bars: Sequence[Bar], beside: Sequence[float] | None = None) -> list[list[object]]:
    """Rows of label, bar and percent; the longest bar fills the width."""
    grey: Sequence[float | None] = [None] * len(bars) if beside is None else beside
    top = max([one.probability for one in bars] + [share for share in grey if share is not None], default=0.0) or 1.0
    return [
        [
            shorten(one.label, 60),
            bar(one.probability / top, None if share is None else share / top),
            percent(one.probability).strip(),
        ]
        for one, share in zip(bars, grey, strict=True)
    ]


def columns(heights: Sequence[float], width: int = 120, height: int = 22, level: float | None = None) -> Markup:
    """A small histogram of bars side by side, with a line at a `level` that they are to be compared with."""
    top = max([*heights, level or 0.0], default=0.0) or 1.0
    each = width / max(len(heights), 1)
    rects = "".join(
        f"<rect x='{place * each:.1f}' y='{height - one / top * height:.1f}' width='{max(each - 1, 1):.1f}' "
        f"height='{one / top * height:.1f}' fill='{BLUE}'/>"
        for place, one in enumerate(heights)
    )
    if level is not None:
        y = height - level / top * height
        rects += (
            f"<line x2='{width}' y1='{y:.1f}' y2='{y:.1f}' stroke='currentColor' stroke-opacity='.6' stroke-dasharray='3 2'/>"
        )
    return Markup(f"<svg width='{width}' height='{height}' role='img'>{rects}</svg>")


def page(title: str, *content: object) -> Markup:
    """A whole file that needs no other."""
    head = tag("head", Markup('<meta charset="utf-8">'), tag("title", title), tag("style", Markup(STYLE)))
    return Markup("<!DOCTYPE html>\n" + tag("html", head, tag("body", tag("h1", title), *content), lang="en") + "\n")


PLOT_BLUE, GREY = "#3b7dbf", "#9a9a9a"
Axes = Any  # of matplotlib


class Histogram(NamedTuple):
    """Neighbouring ranges of values, numbers or dates, and how likely each is."""

    edges: Sequence[Any]
    probabilities: list[float]


def axes_of(ax: Axes | None, height: float = 3.2) -> Axes:
    """The axes to draw on: those given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("Plots need matplotlib, which is not installed: pip install 'anyorder[plot]'.") from error
    return pyplot.subplots(figsize=(6.4, height), layout="constrained")[1]


def plain_frame(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def plot_bars(
    bars: Sequence[Bar],
    xlabel: str,
    ax: Axes | None,
    beside: Sequence[float] | None = None,
    errors: Sequence[float] | None = None,
) -> Axes:
    """Horizontal bars, the first on top; grey ones `beside` them to compare with, and error bars."""
    ax = axes_of(ax, 1.1 + 0.3 * max(len(bars), 2))
    places = np.arange(len(bars))
    if beside is not None:
        ax.barh(places + 0.25, beside, height=0.26, color=GREY, label="nothing known")
    thick, up = (0.5, -0.13) if beside is not None else (0.7, 0.0)
    lengths = [bar.probability for bar in bars]
    ax.barh(
        places + up, lengths, height=thick, color=PLOT_BLUE, xerr=errors, ecolor="#333333", capsize=3, label="given what is known"
    )
    ax.set_yticks(places, [shorten(literal(bar.label), 40) for bar in bars])
    ax.set_ylim(max(len(bars), 2) - 0.4, -0.6)  # the first on top
    ax.set_xlabel(xlabel)
    plain_frame(ax)
    if beside is not None:
        ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def plot_density(
    shown: Histogram, xlabel: str, interval: tuple[Any, Any], middle: Any, ax: Axes | None, beside: Histogram | None = None
) -> Axes:
    """The density of a number with its interval and its median; a grey one `beside` it to compare with."""
    ax = axes_of(ax)
    if beside is not None:
        ax.stairs(densities(beside), as_places(ax, beside.edges), color=GREY, fill=True, alpha=0.45, label="nothing known")
    ax.stairs(densities(shown), as_places(ax, shown.edges), color=PLOT_BLUE, fill=True, alpha=0.75, label="given what is known")
    low, high, at = as_places(ax, [*interval, middle])
    ax.axvspan(low, high, color=PLOT_BLUE, alpha=0.12, lw=0, label="90 %")
    ax.axvline(at, color="black", lw=1.2, label="median")
    ax.set_xlabel(literal(xlabel))
    ax.set_ylabel("density")
    ax.set_yticks([])
    ax.set_ylim(0, 1.3 * max(*densities(shown), *([] if beside is None else densities(beside))))
    plain_frame(ax)
    ax.legend(frameon=False, fontsize="small", loc="upper center", ncols=4, columnspacing=1.2, handlelength=1.2)
    return ax


def as_places(ax: Axes, values: Sequence[Any]) -> NDArray[Any]:
    """Numbers as they are; dates as matplotlib counts them, and the axis told so."""
    if not hasattr(values[0], "year"):
        return np.asarray(values, dtype=float)
    from matplotlib import dates

    ax.xaxis_date()
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))
    return np.asarray(dates.date2num(values))


def densities(shown: Histogram) -> NDArray[np.float64]:
    """The probability of every range by its width."""
    widths = np.diff([float(value.timestamp()) if hasattr(value, "timestamp") else ordinal(value) for value in shown.edges])
    return (
        np.asarray(shown.probabilities) / np.maximum(widths, 1e-300) * (86400.0 if hasattr(shown.edges[0], "timestamp") else 1.0)
    )


def ordinal(value: Any) -> float:
    return float(value.toordinal()) if hasattr(value, "toordinal") else float(value)


def plot_course(spent: NDArray[np.float64], reached: NDArray[np.float64], ylabel: str, ax: Axes | None) -> Axes:
    """What every row has reached for what it has spent, both (row, point); and the mean over rows."""
    ax = axes_of(ax)
    for cost, level in zip(spent[:60], reached[:60], strict=True):
        ax.step(cost, level, where="post", color=GREY, lw=0.8, alpha=0.5)
    ax.plot(spent.mean(0), reached.mean(0), color=PLOT_BLUE, lw=2, marker="o", ms=4, label=f"mean of {len(spent)} rows")
    ax.set_xlabel("spent")
    ax.set_ylabel(ylabel)
    plain_frame(ax)
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def literal(text: str) -> str:
    """With no mathematics in it: a dollar is a dollar."""
    return text.replace("$", r"\$")
