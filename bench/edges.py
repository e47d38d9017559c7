"""Drawing training masks: ours against the procedure of MAC's appendix B, in the same run.

    python bench/edges.py --data "12 x 512" --threads 1

The appendix ranks random numbers for the question, draws the prefix length from a weight table, sorts the question's
members to the front, ranks again; for cardinality reweighting it does so for a hundredfold batch and keeps one percent.
Ours also returns the weights of the loss, which the appendix does not.
"""

from functools import partial

import torch
from results import Results, flags
from timing import take_turns
from torch import Generator, Tensor

from anyorder.training import Objective, mac, mac_all_edges, mac_exact, reweighted

POOL = 100
CASES = {"12 x 512": (12, 512), "12 x 4096": (12, 4096), "250 x 1024": (250, 1024), "3072 x 512": (3072, 512)}
OBJECTIVES: dict[str, Objective] = {
    "mac": mac(),
    "mac, exact": mac_exact(),
    "mac, all edges": mac_all_edges(),
    "mac, reweighted": reweighted(mac()),
}


def appendix_masks(batch: int, variables: int) -> tuple[Tensor, Tensor]:
    """The appendix's three steps, operation for operation: question, prefix length, prefix."""
    question_size = torch.randint(1, variables + 1, (batch, 1))
    question = torch.rand(batch, variables).argsort(dim=-1) < question_size
    allowed = torch.arange(variables).reshape(1, variables).repeat(batch, 1) < question_size
    prefix_size = torch.multinomial(allowed.float(), num_samples=1)
    members_first = question.long().sort(descending=True, stable=True).indices.argsort()
    return members_first < prefix_size, prefix_size


def appendix_reweighted(batch: int, variables: int) -> Tensor:
    """The appendix's sampling-importance-resampling from a hundredfold pool, in chunks that fit the memory."""
    chunks = [appendix_masks(batch, variables) for _ in range(POOL)]
    masks, sizes = torch.cat([m for m, _ in chunks]), torch.cat([s for _, s in chunks])
    return masks[torch.multinomial(1.0 + sizes.flatten(), batch, replacement=False)]


def main() -> None:
    parser = flags(__doc__, CASES)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    results = Results.open("edges", args, "Drawing training masks", ("variables", "batch", "objective"), protocol="timing")
    rounds = max(1, round(7 * args.effort))
    for case in args.tables:
        variables, batch = CASES[case]
        present, rng = torch.ones(batch, variables, dtype=torch.bool), Generator().manual_seed(args.seeds[0])
        for name, objective in OBJECTIVES.items():
            theirs = appendix_reweighted if name.endswith("reweighted") else appendix_masks
            spent = take_turns(
                partial(theirs, batch, variables),
                partial(objective.sample, present, rng),
                rounds=min(rounds, 3) if theirs is appendix_reweighted else rounds,
            )
            found = {f"{whose}, µs a mask": 1e6 * s / batch for whose, s in zip(("appendix B", "ours"), spent, strict=True)}
            found["times as fast"] = spent[0] / spent[1]
            results.add(found, variables=str(variables), batch=str(batch), objective=name, seed=args.seeds[0])
    results.print()


if __name__ == "__main__":
    main()
