"""Lossless codecs: models of whole numbers that code images, and the archives they write."""

from .archives import Done, ImageArchive, Keeper, Lost, compress, decompress_array, decompress_folder
from .files import from_bytes, load_codec, save_codec, to_bytes
from .learning import fit_image_codec, fit_own_codec
from .pyramid import ImageCodec, Plan, Stage
from .sources import ArraySource, FolderSource, Source

__all__ = [
    "ArraySource",
    "Done",
    "FolderSource",
    "ImageArchive",
    "ImageCodec",
    "Keeper",
    "Lost",
    "Plan",
    "Source",
    "Stage",
    "compress",
    "decompress_array",
    "decompress_folder",
    "fit_image_codec",
    "fit_own_codec",
    "from_bytes",
    "load_codec",
    "save_codec",
    "to_bytes",
]
