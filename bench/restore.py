"""Restoring text and finding typos: characters right at 10 to 90 % hidden, against a baseline that looks at neighbours alone.

The baseline fills a gap with the character that most often stood between its nearest two characters on either side, as far
as they are known. The split is that of `text8.py`; passages are drawn from the validation part, or of the test part (--test).

    ANYORDER_DATA=../shared/data python bench/restore.py --train 10000000 --passages 60
"""

import numpy as np
from numpy.typing import NDArray
from results import Results, flags
from summary import Score
from text8 import CHUNK, LEVELS, TRAIN, learn, learning, part_of, text8

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


def restored(memory: TextMemory, baseline: Neighbours, passages: NDArray[np.uint8], seed: int) -> dict[str, dict[str, Score]]:
    """The share of hidden characters that are right, with its standard error over passages."""
    rng, found = np.random.default_rng(seed), dict[str, dict[str, Score]]({"memory": {}, "neighbours": {}})
    for share in HIDDEN:
        right: dict[str, list[float]] = {name: [] for name in found}
        for one in passages:
            hidden = rng.random(len(one)) < share
            guess = memory.posteriors(one, ~hidden)[hidden].argmax(1)
            right["memory"].append(float((guess == one[hidden]).mean()))
            other = [baseline.fill(one, ~hidden, place) for place in np.flatnonzero(hidden).tolist()]
            right["neighbours"].append(float((other == one[hidden]).mean()))
        for name, some in right.items():
            found[name][f"{share:.0%} hidden"] = float(np.mean(some)), float(np.std(some) / len(some) ** 0.5)
    return found


def typos(memory: TextMemory, passages: NDArray[np.uint8], seed: int) -> dict[str, Score]:
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
    return {
        "typo is the oddest": float(np.mean(first)),
        "among three": float(np.mean(third)),
        "its letter": float(np.mean(letter)),
    }


def main() -> None:
    parser = learning(flags(__doc__, ["validation", "test"], default=["validation"]))
    parser.add_argument("--passages", type=int, default=60)
    args = parser.parse_args()
    results = Results.open("restore", args, "Characters that are right", keys=("part", "method"), protocol="fixed texts")
    if not 0 < args.train <= TRAIN:
        raise SystemExit(f"--train {args.train}: the training part has {TRAIN} characters.")
    text = text8()
    learned = text[TRAIN - args.train : TRAIN]
    memory, _ = learn(learned, args.fewest, args.most, args.beam)
    baseline = Neighbours(learned)
    for name in args.tables:
        part = part_of(text, name)
        for seed in args.seeds:
            starts = np.random.default_rng(seed).choice(len(part) // CHUNK, args.passages * 4, replace=False) * CHUNK
            passages = np.stack([part[at : at + CHUNK] for at in starts])
            found = restored(memory, baseline, passages[: args.passages], seed)
            found["memory"] |= typos(memory, passages, seed)
            for method, score in found.items():
                results.add(score, part=name, method=method, seed=seed)
    results.print()


if __name__ == "__main__":
    main()
