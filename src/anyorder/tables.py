"""The model that suits a table: a network, a memory of its rows and boosted trees, blended by what each is worth elsewhere."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .blend import FARTHEST, Blend, Circumstances, Member, Trained, members_of
from .boosting import Boosted
from .heads import Head, RecordedNumber, default_head
from .memory import Memory
from .model import build_model
from .schema import Mask, Recorded, Schema, Values
from .training import Check, Recipe, ardm, blending, boosting, fit, fit_temperature, fit_weights
from .training.background import Background
from .training.boosting import TREES, KeptBack, fit_boosted, start_growing
from .training.fit import Fitted, M, limited_threads, split

FEW_ROWS, MOST_ROWS = 20, 2048  # below, a memory is pointless; above, it keeps that many, drawn at random
LEAST_TREES = 5  # however little the effort
ENOUGH = 20  # below a twentieth of the usual effort, weights and widths are learned in fewer steps too
WORTH_IT = 0.02  # a model with less weight than this everywhere is left out of the blend


class TableModel(NamedTuple):
    """What was trained, and every check on the way."""

    model: Trained
    history: list[Check]


def fit_table(
    schema: Schema,
    x: Values,
    present: Mask,
    effort: float = 1.0,
    keep_rows: bool = True,
    seed: int = 0,
    device: str = "auto",
    progress: Callable[[Check], None] | None = None,
) -> TableModel:
    """Train the network, the memory (unless no row may be kept) and the trees, and weigh them on rows that none trained on.

    Memory and trees, whose steps are few and large, are trained in the background.
    """
    recipe = network_recipe(len(x), effort, seed, device)
    network = build_model(schema, table_heads(schema), seed=seed)
    rows, rng = present.any(-1).nonzero().squeeze(-1), torch.Generator().manual_seed(seed)
    if len(rows) < FEW_ROWS:
        return TableModel(network, to_the_end(fit(network, x, present, recipe, progress=progress)).history)
    (trained, held), kept = split(present, recipe), remembered(rows, seed)
    with limited_threads(1), Background() as beside:
        count = max(LEAST_TREES, round(TREES * min(1.0, effort)))
        memory = beside.start(fit_memory, schema, x[kept], present[kept], effort, seed, device, beside) if keep_rows else None
        early = start_growing(beside, schema, x[trained], present[trained], rng, count)
        late = start_growing(beside, schema, x[rows], present[rows], rng, count)
        history = to_the_end(fit(network, x, present, recipe, progress=progress)).history
        models = list[Member]([network])
        if memory is not None:
            models.append(memory.result())
        if early.jobs:
            kept_back = KeptBack(x[held], present[held], ardm())
            widths = few_steps(effort, boosting.STEPS)
            models.append(fit_boosted(schema, early.grown(), x[trained], present[trained], kept_back, rng, widths))
        own = place_among(held, kept) if memory is not None else None
        model = weighed(models, x[held], present[held], own, rng, few_steps(effort, blending.STEPS))
        for member in members_of(model):
            if isinstance(member, Boosted):
                member.plant(late.grown())  # from all rows
    return TableModel(model, history)


def weighed(models: list[Member], x: Values, present: Mask, own: Tensor | None, rng: torch.Generator, steps: int) -> Trained:
    """The blend of those models that earn a weight on these rows."""
    blend = Blend(models)
    fit_weights(blend, x, present, ardm(), own, rng, steps)
    model = worth_keeping(blend)
    own = own if any(isinstance(member, Memory) for member in members_of(model)) else None
    if isinstance(model, Blend) and any(isinstance(variable.domain, Recorded) for variable in model.schema):
        fit_temperature(model, x, present, ardm(), own, rng)
    return model


def few_steps(effort: float, steps: int) -> int:
    """Weights and widths have few parameters: only far below the usual effort do they get fewer steps."""
    return max(1, round(steps * min(1.0, ENOUGH * effort)))


def network_recipe(rows: int, effort: float, seed: int, device: str) -> Recipe:
    """Small tables are passed many times in small batches; large ones get larger batches and more steps."""
    steps = min(max(3 * rows // 2, 1000), 6000)
    steps = max(1, round(steps * effort))
    return Recipe(
        law=ardm(),  # any subset alike: better than MAC's paths, or half of them, wherever orders are mixed
        steps=steps,
        batch_size=64 if rows < 2000 else 128 if rows < 10_000 else 256,
        check_every=max(1, steps // 20),
        patience=5,
        seed=seed,
        device=device,
    )


def fit_memory(schema: Schema, x: Values, present: Mask, effort: float, seed: int, device: str, beside: Background) -> Memory:
    """The rows, and a metric under which each of them is predicted by the others."""
    steps = max(1, round(300 * min(1.0, effort)))
    recipe = Recipe(
        law=ardm(),
        steps=steps,
        batch_size=32,
        learning_rate=0.1,
        weight_decay=0.0,
        average=0.95,
        check_every=steps,
        seed=seed,
        device=device,
    )
    memory = Memory(schema, x, present)
    stop = memory.register_forward_pre_hook(lambda *_: beside.go_on())
    fitted = to_the_end(fit(memory, x, present, recipe, context=torch.arange(len(x))[:, None])).model
    stop.remove()
    return fitted


def to_the_end(fitted: Fitted[M]) -> Fitted[M]:
    """An interrupt ends the whole fit: the best weights so far of one part are no model of the table."""
    if fitted.stopped == "interrupted":
        raise KeyboardInterrupt
    return fitted


def remembered(rows: Tensor, seed: int) -> Tensor:
    """The rows to keep: all, or of a large table a random part."""
    if len(rows) <= MOST_ROWS:
        return rows
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:MOST_ROWS]].sort().values


def place_among(rows: Tensor, kept: Tensor) -> Tensor:
    """Where each row is among those kept, -1 if it is not: one column of codes."""
    own = (rows[:, None] == kept).int()
    return torch.where(own.any(-1), own.argmax(-1), -1)[:, None]


def worth_keeping(blend: Blend) -> Trained:
    """The blend, or the one model that has all the weight: a memory that does not pay costs time and keeps rows for nothing."""
    variable, none = torch.arange(len(blend.schema)), torch.zeros(len(blend.schema))
    corners = [Circumstances(variable, none + known, none + far) for known in (0.0, 1.0) for far in (0.0, FARTHEST)]
    share = torch.stack([blend.log_weight(corner) for corner in corners]).exp().amax((0, 1))
    kept = [place for place, most in enumerate(share.tolist()) if most > WORTH_IT]
    members = [blend.members()[place] for place in kept]
    if len(members) == 1:
        return members[0]
    rest = Blend(members)
    rest.weight.data = blend.weight.data[kept]
    return rest


def table_heads(schema: Schema) -> list[Head]:
    """All numbers have room for as many atoms as the one that has most: one kind of law for all of them."""
    room = max((len(v.domain.atoms) for v in schema if isinstance(v.domain, Recorded)), default=0)
    return [RecordedNumber(room) if isinstance(v.domain, Recorded) else default_head(v.domain) for v in schema]
