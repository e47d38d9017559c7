"""A progress bar for the terminal, with held-out nats and the time left; a line now and then where there is none."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .checkpoint import Check

SECONDS_BETWEEN_LINES = 10.0  # seconds between two lines in a file


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
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lines_of_training(title, console)
        return
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None, state="starting")

        def update(check: Check) -> None:
            bar.update(task, total=check.steps, completed=check.step, state=state_of(check))

        yield update


def state_of(check: Check) -> str:
    return f"{check.step}/{check.steps} steps, held-out {check.held_out_nats:.3f} nats a row (best {check.best_nats:.3f})"


def lines_of_training(title: str, console: Console) -> Callable[[Check], None]:
    """A line at first, at the end and every some seconds: a log can be followed, and is not flooded."""
    last = -math.inf

    def tell(check: Check) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES or check.step >= check.steps:
            last = time.monotonic()
            console.print(f"{title} {state_of(check)}", soft_wrap=True, highlight=False)

    return tell
