"""What the library remarks while it works, heard by the request or the job that caused it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def heard() -> Iterator[list[str]]:
    """The remarks made inside, in this thread or in a thread that runs in its context."""
    found: list[str] = []
    token = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(token)


@contextmanager
def remarks_are_heard() -> Iterator[None]:
    """As long as the server runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = hear
        yield


def hear(message: Warning | str, *more: Any, **about: Any) -> None:
    found = _heard.get()
    if found is not None and str(message) not in found:
        found.append(str(message))
