"""The one loss: minus the weighted log-likelihood of the hidden variables; and what a loss is compared with."""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar, final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from ..errors import InputError, TrainingError
from ..models.any_order import Context, Model
from ..models.trained import Trained
from ..schema import Mask, Values
from .checkpoint import Check, RunState, fingerprint_of_run, load_run, save_run
from .distributed import ALONE, World
from .objectives import Edges, Objective, ardm
from .optimizer import Descent

HELD_OUT_ROWS_PER_CALL = 256  # what a memory makes of more rows leaves the caches
FEW_CELLS = 2**14  # of a network, which are scored sooner than those that count are picked from them


def edge_loss(model: Model, x: Values, edges: Edges, context: Context | None = None) -> Float[Tensor, " batch"]:
    r""":math:`-\sum_j w_j \log p(x_j \mid x_G)` for every row; `context` is the data's own, such as a class label."""
    x = torch.where(edges.given | (edges.weight > 0), x, 0.0)  # whatever stands in a gap, its gradient is 0
    counts = edges.weight > 0
    everywhere = counts.all() or (isinstance(model, Trained) and model.all_at_once and x.numel() <= FEW_CELLS)
    log_p = model(x, edges.given, join_context(edges.context, context)).log_prob(x, at=None if everywhere else counts)
    return -(edges.weight * log_p).sum(-1)


@torch.no_grad()
def held_out_nats(
    model: Model, x: Values, present: Mask, objective: Objective, rng: Generator, context: Context | None = None, draws: int = 4
) -> float:
    """The mean nats per row that the objective's questions cost, over `draws` edges a row."""
    objective, total, left = objective.nats(), 0.0, draws
    while left > 0:
        now = min(left, max(1, HELD_OUT_ROWS_PER_CALL // len(x)))
        edges = objective.sample(present.repeat(now, 1), rng)
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


class EnoughError(Exception):
    """Raised by a callback: training ends here, with the best weights so far, as if it had converged."""


M = TypeVar("M", bound=Trained)
Resample = Callable[[Values, Generator], Values]
OF_RANK = 500_000_003  # between the seeds of two ranks
MOST_MASKS, MOST_MASK_CELLS = 4096, 2**18  # of how many rows the edges are drawn at once


@final
@dataclass(frozen=True)
class Recipe:
    """How to train. The defaults suit small tables; `steps` is the dial."""

    objective: Objective = field(default_factory=ardm)
    steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    average: float = 0.998  # decay of the averaged weights, the ones that are kept
    held_out: float = 0.1  # share of the rows that are scored, not trained on
    check_every: int = 100
    patience: int = 10  # checks without improvement before stopping
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "check_every", "patience", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"Recipe got {name}={getattr(self, name)}; expected a positive number.")
        if not (0 < self.held_out < 1 and 0 <= self.average < 1):
            raise InputError(f"Recipe got held_out={self.held_out}, average={self.average}; expected fractions below 1.")


@final
@dataclass(frozen=True)
class Fitted(Generic[M]):
    """The model with its best weights, every check on the way, and why training stopped."""

    model: M
    history: list[Check]
    stopped: Literal["finished", "early", "interrupted"]

    @property
    def best_nats(self) -> float:
        """Held-out nats per row of the objective that was trained, at the weights that were kept."""
        return min((check.held_out_nats for check in self.history), default=float("nan"))


def fit(
    model: M,
    x: Values,
    present: Mask | None = None,
    recipe: Recipe = Recipe(),
    context: Tensor | None = None,
    progress: Callable[[Check], None] | None = None,
    checkpoint: str | Path | None = None,
    resample: Resample | None = None,
    copies: Tensor | None = None,
    parts: tuple[Tensor, Tensor] | None = None,
    world: World = ALONE,
) -> Fitted[M]:
    """Train `model` in place and leave it with the averaged weights of least held-out nats.

    `copies` says how often every row counts. `parts` are the rows to train on and those to score, if they are not to be drawn
    as `split` draws them. In a `world` of several processes all have the same rows and first weights; each trains on batches of
    its own, gradients are averaged, and all end with the same weights.
    `resample` makes the values of every batch from the rows of x, such as black and white pixels from shades of grey.
    Ctrl-C ends training early with the best weights so far; so does a `progress` that raises `EnoughError`.
    With `checkpoint`, the whole state is written there at every check, and calling `fit` again with the same arguments goes
    on to the same weights as without the break.
    """
    present = torch.isfinite(x) if present is None and isinstance(x, Tensor) else present
    model.schema.check(x if resample is None else resample(x, Generator().manual_seed(recipe.seed)), present)
    if not present.any():
        raise InputError(f"There is nothing to learn from: none of the {x.numel()} cells of x is present.")
    if context is not None and len(context) != len(x):
        raise InputError(f"`context` has {len(context)} rows, x has {len(x)}; expected one row of codes for every row of x.")
    device, home = choose_device(recipe.device), next(model.parameters()).device
    rows = Rows(
        torch.where(present, x, 0.0).to(device, model.dtype), present.to(device), None if context is None else context.to(device)
    )
    drawn = split(rows.present.cpu(), recipe) if parts is None else parts
    train, held_out = (rows[repeated(some, copies).to(device)] for some in drawn)
    run = Run(model.to(device), train, held_out, recipe, started=time.monotonic(), resample=resample, world=world)
    if checkpoint is not None:
        data = (rows.x, rows.present, rows.context, *model.state_dict().values(), *(parts or ()))
        identity = fingerprint_of_run(recipe, *data)
        run.attach(Path(checkpoint), identity if world.size == 1 else f"{identity}/{world.size}")
    stopped: Literal["finished", "early", "interrupted"]
    try:
        with threads_for(model, recipe.batch_size):
            while run.step < recipe.steps and run.worse < recipe.patience:
                run.until_next_check(progress)
        stopped = "finished" if run.step == recipe.steps else "early"
    except EnoughError:
        stopped = "early"
    except KeyboardInterrupt:
        stopped = "interrupted"
    finally:
        model.load_state_dict(run.best if run.history else run.averaged.state_dict())
        model.eval().to(home)
    return Fitted(model, run.history, stopped)


@final
@dataclass(frozen=True)
class Rows:
    """Data rows and what belongs to them; gaps hold 0."""

    x: Values
    present: Mask
    context: Context | None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: Tensor) -> "Rows":
        return Rows(self.x[rows], self.present[rows], None if self.context is None else self.context[rows])

    def made(self, resample: "Resample", seed: int) -> "Rows":
        rng = Generator(device=self.x.device).manual_seed(seed)
        return Rows(torch.where(self.present, resample(self.x, rng), 0.0), self.present, self.context)


