"""What the face of all models can do with archives: every bit comes back, on any machine."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .codecs import (
    ArraySource,
    Codec,
    FrameSource,
    Keeper,
    OpenArchive,
    Source,
    TableCodec,
    compress,
    decompress_array,
    decompress_table,
    fit_image_codec,
    fit_table_codec,
    from_bytes,
    to_bytes,
)
from .codecs.images.learning import steps_at
from .coding import Archive
from .errors import FormatError, InputError
from .images import ImageModel
from .schema import Values

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
        compress(Keeper(codec, self.name_), source, file, verify=verify)
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
        return found.to_numpy() if opened.form.get("array") and isinstance(found, pd.DataFrame) else found

    @property
    def known_codec_(self) -> Codec:
        check_is_fitted(self)
        if self.codec_ is None:
            raise InputError("This model was fitted without a codec: AnyOrder(codec=True).fit(...).")
        return self.codec_

    def attached_(self) -> Mapping[str, bytes]:
        """What the file of the model holds besides it."""
        return {} if self.codec_ is None else {CODEC: to_bytes(self.codec_)}


def table_source(X: Any, verify: bool = True) -> FrameSource:
    """A data frame, or a matrix of numbers that comes back as one."""
    if isinstance(X, pd.DataFrame):
        return FrameSource(X, verify)
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biufc":
        raise InputError(
            f"compress got {type(X).__name__}; expected a pandas data frame or a matrix of numbers (polars: to_pandas())."
        )
    source = FrameSource(pd.DataFrame(X), verify)
    source.form["array"] = True
    return source


def fit_codec(images: ImageModel, x: Values, effort: float, seed: int) -> Codec:
    return fit_image_codec(images.encoder, x, steps_at(effort), seed)


def fit_codec_of_table(X: Any, effort: float, seed: int) -> Codec:
    source = table_source(X)
    return fit_table_codec(source.names, source.texts, effort, seed)


def attached_codec(about: Mapping[str, Any], path: str | Path) -> Codec | None:
    """The codec in the file of a model, if there is one."""
    content = about.get("attached", {}).get(CODEC)
    return None if content is None else from_bytes(content, Path(path).name)
