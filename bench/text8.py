"""Text in any order: bits a character of text8, left to right, one gap, half hidden, random orders, after so much training text.

Our split, not the papers': of the first 74,000,000 characters the first 66 M are training text (the last `--train` of them are
read), the next 4 M for choosing settings, the last 4 M are scored, in chunks of 250 characters without what is around them.

    ANYORDER_DATA=../shared/data python bench/text8.py --train 10000000 --chunks 200
"""

import lzma
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from results import Results, flags
from summary import Score

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
    assert len(memory.forwards) + len(memory.backwards) > 0  # both are built, so that their time counts
    cost = {"CPU s": time.process_time() - start, "seconds": time.monotonic() - clock}
    return memory, {**cost, "MB in a file": memory.packed.numel() / 1e6, "contexts": float(len(memory.forwards))}


def bits(nats: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error over chunks, in bits."""
    values = np.asarray(nats) / np.log(2)
    return float(values.mean()), float(values.std() / max(1, len(values)) ** 0.5)


def scores(memory: TextMemory, chunks: NDArray[np.uint8], few: int, seed: int) -> dict[str, Score]:
    """Every score of every chunk; the slow ones of the first few."""
    rng = np.random.default_rng(seed)
    found: dict[str, Score] = {"left to right": bits(np.array([-memory.log_probs(one).mean() for one in chunks]))}
    alone = [memory.one_by_one(one) for one in chunks]
    own = [-np.log(table[np.arange(CHUNK), one]) for table, one in zip(alone, chunks, strict=True)]
    found["one gap"] = bits(np.array([nats.mean() for nats in own]))
    found["one gap, right"] = float(np.mean([(t.argmax(1) == one).mean() for t, one in zip(alone, chunks, strict=True)]))
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        nats, right = [], []
        for one in chunks[: few * 4]:
            hidden = rng.random(CHUNK) < share
            table = memory.posteriors(one, ~hidden)[hidden]
            nats.append(-np.log(table[np.arange(len(table)), one[hidden]]).mean())
            right.append((table.argmax(1) == one[hidden]).mean())
        found[f"{share:.0%} hidden"] = bits(np.array(nats))
        found[f"{share:.0%} hidden, right"] = float(np.mean(right))
    if few:
        x = torch.from_numpy(chunks[:few].copy()).float()
        everything = Question(torch.zeros_like(x).bool(), torch.ones_like(x).bool())
        order = CanonicalOrder.shuffled(CHUNK, torch.Generator().manual_seed(seed))
        terms = path_terms(memory, x, everything, [order])[0]
        found["random order"] = bits(-terms.double().mean(-1).numpy())
    return found


def part_of(text: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    return text[TRAIN + VALID :] if name == "test" else text[TRAIN : TRAIN + VALID]


def learning(parser: Any) -> Any:
    """The flags of how text is learned."""
    parser.add_argument("--train", type=int, default=10_000_000, help="characters")
    parser.add_argument("--fewest", type=int, default=4, help="occurrences of a context that is kept")
    parser.add_argument("--most", type=int, default=12_000_000, help="contexts in memory while counting")
    parser.add_argument("--beam", type=int, default=256)
    return parser


def main() -> None:
    parser = learning(flags(__doc__, ["validation", "test"], default=["validation"]))
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--few", type=int, default=8, help="chunks of which random orders are scored")
    args = parser.parse_args()
    title = "text8, bits a character"
    results = Results.open("text8", args, title, keys=("part", "method"), protocol="fixed texts")
    if not 0 < args.train <= TRAIN:
        raise SystemExit(f"--train {args.train}: the training part has {TRAIN} characters.")
    text = text8()
    memory, cost = learn(text[TRAIN - args.train : TRAIN], args.fewest, args.most, args.beam)
    cost["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    for name in args.tables:
        part = part_of(text, name)
        for seed in args.seeds:
            starts = np.random.default_rng(seed).choice(len(part) // CHUNK, args.chunks, replace=False) * CHUNK
            found = scores(memory, np.stack([part[at : at + CHUNK] for at in starts]), args.few, seed)
            results.add({**cost, **found}, part=name, method=f"memory of {args.train:,} characters", seed=seed)
    results.print()


if __name__ == "__main__":
    main()
