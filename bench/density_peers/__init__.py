"""Density models behind one call, each a script of this folder that runs in an environment of its own.

Environments live beside those of `peers`; a script knows nothing of anyorder but the files of `exchange`.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from peers import BENCH, ONE_THREAD, PINS, interpreter, last_words

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

PINS.setdefault("zuko", ["torch==2.13.0 zuko==1.6.0 numpy"])
PINS.setdefault("spflow", ["torch==2.13.0 spflow==1.1.0"])


def ask(name: str, task: Task, timeout: float) -> Answer | str:
    """A method's answer, or why there is none, from a process of its own with one thread."""
    method = METHODS[name]
    if method.only_numbers and task.levels.any():
        return "numbers only"
    python = interpreter(method.environment)
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder, "in.npz"), Path(folder, "out.npz")
        save_task(task, source)
        command = [str(python), "-m", f"density_peers.{method.script}", str(source), str(answer)]
        try:
            done = subprocess.run(
                command, cwd=BENCH, env=os.environ | ONE_THREAD, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return f"timeout after {timeout:.0f} s"
        return load_answer(answer) if answer.exists() else last_words(done.stderr) or f"ended with code {done.returncode}"
