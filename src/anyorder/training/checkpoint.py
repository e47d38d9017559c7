"""Models and half-done runs as single safetensors files, with schema and sizes as JSON in the file's metadata. No pickle."""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..errors import FormatError, InputError
from ..io.atomic import write_bytes
from ..models.trained import BAD_CONTENT, WHY_REFUSED, Trained, check_answers, check_same, described, rebuilt

MODEL_FORMAT = 1
KEPT = (torch.float32, torch.float16)  # kinds of numbers in a file
ATTACHED = "attached/"  # tensors of bytes that belong to no model


def save_model(
    model: Trained, path: str | Path, half: bool = False, attached: Mapping[str, bytes] | None = None, **more: Any
) -> None:
    """Write the model, and whatever else can be said in JSON, to one file, or leave what was there untouched.

    `half` keeps 16 bits of every number: a file of half the size that answers nearly the same. What is `attached` is kept
    byte for byte.
    """
    tensors = {
        name: tensor.half() if half and tensor.is_floating_point() else tensor for name, tensor in model.state_dict().items()
    }
    extra = {ATTACHED + name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in (attached or {}).items()}
    write_tensors(Path(path), tensors | extra, {"kind": "model", "model": described(model), **more})


def load_model(path: str | Path) -> Trained:
    """The model that `save_model` wrote. Opening a stranger's file runs none of its content."""
    return load_model_and_more(path)[0]


def load_model_and_more(path: str | Path) -> tuple[Trained, dict[str, Any]]:
    """The model, and all that its file says; what is attached to it, too."""
    about, tensors = read_tensors(Path(path), kind="model")
    extra = {name: tensors.pop(name) for name in list(tensors) if name.startswith(ATTACHED)}
    about["attached"] = {name.removeprefix(ATTACHED): bytes(data.numpy()) for name, data in extra.items()}
    model = rebuilt(Path(path).name, description_in(Path(path), about), tensors)
    check_answers(Path(path).name, model)
    return model, about


def description_in(path: Path, about: Mapping[str, Any]) -> Any:
    """What a file says of its model. Version 0.1 kept networks, as those of images, without a kind; its tables are refused."""
    if "model" in about:
        return about["model"]
    if "network" in about:
        return {**about, "kind": "network"}
    raise FormatError(f"{path.name} was written by an earlier version of anyorder, which kept other models. {WHY_REFUSED}")


class Check(NamedTuple):
    """How far training is: nats per row on the batches since the last check, and on the held-out rows."""

    step: int
    steps: int
    train_nats: float
    held_out_nats: float
    best_nats: float
    seconds: float


def history_of(checks: Any) -> list[Check]:
    """Checks as files hold them."""
    return [
        Check(checked_number(check[0], int), checked_number(check[1], int), *(checked_number(n, float) for n in check[2:]))
        for check in checks
    ]


