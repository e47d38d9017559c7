"""How often every row of a table counts: scikit-learn's `sample_weight`, as whole numbers of copies."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ...distributions import Head, RecordedNumber, default_head
from ...errors import InputError
from ...models.any_order import AnyOrderModel, build_model
from ...models.blend import FEW_CONDITIONS, Blend
from ...models.counts import Counted, estimate_worth
from ...models.memory import Memory
from ...models.pair_counts import MOST_PAIRS, PairCounted
from ...models.row_index import Recurring
from ...models.trained import Trained
from ...models.trees import Boosted
from ...schema import Mask, Recorded, Schema, Values
from ...training import Check, Fitted, Objective, Recipe, ardm, blending, fit, fit_share, fit_temperature, fit_weights, growing
from ...training.blending import Background, some_of
from ...training.distributed import this_world
from ...training.growing import TREES, KeptBack, fit_boosted, start_growing
from ...training.loop import M, limited_threads, repeated, split

MOST_COPIES = 10  # times the rows: whole weights that sum to more are taken as relative, as those of a survey are


def copies_of(sample_weight: Any, rows: int, seed: int) -> Int[Tensor, " row"]:
    """How many copies of every row its weight stands for.

    Whole weights are copies. Others, and whole ones that sum to more than ten times the rows, are relative: scaled so that they
    sum to the number of rows with a weight, and rounded up or down at random so that every row counts as it should on average.
    """
    weight = read_weights(sample_weight, rows)
    if (weight == np.round(weight)).all() and weight.sum() <= MOST_COPIES * rows:
        return torch.from_numpy(weight.astype(np.int64))
    share = weight / weight.max()
    marks = (share * ((weight > 0).sum() / share.sum())).cumsum() + np.random.default_rng(seed).random()
    return torch.from_numpy(np.diff(np.floor(marks), prepend=0).astype(np.int64))


def read_weights(sample_weight: Any, rows: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight cannot be read as numbers ({error}). Give one number for every row.") from error
    if weight.shape != (rows,):
        raise InputError(f"sample_weight has shape {weight.shape}; expected one number for each of the {rows} rows, ({rows},).")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        raise InputError(
            f"sample_weight[{wrong[0]}] is {weight[wrong[0]]:g} ({len(wrong)} such weight(s) in all); expected finite numbers of "
            "at least 0. Give rows that must not count the weight 0."
        )
    if not weight.any():
        raise InputError("sample_weight is zero for every row: there is nothing to learn from. Give some row a weight.")
    return weight


MOST_COLUMNS = 400  # of a table that has a memory and trees
FEW_ROWS, MOST_MEMORY_ROWS = 20, 2048  # below, a memory is pointless; above, it keeps that many, drawn at random
MEMORY_MUST_PAY_FROM = 20_000  # of which trees are grown once, without the rows kept back
MOST_NETWORK_STEPS = 45_000  # columns times the steps of a network, if that is at least 2000 and at most 6000 steps
LEAST_BETWEEN = 10  # steps between two checks, which cost as much as some
LEAST_TREES = 5  # however little the effort
ENOUGH_HELD_OUT = 20  # below a twentieth of the usual effort, weights and widths are learned in fewer steps too
NATS_THAT_PAY = 0.01  # nats a cell that the memory of a large table must save, since it is slow


class TrainedTable(NamedTuple):
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
    copies: Tensor | None = None,
    objective: Objective | None = None,
) -> TrainedTable:
    """Train the network, the memory (unless no row may be kept) and the trees, and weigh them on rows that none trained on.

    `copies` says how often every row counts, at least once; all copies of a row are trained on, or none, and no row is a
    witness of its own copies.

    Memory and trees, whose steps are few and large, are trained in the background. A table with very many columns has neither.
    """
    recipe = network_recipe(len(x) if copies is None else int(copies.sum()), len(schema), effort, seed, device)
    asked = ardm() if objective is None else objective.nats()
    recipe = recipe if objective is None else replace(recipe, objective=objective)
    world = this_world()
    network = build_model(schema, table_heads(schema), seed=seed)
    rows, rng = present.any(-1).nonzero().squeeze(-1), torch.Generator().manual_seed(seed)
    trained, held = parts = split(present, recipe)

    def fit_network() -> list[Check]:
        run = partial(fit, copies=copies, parts=parts, checkpoint=world.checkpoint, world=world)
        found = run(network, x, present, recipe, progress=progress)
        return raise_if_interrupted(found).history

    if len(rows) < FEW_ROWS:
        return TrainedTable(network, fit_network())
    if len(schema) > MOST_COLUMNS:
        history = fit_network()
        return TrainedTable(of_wide(network, x, present, parts, keep_rows, rng, copies, asked), history)
    if not world.is_writer:  # the first rank alone has memory and trees
        return TrainedTable(network, fit_network())
    kept = remembered(rows, seed)
    place = torch.full((len(x),), -1).scatter(0, kept, torch.arange(len(kept)))  # of every row in the memory
    all_rows, trained, held = (repeated(some, copies) for some in (rows, trained, held))
    with limited_threads(1), Background() as beside:
        count = max(LEAST_TREES, round(TREES * min(1.0, effort)))
        memory = (
            beside.start(fit_memory, schema, x[kept], present[kept], effort, seed, device, beside, of_rows(copies, kept))
            if keep_rows
            else None
        )
        early = start_growing(beside, schema, x[trained], present[trained], rng, count)
        enough = len(rows) > MEMORY_MUST_PAY_FROM  # a tenth more rows would not change the trees
        late = early if enough else start_growing(beside, schema, x[all_rows], present[all_rows], rng, count)
        history = fit_network()
        models = list[Trained]([network])
        if memory is not None:
            models.append(memory.result())
        kept_back = KeptBack(x[held], present[held], asked)
        widths = few_steps(effort, growing.SURENESS_STEPS)
        models.append(fit_boosted(schema, early.grown(), x[trained], present[trained], kept_back, rng, widths))
        seen, own = values_seen(schema, x, present, trained, copies), torch.stack([place[held], held], dim=-1)
        if copies is not None:
            own[:, 1] = -1  # not among the values that were seen
        model = weighed(
            models, x[held], present[held], seen, own if keep_rows else None, rng, few_steps(effort, blending.GATE_STEPS), asked
        )
        for member in model.members():
            if isinstance(member, Boosted) and not enough:
                member.plant(late.grown())  # from all rows
    final = with_counts(model, x, present, place, rng, copies)
    return TrainedTable(final if keep_rows else without_rows(final), history)


def of_wide(
    network: AnyOrderModel,
    x: Values,
    present: Mask,
    parts: tuple[Tensor, Tensor],
    keep_rows: bool,
    rng: torch.Generator,
    copies: Tensor | None,
    asked: Objective,
) -> Trained:
    """The network of a table with many columns, and counts: a memory's metric and trees grow with the square of the columns."""
    blend, (trained, held) = Blend([network]), (repeated(some, copies) for some in parts)
    if not keep_rows:
        return blend
    blend.remember(values_seen(network.schema, x, present, trained, copies))
    own = held if copies is None else torch.full_like(held, -1)
    fit_share(blend, x[held], present[held], asked, torch.stack([held * 0 - 1, own], dim=-1), rng)
    return with_counts(blend, x, present, torch.full((len(x),), -1), rng, copies)


