"""SPFlow: a sum-product network by LearnSPN, with Gaussian leaves for numbers and Bernoulli leaves for codes 0 and 1.

Its LearnSPN makes no categorical leaves of more than two codes (it does not tell them how many there are) and knows no gaps.
"""

import contextlib
import io
from functools import partial

import numpy as np
import torch
from spflow.learn.learn_spn import learn_spn, partition_by_rdc  # type: ignore[import-not-found]
from spflow.meta import Scope  # type: ignore[import-not-found]
from spflow.modules.leaves import Bernoulli, Normal  # type: ignore[import-not-found]

from .exchange import Cells, Masks, Score, Task, mass, points, serve, spread_out

SLICES = (30, 100, 300)  # the fewest rows that are split further; the best pair on held-out rows is taken
SURE = 1e-3  # the least probability of either code
THRESHOLDS = (0.1, 0.3)  # of the dependence below which columns are split from each other


def fit(task: Task) -> Score:
    if np.isnan(task.train).any() or (task.levels > 2).any():
        raise SystemExit("LearnSPN here knows no gaps and no more than two codes")
    torch.set_num_threads(1)
    torch.manual_seed(task.seed)
    numbers = task.spacing > 0
    mean, std = np.where(numbers, task.train.mean(0), 0.0), np.where(numbers, task.train.std(0), 1.0)
    rng = np.random.default_rng([task.seed, 4])
    rows = rng.permutation((spread_out(task.train, task, rng) - mean) / std)
    held_out, rest = np.split(rows, [len(rows) // 10])
    choices = [(fewest, threshold) for fewest in SLICES for threshold in THRESHOLDS]
    best = max(choices, key=lambda choice: log_density(learned(rest, numbers, *choice), held_out).mean())
    network = learned(rows, numbers, *best)
    z, exact = (points(task) - mean) / std, (task.test - mean) / std

    def score(given: Masks, target: Masks) -> Cells:
        """What is neither given nor asked for is NaN, which the network sums out."""
        asked = np.where(given, exact, np.where(target, z, np.nan))
        both = log_density(network, asked.reshape(-1, z.shape[-1])).reshape(z.shape[:2])
        known = log_density(network, np.where(given, exact, np.nan))
        return mass(task, both - known - (target * np.log(std)).sum(1), target)

    return score


def learned(rows: Cells, numbers: Masks, fewest: int, threshold: float) -> torch.nn.Module:
    kinds = [(Normal, np.flatnonzero(numbers)), (Bernoulli, np.flatnonzero(~numbers))]
    leaves = [kind(scope=Scope(columns.tolist()), out_channels=1) for kind, columns in kinds if len(columns)]
    with contextlib.redirect_stdout(io.StringIO()):  # its k-means prints every step
        network: torch.nn.Module = learn_spn(
            torch.from_numpy(rows).float(),
            leaves,
            min_instances_slice=fewest,
            partitioning_method=partial(columns_apart, threshold=threshold),
        )
    for leaf in network.modules():
        if isinstance(leaf, Bernoulli):  # where all rows of a slice agree it says 0 or 1, and then NaN
            leaf.probs = leaf.probs.nan_to_num(0.5).clamp(SURE, 1 - SURE).detach()
    return network


def columns_apart(rows: torch.Tensor, threshold: float) -> torch.Tensor:
    """LearnSPN's own split of the columns, and constant columns each alone: its measure of dependence fails on them."""
    apart = torch.arange(1, rows.shape[1] + 1) + rows.shape[1]
    varied = rows.std(0) > 0
    if varied.sum() > 1:
        apart[varied] = partition_by_rdc(rows[:, varied], threshold).to(apart)
    return apart


@torch.no_grad()
def log_density(network: torch.nn.Module, rows: Cells) -> Cells:
    found: torch.Tensor = network.log_likelihood(torch.from_numpy(rows).float())  # type: ignore[operator]
    return found.reshape(len(rows)).double().numpy()


if __name__ == "__main__":
    serve(fit)