def split(present: Mask, recipe: Recipe) -> tuple[Tensor, Tensor]:
    """Which rows to train on and which to score. Fewer than ten rows are too few to split: then they are both."""
    rows = present.any(-1).nonzero().squeeze(-1)
    if len(rows) < 10:
        return rows, rows
    shuffled = rows[torch.randperm(len(rows), generator=Generator().manual_seed(recipe.seed))]
    count = max(1, min(round(recipe.held_out * len(rows)), 4096, len(rows) - 1))
    return shuffled[count:], shuffled[:count]


def repeated(rows: Tensor, copies: Tensor | None) -> Tensor:
    """The numbers of rows, each as often as it counts."""
    return rows if copies is None else rows.repeat_interleave(copies[rows])


class Run:
    """One training run. Its future depends only on the step and on what `state` holds, so it can be taken up anywhere."""

    def __init__(
        self,
        model: Trained,
        train: Rows,
        held_out: Rows,
        recipe: Recipe,
        started: float,
        resample: Resample | None = None,
        world: World = ALONE,
    ) -> None:
        self.model, self.train, self.recipe, self.started, self.resample = model, train, recipe, started, resample
        self.world = world
        self.held_out = held_out if resample is None else held_out.made(resample, recipe.seed)  # the same at every check
        self.averaged = copy.deepcopy(model).eval().requires_grad_(False)
        kernels = model.kernels()
        self.descent = Descent(model.parameters(), kernels, recipe.learning_rate, recipe.weight_decay)
        self.rng = Generator(device=train.x.device)
        self.step, self.history = 0, list[Check]()
        self.best = copy.deepcopy(model.state_dict())
        self.path: Path | None = None
        self.epoch, self.shuffled = -1, torch.empty(0, dtype=torch.long)
        self.block, self.rows, self.edges = -1, torch.empty(0, dtype=torch.long), Edges.none()

    @property
    def worse(self) -> int:
        """How many checks have passed since the best one."""
        scores = [check.held_out_nats for check in self.history]
        return len(scores) - 1 - scores.index(min(scores)) if scores else 0

    def until_next_check(self, progress: Callable[[Check], None] | None) -> None:
        recipe, total, first = self.recipe, 0.0, self.step
        self.model.train()
        while self.step < recipe.steps:
            total += self.one_step()
            if self.step % recipe.check_every == 0 or self.step == recipe.steps:
                break
        score = self.score()
        best = min([score, *(check.held_out_nats for check in self.history)])
        if score == best:
            self.best = copy.deepcopy(self.averaged.state_dict())
        check = Check(self.step, recipe.steps, total / (self.step - first), score, best, time.monotonic() - self.started)
        self.history.append(check)
        if self.path is not None and self.world.is_writer:
            save_run(self.path, self.model, self.state())
        if progress is not None and self.world.is_writer:
            progress(check)

    def one_step(self) -> float:
        """One batch, one update; returns the batch's nats per row under the training objective."""
        recipe = self.recipe
        rows, edges = self.next_batch()
        batch = self.train[rows]
        if self.resample is not None:
            batch = batch.made(self.resample, recipe.seed * 9_176_263 + self.step + 1 + self.world.rank * OF_RANK)
        nats = edge_loss(self.model, batch.x, edges, batch.context).mean()
        if not torch.isfinite(nats):
            raise TrainingError(
                f"The loss became {nats.item()} at step {self.step}. Lower the learning rate ({recipe.learning_rate:g}), "
                "and check the data for values far out of range."
            )
        self.descent.zero_grad()
        (nats / batch.x.shape[1]).backward()  # per variable, so that one learning rate suits every width
        self.world.average([p.grad for p in self.model.parameters() if p.grad is not None])
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.descent.step(min(1.0, 2 * (1 - self.step / recipe.steps)))  # constant, then linearly down over the second half
        decay = min(recipe.average, (1 + self.step) / (10 + self.step))  # young averages forget their random start
        with torch.no_grad():
            torch._foreach_lerp_(list(self.averaged.parameters()), list(self.model.parameters()), 1 - decay)
        self.step += 1
        return nats.item()

    def next_batch(self) -> tuple[Tensor, Edges]:
        """The rows and edges of this step. Edges are drawn for many steps at once, which is several times cheaper."""
        size, variables = min(self.recipe.batch_size, len(self.train) // self.world.size), self.train.x.shape[1]
        steps = max(1, min(MOST_MASKS, MOST_MASK_CELLS // variables) // size)
        block, place = divmod(self.step, steps)
        if block != self.block:
            # Row by row through all batches: depths are spread evenly over the draw, and so over every batch.
            self.rows = torch.stack([self.batch_rows(block * steps + s, size) for s in range(steps)], dim=1)  # (size, steps)
            self.rng.manual_seed(self.recipe.seed * 1_000_003 + block + self.world.rank * OF_RANK)
            self.block, self.edges = block, self.recipe.objective.sample(self.train.present[self.rows.flatten()], self.rng)
        return self.rows[:, place], self.edges[place::steps]

    def batch_rows(self, step: int, size: int) -> Tensor:
        """The rows of a step: every epoch in a new order, told by the step alone; each rank takes every so many-th batch."""
        per_epoch, step = len(self.train) // size, step * self.world.size + self.world.rank
        epoch, place = divmod(step, per_epoch)
        if epoch != self.epoch:
            rng = Generator().manual_seed(self.recipe.seed * 7_368_787 + epoch + 1)
            self.epoch, self.shuffled = epoch, torch.randperm(len(self.train), generator=rng).to(self.train.x.device)
        return self.shuffled[place * size : (place + 1) * size]

    def score(self) -> float:
        rng = Generator(device=self.train.x.device).manual_seed(self.recipe.seed)
        rows = self.held_out
        if len(rows) >= self.world.size > 1:
            rows = rows[torch.arange(self.world.rank, len(rows), self.world.size)]
        draws = max(4, 2048 // len(rows))
        nats = held_out_nats(self.averaged, rows.x, rows.present, self.recipe.objective, rng, rows.context, draws)
        return self.world.mean(nats, float(len(rows)))

    def attach(self, path: Path, identity: str) -> None:
        """Go on from the file if there is one, and write there from now on."""
        self.path, self.identity = path, identity
        if not path.exists():
            return
        state = load_run(path, self.model)
        if state.identity != identity:
            raise InputError(
                f"{path.name} belongs to another run: its data or recipe differ from this call's. "
                "Delete it, choose another file, or repeat the call that made it."
            )
        self.step, self.history = state.step, state.history
        self.model.load_state_dict(state.weights)
        self.averaged.load_state_dict(state.averaged)
        self.best = state.best
        for p, name in self._named():
            self.descent.restore(p, state.step, state.first_moment[name], state.second_moment[name])

    def state(self) -> RunState:
        moments = {name: self.descent.moments(p) for p, name in self._named()}
        return RunState(
            identity=self.identity,
            step=self.step,
            history=self.history,
            weights=self.model.state_dict(),
            averaged=self.averaged.state_dict(),
            best=self.best,
            first_moment={name: first for name, (first, _) in moments.items()},
            second_moment={name: second for name, (_, second) in moments.items()},
        )

    def _named(self) -> list[tuple[torch.nn.Parameter, str]]:
        return [(p, name) for name, p in self.model.named_parameters()]


@contextmanager
def threads_for(model: torch.nn.Module, batch_size: int) -> Iterator[None]:
    """One thread where a step is too small to share: waiting costs more than the work, much more on a busy machine."""
    small = batch_size * sum(p.numel() for p in model.parameters()) < 1e8
    with limited_threads(1 if small else torch.get_num_threads()):
        yield


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def choose_device(name: str) -> torch.device:
    """`auto` is the first accelerator with double precision, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if str(name) not in devices():
        raise InputError(f"Got device={str(name)!r}; expected one that is there: auto, {', '.join(devices())}.")
    return torch.device(name)


def devices() -> list[str]:
    """The names of what there is to compute with."""
    found, count = torch.accelerator.current_accelerator(), torch.accelerator.device_count()
    return ["cpu"] if found is None or not count else ["cpu", found.type, *(f"{found.type}:{k}" for k in range(count))]
