"""MAC's Table 7: the masks that each training objective practises at N = 12. Paper, exact and sampled side by side.

    python bench/mac_table7.py --seeds 0 --effort 1          # a million draws

The exact objectives are enumerated over all 4096 masks with fractions; they share no code with the samplers.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations

import torch
from results import Results, flags

from anyorder.subsets import AnySize, RandomOrder
from anyorder.training import PathObjective, mac, reweighted

N = 12
ROWS = ("011111111110", "100000000000", "100000000101", "100000001000", "111111111110")
COLUMNS = ("M", "w-RND", "w-MAC", "w-MAC, reweighted")
PAPER = {
    "M": (1261, 7037, 407, 1288, 6956, 7.21),
    "w-RND": (222, 14803, 521, 1975, 433, 5.74),
    "w-MAC": (650, 76381, 0, 536, 6935, 4.44),
    "w-MAC, reweighted": (1827, 41441, 0, 430, 21094, 5.51),
}
Law = dict[tuple[int, ...], Fraction]


def exact_objectives() -> dict[str, Law]:
    """Every question, every stop on its path, by enumeration; every path has mass 1, as the paper samples."""
    questions = {e: Fraction(1, N * math.comb(N, c)) for c in range(1, N + 1) for e in combinations(range(N), c)}
    on_path: Law = defaultdict(Fraction)
    by_size = [Fraction(0)] * N
    for question, p in questions.items():
        for size in range(len(question)):
            on_path[question[:size]] += p / len(question)
            by_size[size] += p / len(question)
    random_path = {e: by_size[s] / math.comb(N, s) for s in range(N) for e in combinations(range(N), s)}
    tilted = {e: p * (1 + len(e)) for e, p in on_path.items()}
    total = sum(tilted.values())
    return dict(zip(COLUMNS, (questions, random_path, on_path, {e: p / total for e, p in tilted.items()}), strict=True))


def sampled_objectives(draws: int, seed: int) -> dict[str, torch.Tensor]:
    """How often each of the 4096 masks was drawn."""
    present = torch.ones(draws, N, dtype=torch.bool)
    masks = {
        "M": AnySize().sample(present, rng(seed)).target,
        "w-RND": PathObjective(AnySize(), RandomOrder()).sample(present, rng(seed)).given,
        "w-MAC": mac().sample(present, rng(seed)).given,
        "w-MAC, reweighted": reweighted(mac()).sample(present, rng(seed)).given,
    }
    return {name: (mask.long() * 2 ** torch.arange(N)).sum(-1).bincount(minlength=2**N) for name, mask in masks.items()}


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def code(mask: tuple[int, ...]) -> int:
    return sum(1 << i for i in mask)


def members(row: str) -> tuple[int, ...]:
    return tuple(i for i, digit in enumerate(row) if digit == "1")


def entropy(probabilities: list[float]) -> float:
    return -sum(p * math.log(p) for p in probabilities if p > 0)


def main() -> None:
    args = flags(__doc__, COLUMNS).parse_args()
    draws = round(1_000_000 * args.effort)
    results = Results.open(
        "mac_table7", args, f"MAC's Table 7: masks per million at N = {N}", ("objective", "mask"), protocol="exact, and draws"
    )
    exact, sampled = exact_objectives(), sampled_objectives(draws, args.seeds[0])
    for name in args.tables:
        for i, row in enumerate(ROWS):
            expected = 1e6 * float(exact[name].get(members(row), 0))
            found = 1e6 * sampled[name][code(members(row))].item() / draws
            results.add(
                {"paper": PAPER[name][i], "exact": expected, "sampled": found}, objective=name, mask=row, seed=args.seeds[0]
            )
        entropies = [entropy([float(p) for p in exact[name].values()]), entropy((sampled[name] / draws).tolist())]
        told = dict(zip(("paper", "exact", "sampled"), (PAPER[name][-1], *entropies), strict=True))
        results.add(told, objective=name, mask="entropy (nats)", seed=args.seeds[0])
    results.print()


if __name__ == "__main__":
    main()
