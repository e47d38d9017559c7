"""anyorder itself, asked like every peer, and for what only it can say: best guesses, the cdf of the truth, nats."""

import os

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anyorder.estimator import AnyOrder
from anyorder.inference import fixed_orders, mixture_log_prob
from anyorder.modalities.tables.columns import NumberColumn
from anyorder.subsets import Question

from .exchange import Cells, Fitted, Task, serve


def fit(task: Task) -> Fitted:
    torch.set_num_threads(1)
    kinds = {f"x{i}": "category" if levels else "number" for i, levels in enumerate(task.levels)}
    model = AnyOrder(effort=float(os.environ.get("ANYORDER_EFFORT", "1")), random_state=task.seed, kinds=kinds).fit(
        frame(task.train, task)
    )

    def impute(test: Cells) -> Cells:
        return np.stack([cells(filled, task) for filled in model.impute(frame(test, task), draws=task.draws)])

    def more(test: Cells) -> dict[str, Cells]:
        return {"mean": means(model, frame(test, task)), **score_truth(model, test, task)}

    return Fitted(impute, more)


@torch.no_grad()
def means(model: AnyOrder, test: pd.DataFrame) -> Cells:
    """The mean of every number given the rest of its row, not rounded, as peers do not round theirs; likeliest categories."""
    x, known = model.encoder_.encode(test)
    best = model.model_(x, known).best(at=~known).double().numpy()
    columns = [
        column.number(guess) if isinstance(column, NumberColumn) else [code_of(level) for level in column.decode(guess)]
        for column, guess in zip(model.encoder_.columns, best.T, strict=True)
    ]
    return np.array(columns, dtype=np.float64).T


@torch.no_grad()
def score_truth(model: AnyOrder, test: Cells, task: Task) -> dict[str, Cells]:
    """How the truth lies in the distributions: `pit` in that of each cell alone, `nats` in the joint distribution of
    all hidden cells of a row.
    """
    x, known, hidden = asked(model, test, task)
    nats = -mixture_log_prob(model.model_, x, Question(known, hidden), fixed_orders(x.shape[1], 4))
    return {"pit": place_in_distribution(model, test, task), "nats": nats.double().numpy()}


@torch.no_grad()
def place_in_distribution(model: AnyOrder, test: Cells, task: Task) -> Cells:
    """The randomised PIT of every cell of the truth given what is left of its row: uniform if the distributions are right."""
    x, known, _ = asked(model, test, task)
    chance = torch.rand(x.shape, generator=torch.Generator().manual_seed(task.seed))
    distributions = model.model_(x, known)
    return (distributions.cdf(x) - chance * distributions.log_prob(x).exp()).double().numpy()


def asked(model: AnyOrder, test: Cells, task: Task) -> tuple[Tensor, Tensor, Tensor]:
    """The truth, which cells of it are known, and which are hidden; a gap of the data itself is neither."""
    x, present = model.encoder_.encode(frame(task.truth, task))
    shown = torch.tensor(np.isfinite(test))
    return torch.where(present, x, 0.0), present & shown, present & ~shown


def frame(table: Cells, task: Task) -> pd.DataFrame:
    """Numbers as they are, categories as text."""
    columns = {}
    for i, levels in enumerate(task.levels):
        column = table[:, i]
        columns[f"x{i}"] = [None if np.isnan(v) else f"level {v:.0f}" for v in column] if levels else column
    return pd.DataFrame(columns)


def cells(table: pd.DataFrame, task: Task) -> Cells:
    out = np.empty(table.shape)
    for i, levels in enumerate(task.levels):
        column = table[f"x{i}"]
        out[:, i] = [code_of(v) for v in column] if levels else column.to_numpy(dtype=np.float64)
    return out


def code_of(level: str) -> float:
    """The model's own codes are in another order: "level 10" comes before "level 2"."""
    return float(level.removeprefix("level "))


if __name__ == "__main__":
    serve({"anyorder": fit, "before": fit})
