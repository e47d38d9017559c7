"""Archives that give back every bit: blocks, what a codec and a source of items are, and how both are read again."""

from .archive import ArchiveModel, ClosedArchive, Done, Lost, OpenArchive, Source, compress
from .codecs import Codec, ModelSizeError, from_bytes, load_codec, save_codec, to_bytes

__all__ = [
    "ArchiveModel",
    "ClosedArchive",
    "Codec",
    "Done",
    "Lost",
    "ModelSizeError",
    "OpenArchive",
    "Source",
    "compress",
    "from_bytes",
    "load_codec",
    "save_codec",
    "to_bytes",
]
