"""A progress bar for the terminal, with held-out nats and the time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .checkpoint import Check


@contextmanager
def progress_bar(title: str = "training", console: Console | None = None) -> Iterator[Callable[[Check], None]]:
    """A callback for `fit` that draws a bar on standard error.

    with progress_bar() as progress:
        fit(model, x, progress=progress)
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, state="starting")

        def update(check: Check) -> None:
            state = (
                f"{check.step}/{check.steps} steps, held-out {check.held_out_nats:.3f} nats a row (best {check.best_nats:.3f})"
            )
            bar.update(task, total=check.steps, completed=check.step, state=state)

        yield update
