"""Other packages behind one call, each in an environment of its own, made when it is first needed.

Environments live in `$ANYORDER_PEERS` (default `~/.cache/anyorder-peers`). A peer is a script of this folder; it knows nothing of
anyorder but the files of `exchange`.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from .exchange import Answer, Task, load_answer, save_task

BENCH = Path(__file__).parents[1]
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
ONE_THREAD = dict.fromkeys((*COUNTS, "POLARS_MAX_THREADS", "LOKY_MAX_CPU_COUNT"), "1") | {"PYTHONWARNINGS": "ignore"}


class Peer(NamedTuple):
    script: str
    environment: str = ""  # a key of PINS; empty: the interpreter that runs the benchmark


PEERS = {
    "anyorder": Peer("ours"),
    "before": Peer("ours"),  # of another checkout
    "mean": Peer("sklearn_imputers"),
    "ridge": Peer("sklearn_imputers"),
    "extratrees": Peer("sklearn_imputers"),
    "knn": Peer("sklearn_imputers"),
    "utrees": Peer("utrees", "utrees"),
    "miceforest": Peer("miceforest", "miceforest"),
    "mice": Peer("mice"),
    "argn": Peer("argn", "argn"),
    "lace": Peer("lace", "lace"),
    "missforest": Peer("missforest", "missforest"),
    "missforest_plain": Peer("missforest", "missforest"),
    "hyperimpute": Peer("hyperimpute", "hyperimpute"),
    "vae": Peer("latent"),
    "miwae": Peer("latent"),
}

# One pip command per entry: what to install, or after the word "uninstall" what to take away again.
PINS: dict[str, list[str]] = {
    "utrees": ["utrees==0.3.0 scikit-learn==1.6.1"],
    "miceforest": ["miceforest==6.0.5 lightgbm<4.7 pandas<3"],
    "argn": ["torch==2.13.0", "mostlyai-engine==2.7.3", "uninstall torchvision torchaudio"],  # built for another torch
    "lace": ["pylace==0.10.1 pandas<3"],
    "missforest": ["MissForest==4.2.3 scikit-learn<1.8 pandas<3 tqdm lightgbm<4.7"],
    "hyperimpute": [
        "torch==2.13.0",
        "pandas<3 scikit-learn<1.8 catboost optuna loguru==0.6.0 xgboost lightgbm cloudpickle geomloss pydantic redis",
        "--no-deps hyperimpute==0.1.17",
    ],
}


def cache() -> Path:
    return Path(os.environ.get("ANYORDER_PEERS", Path.home() / ".cache" / "anyorder-peers")).expanduser()


def ask(name: str, task: Task, timeout: float, checkout: Path | None = None) -> list[Answer | str]:
    """A peer's answer to each test, or why there is none, from a process of its own with one thread.

    `checkout` is the root of the anyorder to run, for the peers that are anyorder.
    """
    peer = PEERS[name]
    sources = {"PYTHONPATH": str(checkout.resolve() / "src")} if checkout else {}
    python = interpreter(peer.environment)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.npz")
        save_task(task, source)
        command = [str(python), "-m", f"peers.{peer.script}", name, str(source), folder]
        environment = os.environ | ONE_THREAD | sources
        with subprocess.Popen(
            command,
            cwd=BENCH,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                why = last_words(process.communicate(timeout=timeout)[1]) or f"ended with code {process.returncode}"
            except subprocess.TimeoutExpired:
                why = f"timeout after {timeout:.0f} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with all that it started itself
        answers = [Path(folder, f"{number}.npz") for number in range(len(task.tests))]
        return [load_answer(path) if path.exists() else why for path in answers]


def last_words(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def interpreter(environment: str) -> Path:
    """The Python of an environment, installed first if its pins are not there yet."""
    if not environment:
        return Path(sys.executable)
    folder = cache() / "environments" / environment
    python, stamp, pins = folder / "bin" / "python", folder / "installed", PINS[environment]
    if not stamp.exists() or stamp.read_text().splitlines() != pins:
        print(f"setting up the environment of {environment} (once) ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        for pin in pins:
            words = pin.split()
            what = ["uninstall", "--yes", *words[1:]] if words[0] == "uninstall" else ["install", *words]
            subprocess.run([str(python), "-m", "pip", "--quiet", *what], check=True)
        stamp.write_text("\n".join(pins) + "\n")
    return python


def main() -> None:
    """Make the environments named on the command line, or all of them."""
    for environment in sys.argv[1:] or PINS:
        print(environment, interpreter(environment), flush=True)
