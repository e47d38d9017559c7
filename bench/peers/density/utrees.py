"""UnmaskingTrees: boosted trees in any order; its `score_samples` knows the joint and, with gaps, marginals, but no conditionals.

Numbers with few different values are categories to it, the others are spread out; every point is scored in one random order.
"""

import numpy as np
from utrees import UnmaskingTrees  # type: ignore[import-not-found]

from .exchange import Cells, Masks, Score, Task, few_as_codes, mass, points, serve, spread_out

MASKINGS, SCORED_POINTS = 20, 4  # a row is masked so often (its own default is 50); scoring is slow, so fewer points than others


def fit(task: Task) -> Score:
    task = few_as_codes(task)
    trees = UnmaskingTrees(duplicate_K=MASKINGS, xgboost_kwargs={"n_jobs": 1}, random_state=task.seed)
    train = spread_out(task.train, task, np.random.default_rng([task.seed, 4]))
    trees.fit(train, quantize_cols=["categorical" if levels else "continuous" for levels in task.levels])
    spread = points(task)[:SCORED_POINTS]

    def score(given: Masks, target: Masks) -> Cells:
        found = []
        for number, rows in enumerate(spread):
            trees.random_state_ = task.seed + number  # else every call would take the same orders
            found.append(trees.score_samples(np.where(target, rows, np.nan)))
        return mass(task, np.stack(found), target)

    return score


if __name__ == "__main__":
    serve(fit, questions=2)
