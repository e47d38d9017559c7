"""Text in any order: bits a character of text8, left to right, one gap, half hidden, random orders, after so much training text.

Our split, not the papers': of the first 74,000,000 characters the first 66 M are training text (the last `--train` of them are
read), the next 4 M for choosing settings, the last 4 M are scored, in chunks of 250 characters without what is around them.

    ANYORDER_DATA=../shared/data python bench/text8.py --train 10000000 --chunks 200
"""

import argparse
import lzma
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from results import write_results

from anyorder.inference import path_terms
from anyorder.models.text_counts import StringCounts
from anyorder.models.text_memory import TextMemory
from anyorder.subsets import CanonicalOrder, Question

TRAIN, VALID, CHUNK = 66_000_000, 4_000_000, 250
LEVELS = 27


def text8() -> NDArray[np.uint8]:
    """All characters as codes: 0 is a space, 1 an a."""
    folder = os.environ.get("ANYORDER_DATA")
    path = Path(folder or ".") / "text" / "text8_first74M.txt.xz"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: set ANYORDER_DATA to the folder that holds text/text8_first74M.txt.xz.")
    raw = np.frombuffer(lzma.decompress(path.read_bytes()), np.uint8)
    return np.where(raw == ord(" "), 0, raw - 96).astype(np.uint8)


def learn(text: NDArray[np.uint8], fewest: int, most: int, beam: int) -> tuple[TextMemory, dict[str, float]]:
    start, clock = time.process_time(), time.monotonic()
    counts = StringCounts(LEVELS, most)
    counts.add(text)
    memory = TextMemory(counts.finish(fewest), LEVELS, CHUNK, fewest, beam)
    cost = {"cpu_seconds": time.process_time() - start, "seconds": time.monotonic() - clock}
    return memory, {**cost, "file_megabytes": memory.packed.numel() / 1e6, "contexts": float(len(memory.forwards))}


def bits(nats: NDArray[np.float64]) -> dict[str, float]:
    """Mean and standard error over chunks, in bits."""
    values = np.asarray(nats) / np.log(2)
    return {"mean": float(values.mean()), "standard_error": float(values.std() / max(1, len(values)) ** 0.5)}


def scores(memory: TextMemory, chunks: NDArray[np.uint8], few: int, seed: int) -> dict[str, Any]:
    """Every score of every chunk; the slow ones of the first few."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {"left_to_right": bits(np.array([-memory.log_probs(one).mean() for one in chunks]))}
    alone = [memory.one_by_one(one) for one in chunks]
    own = [-np.log(table[np.arange(CHUNK), one]) for table, one in zip(alone, chunks, strict=True)]
    found["one_gap"] = bits(np.array([nats.mean() for nats in own]))
    found["one_gap_right"] = float(np.mean([(t.argmax(1) == one).mean() for t, one in zip(alone, chunks, strict=True)]))
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        nats, right = [], []
        for one in chunks[: few * 4]:
            hidden = rng.random(CHUNK) < share
            table = memory.posteriors(one, ~hidden)[hidden]
            nats.append(-np.log(table[np.arange(len(table)), one[hidden]]).mean())
            right.append((table.argmax(1) == one[hidden]).mean())
        found[f"hidden_{share:.0%}"] = {**bits(np.array(nats)), "right": float(np.mean(right))}
    if few:
        x = torch.from_numpy(chunks[:few].copy()).float()
        everything = Question(torch.zeros_like(x).bool(), torch.ones_like(x).bool())
        order = CanonicalOrder.shuffled(CHUNK, torch.Generator().manual_seed(seed))
        terms = path_terms(memory, x, everything, [order])[0]
        found["random_order"] = bits(-terms.double().mean(-1).numpy())
    return found


def main() -> None:
    asks = argparse.ArgumentParser(description=__doc__)
    asks.add_argument("--train", type=int, default=10_000_000)
    asks.add_argument("--chunks", type=int, default=200)
    asks.add_argument("--few", type=int, default=8, help="chunks of which random orders are scored")
    asks.add_argument("--fewest", type=int, default=4)
    asks.add_argument("--most", type=int, default=12_000_000)
    asks.add_argument("--beam", type=int, default=256)
    asks.add_argument("--seed", type=int, default=0)
    asks.add_argument("--test", action="store_true", help="score the test part; without it the validation part")
    asks.add_argument("--out", type=Path, default=None)
    settings = asks.parse_args()
    text = text8()
    memory, cost = learn(text[TRAIN - settings.train : TRAIN], settings.fewest, settings.most, settings.beam)
    cost["peak_gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(cost, flush=True)
    part = text[TRAIN + VALID :] if settings.test else text[TRAIN : TRAIN + VALID]
    starts = np.random.default_rng(settings.seed).choice(len(part) // CHUNK, settings.chunks, replace=False) * CHUNK
    found = scores(memory, np.stack([part[at : at + CHUNK] for at in starts]), settings.few, settings.seed)
    for name, score in found.items():
        print(f"{name:16} {score}", flush=True)
    if settings.out:
        write_results(settings.out, "text8", vars(settings), {"cost": cost, **found})


if __name__ == "__main__":
    main()
