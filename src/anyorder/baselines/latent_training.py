"""Training of a rival: AdamW on its bound, averaged weights, early stopping on held-out questions."""

import copy
from dataclasses import dataclass
from typing import final

import torch
from torch import Generator, Tensor

from ..errors import InputError, TrainingError
from ..schema import Mask, Values
from ..subsets import GivenAnySize
from .baseline import Baseline
from .latent import LatentModel
from .latent_answers import log_prob

SCORE_DRAWS, SCORE_ROWS = 50, 512  # draws of z a question, and questions a check


@final
@dataclass(frozen=True)
class BaselineRecipe:
    """How to train a rival; the defaults were chosen on held-out training rows of Yacht and Concrete."""

    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    average: float = 0.998  # decay of the averaged weights, the ones that are kept
    held_out: float = 0.1  # share of the rows that are scored, not trained on
    check_every: int = 100
    patience: int = 10  # checks without improvement before stopping
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "check_every", "patience", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"RivalRecipe got {name}={getattr(self, name)}; expected a positive number.")
        if not (0 < self.held_out < 1 and 0 <= self.average < 1):
            raise InputError(f"RivalRecipe got held_out={self.held_out}, average={self.average}; expected fractions below 1.")


def fit_baseline(
    model: Baseline, x: Values, present: Mask | None = None, recipe: BaselineRecipe = BaselineRecipe()
) -> list[float]:
    """Train `model` in place and leave it with the averaged weights of least held-out nats; returns these at every check.

    A gap in the data is neither shown to the encoder nor explained by the decoder.
    """
    present = torch.isfinite(x) if present is None else present
    model.schema.check(x, present)
    if not present.any():
        raise InputError(f"There is nothing to learn from: none of the {x.numel()} cells of x is present.")
    x = torch.where(present, x, 0.0).to(next(model.parameters()).dtype)
    run = LatentRun(model, *split_latent_rows(x, present, recipe), recipe)
    scores, best = list[float](), copy.deepcopy(model.state_dict())
    while run.step < recipe.steps and stale(scores) < recipe.patience:
        for _ in range(min(recipe.check_every, recipe.steps - run.step)):
            run.one_step()
        scores.append(run.score())
        if scores[-1] == min(scores):
            best = copy.deepcopy(run.averaged.state_dict())
    model.load_state_dict(best)
    model.eval()
    return scores


def stale(scores: list[float]) -> int:
    """How many checks have passed since the best one."""
    return len(scores) - 1 - scores.index(min(scores)) if scores else 0


@final
@dataclass(frozen=True)
class LatentRows:
    """Data rows; gaps hold 0."""

    x: Values
    present: Mask


def split_latent_rows(x: Values, present: Mask, recipe: BaselineRecipe) -> tuple[LatentRows, LatentRows]:
    """Rows to train on and rows to score. Fewer than ten rows are too few to split: then they are both."""
    filled = present.any(-1)
    x, present = x[filled], present[filled]
    if len(x) < 10:
        return LatentRows(x, present), LatentRows(x, present)
    shuffled = torch.randperm(len(x), generator=Generator().manual_seed(recipe.seed)).to(x.device)
    count = max(1, min(round(recipe.held_out * len(x)), SCORE_ROWS))
    train, held_out = shuffled[count:], shuffled[:count]
    return LatentRows(x[train], present[train]), LatentRows(x[held_out], present[held_out])


class LatentRun:
    """One training run: the weights now, their average, and where it stands."""

    def __init__(self, model: Baseline, train: LatentRows, held_out: LatentRows, recipe: BaselineRecipe) -> None:
        self.model, self.train, self.held_out, self.recipe = model.train(), train, held_out, recipe
        self.averaged = copy.deepcopy(model).eval().requires_grad_(False)
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
        self.rng = Generator(device=train.x.device).manual_seed(recipe.seed)
        self.step, self.queue = 0, torch.empty(0, dtype=torch.long)

    def one_step(self) -> None:
        """One batch with fresh random masks, one update of the weights and of their average."""
        recipe, rows = self.recipe, self.next_rows()
        x, present = self.train.x[rows], self.train.present[rows]
        shown = self.model.shown.sample(present, self.rng).target
        loss = -self.model.bound(x, shown, self.rng).mean() / x.shape[1]
        if not torch.isfinite(loss):
            raise TrainingError(f"The loss became {loss.item()} at step {self.step}. Lower the learning rate.")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:  # constant, then linearly down over the second half
            group["lr"] = recipe.learning_rate * min(1.0, 2 * (1 - self.step / recipe.steps))
        self.optimizer.step()
        decay = min(recipe.average, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for mean, now in zip(self.averaged.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(now, 1 - decay)
        self.step += 1

    def next_rows(self) -> Tensor:
        """A batch of rows; every epoch in a new order."""
        size = min(self.recipe.batch_size, len(self.train.x))
        if len(self.queue) < size:
            self.queue = torch.randperm(len(self.train.x), generator=self.rng, device=self.rng.device)
        rows, self.queue = self.queue[:size], self.queue[size:]
        return rows

    def score(self) -> float:
        """What the held-out rows cost, by the same questions at every check."""
        rng = Generator(device=self.rng.device).manual_seed(self.recipe.seed)
        repeats = max(1, SCORE_ROWS // len(self.held_out.x))
        x, present = self.held_out.x.repeat(repeats, 1), self.held_out.present.repeat(repeats, 1)
        if not isinstance(self.averaged, LatentModel):
            return self.averaged.held_out(x, present, rng)
        question = GivenAnySize().sample(present, rng)
        return -log_prob(self.averaged, x, question, rng, SCORE_DRAWS).mean().item()
