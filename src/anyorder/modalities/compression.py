"""What the face of all models can do with archives: every bit comes back, on any machine."""

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ..archives import ArchiveModel, Codec, OpenArchive, Source, compress, from_bytes, to_bytes
from ..coding import Archive
from ..errors import FormatError, InputError, UnavailableError
from ..schema import Values
from .images.image_archives import ArraySource, decompress_array
from .images.image_model import ImageModel
from .images.pyramid_codec import codec_steps, fit_image_codec
from .tables.codec.table_archives import ArrowSource, FrameSource, TableSource, decompress_table
from .tables.codec.table_codec import TableCodec, fit_table_codec

CODEC = "codec"  # what a file of a model calls the codec attached to it


class CompressionVerbs:
    """Lossless compression with a codec that was trained beside the model."""

    codec_: Codec | None
    name_: str

    def compress(self, X: Any, verify: bool = True) -> bytes:
        """An archive of a table, or of an array of images; `decompress` gives back every value, all labels and types.

        What the codec does not know (another size, other values) is stored all the same, only not as small.
        """
        file = io.BytesIO()
        codec = self.known_codec_
        source: Source = table_source(X, verify) if isinstance(codec, TableCodec) else ArraySource(X)
        compress(ArchiveModel(codec, self.name_), source, file, verify=verify)
        return file.getvalue()

    def decompress(self, archive: bytes) -> Any:
        """What `compress` made an archive of. An archive that was damaged is refused."""
        if not isinstance(archive, bytes | bytearray | memoryview):
            raise InputError(f"decompress got {type(archive).__name__}; expected the bytes that compress made.")
        opened = OpenArchive(Archive(bytes(archive)), lambda about: self.known_codec_)
        found, lost = decompress_table(opened) if opened.what == "table" else decompress_array(opened)
        if lost:
            first = lost[0]
            raise FormatError(
                f"The archive is damaged: {opened.items} {first.items.start} to {first.items.stop - 1} are lost ({first.why})"
                f"{f' and {len(lost) - 1} other blocks' if len(lost) > 1 else ''}. `anyorder decompress` saves the others."
            )
        return frame_like_source(found, opened.form)

    @property
    def known_codec_(self) -> Codec:
        check_is_fitted(self)
        if self.codec_ is None:
            raise UnavailableError("This model was fitted without a codec: AnyOrder(codec=True).fit(...).")
        return self.codec_

    def attached_(self) -> Mapping[str, bytes]:
        """What the file of the model holds besides it."""
        return {} if self.codec_ is None else {CODEC: to_bytes(self.codec_)}


def table_source(X: Any, verify: bool = True) -> TableSource:
    """A table of pandas, polars or pyarrow, or a matrix of numbers; it comes back as one."""
    if isinstance(X, pd.DataFrame):
        return FrameSource(X, verify)
    if nw.dependencies.is_pyarrow_table(X):
        return ArrowSource(X, verify)
    if nw.dependencies.is_polars_dataframe(X):
        return polars_source(X, verify)
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biufc":
        raise InputError(
            f"compress got {type(X).__name__}; expected a table of pandas, polars or pyarrow, or a matrix of numbers."
        )
    source = FrameSource(pd.DataFrame(X), verify)
    source.form["array"] = True
    return source


def polars_source(X: Any, verify: bool) -> ArrowSource:
    """As polars gives it to pyarrow, if it takes the same back."""
    polars = sys.modules["polars"]
    if polars.Object in X.dtypes:  # which pyarrow takes for addresses in memory
        raise InputError("This polars frame holds objects, which cannot be kept. Turn them into numbers, text or dates first.")
    try:
        table = X.to_arrow(compat_level=polars.CompatLevel.oldest())
    except (ImportError, ValueError, polars.exceptions.PolarsError) as error:
        raise InputError(f"This polars frame cannot be kept: pyarrow has no such table ({error!r:.200}).") from error
    source = ArrowSource(table, verify)
    back = polars_frame(source.arrow())
    if back.schema != X.schema or not back.equals(X):
        raise InputError("This polars frame cannot be kept exactly: polars does not get the same back from pyarrow.")
    source.form["polars"] = True
    return source


def polars_frame(table: Any) -> Any:
    try:
        import polars
    except ImportError as error:
        raise InputError("This table is one of polars', which is not installed: pip install polars.") from error
    return polars.from_arrow(table)


def frame_like_source(found: Any, form: Mapping[str, Any]) -> Any:
    """As the kind of table that was given."""
    if form.get("array") and isinstance(found, pd.DataFrame):
        return found.to_numpy()
    return polars_frame(found) if form.get("polars") and form["kind"] == "arrow" else found


def fit_codec(images: ImageModel, x: Values, effort: float, seed: int) -> Codec:
    return fit_image_codec(images.encoder, x, codec_steps(effort), seed)


def fit_codec_of_table(X: Any, effort: float, seed: int) -> Codec:
    source = table_source(X)
    return fit_table_codec(source.names, source.texts, effort, seed)


def attached_codec(about: Mapping[str, Any], path: str | Path) -> Codec | None:
    """The codec in the file of a model, if there is one."""
    content = about.get("attached", {}).get(CODEC)
    return None if content is None else from_bytes(content, Path(path).name)
