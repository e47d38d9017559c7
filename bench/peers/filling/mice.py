"""R's mice: chained equations with its defaults: predictive mean matching, logistic and multinomial regression, five rounds.

Needs Rscript and mice (Debian: r-base-core, r-cran-mice, r-cran-nnet). mice keeps no models, so every test starts anew with the
training rows above it; test rows are filled but nothing is learned from them (`ignore`).
"""

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from .exchange import Cells, Fitted, Task, peak_mb, serve

SCRIPT = Path(__file__).with_suffix(".R")
ROUNDS = 5


class Mice:
    def __init__(self, task: Task) -> None:
        if shutil.which("Rscript") is None:
            raise SystemExit("Rscript is missing: apt-get install r-base-core r-cran-mice r-cran-nnet")
        self.task = task
        self.left = 0  # cells that the last call left empty

    def impute(self, test: Cells) -> Cells:
        drawn = self.run(test)
        rng = np.random.default_rng(self.task.seed)
        self.left = int(np.isnan(drawn).sum())
        for i, column in enumerate(self.task.train.T):  # a cell that mice has no model for: the value of a random row
            empty = np.isnan(drawn[:, :, i])
            drawn[:, :, i][empty] = rng.choice(column[np.isfinite(column)], empty.sum())
        return drawn

    def run(self, test: Cells) -> Cells:
        """Completed test rows (draw, row, column), with NaN where mice left a gap."""
        counts = [len(self.task.train), self.task.draws, ROUNDS, self.task.seed]
        with tempfile.TemporaryDirectory() as folder:
            source, filled = Path(folder, "in.csv"), Path(folder, "out.csv")
            write(np.concatenate([self.task.train, test]), self.task, source)
            done = subprocess.run(
                ["Rscript", str(SCRIPT), str(source), str(filled), *map(str, counts)], capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(" ".join(done.stderr.split()))
            return np.loadtxt(filled, delimiter=",", skiprows=1).reshape(self.task.draws, *test.shape)

    def more(self, test: Cells) -> dict[str, Cells]:
        return {"left": np.array([self.left], dtype=np.float64)}


def write(rows: Cells, task: Task, path: Path) -> None:
    """Numbers as x0, x1, ..., codes as c0, c1, ..., gaps as NA."""
    names = [f"{'c' if levels else 'x'}{i}" for i, levels in enumerate(task.levels)]
    lines = [",".join("NA" if np.isnan(cell) else f"{cell:.17g}" for cell in row) for row in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


def peak() -> float:
    """R's memory, or that of this process if it is larger."""
    return max(peak_mb(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10)


def fit(task: Task) -> Fitted:
    mice = Mice(task)
    return Fitted(mice.impute, mice.more, peak)


if __name__ == "__main__":
    serve({"mice": fit})
