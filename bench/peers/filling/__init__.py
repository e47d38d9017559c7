"""Who fills the gaps of a table: `ask` gives a peer's answer to every test."""

import tempfile
from pathlib import Path
from typing import NamedTuple

from .. import run
from .exchange import Answer, Task, load_answer, save_task


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


def ask(name: str, task: Task, timeout: float, effort: float = 1.0, checkout: Path | None = None) -> list[Answer | str]:
    """A peer's answer to each test, or why there is none, from a process of its own.

    `effort` and `checkout`, the root of the anyorder to run, are for the peers that are anyorder.
    """
    peer = PEERS[name]
    variables = {"ANYORDER_EFFORT": str(effort)} | ({"PYTHONPATH": str(checkout.resolve() / "src")} if checkout else {})
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.npz")
        save_task(task, source)
        why = run(f"filling.{peer.script}", peer.environment, [name, source, folder], timeout, variables)
        answers = [Path(folder, f"{number}.npz") for number in range(len(task.tests))]
        return [load_answer(path) if path.exists() else why for path in answers]
