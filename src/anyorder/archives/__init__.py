"""Lossless codecs: models of whole numbers that code images and tables, and the archives they write."""

from .archive import ArchiveModel, ClosedArchive, Lost, OpenArchive, compress
from .blocks import Codec, Done, Source
from .codecs import ModelSizeError, from_bytes, load_codec, save_codec, to_bytes

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
