"""A codec of tables as bytes: how columns are written, whole numbers of the network, and what it must answer."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from ..coding import Integers
from ..errors import FormatError
from ..model import AnyOrderModel
from ..networks import IntegerColumns, exactly
from ..schema import levels_of
from ..training.description import describe, rebuild_network
from .columns import Column
from .table import TableCodec, untrained

FORMAT = 1
KIND = "table codec"


def table_to_bytes(codec: TableCodec) -> bytes:
    """The same bytes for the same codec. The values of columns are tensors of bytes: their zeros lie together."""
    columns = [None if column is None else {**column.to_json(), "values": column.values is not None} for column in codec.columns]
    about = {
        "format": FORMAT,
        "kind": KIND,
        "names": list(codec.names),
        "columns": columns,
        "told": list(codec.told),
        "answers": table_answers(codec.model),
        "network": {"kind": codec.model.network.kind, **codec.model.network.sizes},
    }
    tensors = {f"model.{name}": tensor for name, tensor in codec.model.state_dict().items()}
    for place, column in enumerate(codec.columns):
        if column is not None and column.values is not None:
            tensors[f"values.{place}"] = planes(column.values)
    return save(tensors, {"anyorder": json.dumps(about, separators=(",", ":"))})


def table_from_bytes(about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> TableCodec:
    """What was written, proved to be exact and tried on this machine."""
    if int(about["format"]) > FORMAT:
        raise FormatError(f"{name} has format {about['format']}; this version reads up to {FORMAT}. Upgrade anyorder.")
    columns = [read_column(item, tensors.get(f"values.{place}")) for place, item in enumerate(about["columns"])]
    names = tuple(str(label) for label in about["names"])
    some, told = [column for column in columns if column is not None], tuple(int(k) for k in about["told"])
    if len(names) != len(columns) or not some or sorted(set(told) & set(range(len(some)))) != list(told):
        raise FormatError(f"{name} contradicts itself: it does not describe its columns.")
    own = {key.removeprefix("model."): tensor for key, tensor in tensors.items() if key.startswith("model.")}
    codec = TableCodec(names, tuple(columns), told, rebuilt_model(name, some, told, about["network"], own))
    if table_answers(codec.model) != about["answers"]:
        raise FormatError(
            f"{name} gives other answers here than where it was made: it is damaged, or this machine's arithmetic is not exact."
        )
    return codec


def read_column(item: dict[str, Any] | None, values: Tensor | None) -> Column | None:
    if item is None:
        return None
    if (item["values"] is True) != (values is not None):
        raise FormatError("A column contradicts itself: its values are missing.")
    steps = None if values is None else np.diff(from_planes(values), prepend=0).tolist()
    return Column.from_json({**item, "values": steps})


def rebuilt_model(
    name: str, columns: list[Column], told: tuple[int, ...], network: dict[str, Any], tensors: dict[str, Tensor]
) -> AnyOrderModel:
    expected = describe(untrained(columns, told, 1, 0))
    sizes = {**expected["network"], "width": int(network["width"]), "frozen": True}
    if network != sizes:
        raise FormatError(f"{name} contradicts itself: its network is not one of its columns.")
    model = rebuild_network(Path(name), {**expected, "network": sizes}, tensors)
    assert isinstance(model.network, IntegerColumns)
    model.network.check_bound()
    return model


def planes(values: Integers) -> Tensor:
    """Steps between rising values, all first bytes, then all second bytes, and so on."""
    steps = np.diff(values, prepend=0).astype("<i8")
    return torch.from_numpy(steps.view(np.uint8).reshape(-1, 8).T.copy())


def from_planes(tensor: Tensor) -> Integers:
    if tensor.dtype != torch.uint8 or tensor.ndim != 2 or tensor.shape[0] != 8:
        raise FormatError("The values of a column are no bytes of whole numbers.")
    return np.cumsum(tensor.numpy().T.copy().view("<i8")[:, 0].astype(np.int64))


def table_answers(model: AnyOrderModel) -> int:
    """The checksum of what the network says about three made-up rows."""
    row, place = torch.arange(3)[:, None], torch.arange(len(model.schema))
    x = ((7919 * place + 104729 * row) % torch.tensor([levels_of(v.domain) for v in model.schema])).float()
    sizes = torch.tensor(model.network.sizes["context"], dtype=torch.long)
    context = (7919 * torch.arange(len(sizes)) + 104729 * row) % sizes if len(sizes) else None
    with exactly():
        said = model.network(x, torch.ones_like(x, dtype=torch.bool), context)
    return zlib.crc32((said * 1024).to(torch.int32).numpy().tobytes())


def table_fingerprint(codec: TableCodec) -> str:
    """Of all that decoding depends on."""
    digest = hashlib.sha256()
    told: list[Any] = [None if column is None else sorted(column.to_json().items()) for column in codec.columns]
    sizes = codec.model.network.sizes
    told.append([codec.told, [sizes[key] for key in ("width", "context", "after")]])
    for name, tensor in sorted(codec.model.state_dict().items()):
        told.append([name, str(tensor.dtype), tensor.shape])
        digest.update(tensor.contiguous().numpy().tobytes())
    digest.update(json.dumps(told).encode())
    return digest.hexdigest()[:32]
