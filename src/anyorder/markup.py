"""Tables and bars in HTML: inline SVG, no scripts, everything escaped, readable on light and on dark ground."""

from collections.abc import Sequence
from html import escape
from typing import final

from .drawing import Bar, percent, shorten

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
