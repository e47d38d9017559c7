"""How often every row of a table counts: scikit-learn's `sample_weight`, as whole numbers of copies."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from .errors import InputError

MOST_COPIES = 10  # times the rows: whole weights that sum to more are taken as relative, as those of a survey are


def copies_of(sample_weight: Any, rows: int, seed: int) -> Int[Tensor, " row"]:
    """How many copies of every row its weight stands for.

    Whole weights are copies. Others, and whole ones that sum to more than ten times the rows, are relative: scaled so that they
    sum to the number of rows with a weight, and rounded up or down at random so that every row counts as it should on average.
    """
    weight = read_weights(sample_weight, rows)
    if (weight == np.round(weight)).all() and weight.sum() <= MOST_COPIES * rows:
        return torch.from_numpy(weight.astype(np.int64))
    share = weight / weight.max()
    marks = (share * ((weight > 0).sum() / share.sum())).cumsum() + np.random.default_rng(seed).random()
    return torch.from_numpy(np.diff(np.floor(marks), prepend=0).astype(np.int64))


def read_weights(sample_weight: Any, rows: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight cannot be read as numbers ({error}). Give one number for every row.") from error
    if weight.shape != (rows,):
        raise InputError(f"sample_weight has shape {weight.shape}; expected one number for each of the {rows} rows, ({rows},).")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        raise InputError(
            f"sample_weight[{wrong[0]}] is {weight[wrong[0]]:g} ({len(wrong)} such weight(s) in all); expected finite numbers of "
            "at least 0. Give rows that must not count the weight 0."
        )
    if not weight.any():
        raise InputError("sample_weight is zero for every row: there is nothing to learn from. Give some row a weight.")
    return weight
