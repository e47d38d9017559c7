"""Random draws that the laws of questions, orders and edges share."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..errors import InputError


def uniform(*shape: int, rng: Generator) -> Tensor:
    """Uniform on [0, 1) with 53 bits, so that no two of a row's numbers are ever equal in practice."""
    return torch.rand(*shape, generator=rng, device=rng.device, dtype=torch.float64)


def stratified(count: int, rng: Generator) -> Float[Tensor, " count"]:
    """`count` numbers, each uniform on [0, 1), spread evenly: one in every interval of length 1/count.

    Each number alone is exactly uniform; their mean varies far less than that of independent draws.
    """
    grid = torch.arange(count, device=rng.device, dtype=torch.float64) / count
    return (grid + uniform(1, rng=rng)).frac()


def smallest(keys: Float[Tensor, "batch variable"], count: Int[Tensor, "batch 1"]) -> Bool[Tensor, "batch variable"]:
    """The `count` smallest keys of every row. Infinite keys are never taken."""
    # numpy sorts rows several times faster than torch on CPU, and only the values are needed.
    ordered = torch.from_numpy(np.sort(keys.numpy(), axis=-1)) if keys.device.type == "cpu" else keys.sort(-1).values
    bound = ordered.gather(-1, (count - 1).clamp(min=0))
    return (keys <= bound) & (count > 0) & keys.isfinite()


def pick(weights: tuple[float, ...], count: int, rng: Generator) -> Int[Tensor, " count"]:
    """Which of several alternatives each of `count` rows takes."""
    bounds = torch.tensor(weights, dtype=torch.float64, device=rng.device).cumsum(0)
    return torch.searchsorted(bounds / bounds[-1], uniform(count, rng=rng), right=True)


def all_true(mask: Bool[Tensor, "batch variable"]) -> bool:
    """`mask.all()`, several times faster on CPU."""
    return mask.numel() == 0 or bool(mask.view(torch.uint8).amin())


def check_weights(what: str, count: int, weights: tuple[float, ...]) -> None:
    """No weights at all (then all are equal), or one for each."""
    if count == 0:
        raise InputError(f"{what} is empty; expected at least one part.")
    if weights and (len(weights) != count or not all(w >= 0 for w in weights) or not 0 < sum(weights) < float("inf")):
        raise InputError(f"{what} has {count} part(s) and weights {weights}; expected one weight from 0 up for each, not all 0.")
