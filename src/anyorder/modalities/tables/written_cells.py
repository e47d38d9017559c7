"""Numbers and dates that stand in a table as text: how they are written, what they mean, and cells that are none."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Series = nw.Series[Any]
MOST_STRAYS = 0.1  # of the cells may be no numbers in a column of numbers
DASHES = "-\u2013\u2014"
WORDS_FOR_GAPS = [
    "na",
    "n.a.",
    "n.a",
    "n/a",
    "#n/a",
    "<na>",
    "nan",
    "none",
    "null",
    "nil",
    "nd",
    "n.d.",
    "k.a.",
    "missing",
    "unknown",
]
GAP_WORDS = frozenset(["", "?", "??", ".", "..", "--", "---", *DASHES, *WORDS_FOR_GAPS, "not available", "no data"])
CURRENCIES = "$€£¥₹"
UNIT_PATTERN = re.compile(rf"^([{CURRENCIES}]\s*)?([^{CURRENCIES}%]*?)(\s*[{CURRENCIES}%])?$")
CODE = re.compile(r"[+-]?0\d+")  # 01008 is a postcode, no number
TIME = r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?"
ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})" + TIME + r"(Z|[+-]\d{2}:?\d{2})?")
DATES = {
    "Y-M-D": (ISO, (0, 1, 2)),
    "D.M.Y": (re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})" + TIME), (2, 1, 0)),
    "D/M/Y": (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})" + TIME), (2, 1, 0)),
    "M/D/Y": (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})" + TIME), (2, 0, 1)),
}


class Form(NamedTuple):
    """How the numbers of a column are written, or its dates; plain numbers, if nothing is said."""

    decimal: str = "."
    thousands: str = ""
    unit: str = "#"  # "$#" or "# %": the number stands in the place of #
    date: str = ""  # the order of year, month and day
    time: str = ""  # what is between day and time, if there are times
    zone: str = ""

    @property
    def says(self) -> str:
        return "dates" if self.date else "numbers"


class Read(NamedTuple):
    """What a column of text means."""

    series: Series  # numbers or instants; nothing where the text is neither
    strays: Counter[str]  # texts that are neither, and how often; those that say "no value" come first
    blank: NDArray[np.bool_]  # cells that say "no value"
    odd: dict[str, float]  # texts with another decimal mark than the rest, and what they are read as


def is_text(series: Series) -> bool:
    """Text, or objects that may be text."""
    return series.dtype in (nw.String, nw.Object)


def is_blank(cell: Any) -> bool:
    """Whether a text says "no value": n.a., ?, -, none, missing and the like."""
    return isinstance(cell, str) and cell.strip().casefold() in GAP_WORDS


def find_form(series: Series, least: float = 1 - MOST_STRAYS, decimal: str = "") -> Form | None:
    """How the numbers or dates in a column of text are written, if that is what (almost) all of its cells are.

    Texts that start with a 0 and go on with digits are codes: a column of them is no column of numbers.
    """
    try:
        cells = Counter(cell for cell in series.drop_nulls().to_list() if cell == cell and not is_blank(cell))
    except (TypeError, ValueError):  # lists
        return None
    total = sum(cells.values())
    if not total or any(not isinstance(cell, (str, Real)) or isinstance(cell, bool | np.bool_) for cell in cells):
        return None
    texts = {cell: count for cell, count in cells.items() if isinstance(cell, str)}
    if any(CODE.fullmatch(text.strip()) for text in texts):
        return None
    found = [(sum(n for cell, n in cells.items() if strictly(cell, form) is not None), form) for form in forms_of(texts, decimal)]
    if not decimal and found[0][0] >= least * total:  # plain numbers
        return found[0][1]
    count, form = max(found, key=lambda one: one[0])  # the first of equals
    if count < max(least * total, 1) or slashes_are_ambiguous(count, found):
        return None
    return with_times(form, texts) if form.date else form


def forms_of(texts: dict[str, int], decimal: str = "") -> list[Form]:
    """All ways in which they might be written, the plainest first; or those with a decimal mark that is known."""
    units = Counter[str]()
    for text, count in texts.items():
        units[unit_of(text)] += count
    unit = units.most_common(1)[0][0] if units else "#"
    numbers = [Form(unit=unit), Form(".", ",", unit), Form(".", " ", unit), Form(".", "'", unit)]
    numbers += [Form(",", "", unit), Form(",", ".", unit), Form(",", " ", unit), Form(",", "'", unit)]
    return [form for form in numbers if decimal in ("", form.decimal)] + [Form(date=order) for order in DATES]


def slashes_are_ambiguous(count: int, found: list[tuple[int, Form]]) -> bool:
    """1/2/2020 may be in January or in February."""
    return sum(number == count and "/" in form.date for number, form in found) == 2


def with_times(form: Form, texts: dict[str, int]) -> Form:
    whole = [match for text in texts if (match := DATES[form.date][0].fullmatch(text.strip()))]
    timed = next((match for match in whole if match[4]), None)
    zone = "Z" if any(len(match.groups()) > 7 and match[8] for match in whole) else ""
    return form._replace(time=timed[0][timed.end(3)] if timed else "", zone=zone)


def unit_of(text: str) -> str:
    """Where the number stands beside a sign of money or per cent."""
    found = UNIT_PATTERN.fullmatch(text.strip())
    return f"{found[1] or ''}#{found[3] or ''}" if found else "#"


def strictly(cell: Any, form: Form) -> float | dt.datetime | None:
    """The number or instant that a cell is, if it is written in this form."""
    if not isinstance(cell, str):
        return None if form.date or not np.isfinite(float(cell)) else float(cell)
    text = cell.strip().replace("\u2212", "-").replace("\u00a0", " ").replace("\u202f", " ")
    if form.date:
        return moment_in(text, form.date)
    if form.unit != "#":
        found, sign = UNIT_PATTERN.fullmatch(text), form.unit.replace("#", "").strip()
        if not found or ((found[1] or found[3] or "").strip() != sign and ("%" in sign or found[1] or found[3])):
            return None
        text = found[2].strip()
    grouped = rf"[1-9]\d{{0,2}}(?:{re.escape(form.thousands)}\d{{3}})+|" if form.thousands else ""
    found = re.fullmatch(rf"([+-]?(?:{grouped}\d+))?(?:{re.escape(form.decimal)}(\d*))?([eE][+-]?\d+)?", text)
    if not found or not (found[1] or found[2]):
        return None
    whole = (found[1] or "0").replace(form.thousands, "") if form.thousands else found[1] or "0"
    number = float(f"{whole}.{found[2] or 0}{found[3] or ''}")
    return number if np.isfinite(number) else None


def moment_in(text: str, order: str) -> dt.datetime | None:
    pattern, places = DATES[order]
    found = pattern.fullmatch(text)
    if not found:
        return None
    year, month, day = (int(found[place + 1]) for place in places)
    hour, minute, second = (int(found[place] or 0) for place in (4, 5, 6))
    zone = found[8] if order == "Y-M-D" else None
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, int((found[7] or "0").ljust(6, "0")))
        if zone:
            moment = moment.replace(tzinfo=dt.datetime.strptime(zone.replace("Z", "+0000"), "%z").tzinfo)
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return moment


def meant(cell: Any, form: Form) -> float | dt.datetime | None:
    """The same, and of numbers with the other decimal mark, where that cannot be the mark of thousands: 18,7 among 18.3."""
    if (found := strictly(cell, form)) is not None or not isinstance(cell, str) or form.date:
        return found
    mark = "," if form.decimal == "." else "."
    clear = form.thousands != mark and re.search(rf"\d{re.escape(mark)}(?!\d{{3}}\b)\d+\b", cell) and cell.count(mark) == 1
    return strictly(cell, form._replace(decimal=mark, thousands="")) if clear else None


def read_cells(series: Series, form: Form) -> Read:
    """The numbers or instants in a column of text or of objects."""
    cells, empty = series.to_list(), series.is_null().to_numpy()
    known: dict[Any, Any] = {}
    strays = Counter[str]()
    blank, values = np.zeros(len(cells), dtype=bool), list[Any]()
    for place, cell in enumerate(cells):
        if empty[place] or cell != cell:
            values.append(None)
            continue
        if cell not in known:
            known[cell] = None if is_blank(cell) or not isinstance(cell, (str, Real)) else meant(cell, form)
        values.append(known[cell])
        if known[cell] is None:
            strays[str(cell)] += 1
            blank[place] = is_blank(cell)
    kind = nw.Datetime("ms") if form.date else nw.Float64()
    odd = {c: float(v) for c, v in known.items() if isinstance(v, float) and isinstance(c, str) and strictly(c, form) is None}
    return Read(nw.new_series(series.name, values, kind, backend=series.implementation), strays, blank, odd)


def writer(series: Series, form: Form, decimals: int) -> Callable[[Any], Any]:
    """How a value is written in a column of text; in a column of objects that are mostly numbers, as itself."""
    cells = series.drop_nulls().to_list()
    if cells and 2 * sum(isinstance(cell, str) for cell in cells) < len(cells):
        return lambda value: value
    if form.date:
        return lambda value: write_moment(value, form)
    return lambda value: write_number(float(value), form, decimals)


def write_number(value: float, form: Form, decimals: int) -> str:
    text = f"{value:,.{decimals}f}" if decimals <= 15 else repr(value)
    marks = {",": form.thousands, ".": form.decimal}
    return form.unit.replace("#", "".join(marks.get(mark, mark) for mark in text))


def write_moment(value: Any, form: Form) -> str:
    """With minutes, and seconds if there are any."""
    parts = {"Y": f"{value.year:04}", "M": f"{value.month:02}", "D": f"{value.day:02}"}
    day = "".join(parts.get(mark, mark) for mark in form.date)
    if not form.time:
        return day
    return f"{day}{form.time}{value.time().isoformat('auto' if value.second or value.microsecond else 'minutes')}{form.zone}"
