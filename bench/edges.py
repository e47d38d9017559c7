"""Drawing training masks: ours against the procedure of MAC's appendix B, in the same run.

    python bench/edges.py [--rounds 7] [--threads 1]

The appendix ranks random numbers for the question, draws the prefix length from a weight table, sorts the question's
members to the front, ranks again; for cardinality reweighting it does so for a hundredfold batch and keeps one percent.
Ours also returns the weights of the loss, which the appendix does not.
"""

import argparse

import torch
from rich.console import Console
from rich.table import Table
from timing import take_turns
from torch import Generator, Tensor

from anyorder.training import Objective, mac, mac_all_edges, mac_exact, reweighted

POOL = 100


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    table = Table(title=f"microseconds per training mask, {args.threads} thread(s), median of {args.rounds}")
    for heading in ("D", "batch", "objective", "appendix B", "ours", "ratio"):
        table.add_column(heading, justify="right")
    for variables, batch in ((12, 512), (12, 4096), (250, 1024), (3072, 512)):
        present = torch.ones(batch, variables, dtype=torch.bool)
        rng = Generator().manual_seed(0)

        def ours(objective: Objective, present: Tensor = present, rng: Generator = rng) -> object:
            return objective.sample(present, rng)

        def masks(batch: int = batch, variables: int = variables) -> object:
            return appendix_masks(batch, variables)

        def resampled(batch: int = batch, variables: int = variables) -> object:
            return appendix_reweighted(batch, variables)

        for name, objective in (("mac", mac()), ("mac, exact", mac_exact()), ("mac, all edges", mac_all_edges())):
            theirs, own = take_turns(masks, lambda objective=objective: ours(objective), rounds=args.rounds)  # type: ignore[misc]
            add(table, variables, name, theirs, own, batch)
        theirs, own = take_turns(resampled, lambda: ours(reweighted(mac())), rounds=min(args.rounds, 3))
        add(table, variables, "mac, reweighted", theirs, own, batch)
    Console(width=110).print(table)


def add(table: Table, variables: int, name: str, theirs: float, own: float, batch: int) -> None:
    row = (f"{1e6 * theirs / batch:.2f}", f"{1e6 * own / batch:.2f}", f"{theirs / own:.1f}x")
    table.add_row(str(variables), str(batch), name, *row)


if __name__ == "__main__":
    main()
