"""Who says how likely rows are: `ask` gives a method's answer to all questions."""

import tempfile
from pathlib import Path
from typing import NamedTuple

from .. import run
from .exchange import Answer, Task, load_answer, save_task


class Method(NamedTuple):
    script: str
    environment: str = ""  # a key of PINS; empty: the interpreter that runs the benchmark
    only_numbers: bool = False


METHODS = {
    "anyorder": Method("ours"),
    "columns alone": Method("columns_alone"),
    "Gaussian mixture, full": Method("gaussian_mixture", only_numbers=True),
    "Gaussian mixture, diagonal": Method("diagonal_mixture", only_numbers=True),
    "spline flow (zuko)": Method("spline_flow", "zuko", only_numbers=True),
    "Lace": Method("lace", "lace"),
    "SPFlow": Method("sum_product", "spflow"),
    "UnmaskingTrees": Method("utrees", "utrees"),
}


def ask(name: str, task: Task, timeout: float, effort: float = 1.0) -> Answer | str:
    """A method's answer, or why there is none, from a process of its own."""
    method = METHODS[name]
    if method.only_numbers and task.levels.any():
        return "numbers only"
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder, "in.npz"), Path(folder, "out.npz")
        save_task(task, source)
        why = run(f"density.{method.script}", method.environment, [source, answer], timeout, {"ANYORDER_EFFORT": str(effort)})
        return load_answer(answer) if answer.exists() else why
