"""Restoring text and finding typos: characters right at 10 to 90 % hidden, against a baseline that looks at neighbours alone.

The baseline fills a gap with the character that most often stood between its nearest two characters on either side, as far
as they are known. The split is that of `text8.py`; passages are drawn from the validation part, or of the test part (--test).

    ANYORDER_DATA=../shared/data python bench/restore.py --train 10000000 --passages 60
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import write_results
from text8 import CHUNK, LEVELS, TRAIN, VALID, learn, text8

from anyorder.models.text_memory import TextMemory

HIDDEN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Neighbours:
    """What stands between up to two characters on each side, by counting."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        self.counts = {}
        for before, behind in ((2, 2), (2, 1), (1, 2), (1, 1), (1, 0), (0, 1), (0, 0)):
            key = np.zeros(len(text) - 4, np.int64)
            for offset in (*range(-before, 0), *range(1, behind + 1)):
                key = key * LEVELS + text[2 + offset : len(text) - 2 + offset]
            cells = LEVELS ** (before + behind) * LEVELS
            self.counts[before, behind] = np.bincount(key * LEVELS + text[2:-2], minlength=cells).reshape(-1, LEVELS)

    def fill(self, text: NDArray[np.uint8], known: NDArray[np.bool_], place: int) -> int:
        def reach(step: int) -> int:
            count = 0
            while count < 2 and 0 <= place + step * (count + 1) < len(text) and known[place + step * (count + 1)]:
                count += 1
            return count

        sides = min(reach(-1), 2), min(reach(1), 2)
        before, behind = max((pair for pair in self.counts if pair[0] <= sides[0] and pair[1] <= sides[1]), key=sum)
        key = 0
        for offset in (*range(-before, 0), *range(1, behind + 1)):
            key = key * LEVELS + int(text[place + offset])
        return int(self.counts[before, behind][key].argmax())


def restored(memory: TextMemory, baseline: Neighbours, passages: NDArray[np.uint8], seed: int) -> dict[str, Any]:
    """The share of hidden characters that are right, with the spread over passages."""
    rng, found = np.random.default_rng(seed), {}
    for share in HIDDEN:
        right: dict[str, list[float]] = {"memory": [], "neighbours": []}
        for one in passages:
            hidden = rng.random(len(one)) < share
            guess = memory.posteriors(one, ~hidden)[hidden].argmax(1)
            right["memory"].append(float((guess == one[hidden]).mean()))
            other = [baseline.fill(one, ~hidden, place) for place in np.flatnonzero(hidden).tolist()]
            right["neighbours"].append(float((other == one[hidden]).mean()))
        found[f"{share:.0%}"] = {
            name: {"mean": float(np.mean(some)), "standard_error": float(np.std(some) / len(some) ** 0.5)}
            for name, some in right.items()
        }
    return found


def typos(memory: TextMemory, passages: NDArray[np.uint8], seed: int) -> dict[str, float]:
    """One wrong character in every passage: how often it is the most surprising one, and its right letter proposed."""
    rng, first, third, letter = np.random.default_rng(seed), [], [], []
    for one in passages:
        place = int(rng.integers(len(one)))
        wrong = one.copy()
        wrong[place] = (one[place] + rng.integers(1, LEVELS)) % LEVELS
        table = memory.one_by_one(wrong)
        order = np.argsort(table[np.arange(len(one)), wrong])
        first.append(order[0] == place)
        third.append(place in order[:3])
        letter.append(table[place].argmax() == one[place])
    return {"most_surprising": float(np.mean(first)), "among_three": float(np.mean(third)), "letter": float(np.mean(letter))}


def main() -> None:
    asks = argparse.ArgumentParser(description=__doc__)
    asks.add_argument("--train", type=int, default=10_000_000)
    asks.add_argument("--passages", type=int, default=60)
    asks.add_argument("--fewest", type=int, default=4)
    asks.add_argument("--most", type=int, default=12_000_000)
    asks.add_argument("--beam", type=int, default=256)
    asks.add_argument("--seed", type=int, default=0)
    asks.add_argument("--test", action="store_true", help="of the test part; without it the validation part")
    asks.add_argument("--out", type=Path, default=None)
    settings = asks.parse_args()
    text = text8()
    learned = text[TRAIN - settings.train : TRAIN]
    memory, cost = learn(learned, settings.fewest, settings.most, settings.beam)
    part = text[TRAIN + VALID :] if settings.test else text[TRAIN : TRAIN + VALID]
    starts = np.random.default_rng(settings.seed).choice(len(part) // CHUNK, settings.passages * 4, replace=False) * CHUNK
    passages = np.stack([part[at : at + CHUNK] for at in starts])
    found = {"typos": typos(memory, passages, settings.seed)}
    print(found["typos"], flush=True)
    found["right"] = restored(memory, Neighbours(learned), passages[: settings.passages], settings.seed)
    for share, scores in found["right"].items():
        print(share, scores, flush=True)
    if settings.out:
        write_results(settings.out, "restore", vars(settings), {"cost": cost, **found})


if __name__ == "__main__":
    main()
