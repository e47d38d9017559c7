"""Training on several processes: the mean gradient is that of one large batch, all ranks end alike, and the dead are told of."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anyorder.training.distributed import ALONE, World, joined

SCRIPT = Path(__file__).parent / "one_rank.py"


def start(folder, rank, port, *more, size=2):
    environment = {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "ANYORDER_SECONDS_OF_SILENCE": "60",
    }
    with open(folder / f"rank{rank}.txt", "w") as output:  # the process has a handle of its own
        return subprocess.Popen([sys.executable, SCRIPT, folder, *more], env=environment, stdout=output, stderr=subprocess.STDOUT)


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ended(processes):
    try:
        return [process.wait(240) for process in processes]
    finally:
        for process in processes:
            process.kill()


def told(folder, rank):
    return (folder / f"rank{rank}.txt").read_text()


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined(Path("x")) as world:
        assert world == ALONE == World(0, 1, None)
        assert world.is_writer


@pytest.mark.slow
def test_two_ranks_train_one_model(tmp_path):
    """Gradients are those of the two batches together, the weights stay the same, and the score is that of all held-out rows."""
    assert ended([start(tmp_path, rank, port) for port in [free_port()] for rank in (0, 1)]) == [0, 0], told(tmp_path, 0)
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert first["gradient_error"] < 1e-6
    assert first["weights"] == second["weights"]
    assert [check[3] for check in first["history"]] == [check[3] for check in second["history"]]
    assert first["score_error"] < 1e-6
    assert not first["same_batches"]


@pytest.mark.slow
@pytest.mark.parametrize("victims", [(1,), (0, 1)])
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path, victims):
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    assert ended([start(tmp_path / "whole", rank, port, "long") for port in [free_port()] for rank in (0, 1)]) == [0, 0]
    port = free_port()
    processes = [start(tmp_path / "cut", rank, port, "long", "slow") for rank in (0, 1)]
    run, until = tmp_path / "cut" / "model.run", time.monotonic() + 200
    while not run.exists() and time.monotonic() < until:
        time.sleep(0.05)
    for victim in victims:
        os.kill(processes[victim].pid, signal.SIGKILL)
    codes = ended(processes)
    assert 0 not in codes
    if victims == (1,):
        lines = [line for line in told(tmp_path / "cut", 0).splitlines() if line.startswith("TrainingError")]
        assert len(lines) == 1
        assert "Rank 0 of 2 lost another process" in lines[0]
        assert "model.run" in lines[0]
    assert ended([start(tmp_path / "cut", rank, port, "long") for port in [free_port()] for rank in (0, 1)]) == [0, 0]
    whole, cut = (json.loads((tmp_path / name / "rank0.json").read_text()) for name in ("whole", "cut"))
    assert cut["weights"] == whole["weights"]
    assert cut["started_at"] > 0 == whole["started_at"]


@pytest.mark.slow
def test_the_command_line_under_torchrun(tmp_path):
    """One model file, one table of what was found, and no checkpoint left."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "batch"))
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.integers(0, 50, 400), "b": rng.normal(0, 1, 400).round(2)}).to_parquet(tmp_path / "x.parquet")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    command += ["-m", "anyorder", "fit", str(tmp_path / "*.parquet"), "-o", str(tmp_path / "m.ao"), "--effort", "0.05"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("held out") <= 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.ao", "x.parquet"]
