"""A codec as bytes, for a file of its own or inside an archive: whole numbers, plans, and what the networks must answer."""

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ..data import ImageEncoder
from ..errors import FormatError, InputError
from ..files import write_bytes
from ..model import AnyOrderModel
from ..networks import IntegerUNet, exactly, int8
from ..schema import levels_of
from ..training.description import BAD_CONTENT, describe, rebuild_network
from .pyramid import ImageCodec, Plan, Stage
from .table import TableCodec
from .table_files import KIND, table_fingerprint, table_from_bytes, table_to_bytes

FORMAT = 1
MOST_STAGES = 16


def to_bytes(codec: ImageCodec | TableCodec) -> bytes:
    """The same bytes for the same codec."""
    if isinstance(codec, TableCodec):
        return table_to_bytes(codec)
    stages = [{"plan": s.plan.to_json(), "answers": answers(s.model), **described(s.model)} for s in codec.stages]
    about = {"format": FORMAT, "kind": "codec", "images": codec.encoder.to_json(), "stages": stages}
    tensors = {f"{k}.{name}": t for k, s in enumerate(codec.stages) for name, t in s.model.state_dict().items()}
    return save(tensors, {"anyorder": json.dumps(about)})


def described(model: AnyOrderModel) -> dict[str, Any]:
    """All variables of a lattice are alike: one is enough, and their number."""
    about = describe(model)
    return {"domain": about["schema"][0], "head": about["heads"][0], "variables": len(model.schema), "network": about["network"]}


def from_bytes(content: bytes, name: str = "The codec") -> ImageCodec | TableCodec:
    """What `to_bytes` wrote, proved to be exact, and tried on this machine. Opening a stranger's bytes runs none of them."""
    try:
        about, tensors = json.loads(header(content)["__metadata__"]["anyorder"]), load(content)
        if about["kind"] == KIND:
            return table_from_bytes(about, tensors, name)
        if int(about["format"]) > FORMAT:
            raise FormatError(f"{name} has format {about['format']}; this version reads up to {FORMAT}. Upgrade anyorder.")
        if about["kind"] != "codec" or not 1 <= len(about["stages"]) <= MOST_STAGES:
            raise FormatError(f"{name} holds a {about['kind']}, expected a codec.")
        stages = [rebuilt(name, item, share(tensors, k)) for k, item in enumerate(about["stages"])]
        codec = ImageCodec(ImageEncoder.from_json(about["images"]), tuple(stages))
    except (*BAD_CONTENT, SafetensorError, struct.error) as error:
        raise FormatError(f"{name} is no codec of anyorder ({error}).") from error
    check_lattices(name, codec)
    return codec


def header(content: bytes) -> Any:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + min(length, len(content))])


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
    if answers(model) != item["answers"]:
        raise FormatError(
            f"{name} gives other answers here than where it was made: it is damaged, or this machine's arithmetic is not exact."
        )
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


def answers(model: AnyOrderModel) -> int:
    """The checksum of what the network says about three made-up rows."""
    row, place = torch.arange(3)[:, None], torch.arange(len(model.schema))
    x = ((7919 * place + 104729 * row) % levels_of(model.schema.variables[0].domain)).float()
    with exactly():
        said = model.network(x, (31 * place + 17 * row) % 3 == 0)
    return zlib.crc32((said * 1024).to(torch.int32).numpy().tobytes())


def fingerprint(codec: ImageCodec | TableCodec) -> str:
    """Of all that decoding depends on, written down in a way that no later version changes: archives keep it for ever."""
    if isinstance(codec, TableCodec):
        return table_fingerprint(codec)
    pixels, digest = codec.encoder, hashlib.sha256()
    told: list[Any] = [[pixels.height, pixels.width, pixels.channels, pixels.levels, pixels.colours, pixels.base]]
    for stage in codec.stages:
        plan, head, sizes = stage.plan, stage.model.heads[0].to_json(), stage.model.network.sizes
        told.append([plan.stride, plan.shape, plan.order, plan.places, sorted(head.items())])
        told.append([sizes[key] for key in ("shape", "widths", "depth", "patch")])
        for name, tensor in sorted(stage.model.state_dict().items()):
            told.append([name, str(tensor.dtype), tensor.shape])
            digest.update(tensor.contiguous().numpy().tobytes())
    digest.update(json.dumps(told).encode())
    return digest.hexdigest()[:32]


def save_codec(codec: ImageCodec | TableCodec, path: str | Path) -> None:
    write_bytes(Path(path), to_bytes(codec))


def load_codec(path: str | Path) -> ImageCodec | TableCodec:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}.")
    return from_bytes(path.read_bytes(), path.name)
