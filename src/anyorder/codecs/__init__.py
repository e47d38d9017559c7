"""Lossless codecs: models of whole numbers that code images and tables, and the archives they write."""

from .archives import ClosedArchive, Keeper, Lost, OpenArchive, compress
from .files import ModelSizeError, from_bytes, load_codec, save_codec, to_bytes
from .images.learning import fit_image_codec
from .images.pyramid import ImageCodec, Plan, Stage
from .images.reading import decompress_array, decompress_folder
from .images.sources import ArraySource, FolderSource
from .sources import Codec, Done, Source
from .tables.arrow import parquet_bytes
from .tables.codec import TableCodec
from .tables.learning import fit_table_codec
from .tables.reading import decompress_table
from .tables.sources import ArrowSource, BytesSource, FrameSource, TableSource, csv_source, parquet_source

__all__ = [
    "ArraySource",
    "ArrowSource",
    "BytesSource",
    "ClosedArchive",
    "Codec",
    "Done",
    "FolderSource",
    "FrameSource",
    "ImageCodec",
    "Keeper",
    "Lost",
    "ModelSizeError",
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
    "fit_table_codec",
    "from_bytes",
    "load_codec",
    "parquet_bytes",
    "parquet_source",
    "save_codec",
    "to_bytes",
]
