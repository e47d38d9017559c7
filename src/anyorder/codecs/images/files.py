"""A codec of images as bytes: plans, whole numbers of the networks, and what these must answer."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from ...data import ImageEncoder
from ...errors import FormatError
from ...model import AnyOrderModel
from ...networks import IntegerUNet, int8
from ...training.description import describe, rebuild_network
from ..proofs import answers, check_answers, digest_of
from .pyramid import ImageCodec, Plan, Stage

FORMAT = 1
KIND = "codec"
MOST_STAGES = 16


def image_to_bytes(codec: ImageCodec) -> bytes:
    """The same bytes for the same codec."""
    stages = [{"plan": s.plan.to_json(), "answers": answers(s.model), **described(s.model)} for s in codec.stages]
    about = {"format": FORMAT, "kind": KIND, "images": codec.encoder.to_json(), "stages": stages}
    tensors = {f"{k}.{name}": t for k, s in enumerate(codec.stages) for name, t in s.model.state_dict().items()}
    return save(tensors, {"anyorder": json.dumps(about)})


def described(model: AnyOrderModel) -> dict[str, Any]:
    """All variables of a lattice are alike: one is enough, and their number."""
    about = describe(model)
    return {"domain": about["schema"][0], "head": about["heads"][0], "variables": len(model.schema), "network": about["network"]}


def image_from_bytes(about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> ImageCodec:
    if int(about["format"]) > FORMAT:
        raise FormatError(f"{name} has format {about['format']}; this version reads up to {FORMAT}. Upgrade anyorder.")
    if about["kind"] != KIND or not 1 <= len(about["stages"]) <= MOST_STAGES:
        raise FormatError(f"{name} holds a {about['kind']}, expected a codec.")
    stages = [rebuilt(name, item, share(tensors, k)) for k, item in enumerate(about["stages"])]
    codec = ImageCodec(ImageEncoder.from_json(about["images"]), tuple(stages))
    check_lattices(name, codec)
    return codec


def share(tensors: dict[str, Tensor], stage: int) -> dict[str, Tensor]:
    return {key.removeprefix(f"{stage}."): t for key, t in tensors.items() if key.startswith(f"{stage}.")}


def rebuilt(name: str, item: dict[str, Any], tensors: dict[str, Tensor]) -> Stage:
    plan, count = Plan.from_json(item["plan"]), int(item["variables"])
    if count != len(plan.order) or item["network"]["kind"] != IntegerUNet.kind or item["network"].get("frozen") is not True:
        raise FormatError(f"{name} contradicts itself: a stage has a network that is not of its plan.")
    variables = [{**item["domain"], "name": str(i)} for i in range(count)]
    about = {"schema": variables, "heads": [item["head"]] * count, "network": item["network"]}
    model = rebuild_network(Path(name), about, tensors)
    assert isinstance(model.network, IntegerUNet)
    for layer in model.network.layers():
        layer.check_bound()
    check_answers(name, model, item["answers"])
    accelerate(model, item["answers"])
    return Stage(plan, model)


def accelerate(model: AnyOrderModel, wanted: int) -> None:
    """Compute with bytes if this machine can, and if the answers stay the same."""
    network = model.network
    assert isinstance(network, IntegerUNet)
    try:
        network.int8 = int8.available()
        network.int8 = network.int8 and answers(model) == wanted
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
