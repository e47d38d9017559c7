"""The values of a category as JSON and back: what is neither text nor number is written as text with the name of its type."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

MICROSECOND = dt.timedelta(microseconds=1)


class Written(NamedTuple):
    """How values of a type become text, and text becomes values."""

    type: type
    to_text: Callable[[Any], str]
    from_text: Callable[[str], Any]


def read_interval(text: str) -> Any:
    from pandas import Interval  # only where there are some

    low, high, closed = text.split(" ")
    return Interval(float(low), float(high), closed=closed)


# The first that fits counts: an instant is a day, too.
WRITTEN = {
    "instant": Written(dt.datetime, lambda v: str(v.isoformat()), dt.datetime.fromisoformat),
    "day": Written(dt.date, lambda v: str(v.isoformat()), dt.date.fromisoformat),
    "time": Written(dt.time, lambda v: str(v.isoformat()), dt.time.fromisoformat),
    "duration": Written(dt.timedelta, lambda v: str(v // MICROSECOND), lambda text: int(text) * MICROSECOND),
    "decimal": Written(Decimal, str, Decimal),
    "bytes": Written(bytes, lambda v: str(v.hex()), bytes.fromhex),
}


def level_to_json(level: Any) -> Any:
    """The level, or {type: text}; TypeError if no file can keep it."""
    if isinstance(level, (str, bool, int, float)):
        return level
    for name, written in WRITTEN.items():
        if isinstance(level, written.type):
            return {name: written.to_text(level)}
    if type(level).__name__ == "Interval" and isinstance(level.left, (int, float)):
        return {"interval": f"{float(level.left)!r} {float(level.right)!r} {level.closed}"}
    raise TypeError(f"{type(level).__name__} cannot be kept in a file")


def level_from_json(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    ((name, text),) = item.items()
    return read_interval(text) if name == "interval" else WRITTEN[name].from_text(text)
