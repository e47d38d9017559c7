"""A codec as bytes, for a file of its own or inside an archive: whole numbers, plans, and what the networks must answer."""

import json
import struct
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load

from ..errors import FormatError, InputError
from ..files import write_bytes
from ..training.description import BAD_CONTENT
from .images.files import image_fingerprint, image_from_bytes, image_to_bytes
from .sources import Codec
from .tables.codec import TableCodec
from .tables.files import KIND, table_fingerprint, table_from_bytes, table_to_bytes


class ModelSizeError(InputError):
    """A model is too large to be kept."""


def to_bytes(codec: Codec) -> bytes:
    """The same bytes for the same codec."""
    try:
        return table_to_bytes(codec) if isinstance(codec, TableCodec) else image_to_bytes(codec)
    except SafetensorError as error:
        raise ModelSizeError(f"The model is too large to be kept ({error}).") from error


def from_bytes(content: bytes, name: str = "The codec") -> Codec:
    """What `to_bytes` wrote, proved to be exact, and tried on this machine. Opening a stranger's bytes runs none of them."""
    try:
        about, tensors = json.loads(header(content)["__metadata__"]["anyorder"]), load(content)
        return (table_from_bytes if about["kind"] == KIND else image_from_bytes)(about, tensors, name)
    except (*BAD_CONTENT, SafetensorError, struct.error) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{name} is no codec of anyorder ({error}).") from error


def header(content: bytes) -> Any:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + min(length, len(content))])


def fingerprint(codec: Codec) -> str:
    """Of all that decoding depends on."""
    return table_fingerprint(codec) if isinstance(codec, TableCodec) else image_fingerprint(codec)


def save_codec(codec: Codec, path: str | Path) -> None:
    write_bytes(Path(path), to_bytes(codec))


def load_codec(path: str | Path) -> Codec:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}.")
    return from_bytes(path.read_bytes(), path.name)
