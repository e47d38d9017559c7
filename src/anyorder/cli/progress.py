"""Bars on standard error, with the time that is left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn


@contextmanager
def bar(doing: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """It goes on whenever it is told (how many are done, of how many)."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


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
