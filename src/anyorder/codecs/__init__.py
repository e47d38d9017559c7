"""Lossless codecs: models of whole numbers that code images, and the archives they write."""

from .archives import (
    ImageArchive,
    Keeper,
    Lost,
    compress_array,
    compress_folder,
    decompress_array,
    decompress_folder,
)
from .files import from_bytes, load_codec, save_codec, to_bytes
from .learning import fit_image_codec
from .pyramid import ImageCodec, Plan, Stage

__all__ = [
    "ImageArchive",
    "ImageCodec",
    "Keeper",
    "Lost",
    "Plan",
    "Stage",
    "compress_array",
    "compress_folder",
    "decompress_array",
    "decompress_folder",
    "fit_image_codec",
    "from_bytes",
    "load_codec",
    "save_codec",
    "to_bytes",
]
