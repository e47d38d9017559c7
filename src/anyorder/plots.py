"""Pictures with matplotlib: bars of categories, densities of numbers, ranked bars, courses."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .drawing import Bar, shorten
from .errors import InputError

BLUE, GREY = "#3b7dbf", "#9a9a9a"
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
    ax.barh(places + up, lengths, height=thick, color=BLUE, xerr=errors, ecolor="#333333", capsize=3, label="given what is known")
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
    ax.stairs(densities(shown), as_places(ax, shown.edges), color=BLUE, fill=True, alpha=0.75, label="given what is known")
    low, high, at = as_places(ax, [*interval, middle])
    ax.axvspan(low, high, color=BLUE, alpha=0.12, lw=0, label="90 %")
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
    ax.plot(spent.mean(0), reached.mean(0), color=BLUE, lw=2, marker="o", ms=4, label=f"mean of {len(spent)} rows")
    ax.set_xlabel("spent")
    ax.set_ylabel(ylabel)
    plain_frame(ax)
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def literal(text: str) -> str:
    """With no mathematics in it: a dollar is a dollar."""
    return text.replace("$", r"\$")
