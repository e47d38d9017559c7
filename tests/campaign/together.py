"""One model asked by many threads, and by many processes: the same answers, and memory that stays where it is."""

import hashlib
import os
import resource
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from anyorder import AnyOrder
from campaign.broken_disk import WELL, in_child


def some_images(count=6):
    return np.random.default_rng(0).integers(0, 17, (count, 8, 8), dtype=np.uint8)


def questions(model):
    """Name -> a question whose answer is bytes, always the same."""
    images, mask = some_images(), np.zeros((8, 8), dtype=bool)
    mask[2:5] = True
    archive = model.compress(images)
    return {
        "score": lambda: model.score_samples(images).tobytes(),
        "sample": lambda: np.asarray(model.sample(2)).tobytes(),
        "inpaint": lambda: np.asarray(model.inpaint(images[:2], mask)).tobytes(),
        "compress": lambda: model.compress(images),
        "decompress": lambda: model.decompress(archive).tobytes(),
    }


def digest_of(answers):
    return hashlib.sha256(b"".join(answers)).hexdigest()


def check_threads(threads, calls):
    """Every thread asks every question so often, each from another one on."""
    asked = list(questions(AnyOrder.load("digits")).items())
    alone = {name: ask() for name, ask in asked}

    def ask_all(thread):
        for call in range(calls):
            name, ask = asked[(thread + call) % len(asked)]
            assert ask() == alone[name], f"{name} answers otherwise beside other threads"

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(ask_all, range(threads)))


def check_processes(processes):
    """A model that was loaded before the processes part, and one that each of them loads."""
    asked = questions(AnyOrder.load("digits"))
    wanted = digest_of(ask() for ask in asked.values())
    with tempfile.TemporaryDirectory() as folder:

        def work(name):
            own = questions(AnyOrder.load("digits"))
            found = digest_of(ask() for ask in asked.values()), digest_of(ask() for ask in own.values())
            (Path(folder) / name).write_text(" ".join(found))

        def one(number):
            return in_child(lambda: work(str(number)))

        with ThreadPoolExecutor(processes) as pool:
            assert set(pool.map(one, range(processes))) == {WELL}
        assert {path.read_text() for path in Path(folder).iterdir()} == {f"{wanted} {wanted}"}


def check_memory(calls, most_growth=2**25):
    """After a tenth of the calls memory grows no more, but for what an allocator may keep."""
    asked = list(questions(AnyOrder.load("digits")).values())
    for call in range(calls):
        asked[call % len(asked)]()
        if call == calls // 10:
            before = resident()
    grown = resident() - before
    assert grown < most_growth, f"{calls - calls // 10} calls took {grown / 2**20:.0f} MB and kept them"


def resident():
    """Bytes of this process in memory now, where the system says so."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
