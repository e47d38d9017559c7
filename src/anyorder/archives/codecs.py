"""What a codec is, its bytes, and how it proves that it is the one an archive was made with and says here what it said there."""

import hashlib
import json
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from ..coding import Binary, Coder, Integers, Scored, Shades, frequencies, shades
from ..coding.frequencies import GRID, PLACE_BITS, frozen_array
from ..distributions import Bernoulli, Categorical, ColourMixture, Head, LogisticMixture
from ..errors import FormatError, InputError
from ..io.atomic import write_bytes
from ..models.any_order import AnyOrderModel
from ..models.trained import BAD_CONTENT
from ..networks import exactly
from ..schema import levels_of


class Codec(ABC):
    """A model of whole numbers that codes items of one kind of data, bit for bit the same on every machine.

    Every class of codecs names its `kind`, which its bytes say: `from_bytes` finds the class by it.
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, "type[Codec]"]] = {}

    def __init_subclass__(cls) -> None:
        Codec.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def most_rows(self) -> int:
        """How many items may share a block."""

    @property
    def network(self) -> nn.Module | None:
        """The network that is asked many times in every block, if there is one worth watching."""
        return None

    def calls(self, rows: int) -> int:
        """How often it is asked for a block of so many items."""
        return 0

    def labels(self) -> list[str]:
        """Of what the notes of a block tell the bits, such as the columns of a table; nothing if they do not."""
        return []

    @abstractmethod
    def content(self) -> bytes:
        """The same bytes for the same codec, as a safetensors file with a description."""

    @classmethod
    @abstractmethod
    def rebuilt(cls, about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> "Codec":
        """From what `content` wrote, proved to be exact and tried on this machine; FormatError if it is anything else."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Of all that decoding depends on. It never changes in a later version: archives keep it."""


def proof_answers(model: AnyOrderModel) -> int:
    """The checksum of what the network says about three made-up rows."""
    row, place = torch.arange(3)[:, None], torch.arange(len(model.schema))
    x = ((7919 * place + 104729 * row) % torch.tensor([levels_of(v.domain) for v in model.schema])).float()
    sizes = torch.tensor(model.network.sizes.get("context", []), dtype=torch.long)
    context = (7919 * torch.arange(len(sizes)) + 104729 * row) % sizes if len(sizes) else None
    with exactly():
        said = model.network(x, (31 * place + 17 * row) % 3 == 0, context)
    return zlib.crc32((said * 1024).to(torch.int32).numpy().tobytes())


def check_proof(name: str, model: AnyOrderModel, wanted: int) -> None:
    if proof_answers(model) != wanted:
        raise FormatError(
            f"{name} gives other answers here than where it was made: it is damaged, or this machine's arithmetic is not exact."
        )


def digest_of(first: Sequence[Any], models: Sequence[tuple[AnyOrderModel, Sequence[Any]]]) -> str:
    """Of all whole numbers of models, and of what is said first and about each of them.

    Written down in a way that no later version changes: archives keep it for ever.
    """
    digest, told = hashlib.sha256(), list(first)
    for model, about in models:
        told.extend(about)
        for name, tensor in sorted(model.state_dict().items()):
            told.append([name, str(tensor.dtype), tensor.shape])
            digest.update(tensor.contiguous().numpy().tobytes())
    digest.update(json.dumps(told).encode())
    return digest.hexdigest()[:32]


SLOPES = ((), (0,), (1, 2))  # of red none, of green that on red, of blue those on red and on green


def coded(coder: Coder, head: Head, said: Tensor, symbols: Integers) -> Integers:
    """The symbols of cells whose distributions the network described with these numbers, one row each."""
    numbers = (said.double() * 2**GRID).to(torch.int64).numpy()  # multiples of 1 / 2^GRID: nothing is lost
    match head:
        case Bernoulli():
            return coder(Binary(numbers[:, 0]), symbols)
        case Categorical():
            return coder(Scored(numbers), symbols)
        case LogisticMixture():
            logits, place, raw = np.split(numbers, 3, axis=-1)
            return coder(shades(logits, place, raw, head.levels, least(head.min_scale)), symbols)
        case ColourMixture():
            return coded_colour(coder, head, numbers, symbols)
        case _:
            raise InputError(f"There is no code for the distribution {head.kind!r}.")


def coded_colour(coder: Coder, head: ColourMixture, numbers: Integers, symbols: Integers) -> Integers:
    """Red, then green given red, then blue given both; what is known of the component grows on the way."""
    levels, count = head.shades, head.components
    logits, rest = numbers[:, :count], numbers[:, count:].reshape(len(numbers), count, 9)
    place, raw, slope = rest[..., :3], rest[..., 3:6], rest[..., 6:]
    weight, found = frequencies.shares(logits), list[Integers]()
    for channel, wanted in enumerate((symbols // levels**2, symbols // levels % levels, symbols % levels)):
        lean = sum(
            slope[..., k] * on_scale(levels)[known][:, None] >> GRID for k, known in zip(SLOPES[channel], found, strict=True)
        )
        at = (place[..., channel] << (PLACE_BITS - GRID)) + frequencies.starts(count) + lean
        distribution = Shades(weight, at, frequencies.steepness(raw[..., channel], least(head.min_scale)), levels)
        found.append(coder(distribution, wanted))
        weight = distribution.given(found[-1])
    return (found[0] * levels + found[1]) * levels + found[2]


def least(scale: float) -> Decimal:
    return Decimal(str(scale))


@cache
def on_scale(levels: int) -> Integers:
    """Where each level stands between -1 and 1, in 1 / 2^PLACE."""
    return frozen_array([round((Fraction(2 * level, levels - 1) - 1) * 2**PLACE_BITS) for level in range(levels)])


class ModelSizeError(InputError):
    """A model is too large to be kept."""


def to_bytes(codec: Codec) -> bytes:
    """The same bytes for the same codec."""
    try:
        return codec.content()
    except SafetensorError as error:
        raise ModelSizeError(f"The model is too large to be kept ({error}).") from error


def from_bytes(content: bytes, name: str = "The codec") -> Codec:
    """What `to_bytes` wrote, proved to be exact, and tried on this machine. Opening a stranger's bytes runs none of them."""
    try:
        about, tensors = json.loads(header(content)["__metadata__"]["anyorder"]), load(content)
        found = Codec.kinds.get(about["kind"])
        if found is None:
            raise FormatError(f"{name} holds a {about['kind']!r:.40}; this version knows {', '.join(sorted(Codec.kinds))}.")
        return found.rebuilt(about, tensors, name)
    except (*BAD_CONTENT, SafetensorError, struct.error) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{name} is no codec of anyorder ({error}).") from error


def header(content: bytes) -> Any:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + min(length, len(content))])


def save_codec(codec: Codec, path: str | Path) -> None:
    write_bytes(Path(path), to_bytes(codec))


def load_codec(path: str | Path) -> Codec:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}.")
    return from_bytes(path.read_bytes(), path.name)
