"""The model that suits a table: a network and a memory of its rows, blended by what each is worth on rows kept back."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .blend import Blend
from .heads import Head, RecordedNumber, default_head
from .memory import Memory
from .model import AnyOrderModel, build_model
from .schema import Mask, Recorded, Schema, Values
from .training import Check, Recipe, ardm, fit, fit_weights
from .training.fit import Fitted, M, limited_threads, split

FEW_ROWS, MOST_ROWS = 20, 2048  # below, a memory is pointless; above, it keeps that many, drawn at random
WORTH_IT = 0.02  # a model with less weight than this everywhere is left out of the blend


class TableModel(NamedTuple):
    """What was trained, and every check on the way."""

    model: AnyOrderModel | Memory | Blend
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
    """Train the network, then the memory unless no row may be kept, and weigh them on the rows that neither trained on."""
    recipe = network_recipe(len(x), effort, seed, device)
    network = build_model(schema, table_heads(schema), seed=seed)
    history = to_the_end(fit(network, x, present, recipe, progress=progress)).history
    rows = present.any(-1).nonzero().squeeze(-1)
    if not keep_rows or len(rows) < FEW_ROWS:
        return TableModel(network, history)
    held = split(present, recipe)[1]
    kept = remembered(rows, seed)
    memory = fit_memory(schema, x[kept], present[kept], effort, seed, device)
    blend = Blend([network, memory])
    own = (held[:, None] == kept).int()
    place = torch.where(own.any(-1), own.argmax(-1), -1)[:, None]
    with limited_threads(1):
        fit_weights(blend, x[held], present[held], ardm(), [None, place], torch.Generator().manual_seed(seed))
    return TableModel(worth_keeping(blend), history)


def network_recipe(rows: int, effort: float, seed: int, device: str) -> Recipe:
    """Small tables are passed many times in small batches; large ones get larger batches and more steps."""
    steps = 1500 if rows < 5000 else 4000
    steps = max(1, round(steps * effort))
    return Recipe(
        law=ardm(),  # any subset alike: better than MAC's paths, or half of them, wherever orders are mixed
        steps=steps,
        batch_size=64 if rows < 5000 else 256,
        check_every=max(1, steps // 20),
        patience=5,
        seed=seed,
        device=device,
    )


def fit_memory(schema: Schema, x: Values, present: Mask, effort: float, seed: int, device: str) -> Memory:
    """The rows, and a metric under which each of them is predicted by the others."""
    steps = max(1, round(300 * min(1.0, effort)))
    recipe = Recipe(
        law=ardm(),
        steps=steps,
        batch_size=32,
        learning_rate=0.05,
        weight_decay=0.0,
        average=0.95,
        check_every=steps,
        seed=seed,
        device=device,
    )
    memory = Memory(schema, x, present)
    return to_the_end(fit(memory, x, present, recipe, context=torch.arange(len(x))[:, None])).model


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


def worth_keeping(blend: Blend) -> AnyOrderModel | Memory | Blend:
    """The blend, or the one model that has all the weight: a memory that does not pay costs time and keeps rows for nothing."""
    ends = torch.stack([torch.zeros(len(blend.schema)), torch.ones(len(blend.schema))]).bool()
    share = blend.log_weight(ends).exp().amax((0, 1))
    members = [model for model, most in zip(blend.members(), share, strict=True) if most > WORTH_IT]
    return blend if len(members) == len(share) else members[0]


def table_heads(schema: Schema) -> list[Head]:
    """All numbers have room for as many atoms as the one that has most: one kind of law for all of them."""
    room = max((len(v.domain.atoms) for v in schema if isinstance(v.domain, Recorded)), default=0)
    return [RecordedNumber(room) if isinstance(v.domain, Recorded) else default_head(v.domain) for v in schema]
