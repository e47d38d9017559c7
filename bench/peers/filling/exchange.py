"""What goes to a peer and what comes back, as two npz files: needs numpy only, so that it runs in every peer's environment."""

import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.float64]


class Task(NamedTuple):
    """Learn from `train` once, fill the gaps (NaN) of each of `tests`. Categories are codes 0, 1, ..."""

    train: Cells
    tests: NDArray[np.float64]  # (test, row, column): the same rows, with different gaps
    truth: Cells  # the rows before they got gaps: only to score densities with, never to fill
    levels: NDArray[np.int64]  # per column: how many codes a category has, 0 for a number
    draws: int
    seed: int

    @property
    def categories(self) -> list[int]:
        return [i for i, levels in enumerate(self.levels) if levels]

    @property
    def numbers(self) -> list[int]:
        return [i for i, levels in enumerate(self.levels) if not levels]


def peak_mb() -> float:
    """The peak resident memory of this process, from Linux's own count: `getrusage` would count the parent's memory too."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**10


class Fitted(NamedTuple):
    """A fitted peer: `impute(test)` gives completed copies of the test rows (draw, row, column), one if it is deterministic.

    `more(test)` is for those who know more than draws, each entry optional: `mean` (row, column), the best guess;
    `pit` (row, column), the randomised cdf of the truth given the known cells of its row; `nats` (row), -log p(hidden | known);
    `left` (one number), how many cells it left empty, filled from the training rows. `peak()` is the memory it took, in MB.
    """

    impute: Callable[[Cells], Cells]
    more: Callable[[Cells], dict[str, Cells]] = lambda test: {}
    peak: Callable[[], float] = peak_mb


class Answer(NamedTuple):
    """To one test."""

    draws: Cells
    fit_seconds: float
    impute_seconds: float
    peak_mb: float
    more: dict[str, Cells]


def save_task(task: Task, path: Path) -> None:
    np.savez(path, **task._asdict())


def load_task(path: Path) -> Task:
    with np.load(path) as file:
        arrays = {name: file[name] for name in ("train", "tests", "truth", "levels")}
        return Task(**arrays, draws=int(file["draws"]), seed=int(file["seed"]))


def save_answer(answer: Answer, path: Path) -> None:
    arrays: dict[str, Any] = {f"more_{name}": cells for name, cells in answer.more.items()}
    arrays["costs"] = np.array([answer.fit_seconds, answer.impute_seconds, answer.peak_mb])
    np.savez(path, draws=answer.draws, **arrays)


def load_answer(path: Path) -> Answer:
    with np.load(path) as file:
        more = {name.removeprefix("more_"): file[name] for name in file.files if name.startswith("more_")}
        fit_seconds, impute_seconds, peak = file["costs"].tolist()
        return Answer(file["draws"], fit_seconds, impute_seconds, peak, more)


def serve(fits: Mapping[str, Callable[[Task], Fitted]]) -> None:
    """The main of every peer's script: NAME IN.npz FOLDER; the answer to the first test is FOLDER/0.npz."""
    name, source, folder = sys.argv[1:]
    task = load_task(Path(source))
    start = time.perf_counter()
    fitted = fits[name](task)
    fit_seconds = time.perf_counter() - start
    for number, test in enumerate(task.tests):
        start = time.perf_counter()
        draws = fitted.impute(test.copy())
        impute_seconds = time.perf_counter() - start
        peak = fitted.peak()
        check(test, draws)
        save_answer(Answer(draws, fit_seconds, impute_seconds, peak, fitted.more(test)), Path(folder, f"{number}.npz"))


def check(test: Cells, draws: Cells) -> None:
    """No gap is left, and no known cell was changed."""
    known = np.isfinite(test)
    assert draws.ndim == 3, f"expected (draw, row, column), got the shape {draws.shape}"
    assert draws.shape[1:] == test.shape, f"expected rows and columns {test.shape}, got {draws.shape}"
    assert np.isfinite(draws).all(), f"{(~np.isfinite(draws)).sum()} cells were left empty"
    assert np.allclose(draws[:, known], test[known], rtol=1e-4, atol=1e-6), "known cells were changed"
