"""The rule that tells categories, numbers and identifiers apart, with its reasons in words."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CATEGORY, NUMBER, LOG, LINEAR, LEAVE_OUT = "category", "number", "log", "linear", "leave out"
COLUMN_KIND_NAMES = (CATEGORY, NUMBER, LOG, LINEAR, LEAVE_OUT)  # log and linear: numbers whose scale is chosen, too
MOST_CODES, LARGEST_CODE, ROWS_PER_CODE = 5, 10.0, 4  # of numbers that are taken for categories
MOST_LEVELS_OF_CATEGORY = 5000  # different values of a category
FEW_LEVELS = 20  # so few are a category, however seldom they repeat
FEWEST_COUNTED = 20  # rows, below which numbers that count up may be so by chance
FEWEST_NAMED = 8
YEARS = 1700, 2100
IDENTIFIERS = frozenset(
    ["id", "ids", "uuid", "guid", "phone", "telephone", "mobile", "fax", "ssn", "iban", "isbn", "ean", "barcode", "unnamed"]
)
POSTCODES = frozenset(["zip", "zipcode", "postcode", "postalcode", "plz"])


class Kind(NamedTuple):
    """What a column is taken for, and why: "is ..." or "has ..."."""

    kind: str
    why: str


def kind_of_numbers(name: str, values: NDArray[np.float64], integers: bool) -> Kind:
    """Of numbers without gaps, in the order of the rows; `integers` says whether their type holds nothing else."""
    different = np.unique(values)
    if (values == np.round(values)).all() and (found := identifier(name, values, different, integers)):
        return found
    if are_codes(different, len(values)):
        shown = ", ".join(f"{value:.6g}" for value in different)
        return Kind(CATEGORY, f"has only the values {shown}")
    return Kind(NUMBER, f"has {len(different)} different numbers")


def are_codes(different: NDArray[np.float64], rows: int) -> bool:
    """Two values of any size, or up to five small wholes or halves, each in four rows or more on average."""
    if rows < ROWS_PER_CODE * len(different):
        return False
    small = bool((np.abs(different) <= LARGEST_CODE).all() and (2 * different == np.round(2 * different)).all())
    return len(different) == 2 or (len(different) <= MOST_CODES and small)


def identifier(name: str, values: NDArray[np.float64], different: NDArray[np.float64], integers: bool) -> Kind | None:
    """Whole numbers that name a row: by what the column is called, or because they count up.

    A name alone is not enough where values repeat: then they are codes, if each is there twice on average. What is
    unique and not called so must fill at least half of its range, as measured numbers never do. Years are numbers.
    """
    rows, words = len(values), words_of(name)
    named = bool(words & IDENTIFIERS) or name.casefold() == "index"
    if len(different) < rows:
        return codes_of(rows, len(different)) if named or words & POSTCODES else None
    if (named or words & POSTCODES) and rows >= FEWEST_NAMED:
        return Kind(LEAVE_OUT, f"has a different whole number in each of {rows} rows and is called like an identifier")
    low, high = different[0], different[-1]
    years = low >= YEARS[0] and high <= YEARS[1]
    if not integers or years or rows < FEWEST_COUNTED or high - low >= 2 * rows:
        return None
    how = "counts up by row" if (np.diff(values) > 0).all() else "has a different whole number in every row"
    return Kind(LEAVE_OUT, f"{how}, {low:.0f} to {high:.0f}: an identifier")


def codes_of(rows: int, different: int) -> Kind:
    """Numbers of an identifier or a postcode that repeat."""
    if different <= MOST_LEVELS_OF_CATEGORY and rows >= 2 * different:
        return Kind(CATEGORY, f"is called like an identifier and has {different} different values in {rows} rows")
    return Kind(LEAVE_OUT, f"has {different} different values in {rows} rows and is called like an identifier")


def kind_of_text(different: int, rows: int) -> Kind:
    """Of anything but numbers and moments: a category, unless almost each row has its own value."""
    said = f"has {different} different values in {rows} rows"
    if different <= FEW_LEVELS or (different <= MOST_LEVELS_OF_CATEGORY and rows >= 2 * different):
        return Kind(CATEGORY, said)
    return Kind(LEAVE_OUT, f"{said}: an identifier or free text")


def words_of(name: str) -> set[str]:
    """The words in the name of a column: customer_id, CustomerID and "customer id" have the word id.

    >>> sorted(words_of("PassengerId")), sorted(words_of("zip_code")), sorted(words_of("HTTPStatus")), sorted(words_of("paid"))
    (['id', 'passenger'], ['code', 'zip'], ['http', 'status'], ['paid'])
    """
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
