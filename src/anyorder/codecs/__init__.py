"""Lossless codecs: models of whole numbers that code images and tables, and the archives they write."""

from .archives import Done, Keeper, Lost, OpenArchive, compress, decompress_array, decompress_folder, decompress_table
from .files import from_bytes, load_codec, save_codec, to_bytes
from .learning import fit_image_codec, fit_own_codec
from .pyramid import ImageCodec, Plan, Stage
from .sources import ArraySource, Codec, FolderSource, Source
from .table import TableCodec
from .table_learning import fit_own_table_codec, fit_table_codec
from .table_sources import BytesSource, FrameSource, TableSource, csv_source

__all__ = [
    "ArraySource",
    "BytesSource",
    "Codec",
    "Done",
    "FolderSource",
    "FrameSource",
    "ImageCodec",
    "Keeper",
    "Lost",
    "OpenArchive",
    "Plan",
    "Source",
    "Stage",
    "TableCodec",
    "TableSource",
    "compress",
    "csv_source",
    "decompress_array",
    "decompress_folder",
    "decompress_table",
    "fit_image_codec",
    "fit_own_codec",
    "fit_own_table_codec",
    "fit_table_codec",
    "from_bytes",
    "load_codec",
    "save_codec",
    "to_bytes",
]
