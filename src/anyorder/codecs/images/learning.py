"""Codecs learned from images: every stage of the pyramid is trained on its own, with whole numbers from the first step."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from ...data import ImageEncoder
from ...errors import InputError
from ...heads import default_head
from ...model import AnyOrderModel
from ...networks import IntegerUNet
from ...schema import Schema, Values
from ...subsets import CanonicalOrder, Planned
from ...subsets.questions import Regions
from ...training import Check, Recipe, fit
from ...training.depths import AnyStep
from ...training.edges import PathSampler
from ...training.fit import Anew
from ..blocks import squeezed
from ..goal import Goal, HopelessError
from .files import image_to_bytes
from .pyramid import ImageCodec, Plan, Stage, plans

STEPS = 2000  # of training of every stage, at an effort of 1
MOST_HELD_OUT = 512
AROUND = (3,)  # of which squares of colours a network is told the mean: 1 % shorter
Pixels = NDArray[Any]
Told = Callable[[int, Check], None]  # which stage, and how far it is


def fit_image_codec(
    encoder: ImageEncoder,
    x: Values,
    steps: int | Sequence[int] = STEPS,
    seed: int = 0,
    progress: Told | None = None,
    checkpoint: Path | None = None,
    anew: Anew | None = None,
) -> ImageCodec:
    """Trained on encoded images, every stage for so many steps; `anew` makes the values of every batch from them."""
    stages, all_plans = [], plans(encoder)
    for number, (plan, count) in enumerate(zip(all_plans, each(steps, len(all_plans)), strict=True)):
        model = untrained(encoder, plan, seed)
        lattice = x.unflatten(1, encoder.shape)[:, :: plan.stride, :: plan.stride].flatten(1)
        fitted = fit(
            model,
            lattice,
            torch.ones_like(lattice, dtype=torch.bool),
            stage_recipe(plan, len(x), count, seed),
            None,
            None if progress is None else partial(progress, number),
            None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.{number}"),
            anew,
        )
        if fitted.stopped == "interrupted":
            raise KeyboardInterrupt
        stages.append(Stage(plan, frozen(fitted.model)))
    return ImageCodec(encoder, tuple(stages))


def each(steps: int | Sequence[int], stages: int) -> list[int]:
    counts = [steps] * stages if isinstance(steps, int) else list(steps)
    if len(counts) != stages or min(counts) < 1:
        raise InputError(f"Got steps={steps}; expected one positive number, or one for each of {stages} stages.")
    return counts


def fit_own_codec(
    images: Pixels, otherwise: int, effort: float = 1.0, seed: int = 0, done: Callable[[int, int], None] | None = None
) -> ImageCodec | None:
    """A codec for these images alone, if it could pay to keep it with them: without one they take `otherwise` bytes."""
    try:
        encoder = ImageEncoder.learn(images)
    except InputError:
        return None
    stages = [Stage(plan, frozen(untrained(encoder, plan, seed))) for plan in plans(encoder)]
    size = len(squeezed(image_to_bytes(ImageCodec(encoder, tuple(stages)))))
    if otherwise < 2 * size:
        return None
    goal = Goal(otherwise - size // 2, len(images))

    def told(stage: int, check: Check) -> None:
        if done is not None:
            done(stage * check.steps + check.step, len(stages) * check.steps)
        goal(check, stage)

    try:
        return fit_image_codec(encoder, encoder.encode(images), steps_at(effort), seed, told)
    except HopelessError:
        return None


def steps_at(effort: float) -> int:
    return max(1, round(STEPS * effort))


def untrained(encoder: ImageEncoder, plan: Plan, seed: int) -> AnyOrderModel:
    """A network for one lattice: the coarser ones are cheap, so they may be wider."""
    schema = Schema.repeat(encoder.schema.variables[0].domain, len(plan.order))
    head = default_head(schema.variables[0].domain)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        near = AROUND if encoder.colours else ()
        network = IntegerUNet(schema, head.width * len(schema), plan.shape, widths_of(plan), 1, around=near)
    return AnyOrderModel(schema, [head] * len(schema), network)


def widths_of(plan: Plan) -> tuple[int, ...]:
    if plan.places[-1] == len(plan.order):  # the first lattice
        return (48,)
    return (16, 48) if plan.stride == 1 else (32, 64)


def stage_recipe(plan: Plan, images: int, steps: int, seed: int) -> Recipe:
    """Every network call of the plan is practised alike."""
    return Recipe(
        PathSampler(Regions(~plan.known[None]), CanonicalOrder(plan.order), AnyStep(Planned(plan.places))),
        steps,
        batch_size=16,
        learning_rate=4e-3,
        average=0.9998 if steps > 20_000 else 0.999,
        held_out=min(0.1, MOST_HELD_OUT / max(images, 1)),
        check_every=max(min(steps, 20), steps // 10),
        patience=40,
        seed=seed,
        device="cpu",
    )


def frozen(model: AnyOrderModel) -> AnyOrderModel:
    """The same laws from whole numbers alone."""
    assert isinstance(model.network, IntegerUNet)
    return AnyOrderModel(model.schema, model.heads, model.network.freeze()).eval()
