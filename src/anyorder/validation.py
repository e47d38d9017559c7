"""What the verbs are told, checked before any work: whole numbers, shares, mappings, seeds."""

import difflib
import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .errors import InputError

RandomState = int | np.random.RandomState | None
MOST_SEED = 10**12 - 1  # training multiplies it by some millions, and torch takes 64 bits


def seed_of(random_state: Any) -> int:
    """As everywhere in scikit-learn: a number is the seed itself, a RandomState draws one, None is another one every time."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    if not is_whole(random_state) or abs(int(random_state)) > MOST_SEED:
        raise InputError(
            f"Got random_state={random_state!r}; expected a whole number of up to 12 digits, a numpy RandomState, "
            "or None for other random numbers every time."
        )
    return int(random_state)


def whole_number(name: str, value: Any, least: int) -> int:
    """The value, which must be a whole number and no less than the least."""
    if not is_whole(value) or value < least:
        raise InputError(f"Got {name}={value!r}; expected a whole number, {least} or more.")
    return int(value)


def up_to(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to the most that makes sense."""
    if not is_whole(value) or not 1 <= value <= most:
        raise InputError(f"Got {name}={value!r:.40}; expected a whole number from 1 to {most}.")
    return int(value)


def is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_positive(name: str, value: Any) -> None:
    if not is_number(value) or not 0 < value < math.inf:
        raise InputError(f"Got {name}={value!r}; expected a positive number, such as 1.0.")


def check_share(name: str, value: Any) -> None:
    """Strictly between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"Got {name}={value!r}; expected a number between 0 and 1, such as 0.9. Ask for one at a time.")


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def by_name(name: str, values: Any) -> dict[str, Any]:
    """What is said of columns; None says nothing."""
    if values is None:
        return {}
    if not hasattr(values, "items"):  # a row of pandas has them, too
        raise InputError(f"Got {name}={values!r}; expected a dict from names of columns, such as {{'age': ...}}.")
    return {str(name): value for name, value in values.items()}


def near(text: str, known: list[str]) -> str:
    """A question for names that look alike, whatever their case."""
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(text.casefold(), folded, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(repr(folded[name]) for name in close)}? " if close else ""


def some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
