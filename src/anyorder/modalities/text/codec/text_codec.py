"""The codec of text: a model primed by some text, which every archive made with it is read with."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, final

import torch
import zstandard
from safetensors.torch import save
from torch import Tensor

from ....archives import Codec
from ....archives.archive import MOST_PER_BLOCK
from ....errors import FormatError, InputError
from .engine import Engine, is_fast

TEXT_CODEC_FORMAT = 1  # of the model, too: what it computes never changes under this number
MOST_PRIMING = 2**24  # bytes: what a minute suffices to read
SHIPPED = "everyday-1"  # priming text that comes with the package; a better one gets another name


@final
class TextCodec(Codec):
    """Codes texts by what it has read in them so far, and before them in a priming text.

    >>> codec = TextCodec(b"The quick brown fox jumps over the lazy dog. ")
    >>> stream = codec.encode(b"The quick brown fox.")
    >>> len(stream), codec.decode(stream, 20)
    (5, b'The quick brown fox.')
    """

    kind: ClassVar[str] = "text"

    def __init__(self, priming: bytes = b"", name: str = "") -> None:
        if len(priming) > MOST_PRIMING:
            raise InputError(
                f"The priming text has {len(priming)} bytes; at most {MOST_PRIMING} are possible. Give a part of it."
            )
        self.priming, self.name = priming, name
        self.engine = Engine(priming, is_fast())

    @classmethod
    def shipped(cls, name: str = SHIPPED) -> "TextCodec":
        """The one that comes with the package: English, JSON, Python and logs."""
        return cls(shipped_priming(name), name)

    def encode(self, text: bytes) -> bytes:
        """The stream from which `decode` makes the text again."""
        return self.engine.encode(text)

    def decode(self, stream: bytes, length: int) -> bytes:
        """The text of so many bytes; FormatError if the stream cannot be that of such a text."""
        return self.engine.decode(stream, length)

    @property
    def most_rows(self) -> int:
        return MOST_PER_BLOCK

    def content(self) -> bytes:
        """The name of what comes with the package; any other priming text goes along."""
        about: dict[str, Any] = {"format": TEXT_CODEC_FORMAT, "kind": self.kind}
        tensors = dict[str, Tensor]()
        if self.name:
            about["name"] = self.name
        elif self.priming:
            tensors["priming"] = torch.frombuffer(bytearray(self.priming), dtype=torch.uint8)
        return save(tensors, {"anyorder": json.dumps(about, separators=(",", ":"))})

    @classmethod
    def rebuilt(cls, about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> "TextCodec":
        if int(about["format"]) > TEXT_CODEC_FORMAT:
            raise FormatError(
                f"{name} has format {about['format']}; this version reads up to {TEXT_CODEC_FORMAT}. Upgrade anyorder."
            )
        if "name" in about:
            return cls.shipped(str(about["name"]))
        priming = tensors.get("priming", torch.zeros(0, dtype=torch.uint8))
        if priming.dtype != torch.uint8 or priming.ndim != 1 or len(priming) > MOST_PRIMING:
            raise FormatError(f"{name} holds no priming text of at most {MOST_PRIMING} bytes.")
        return cls(priming.numpy().tobytes())

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.priming)
        digest.update(json.dumps(["text", TEXT_CODEC_FORMAT, len(self.priming)]).encode())
        return digest.hexdigest()[:32]


@cache
def shipped_priming(name: str) -> bytes:
    """The priming text of this name that comes with the package."""
    here = Path(__file__).parent / "priming"
    names = sorted(path.name.removesuffix(".zst") for path in here.glob("*.zst"))
    if name not in names:
        raise FormatError(f"The codec needs the priming text {name!r:.40}; with this version come {', '.join(names)}.")
    return zstandard.ZstdDecompressor().decompress((here / f"{name}.zst").read_bytes(), max_output_size=MOST_PRIMING)


def fit_text_codec(text: bytes) -> TextCodec:
    """A codec primed by the end of a corpus: what it read last it remembers best."""
    if not text:
        raise InputError("There is no text to learn a codec from: it is empty.")
    return TextCodec(text[-MOST_PRIMING:])
