"""What the face of all models can do with archives: every bit comes back, on any machine."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .codecs import (
    ArraySource,
    ImageArchive,
    ImageCodec,
    Keeper,
    compress,
    decompress_array,
    fit_image_codec,
    from_bytes,
    to_bytes,
)
from .codecs.learning import STEPS
from .coding import Archive
from .errors import FormatError, InputError
from .images import ImageModel
from .schema import Values

CODEC = "codec"  # what a file of a model calls the codec attached to it


class CompressionVerbs:
    """Lossless compression with a codec that was trained beside the model."""

    codec_: ImageCodec | None
    name_: str

    def compress(self, X: Any, verify: bool = True) -> bytes:
        """An archive of an array of images; `decompress` gives back every value, the shape and the type.

        What the codec does not know (another size, other values) is stored all the same, only not as small.
        """
        file = io.BytesIO()
        compress(Keeper(self.image_codec_, self.name_), ArraySource(X), file, verify=verify)
        return file.getvalue()

    def decompress(self, archive: bytes) -> Any:
        """What `compress` made an archive of. An archive that was damaged is refused."""
        images, lost = decompress_array(ImageArchive(Archive(archive), lambda about: self.image_codec_))
        if lost:
            first = lost[0]
            raise FormatError(
                f"The archive is damaged: images {first.items.start} to {first.items.stop - 1} are lost ({first.why})"
                f"{f' and {len(lost) - 1} other blocks' if len(lost) > 1 else ''}. `anyorder decompress` saves the others."
            )
        return images

    @property
    def image_codec_(self) -> ImageCodec:
        check_is_fitted(self)
        if self.codec_ is None:
            raise InputError("This model was fitted without a codec: AnyOrder(codec=True).fit(images).")
        return self.codec_

    def attached_(self) -> Mapping[str, bytes]:
        """What the file of the model holds besides it."""
        return {} if self.codec_ is None else {CODEC: to_bytes(self.codec_)}


def fit_codec(images: ImageModel, x: Values, effort: float, seed: int) -> ImageCodec:
    return fit_image_codec(images.encoder, x, max(1, round(STEPS * effort)), seed)


def attached_codec(about: Mapping[str, Any], path: str | Path) -> ImageCodec | None:
    """The codec in the file of a model, if there is one."""
    content = about.get("attached", {}).get(CODEC)
    return None if content is None else from_bytes(content, Path(path).name)