def values_seen(schema: Schema, x: Values, present: Mask, trained: Tensor, copies: Tensor | None) -> Recurring:
    """Of all rows, each told apart from itself; where rows have copies, of those trained on alone, or copies would be told."""
    return Recurring(schema, x, present) if copies is None else Recurring(schema, x[trained], present[trained])


def of_rows(copies: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if copies is None else copies[rows]


def weighed(
    models: list[Trained],
    x: Values,
    present: Mask,
    seen: Recurring,
    own: Tensor | None,
    rng: torch.Generator,
    steps: int,
    asked: Objective,
) -> Blend:
    """The blend of those models that earn a weight on these rows, where such questions are asked of them.

    In large tables values recur, if rows may be kept (`own`).
    """
    blend = Blend(models)
    slow = len(seen.rows) > MOST_MEMORY_ROWS
    if own is not None and slow:  # a memory of all rows copies their values by itself
        blend.remember(seen)
        fit_share(blend, x, present, asked, own, rng)
    pays = [NATS_THAT_PAY if slow and isinstance(model, Memory) else 0.0 for model in models]
    kept = fit_weights(blend, x, present, asked, own, rng, steps, seen, pays, needed(models) if slow else ())
    rest = some_of(blend, kept)
    rest.weight.data = blend.weight.data[kept]
    if any(isinstance(variable.domain, Recorded) for variable in rest.schema):
        fit_temperature(rest, x, present, asked, own, rng)
    return rest


def needed(models: list[Trained]) -> list[int]:
    """How many variables must be known before models of a large table are asked: with few, all rows are counted instead."""
    half = -(-len(models[0].schema) // 2)
    return [half if isinstance(model, Boosted) else FEW_CONDITIONS + 1 if isinstance(model, Memory) else 0 for model in models]


def with_counts(
    blend: Blend, x: Values, present: Mask, place: Tensor, rng: torch.Generator, copies: Tensor | None = None
) -> Counted:
    """The blend corrected by counting all rows, each as often as it counts."""
    every = repeated(torch.arange(len(x)), copies)
    model = Counted(blend, x[every], present[every], place[every] if blend.has_memory else None)
    if copies is not None:
        model.copies = copies[every]
    estimate_worth(model, rng)
    return model


def without_rows(model: Counted) -> Trained:
    """Only how often bins go together is kept of the rows, or nothing, if there are too many bins."""
    return PairCounted.of(model) if sum(model.index.bins) ** 2 <= MOST_PAIRS else model.model.forget()


def few_steps(effort: float, steps: int) -> int:
    """Weights and widths have few parameters: only far below the usual effort do they get fewer steps."""
    return max(1, round(steps * min(1.0, ENOUGH_HELD_OUT * effort)))


def network_recipe(rows: int, columns: int, effort: float, seed: int, device: str) -> Recipe:
    """Small tables are passed many times in small batches; large ones get larger batches, and more steps if they are narrow."""
    most = min(max(MOST_NETWORK_STEPS // columns, 2000), 6000)
    steps = max(1, round(min(max(3 * rows // 2, 1000), most) * effort))
    return Recipe(
        objective=ardm(),  # any subset alike: better than MAC's paths, or half of them, wherever orders are mixed
        steps=steps,
        batch_size=64 if rows < 2000 else 128 if rows < 10_000 else 256,
        check_every=max(steps // 20, min(steps, LEAST_BETWEEN)),
        patience=5,
        seed=seed,
        device=device,
    )


def fit_memory(
    schema: Schema,
    x: Values,
    present: Mask,
    effort: float,
    seed: int,
    device: str,
    beside: Background,
    copies: Tensor | None = None,
) -> Memory:
    """The rows, and a metric under which each of them is predicted by the others."""
    steps = max(1, round(300 * min(1.0, effort)))
    recipe = Recipe(
        objective=ardm(),
        steps=steps,
        batch_size=32,
        learning_rate=0.1,
        weight_decay=0.0,
        average=0.95,
        check_every=steps,
        seed=seed,
        device=device,
    )
    memory = Memory(schema, x, present, copies)
    stop = memory.register_forward_pre_hook(lambda *_: beside.raise_if_cancelled())
    fitted = raise_if_interrupted(fit(memory, x, present, recipe, context=torch.arange(len(x))[:, None], copies=copies)).model
    stop.remove()
    return fitted


def raise_if_interrupted(fitted: Fitted[M]) -> Fitted[M]:
    """An interrupt ends the whole fit: the best weights so far of one part are no model of the table."""
    if fitted.stopped == "interrupted":
        raise KeyboardInterrupt
    return fitted


def remembered(rows: Tensor, seed: int) -> Tensor:
    """The rows to keep: all, or of a large table a random part."""
    if len(rows) <= MOST_MEMORY_ROWS:
        return rows
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:MOST_MEMORY_ROWS]].sort().values


def table_heads(schema: Schema) -> list[Head]:
    """All numbers have room for as many atoms as the one that has most: one kind of distribution for all of them."""
    room = max((len(v.domain.atoms) for v in schema if isinstance(v.domain, Recorded)), default=0)
    return [RecordedNumber(room) if isinstance(v.domain, Recorded) else default_head(v.domain) for v in schema]
