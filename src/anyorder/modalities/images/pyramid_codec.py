"""Images coded from coarse to fine: a small lattice of pixels first, then what halves its spacing, each by its own network.

Every stage sees the lattice it refines. The first draws its pixels in a fixed order, few at a time; every later one needs two
network calls: the pixels diagonally between known ones, then all others, each with a known one on all four sides.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from ...archives.archive import Goal, HopelessError
from ...archives.blocks import squeezed
from ...archives.codecs import Codec, check_proof, coded, digest_of, proof_answers
from ...coding import Coder, Decoder, Encoder
from ...distributions import default_head
from ...errors import FormatError, InputError
from ...inference import walk
from ...models.any_order import AnyOrderModel
from ...models.conditionals import NetworkDistributions
from ...models.trained import rebuilt, tensors_of
from ...networks import IntegerUNet, exactly, integer
from ...schema import Schema, Values
from ...subsets import CanonicalOrder, Planned, Quadratic, Question, Regions
from ...training import Check, PathObjective, Recipe, fit
from ...training.loop import Resample
from ...training.objectives import AnyStep
from .pixels import ImageEncoder
from .regions import Region

COARSEST = 7  # the first lattice has no side below this, if the image has not
MOST_IMAGE_VALUES = 2**23  # of a block
FIRST_CALLS = 12  # network calls for the first lattice


@final
@dataclass(frozen=True)
class StagePlan:
    """How one lattice of pixels is coded: which of them are known before, in which order the others come, how many at once."""

    stride: int  # every so many pixels of the image, in both directions
    shape: tuple[int, int, int]
    order: tuple[int, ...]  # all pixels, known ones first
    places: tuple[int, ...]  # after how many new pixels a network call ends

    @property
    def known(self) -> Region:
        out = torch.ones(len(self.order), dtype=torch.bool)
        out[list(self.order[len(self.order) - self.places[-1] :])] = False
        return out

    def to_json(self) -> dict[str, Any]:
        return {"stride": self.stride, "shape": list(self.shape), "order": list(self.order), "places": list(self.places)}

    @classmethod
    def from_json(cls, item: dict[str, Any]) -> "StagePlan":
        plan = cls(int(item["stride"]), tuple(item["shape"]), tuple(item["order"]), tuple(item["places"]))
        size = plan.shape[0] * plan.shape[1] * plan.shape[2]
        if len(plan.shape) != 3 or sorted(plan.order) != list(range(size)) or not 0 < plan.places[-1] <= size or plan.stride < 1:
            raise FormatError("A plan does not name every pixel of its lattice once.")
        return plan


def plans(encoder: ImageEncoder) -> list[StagePlan]:
    """From the coarsest lattice to the whole image."""
    height, width, channels = encoder.shape
    strides = [1]
    while min(-(-height // (2 * strides[0])), -(-width // (2 * strides[0]))) >= COARSEST:
        strides.insert(0, 2 * strides[0])
    shapes = [(-(-height // s), -(-width // s), channels) for s in strides]
    return [first_plan(strides[0], shapes[0])] + [finer_plan(*pair) for pair in zip(strides[1:], shapes[1:], strict=True)]


def first_plan(stride: int, shape: tuple[int, int, int]) -> StagePlan:
    """Any fixed order does that does not go from neighbour to neighbour."""
    count = shape[0] * shape[1] * shape[2]
    places = Quadratic(min(FIRST_CALLS, count)).bounds(torch.tensor([[count]]))[0].unique()
    order = np.random.Generator(np.random.PCG64(0)).permutation(count)
    return StagePlan(stride, shape, tuple(order.tolist()), tuple(places.tolist()))


def finer_plan(stride: int, shape: tuple[int, int, int]) -> StagePlan:
    """Diagonally between known pixels, then all others."""
    rows, columns, _ = np.meshgrid(*map(np.arange, shape), indexing="ij")
    turn = np.where((rows + columns) % 2 == 1, 2, rows % 2)
    counts = np.bincount(turn.ravel(), minlength=3)[1:]
    places = np.unique([0, *np.cumsum(counts)])
    return StagePlan(stride, shape, tuple(np.argsort(turn.ravel(), kind="stable").tolist()), tuple(places.tolist()))


@final
@dataclass(frozen=True)
class Stage:
    """A plan and the model that knows it."""

    plan: StagePlan
    model: AnyOrderModel

    def code(self, coder: Coder, x: Values) -> Values:
        """The lattice of every row, its new pixels coded; when decoding, they are read into it."""
        known = self.plan.known.expand(len(x), -1)
        steps = walk(
            self.model,
            x,
            Question(known, ~known),
            order=CanonicalOrder(self.plan.order),
            schedule=Planned(self.plan.places),
        )
        with exactly():
            for step in steps:
                (part,) = step.conditionals.parts
                assert isinstance(part, NetworkDistributions)
                symbols = coded(coder, self.model.heads[0], part.params[step.now], x[step.now].long().numpy())
                x[step.now] = torch.from_numpy(symbols).to(x.dtype)
        return x


@final
@dataclass(frozen=True)
class ImageCodec(Codec):
    """Codes rows of pixels of one kind of images."""

    encoder: ImageEncoder
    stages: tuple[Stage, ...]

    kind = "codec"  # the first there was

    @property
    def most_rows(self) -> int:
        """Of a block: while it is coded, a value takes some hundred bytes."""
        return max(1, MOST_IMAGE_VALUES // len(self.encoder))

    def encode(self, x: Values) -> bytes:
        coder = Encoder()
        self._code(coder, x.clone())
        return coder.content()

    def decode(self, content: bytes, rows: int) -> Values:
        return self._code(Decoder(content), torch.zeros(rows, len(self.encoder)))

    def content(self) -> bytes:
        return image_to_bytes(self)

    @classmethod
    def rebuilt(cls, about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> "ImageCodec":
        return image_from_bytes(about, tensors, name)

    def fingerprint(self) -> str:
        return image_fingerprint(self)

    def _code(self, coder: Coder, x: Values) -> Values:
        pixels = x.unflatten(1, self.encoder.shape)
        for stage in self.stages:
            lattice = pixels[:, :: stage.plan.stride, :: stage.plan.stride]
            lattice.copy_(stage.code(coder, lattice.flatten(1)).view_as(lattice))
        return x


IMAGE_CODEC_STEPS = 2000  # of training of every stage, at an effort of 1
MOST_HELD_OUT_IMAGES = 512
AROUND = (3,)  # of which squares of colours a network is told the mean: 1 % shorter
Pixels = NDArray[Any]
Told = Callable[[int, Check], None]  # which stage, and how far it is


def fit_image_codec(
    encoder: ImageEncoder,
    x: Values,
    steps: int | Sequence[int] = IMAGE_CODEC_STEPS,
    seed: int = 0,
    progress: Told | None = None,
    checkpoint: Path | None = None,
    resample: Resample | None = None,
) -> ImageCodec:
    """Trained on encoded images, every stage for so many steps; `resample` makes the values of every batch from them."""
    stages, all_plans = [], plans(encoder)
    for number, (plan, count) in enumerate(zip(all_plans, each(steps, len(all_plans)), strict=True)):
        model = untrained_stage(encoder, plan, seed)
        lattice = x.unflatten(1, encoder.shape)[:, :: plan.stride, :: plan.stride].flatten(1)
        fitted = fit(
            model,
            lattice,
            torch.ones_like(lattice, dtype=torch.bool),
            stage_recipe(plan, len(x), count, seed),
            None,
            None if progress is None else partial(progress, number),
            None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.{number}"),
            resample,
        )
        if fitted.stopped == "interrupted":
            raise KeyboardInterrupt
        stages.append(Stage(plan, frozen_stage(fitted.model)))
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
    stages = [Stage(plan, frozen_stage(untrained_stage(encoder, plan, seed))) for plan in plans(encoder)]
    size = len(squeezed(image_to_bytes(ImageCodec(encoder, tuple(stages)))))
    if otherwise < 2 * size:
        return None
    goal = Goal(otherwise - size // 2, len(images))

    def told(stage: int, check: Check) -> None:
        if done is not None:
            done(stage * check.steps + check.step, len(stages) * check.steps)
        goal(check, stage)

    try:
        return fit_image_codec(encoder, encoder.encode(images), codec_steps(effort), seed, told)
    except HopelessError:
        return None


def codec_steps(effort: float) -> int:
    return max(1, round(IMAGE_CODEC_STEPS * effort))


def untrained_stage(encoder: ImageEncoder, plan: StagePlan, seed: int) -> AnyOrderModel:
    """A network for one lattice: the coarser ones are cheap, so they may be wider."""
    schema = Schema.repeat(encoder.schema.variables[0].domain, len(plan.order))
    head = default_head(schema.variables[0].domain)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        near = AROUND if encoder.colours else ()
        network = IntegerUNet(schema, head.width * len(schema), plan.shape, widths_of(plan), 1, around=near)
    return AnyOrderModel(schema, [head] * len(schema), network)


def widths_of(plan: StagePlan) -> tuple[int, ...]:
    if plan.places[-1] == len(plan.order):  # the first lattice
        return (48,)
    return (16, 48) if plan.stride == 1 else (32, 64)


def stage_recipe(plan: StagePlan, images: int, steps: int, seed: int) -> Recipe:
    """Every network call of the plan is practised alike."""
    return Recipe(
        PathObjective(Regions(~plan.known[None]), CanonicalOrder(plan.order), AnyStep(Planned(plan.places))),
        steps,
        batch_size=16,
        learning_rate=4e-3,
        average=0.9998 if steps > 20_000 else 0.999,
        held_out=min(0.1, MOST_HELD_OUT_IMAGES / max(images, 1)),
        check_every=max(min(steps, 20), steps // 10),
        patience=40,
        seed=seed,
        device="cpu",
    )


def frozen_stage(model: AnyOrderModel) -> AnyOrderModel:
    """The same distributions from whole numbers alone."""
    assert isinstance(model.network, IntegerUNet)
    return AnyOrderModel(model.schema, model.heads, model.network.freeze()).eval()


IMAGE_CODEC_FORMAT = 1
MOST_STAGES = 16


def image_to_bytes(codec: ImageCodec) -> bytes:
    """The same bytes for the same codec."""
    stages = [{"plan": s.plan.to_json(), "answers": proof_answers(s.model), **describe_stages(s.model)} for s in codec.stages]
    about = {"format": IMAGE_CODEC_FORMAT, "kind": ImageCodec.kind, "images": codec.encoder.to_json(), "stages": stages}
    tensors = {f"{k}.{name}": t for k, s in enumerate(codec.stages) for name, t in s.model.state_dict().items()}
    return save(tensors, {"anyorder": json.dumps(about)})


def describe_stages(model: AnyOrderModel) -> dict[str, Any]:
    """All variables of a lattice are alike: one is enough, and their number."""
    about = model.describe()
    return {"domain": about["schema"][0], "head": about["heads"][0], "variables": len(model.schema), "network": about["network"]}


def image_from_bytes(about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> ImageCodec:
    if int(about["format"]) > IMAGE_CODEC_FORMAT:
        raise FormatError(
            f"{name} has format {about['format']}; this version reads up to {IMAGE_CODEC_FORMAT}. Upgrade anyorder."
        )
    if not 1 <= len(about["stages"]) <= MOST_STAGES:
        raise FormatError(f"{name} holds a codec of {len(about['stages'])} stages; expected 1 to {MOST_STAGES}.")
    stages = [rebuilt_stage(name, item, tensors_of(str(k), tensors)) for k, item in enumerate(about["stages"])]
    codec = ImageCodec(ImageEncoder.from_json(about["images"]), tuple(stages))
    check_lattices(name, codec)
    return codec


def rebuilt_stage(name: str, item: dict[str, Any], tensors: dict[str, Tensor]) -> Stage:
    plan, count = StagePlan.from_json(item["plan"]), int(item["variables"])
    if count != len(plan.order) or item["network"]["kind"] != IntegerUNet.kind or item["network"].get("frozen") is not True:
        raise FormatError(f"{name} contradicts itself: a stage has a network that is not of its plan.")
    variables = [{**item["domain"], "name": str(i)} for i in range(count)]
    about = {"kind": AnyOrderModel.kind, "schema": variables, "heads": [item["head"]] * count, "network": item["network"]}
    model = rebuilt(name, about, tensors)
    assert isinstance(model, AnyOrderModel)
    assert isinstance(model.network, IntegerUNet)
    for layer in model.network.layers():
        layer.check_bound()
    check_proof(name, model, item["answers"])
    accelerate(model, item["answers"])
    return Stage(plan, model)


def accelerate(model: AnyOrderModel, wanted: int) -> None:
    """Compute with bytes if this machine can, and if the answers stay the same."""
    network = model.network
    assert isinstance(network, IntegerUNet)
    try:
        network.int8 = integer.int8_available()
        network.int8 = network.int8 and proof_answers(model) == wanted
    except RuntimeError:  # what torch raises where there is no such kernel
        network.int8 = False


def check_lattices(name: str, codec: ImageCodec) -> None:
    """Every pixel is coded once: each lattice refines the one before it, the last is the image."""
    height, width, channels = codec.encoder.shape
    before = torch.zeros(height, width, channels, dtype=torch.bool)
    for stage in codec.stages:
        lattice = before[:: stage.plan.stride, :: stage.plan.stride]
        if lattice.shape != torch.Size(stage.plan.shape) or not torch.equal(lattice.flatten(), stage.plan.known):
            raise FormatError(f"{name} contradicts itself: its stages do not code every pixel once.")
        lattice[:] = True
    if not before.all():
        raise FormatError(f"{name} contradicts itself: its stages leave pixels out.")


def image_fingerprint(codec: ImageCodec) -> str:
    """Of all that decoding depends on."""
    pixels, stages = codec.encoder, []
    for stage in codec.stages:
        plan, head, sizes = stage.plan, stage.model.heads[0].to_json(), stage.model.network.sizes
        about = [plan.stride, plan.shape, plan.order, plan.places, sorted(head.items())]
        told = [sizes[key] for key in ("shape", "widths", "depth", "patch", "around") if key in sizes]
        stages.append((stage.model, [about, told]))
    return digest_of([[pixels.height, pixels.width, pixels.channels, pixels.levels, pixels.colours, pixels.base]], stages)
