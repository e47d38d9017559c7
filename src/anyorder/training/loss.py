"""The one loss: minus the weighted log-likelihood of the hidden variables; and what a loss is compared with."""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from ..model import AnyOrderModel, Context, Model
from ..schema import Mask, Values
from .edges import Edges, EdgeSampler

ROWS_PER_CALL = 256  # what a memory makes of more rows leaves the caches
FEW_CELLS = 2**14  # of a network, which are scored sooner than those that count are picked from them


def edge_loss(model: Model, x: Values, edges: Edges, context: Context | None = None) -> Float[Tensor, " batch"]:
    r""":math:`-\sum_j w_j \log p(x_j \mid x_G)` for every row; `context` is the data's own, such as a class label."""
    x = torch.where(edges.given | (edges.weight > 0), x, 0.0)  # whatever stands in a gap, its gradient is 0
    counts = edges.weight > 0
    everywhere = counts.all() or (isinstance(model, AnyOrderModel) and x.numel() <= FEW_CELLS)
    log_p = model(x, edges.given, join_context(edges.context, context)).log_prob(x, at=None if everywhere else counts)
    return -(edges.weight * log_p).sum(-1)


@torch.no_grad()
def held_out_nats(
    model: Model, x: Values, present: Mask, law: EdgeSampler, rng: Generator, context: Context | None = None, draws: int = 4
) -> float:
    """The mean nats per row that the law's questions cost, over `draws` edges a row."""
    law, total, left = law.nats(), 0.0, draws
    while left > 0:
        now = min(left, max(1, ROWS_PER_CALL // len(x)))
        edges = law.sample(present.repeat(now, 1), rng)
        loss = edge_loss(model, x.repeat(now, 1), edges, None if context is None else context.repeat(now, 1))
        total, left = total + now * loss.double().mean().item(), left - now
    return total / draws


def join_context(first: Context | None, second: Context | None) -> Context | None:
    """Mode and step, then what belongs to the data."""
    both = [part for part in (first, second) if part is not None]
    return torch.cat(both, dim=-1) if both else None


def usual_loss(
    loss: Float[Tensor, "cell model"], alike: Int[Tensor, " cell"], groups: int, least: float = 1e-4
) -> Float[Tensor, " cell"]:
    """The mean loss in the group of every cell, of the model that is best at it: what a loss is divided by to compare it."""
    total = torch.zeros(groups, loss.shape[1]).index_add(0, alike, loss)
    count = torch.bincount(alike, minlength=groups).clamp(min=1)
    return (total.amin(-1) / count).clamp(min=least)[alike]
