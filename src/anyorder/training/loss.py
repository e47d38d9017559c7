"""The one loss: minus the weighted log-likelihood of the hidden variables."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..model import Context, Model
from ..schema import Mask, Values
from .edges import Edges, EdgeSampler


def edge_loss(model: Model, x: Values, edges: Edges, context: Context | None = None) -> Float[Tensor, " batch"]:
    r""":math:`-\sum_j w_j \log p(x_j \mid x_G)` for every row; `context` is the data's own, such as a class label."""
    log_p = model(x, edges.given, join_context(edges.context, context)).log_prob(x)
    return -torch.where(edges.weight > 0, edges.weight * log_p, 0.0).sum(-1)


@torch.inference_mode()
def held_out_nats(
    model: Model, x: Values, present: Mask, law: EdgeSampler, rng: Generator, context: Context | None = None, draws: int = 4
) -> float:
    """The mean nats per row that the law's questions cost, over `draws` edges a row."""
    total = 0.0
    for _ in range(draws):
        edges = law.nats().sample(present, rng)
        total += float(edge_loss(model, x, edges, context).double().mean())
    return total / draws


def join_context(first: Context | None, second: Context | None) -> Context | None:
    """Mode and step, then what belongs to the data."""
    both = [part for part in (first, second) if part is not None]
    return torch.cat(both, dim=-1) if both else None