def checked_number(value: Any, kind: type[Any]) -> Any:
    """A number of a file as one of ours; text is none, whatever it says."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is no number")
    return kind(value)


@final
@dataclass(frozen=True)
class RunState:
    """All that the rest of a training run depends on."""

    identity: str
    step: int
    history: list[Check]
    weights: dict[str, Tensor]
    averaged: dict[str, Tensor]
    best: dict[str, Tensor]
    first_moment: dict[str, Tensor]
    second_moment: dict[str, Tensor]


GROUPS = tuple(f.name for f in fields(RunState) if f.name not in ("identity", "step", "history"))


def save_run(path: Path, model: Trained, state: RunState) -> None:
    tensors = {f"{group}/{name}": tensor for group in GROUPS for name, tensor in getattr(state, group).items()}
    about = {"kind": "run", "identity": state.identity, "step": state.step, "history": state.history, "model": described(model)}
    write_tensors(path, tensors, about)


def load_run(path: Path, model: Trained) -> RunState:
    """The state of a run of this very model."""
    about, tensors = read_tensors(path, kind="run")
    if about.get("model") != described(model):
        raise InputError(f"{path.name} is a run of another model: its schema, heads or sizes differ. Choose another file.")
    names = {"first_moment": dict(model.named_parameters()), "second_moment": dict(model.named_parameters())}
    for group in GROUPS:
        wanted = {f"{group}/{name}": tuple(t.shape) for name, t in names.get(group, model.state_dict()).items()}
        found = {name: tuple(t.shape) for name, t in tensors.items() if name.startswith(f"{group}/")}
        check_same(path.name, wanted, found)
    parts = {g: {name.split("/", 1)[1]: t for name, t in tensors.items() if name.startswith(f"{g}/")} for g in GROUPS}
    try:
        step = int(about["step"])
        history = history_of(about["history"])
        if step < 0 or len(tensors) != sum(map(len, parts.values())):
            raise ValueError("a negative step or tensors of no group")
        return RunState(str(about["identity"]), step, history, **parts)
    except BAD_CONTENT as error:
        raise FormatError(f"{path.name} is damaged: its record of the run cannot be read ({error}). Delete it.") from error


def fingerprint_of_run(recipe: object, *tensors: Tensor | None) -> str:
    """The same for the same recipe, data and first weights, and for nothing else."""
    digest = hashlib.blake2b(repr(recipe).encode(), digest_size=16)
    for tensor in tensors:
        digest.update(b"none" if tensor is None else repr(tuple(tensor.shape)).encode())
        if tensor is None:
            continue
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def write_tensors(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """A file of ours, whole or not at all; what could not be written is refused first."""
    metadata = {"anyorder": json.dumps({"format": MODEL_FORMAT, **about})}
    if not path.parent.is_dir():
        raise InputError(f"Cannot write {path.name}: its folder {path.parent} does not exist. Make it first.")
    if path.is_dir():
        raise InputError(f"Cannot write {path.name}: it is a folder. Name a file.")
    wrong = [name for name, tensor in tensors.items() if not may_be_kept(name, tensor)]
    if wrong:
        raise InputError(f"Cannot write {path.name}: {wrong[0]!r} holds something else than finite float32 or float16 numbers.")
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(ready, metadata))  # safetensors' own writing leaves a file of its own name if it is killed


def read_tensors(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and the tensors of a file of ours; anything else is refused with the reason."""
    check_container(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            about = check_about(path, metadata, kind)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    except SafetensorError as error:
        raise FormatError(f"{path.name} is damaged ({error}). Restore it from a copy or save the model again.") from error
    for name, tensor in tensors.items():
        if not may_be_kept(name, tensor):
            raise FormatError(
                f"{path.name} is damaged: tensor {name!r} holds something else than finite float32 or float16 numbers."
            )
    return about, {name: t if t.dtype == torch.uint8 else t.float() for name, t in tensors.items()}


def may_be_kept(name: str, tensor: Tensor) -> bool:
    if tensor.dtype == torch.uint8:
        return name.startswith(ATTACHED) or name in ("held", "packed")
    return not name.startswith(ATTACHED) and tensor.dtype in KEPT and bool(tensor.isfinite().all())


def check_container(path: Path) -> None:
    """Tell apart a missing, a foreign and a truncated file before anything is read."""
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}.")
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(9)
        length = struct.unpack("<Q", head[:8])[0] if len(head) >= 8 else 0
        if len(head) < 9 or head[8:] != b"{" or length > 2**28:
            raise FormatError(f"{path.name} is not an anyorder file (it begins with {head!r}; expected a safetensors header).")
        if size < 8 + length:
            raise truncated(path, size, 8 + length)
        file.seek(8)
        try:
            header = json.loads(file.read(length))
            ends = [int(item["data_offsets"][1]) for name, item in header.items() if name != "__metadata__"]
        except BAD_CONTENT as error:
            raise FormatError(f"{path.name} is not an anyorder file: its header cannot be read ({error}).") from error
    wanted = 8 + length + max(ends, default=0)
    if size < wanted:
        raise truncated(path, size, wanted)


def truncated(path: Path, size: int, wanted: int) -> FormatError:
    return FormatError(f"{path.name} is truncated: {size} bytes of {wanted}. Restore it from a copy or save the model again.")


def check_about(path: Path, metadata: dict[str, str], kind: str) -> dict[str, Any]:
    try:
        about = json.loads(metadata["anyorder"])
        version = int(about["format"])
        found = str(about["kind"])
    except BAD_CONTENT as error:
        raise FormatError(f"{path.name} is a safetensors file, but not one of anyorder's: its description is missing.") from error
    if version > MODEL_FORMAT:
        raise FormatError(f"{path.name} has format {version}; this version reads up to {MODEL_FORMAT}. Upgrade anyorder.")
    if found != kind:
        raise FormatError(f"{path.name} holds a {found}, expected a {kind}.")
    return about
