"""anyorder itself with its defaults: the mixture of four fixed orders, mass by construction."""

import os

import numpy as np
import pandas as pd
import torch

from anyorder.estimator import AnyOrder
from anyorder.inference import fixed_orders, mixture_log_prob
from anyorder.subsets import Question

from .exchange import Cells, Masks, Score, Task, serve


def fit(task: Task) -> Score:
    torch.set_num_threads(1)
    kinds = {f"x{i}": "category" if levels else "number" for i, levels in enumerate(task.levels)}
    model = AnyOrder(effort=float(os.environ.get("ANYORDER_EFFORT", "1")), random_state=task.seed, kinds=kinds).fit(
        frame(task.train, task)
    )
    x, present = model.encoder_.encode(frame(task.test, task))
    orders = fixed_orders(x.shape[1], model.orders)

    def score(given: Masks, target: Masks) -> Cells:
        question = Question(torch.tensor(given) & present, torch.tensor(target) & present)
        return mixture_log_prob(model.model_, x, question, orders).double().numpy()

    return score


def frame(table: Cells, task: Task) -> pd.DataFrame:
    """Numbers as they are, categories as text."""
    columns = {}
    for i, levels in enumerate(task.levels):
        column = table[:, i]
        columns[f"x{i}"] = [None if np.isnan(v) else f"level {v:.0f}" for v in column] if levels else column
    return pd.DataFrame(columns)


if __name__ == "__main__":
    serve(fit)
