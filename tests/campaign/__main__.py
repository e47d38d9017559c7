"""The campaign: every attack again and again with new seeds, for so many minutes. `make campaign MINUTES=60`.

Prints a table for docs/reliability.md, and for every failure its kind and seed: `... MINUTES --only KIND --seed SEED` repeats it.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pandas as pd
import torch

from anyorder import AnyOrder
from campaign import closed, disk, forgeries, joints, limits, together


def questions_of_a_table(model):
    model.sample(2)
    model.score_samples(model.sample(1))


def some_table_model(folder):
    """A small model of a table with every part that one has, to be forged."""
    path = Path(folder) / "table.ao"
    table = pd.DataFrame({"a": [k % 7 for k in range(60)], "b": [k / 4 for k in range(60)], "c": ["x", "y", "z"] * 20})
    AnyOrder(effort=0.002).fit(table).save(path)
    return path


def attacks(folder):
    """Kind -> one attack; those that take long are rare."""
    writers, table = {}, cache(lambda: some_table_model(folder))

    def break_disk(random):
        name = random.choice(list(disk.WRITERS))
        if name not in writers:
            (Path(folder) / name).mkdir()
            writers[name] = disk.Writer(name, Path(folder) / name)
        fault = random.choice([*writers[name].faults()])
        if fault.byte is not None:
            fault = disk.Fault(fault.kill, byte=random.randint(0, max(writers[name].size - 1, 0)))
        return writers[name].attack(fault, random.choice([None, b"old"]))

    return {
        **{f"forged {kind}": attack for kind, attack in forgeries.FORGERS.items()},
        "forged models of tables": lambda random: forgeries.attack_model(random, table(), questions_of_a_table),
        "broken disk": break_disk,
        "joints": joints.check_joint,
        "calibration": joints.check_calibration,
        "limits": limits.check_claim,
        "8 threads": lambda _: together.check_threads(8, 5),
        "4 processes": lambda _: together.check_processes(4),
    }


MOST_CALLS = 2000  # of one model, whose memory is watched; fewer if there is little time


def at_the_end(minutes):
    """Kind -> what is done once."""
    calls = min(MOST_CALLS, int(40 * minutes))
    return {
        f"memory of {calls} calls": lambda: together.check_memory(calls),
        "network": closed.check_network,
        "wheel": closed.check_wheel,
    }


def run(minutes, only, seed):
    """(attacks, refused, seconds) of every kind, and the failures; each kind gets about as much time as every other."""
    count, refused, spent, failed = Counter(), Counter(), Counter(), []

    def one(kind, attack, *arguments):
        begun = time.monotonic()
        try:
            refused[kind] += bool(attack(*arguments))
        except Exception:
            failed.append((kind, arguments and arguments[0], traceback.format_exc(limit=-6)))
            print(f"FAILED {kind}, seed {seed}:\n{failed[-1][2]}", flush=True)
        count[kind] += 1
        spent[kind] += time.monotonic() - begun

    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        kinds = {kind: attack for kind, attack in attacks(folder).items() if only in (None, kind)}
        while time.monotonic() < end and kinds:
            kind = min(kinds, key=lambda kind: (spent[kind], kind))
            one(kind, kinds[kind], Random(seed))
            seed += 1
        for kind, attack in at_the_end(minutes).items():
            if only in (None, kind):
                one(kind, attack)
    return count, refused, spent, failed


def main():
    read = argparse.ArgumentParser(prog="campaign")
    read.add_argument("minutes", type=float)
    read.add_argument("--only")
    read.add_argument("--seed", type=int, default=0)
    asked = read.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    count, refused, spent, failed = run(asked.minutes, asked.only, asked.seed)
    print(f"{asked.minutes:g} minutes, seeds from {asked.seed}, Python {sys.version.split()[0]}, torch {torch.__version__}\n")
    print("| kind | attacks | refused | seconds | failures |\n|---|---|---|---|---|")
    for kind in count:
        failures = sum(name == kind for name, *_ in failed)
        print(f"| {kind} | {count[kind]:,} | {refused[kind]:,} | {spent[kind]:.0f} | {failures} |")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
