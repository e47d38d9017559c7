"""A mixture of full-covariance Gaussians, as many as suit held-out rows best; its conditional densities are closed forms."""

import numpy as np
import torch
from sfarm_table1 import Bells
from sklearn.mixture import GaussianMixture

from .exchange import Cells, Masks, Score, Task, mass, points, serve, spread_out

COMPONENTS = (1, 2, 4, 8, 16, 32)
FLOOR = 1e-6  # added to every variance, in squared standard deviations
ROWS_AT_ONCE = 256


def fit(task: Task) -> Score:
    torch.set_num_threads(1)
    mean, std = task.train.mean(0), task.train.std(0)
    rng = np.random.default_rng([task.seed, 4])
    rows = rng.permutation((spread_out(task.train, task, rng) - mean) / std)
    held_out, rest = np.split(rows, [len(rows) // 10])
    best = max(COMPONENTS, key=lambda k: mixture(k, rest, task.seed).score(held_out))
    model = mixture(best, rows, task.seed)
    bells = Bells(*map(torch.from_numpy, (np.log(model.weights_), model.means_, model.covariances_)))
    z, exact = (points(task) - mean) / std, (task.test - mean) / std

    def score(given: Masks, target: Masks) -> Cells:
        asked = np.where(given, exact, z)  # the given cells as recorded, the targets anywhere in their cells
        both = np.stack([marginal(bells, some, given | target) for some in asked])
        return mass(task, both - marginal(bells, exact, given) - (target * np.log(std)).sum(1), target)

    return score


def mixture(components: int, rows: Cells, seed: int) -> GaussianMixture:
    return GaussianMixture(components, reg_covar=FLOOR, random_state=seed, max_iter=200).fit(rows)


def marginal(bells: Bells, z: Cells, mask: Masks) -> Cells:
    chunks = zip(torch.from_numpy(np.nan_to_num(z)).split(ROWS_AT_ONCE), torch.from_numpy(mask).split(ROWS_AT_ONCE), strict=True)
    return torch.cat([bells.log_marginal(some, asked) for some, asked in chunks]).numpy()


if __name__ == "__main__":
    serve(fit)
