"""A codec of tables as bytes: how columns are written, whole numbers of the network, and what it must answer."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from ...errors import FormatError
from ...model import AnyOrderModel
from ...networks import IntegerColumns
from ...training.description import describe, rebuild_network
from ..proofs import answers, check_answers, digest_of
from .codec import TableCodec, untrained
from .columns import Column, from_planes, planes

FORMAT = 1
KIND = "table codec"


def table_to_bytes(codec: TableCodec) -> bytes:
    """The same bytes for the same codec. The values of columns are tensors of bytes: their zeros lie together."""
    columns = [None if column is None else column.to_json() for column in codec.columns]
    about = {
        "format": FORMAT,
        "kind": KIND,
        "names": list(codec.names),
        "columns": columns,
        "told": list(codec.told),
        "answers": answers(codec.model),
        "network": {"kind": codec.model.network.kind, **codec.model.network.sizes},
    }
    tensors = {f"model.{name}": tensor for name, tensor in codec.model.state_dict().items()}
    for place, column in enumerate(codec.columns):
        if column is not None and column.values is not None:
            tensors[f"values.{place}"] = torch.frombuffer(bytearray(planes(column.values)), dtype=torch.uint8)
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
    check_answers(name, codec.model, about["answers"])
    return codec


def read_column(item: dict[str, Any] | None, values: Tensor | None) -> Column | None:
    return None if item is None else Column.from_json(item, None if values is None else from_planes(bytes(values.numpy())))


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


def table_fingerprint(codec: TableCodec) -> str:
    """Of all that decoding depends on."""
    columns = [None if c is None else [sorted(c.to_json().items()), written_values(c).hex()] for c in codec.columns]
    sizes = codec.model.network.sizes
    return digest_of([columns, codec.told], [(codec.model, [[sizes[key] for key in ("width", "context", "after")]])])


def written_values(column: Column) -> bytes:
    return b"" if column.values is None else planes(column.values)
