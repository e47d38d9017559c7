"""A neural spline flow by zuko, trained on numbers spread out anew at every step; it knows the joint only."""

import copy
from collections.abc import Callable

import numpy as np
import torch
import zuko  # type: ignore[import-not-found]
from torch import Tensor, nn

from .exchange import Cells, Masks, Score, Task, mass, points, serve, spread_out

STEPS, BATCH, CHECK_EVERY, PATIENCE = 1500, 128, 100, 4


def fit(task: Task) -> Score:
    torch.set_num_threads(1)
    torch.manual_seed(task.seed)
    mean, std = task.train.mean(0), task.train.std(0)
    rng = np.random.default_rng([task.seed, 4])
    held_out, rest = np.split(rng.permutation(task.train), [len(task.train) // 10])
    flow = zuko.flows.NSF(features=len(mean), transforms=3, hidden_features=(64, 64))

    def z(rows: Cells) -> Tensor:
        return torch.from_numpy((rows - mean) / std).float()

    validation = z(np.concatenate([spread_out(held_out, task, rng) for _ in range(4)]))
    train(flow, lambda: z(spread_out(rest[rng.integers(len(rest), size=BATCH)], task, rng)), validation)

    def score(given: Masks, target: Masks) -> Cells:
        with torch.no_grad():
            log_density = np.stack([flow().log_prob(z(some)).double().numpy() for some in points(task)])
        return mass(task, log_density - np.log(std).sum(), target)

    return score


def train(flow: nn.Module, batch: Callable[[], Tensor], validation: Tensor) -> None:
    """Adam with a learning rate that falls to nothing; the weights that suit the held-out rows best are kept."""
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    best, history = copy.deepcopy(flow.state_dict()), list[float]()
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        (-flow().log_prob(batch()).mean()).backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % CHECK_EVERY == 0:
            with torch.no_grad():
                nats = -flow().log_prob(validation).mean().item()
            history.append(nats)
            if nats == min(history):
                best = copy.deepcopy(flow.state_dict())
            if min(history) not in history[-PATIENCE:]:
                break
    flow.load_state_dict(best)


if __name__ == "__main__":
    serve(fit, questions=1)
