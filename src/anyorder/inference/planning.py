"""Where to cut a path into few steps so that the fewest nats are lost: ARDM's parallel policy, solved exactly."""

import numpy as np
import torch
from jaxtyping import Float
from sklearn.isotonic import isotonic_regression
from torch import Generator, Tensor

from ..errors import InputError
from ..models.any_order import Model
from ..schema import Mask, Values
from ..subsets import Planned, Question
from .likelihood import check_scoring
from .walk import walk


@torch.no_grad()
def step_losses(model: Model, x: Values, present: Mask, rng: Generator) -> Float[Tensor, " variable"]:
    """The mean loss of one variable when t others are known, for t = 0 .. D-1, in nats, over random orders.

    At every step all hidden variables count, not only the next one: the same mean with less noise. A row with n
    present variables counts for t < n; where no row reaches, the last known loss stands.
    """
    question = Question.joint(present)
    check_scoring(model, x, question)
    losses: list[float] = []
    for step in walk(model, x, question, rng=rng):
        hidden = question.target & ~step.given
        log_p = step.conditionals.log_prob(x, at=hidden)
        rows = hidden.any(-1)
        losses.append(float(-(log_p.sum(-1)[rows] / hidden.sum(-1)[rows]).double().mean()))
    losses += losses[-1:] * (x.shape[1] - len(losses))
    return torch.tensor(losses, dtype=torch.float64)


def plan(losses: Float[Tensor, " variable"], steps: int, isotonic: bool = True) -> Planned:
    r"""The cut of a path into `steps` blocks of least total loss, when a block from s to t costs (t - s) losses[s].

    .. math:: C_k(t) = \min_{s < t} C_{k-1}(s) + (t - s) L_s

    Knowing more cannot hurt on average, so the losses are first made non-increasing (`isotonic`): otherwise the plan
    would exploit their noise.

    >>> plan(torch.tensor([4.0, 2.0, 1.0, 1.0]), steps=2)
    Planned(places=(0, 1, 4))
    """
    count = len(losses)
    if not 1 <= steps <= count:
        raise InputError(f"plan got steps={steps}; expected between 1 and {count}, the number of variables.")
    values = losses.double().numpy()
    values = isotonic_regression(values, increasing=False) if isotonic else values
    place = np.arange(count + 1)
    # block[s, t] = cost of revealing s .. t-1 in one step
    block = np.where(place[:-1, None] < place, (place - place[:-1, None]) * values[:, None], np.inf)
    cost, came_from = block[0], []
    for _ in range(steps - 1):
        through = cost[:-1, None] + block
        came_from.append(through.argmin(0))
        cost = through.min(0)
    places = [count]
    for back in reversed(came_from):
        places.append(int(back[places[-1]]))
    return Planned((0, *reversed(places)))
