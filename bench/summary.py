"""A file of results as rows of text: means and spreads over seeds, paired differences to anyorder. For terminals and pages alike.

Knows nothing but the document, so that pages can be made without torch.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import mean, median, stdev
from typing import Any, TypeGuard, TypeVar

Document = dict[str, Any]
Record = dict[str, Any]
Score = float | int | str | None | tuple[float, float] | list[float]
OURS = "anyorder"
T = TypeVar("T")


def summary(document: Document, columns: Sequence[str] | None = None) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: the keys, the scores (those named, or all), differences to anyorder, and how many seeds."""
    keys, records = document["keys"], document["scores"]
    names = list(columns or unique(name for record in records for name in record if name not in (*keys, "seed")))
    compare = [name for name in document.get("compare", []) if name in names]
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record.get(key) for key in keys), []).append(record)
    places = {name: decimals(records, name) for name in names}
    counts = {key: len({record.get("seed") for record in group}) for key, group in groups.items()}
    seeded = any(count > 1 for count in counts.values())
    headings = [*keys, *names, *(f"{name}, - {OURS}" for name in compare), *(["seeds"] if seeded else [])]
    rows = []
    for key, group in groups.items():
        row = [text(part) for part in key] + [cell(group, name, places[name]) for name in names]
        ours = groups.get(tuple(OURS if name == "method" else part for name, part in zip(keys, key, strict=True)), [])
        row += ["" if group is ours else difference(group, ours, name, places[name]) for name in compare]
        rows.append([*row, str(counts[key])] if seeded else row)
    return headings, rows


def text(part: Any) -> str:
    return "" if part is None else str(part)


def cell(group: Sequence[Record], name: str, places: int | None) -> str:
    """The mean and the standard deviation over seeds; texts as they are; all that there is."""
    values = [record.get(name) for record in group]
    numbers = [value for value in values if isinstance(value, int | float)]
    out = [f"{written(value[0], places)} ± {written(value[1], places, value[0])}" for value in values if is_pair(value)]
    if numbers:
        spread = stdev(numbers) if len(numbers) > 1 else 0.0
        out.append(written(mean(numbers), places) + (f" ± {written(spread, places, mean(numbers))}" if spread else ""))
    return "; ".join([*out, *unique(value for value in values if isinstance(value, str))])


def difference(theirs: Sequence[Record], ours: Sequence[Record], name: str, places: int | None) -> str:
    """Theirs - ours on the same seeds, with its standard error."""
    own = {record.get("seed"): record.get(name) for record in ours}
    pairs = [(record.get(name), own.get(record.get("seed"))) for record in theirs]
    apart = [a - b for a, b in pairs if isinstance(a, int | float) and isinstance(b, int | float)]
    if not apart:
        return ""
    places = 3 if places is None else places
    error = f" ± {stdev(apart) / len(apart) ** 0.5:.{places}f}" if len(apart) > 1 else ""
    return f"{mean(apart):+.{places}f}{error}"


def is_pair(value: Score) -> TypeGuard[list[float] | tuple[float, float]]:
    return isinstance(value, list | tuple)


def written(value: float, places: int | None, like: float | None = None) -> str:
    """With so many digits behind the point; None is as many as suit the value, or the one it stands beside."""
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    return f"{value:,.{digits(like or value) if places is None else places}f}"


def decimals(records: Iterable[Record], name: str) -> int | None:
    """As many as were written down, if these are few; else four digits of a usual value, None if values are of many sizes."""
    numbers: list[float] = []
    for value in (record.get(name) for record in records):
        numbers += value if is_pair(value) else [value] if isinstance(value, int | float) else []
    noted = max((len(repr(number).partition(".")[2]) for number in numbers if isinstance(number, float)), default=0)
    sizes = sorted(abs(number) for number in numbers if number)
    if noted <= 4 or not sizes:
        return noted
    return digits(median(sizes)) if sizes[-1] < 1000 * sizes[0] else None


def digits(size: float) -> int:
    return 4 if abs(size) < 0.02 else min(3, max(0, 3 - math.floor(math.log10(abs(size)))))


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table; all but the first columns, which hold words, are set to the right."""
    rule = "|" + "|".join("---" if number < words else "---:" for number in range(len(headings))) + "|"
    return "\n".join(["| " + " | ".join(headings) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def unique(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
