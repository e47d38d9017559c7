"""Other packages behind one call, each in an environment of its own, made when it is first needed.

Three tasks, a folder each: `filling` gaps, `density` of rows, `drawing` rows. A peer is a script of such a folder; it knows
nothing of anyorder but the files of its `exchange`. Environments live in `$ANYORDER_PEERS` (default `~/.cache/anyorder-peers`).
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BENCH = Path(__file__).parents[1]
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
ONE_THREAD = dict.fromkeys((*COUNTS, "POLARS_MAX_THREADS", "LOKY_MAX_CPU_COUNT"), "1") | {"PYTHONWARNINGS": "ignore"}

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
    "zuko": ["torch==2.13.0 zuko==1.6.0 numpy"],
    "spflow": ["torch==2.13.0 spflow==1.1.0"],
}


def cache() -> Path:
    return Path(os.environ.get("ANYORDER_PEERS", Path.home() / ".cache" / "anyorder-peers")).expanduser()


def run(
    module: str, environment: str, words: Sequence[str | Path], timeout: float, variables: Mapping[str, str] | None = None
) -> str:
    """Run a script of this folder (`filling.utrees`) in its environment, with one thread; why it failed, if it did.

    Every process that it started ends with it.
    """
    try:
        python = interpreter(environment)
    except subprocess.CalledProcessError as error:
        return f"its environment could not be made (code {error.returncode})"
    with subprocess.Popen(
        [str(python), "-m", f"peers.{module}", *map(str, words)],
        cwd=BENCH,
        env=os.environ | ONE_THREAD | dict(variables or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            return last_words(process.communicate(timeout=timeout)[1]) or f"ended with code {process.returncode}"
        except subprocess.TimeoutExpired:
            return f"timeout after {timeout:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


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
