"""Bars on standard error, with the time that is left; a line now and then where it is a file."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

EVERY = 10.0  # seconds between two lines in a file


@contextmanager
def bar(doing: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """It goes on whenever it is told (how many are done, of how many)."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lines_of(doing, console)
        return
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def lines_of(doing: str, console: Console) -> Callable[[int, int], None]:
    """A line every some seconds; what is quick says nothing."""
    last = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            console.print(f"{doing} {done}/{of}", soft_wrap=True, highlight=False)

    return tell


@contextmanager
def calls_shown(doing: str, model: nn.Module, calls: int) -> Iterator[None]:
    """It goes on with every call of the model."""
    made = count(1)
    with bar(doing, calls) as done:
        hook = model.register_forward_hook(lambda *_: done(next(made), calls))
        try:
            yield
        finally:
            hook.remove()
