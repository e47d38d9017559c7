"""How much each model of a blend counts: fitted on rows that no model was trained on."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..blend import Blend
from ..model import Context, Model
from ..schema import Mask, Values
from .edges import Edges, EdgeSampler
from .loss import ROWS_PER_CALL

QUESTIONS, STEPS, RIDGE = 2048, 150, 0.01


def fit_weights(
    blend: Blend, x: Values, present: Mask, law: EdgeSampler, contexts: Sequence[Context | None], rng: Generator
) -> None:
    """Give every model the weight, by variable and number known, at which the mixture needs the fewest nats.

    `contexts` holds what each model must know of the rows: a memory, which of its own rows they are.
    """
    rows = torch.arange(len(x)).repeat(max(1, QUESTIONS // len(x)))
    edges = law.sample(present[rows], rng)
    x = torch.where(present, x, 0.0)[rows]
    scores = [log_probs(m, x, edges, None if c is None else c[rows]) for m, c in zip(blend.members(), contexts, strict=True)]
    log_p = torch.stack(scores, dim=-1)  # (row, variable, model)
    shared = torch.zeros(len(scores), 1, 2, requires_grad=True)
    own = torch.zeros_like(blend.weight, requires_grad=True)  # how a variable differs from the others, where it pays
    optimizer = torch.optim.Adam([shared, own], lr=0.1)
    for _ in range(STEPS):
        mix = blend.log_weight(edges.given, shared + own)
        nats = -(edges.weight * (log_p + mix).logsumexp(-1)).sum(-1).mean() / x.shape[1]
        optimizer.zero_grad()
        (nats + RIDGE * own.square().mean()).backward()
        optimizer.step()
    blend.weight.data = (shared + own).detach()


@torch.no_grad()
def log_probs(model: Model, x: Values, edges: Edges, context: Context | None) -> Float[Tensor, "row variable"]:
    """The log-likelihood of every cell that counts."""
    out = []
    for rows in torch.arange(len(x)).split(ROWS_PER_CALL):
        here = None if context is None else context[rows]
        out.append(model(x[rows], edges.given[rows], here).log_prob(x[rows], at=edges.weight[rows] > 0))
    return torch.cat(out)
