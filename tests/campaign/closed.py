"""What needs nothing from outside: no socket is ever opened, and a wheel is the same bytes however often it is built."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

WITHOUT_NETWORK = """
import sys
def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")):
        raise SystemExit(f"the network was asked: {event} {arguments}")
sys.addaudithook(refuse)
import torch
torch.set_num_threads(1)
import numpy as np, pandas as pd
import anyorder, anyorder.cli
from anyorder import AnyOrder, compress, decompress
model = AnyOrder.load("digits")
images = model.sample(2)
assert (model.decompress(model.compress(images)) == images).all()
table = pd.DataFrame({"a": np.arange(40) % 3, "b": ["x", "y"] * 20})
fitted = AnyOrder(effort=0.002).fit(table)
fitted.score_samples(table), fitted.sample(2), fitted.conditional({"a": 1}, "b"), repr(fitted), fitted._repr_html_()
assert decompress(compress(table)).equals(table)
try:
    import urllib.request
    urllib.request.urlopen("http://127.0.0.1:9/", timeout=1)
except SystemExit:
    print("closed")
"""


def check_network():
    """Import, load, draw, fit, ask, compress: with every door to the network shut. The last line proves that they are shut."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_NETWORK]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert (done.returncode, done.stdout.strip()) == (0, "closed"), done.stderr[-1000:]


def check_wheel():
    """Built twice from copies of other ages in other folders; needs a package registry for the build system."""
    found = set()
    for age in (10**9, 1_600_000_000):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / f"copy-{age}"
            home.mkdir()
            for name in ("pyproject.toml", "README.md", "LICENSE"):
                shutil.copy(ROOT / name, home)
            shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
            for path in home.rglob("*"):
                os.utime(path, (age, age))
            command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(Path(folder) / "out"), str(home)]
            subprocess.run(command, check=True, capture_output=True, timeout=600)
            (wheel,) = (Path(folder) / "out").glob("*.whl")
            found.add((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert len(found) == 1, f"two builds differ: {found}"
