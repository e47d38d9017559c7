"""What verbs of text answer with: restored texts with alternatives, and characters that do not fit."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..displays import percent, safe, shorten, table, tag, text_grid, visible

GAPS_SHOWN, ALTERNATIVES_SHOWN, AROUND = 12, 5, 12


class Alternative(NamedTuple):
    """What a gap may have held."""

    text: str
    probability: float


@final
@dataclass(frozen=True)
class Gap:
    """Neighbouring characters that were missing, from `start` on: what they may have been, the likeliest first."""

    start: int
    length: int
    alternatives: tuple[Alternative, ...]


@final
@dataclass(frozen=True)
class Restored:
    """A text with its gaps filled.

    `text` is the likeliest filling of all gaps together, which has the `probability`; `gaps` lists alternatives for each gap,
    whatever stands in the others; `draws` are fillings drawn together. `characters` holds, for every missing place, the
    distribution of its character alone.
    """

    damaged: str
    text: str
    probability: float
    gaps: tuple[Gap, ...]
    draws: tuple[str, ...]
    characters: dict[int, tuple[Alternative, ...]]

    def rows(self) -> list[list[str]]:
        """Lines of a table: where, what is around it, alternatives."""
        return [
            [
                str(gap.start + 1),
                around(self.damaged, gap.start, gap.length),
                ", ".join(f"{one.text!r} {percent(one.probability).strip()}" for one in gap.alternatives[:ALTERNATIVES_SHOWN]),
            ]
            for gap in self.gaps[:GAPS_SHOWN]
        ]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        more = len(self.gaps) - GAPS_SHOWN
        lines = [visible(self.text), f"  p = {self.probability:.3g} of all fillings"]
        lines += text_grid(["at", "gap", "alternatives"], self.rows(), 110) if self.gaps else []
        lines += [f"  and {more} more gaps"] if more > 0 else []
        return "\n".join([*lines, *(f"  drawn: {visible(draw)}" for draw in self.draws)])

    def _repr_html_(self) -> str:
        parts, place = [], 0
        for gap in self.gaps:
            filled = self.text[gap.start : gap.start + gap.length]
            parts += [safe(self.text[place : gap.start]), tag("mark", filled, title=f"p = {gap.alternatives[0].probability:.2g}")]
            place = gap.start + gap.length
        parts.append(safe(self.text[place:]))
        return tag(
            "div",
            tag("p", *parts, style="font-family: monospace; white-space: pre-wrap"),
            tag("p", f"p = {self.probability:.3g} of all fillings"),
            table(["at", "gap", "alternatives"], self.rows()) if self.gaps else "",
            *(tag("p", f"drawn: {draw}", style="font-family: monospace") for draw in self.draws),
        )


class OddCharacter(NamedTuple):
    """A character that does not fit; `text` counts from 0, and so does `place`."""

    text: int
    place: int
    found: str
    nats: float
    expected: str
    probability: float


@final
@dataclass(frozen=True)
class TextAnomalies:
    """How surprising every character is given all others of its text.

    `nats[i]` holds minus log p of every character of text i; `expected[i]` the likeliest character at every place, and
    `likely[i]` how likely it is.
    """

    texts: list[str]
    nats: list[NDArray[np.float64]]
    expected: list[str]
    likely: list[NDArray[np.float64]]

    def lines(self, most: int = GAPS_SHOWN) -> list[OddCharacter]:
        """The characters that fit worst, the oddest first; only where another one is expected."""
        found = [
            OddCharacter(i, int(j), text[j], float(self.nats[i][j]), self.expected[i][j], float(self.likely[i][j]))
            for i, text in enumerate(self.texts)
            for j in np.argsort(-self.nats[i], kind="stable")[: most + len(text)]
            if text[j] != self.expected[i][j]
        ]
        return sorted(found, key=lambda one: -one.nats)[:most]

    def rows(self, most: int = GAPS_SHOWN) -> list[list[str]]:
        """Lines of a table as texts."""
        return [
            [
                str(one.text + 1),
                str(one.place + 1),
                around(self.texts[one.text], one.place, 1),
                repr(one.found),
                f"{one.nats:.1f}",
                f"{one.expected!r} {percent(one.probability).strip()}",
            ]
            for one in self.lines(most)
        ]

    def __repr__(self) -> str:
        return "\n".join(text_grid(ODD_HEADINGS, self.rows(), 110))

    def _repr_html_(self) -> str:
        return tag("div", table(ODD_HEADINGS, self.rows()))


ODD_HEADINGS = ["text", "at", "where", "found", "nats", "expected"]


def around(text: str, start: int, length: int) -> str:
    """A piece of a text with what stands beside it."""
    before, behind = text[max(0, start - AROUND) : start], text[start + length : start + length + AROUND]
    return shorten(f"{before}[{text[start : start + length]}]{behind}", 60)


def by_frequency(found: list[str], most: int) -> tuple[Alternative, ...]:
    """What was drawn most often, as shares."""
    return tuple(Alternative(text, count / len(found)) for text, count in Counter(found).most_common(most))


def runs(missing: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Start and length of neighbouring places."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]])))
    return [(int(start), int(stop - start)) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
