"""The program as its users start it: another process, real pipes, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error", "COLUMNS": "80"}


def program(*args, **more):
    command = [sys.executable, "-m", "anyorder", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, **more)


@pytest.mark.parametrize("args", [[], ["fit"], ["ask"], ["impute"], ["sample"], ["score"], ["anomalies"], ["info"]], ids=str)
def test_help_shows_an_example_and_loads_no_torch(args):
    code = """if True:
        import sys
        from anyorder.cli import main
        try:
            main()
        finally:
            print([name for name in ("torch", "pandas", "sklearn") if name in sys.modules])
    """
    command = [sys.executable, "-c", code, *args, "--help"]
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("[]\n")
    assert "anyorder " in result.stdout.split("Example:" if args else "Start with:")[1]
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_is_all_there_is_on_standard_output(model):
    result = program("ask", model, "income | city=Oslo", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["question"] == "income | city=Oslo"
    assert result.stderr == ""


@pytest.mark.slow
def test_pipes(people, tmp_path):
    fitted = program("fit", "-", "-o", tmp_path / "m.ao", "--effort", "0.01", input=people.read_text())
    assert fitted.returncode == 0, fitted.stderr
    assert "nats a row" in fitted.stdout
    assert "\x1b[" not in fitted.stdout + fitted.stderr  # no colours into a pipe
    cut = f"{sys.executable} -m anyorder sample {tmp_path / 'm.ao'} -n 3000 | head -n 4"
    drawn = subprocess.run(cut, shell=True, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert (drawn.stdout.count("\n"), drawn.stderr) == (4, "")  # a reader who leaves early is no fault
    scored = program("score", tmp_path / "m.ao", "-", input=drawn.stdout)
    assert scored.returncode == 0, scored.stderr
    assert "rows    3" in scored.stdout


def test_bars_print_whatever_the_encoding_of_the_terminal(model):
    command = [sys.executable, "-m", "anyorder", "ask", str(model), "city"]
    result = subprocess.run(command, capture_output=True, env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "█" in result.stdout.decode()


def test_exit_codes(model):
    fault = program("ask", model, "incom")
    assert (fault.returncode, fault.stdout) == (1, "")
    assert fault.stderr.startswith("anyorder: The model has no column 'incom'. Did you mean 'income'?")
    assert program("ask").returncode == 2
    assert program("unknown").returncode == 2


def test_an_interrupt_ends_with_130_and_leaves_no_file(people, tmp_path):
    command = [sys.executable, "-m", "anyorder", "fit", str(people), "-o", str(tmp_path / "m.ao"), "--effort", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as running:
        time.sleep(12)  # by then it trains
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []
