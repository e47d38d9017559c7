"""Images that archives are made from: arrays of them, and folders of files."""

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
from PIL import Image

from ...errors import InputError
from ..blocks import Content
from ..sources import Codec, Done, Source
from .blocks import Pixels, as_array, is_text, pack_array, pack_files, unpack_array, unpack_files
from .formats import WRITTEN
from .learning import fit_own_codec
from .pyramid import ImageCodec

UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)


class ImageSource(Source):
    """Items that are images, or some of them are."""

    def own_codec(self, otherwise: int, effort: float, done: Done) -> Codec | None:
        images = self.images()
        if images is None:
            return None
        return fit_own_codec(images, otherwise, effort, done=done)

    @abstractmethod
    def images(self) -> Pixels | None:
        """All images of which a codec could be learned, if there are any."""


@final
class ArraySource(ImageSource):
    """An array of images: (number, height, width), or with channels at the end."""

    def __init__(self, images: Any) -> None:
        try:
            pixels = np.asarray(images)
        except ValueError as error:
            raise InputError(f"compress got {type(images).__name__}, which is no array ({error}).") from error
        if np.ma.isMaskedArray(images) or hasattr(images, "columns"):
            raise InputError(
                f"compress got {type(images).__name__}; expected a plain array of images: its mask or labels would be lost."
            )
        if pixels.ndim < 1 or pixels.dtype.hasobject or pixels.dtype.kind == "V":
            raise InputError(f"compress got {pixels.dtype} of shape {pixels.shape}; expected an array of images.")
        self.pixels = pixels
        self.form = {"kind": "array", "shape": list(self.pixels.shape), "dtype": self.pixels.dtype.str}
        self.count, self.item_bytes = len(self.pixels), self.pixels[:1].nbytes

    def pack(self, codec: Codec | None, some: range) -> Content:
        return pack_array(image_codec(codec), self.pixels[some.start : some.stop])

    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        part = self.pixels[some.start : some.stop]
        return unpack_array(image_codec(codec), content, part.shape, part.dtype).tobytes() == part.tobytes()

    def images(self) -> Pixels | None:
        whole = self.pixels.dtype.kind in "uib" and self.pixels.ndim in (3, 4) and self.pixels.size > 0
        return self.pixels if whole and self.pixels.min() >= 0 and self.pixels.max() <= 255 else None


@final
class FolderSource(ImageSource):
    """All files of a folder and of the folders in it, by name."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"There is no folder {str(folder)!r}.")
        self.folder, self.form = folder, {"kind": "folder"}
        self.names = sorted(path.relative_to(folder).as_posix() for path in every_file(folder))
        self.count = len(self.names)
        self.item_bytes = max(((folder / name).stat().st_size for name in self.names), default=0)

    def pack(self, codec: Codec | None, some: range) -> Content:
        return pack_files(image_codec(codec), self.folder, self.names[some.start : some.stop])

    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        found = unpack_files(image_codec(codec), content, len(some))
        return [name for name, _ in found] == self.names[some.start : some.stop] and all(
            self._same(self.folder / name, file) for name, file in found
        )

    def images(self) -> Pixels | None:
        """Those of the most frequent size and kind."""
        paths = [self.folder / name for name in self.names if Path(name).suffix.lower() in WRITTEN]
        kinds = {path: kind for path in paths if (kind := mode_and_size(path)) is not None}
        if not kinds:
            return None
        usual = Counter(kinds.values()).most_common(1)[0][0]
        images = [pixels for path, kind in kinds.items() if kind == usual and (pixels := pixels_of(path)) is not None]
        return np.stack(images) if images else None

    def _same(self, path: Path, found: Image.Image | bytes) -> bool:
        if isinstance(found, bytes):
            return found == path.read_bytes()
        with Image.open(path) as image:
            return image.mode == found.mode and np.array_equal(as_array(image), as_array(found))


def every_file(folder: Path) -> Iterator[Path]:
    """All files below a folder; what cannot be kept, or not be read, is named."""
    for place, folders, files in os.walk(folder, onerror=refused):
        for path in (Path(place) / name for name in (*folders, *files)):
            if not is_text(path.name):
                raise InputError(f"The name {path.name!r} is no UTF-8 text, and could not be kept: rename it.")
            if path.is_dir() and path.is_symlink():
                raise InputError(
                    f"{str(path)!r} is a link to a folder, which is not kept: compress that folder, or remove the link."
                )
            if not path.is_dir() and not path.is_file():
                raise InputError(
                    f"{str(path)!r} is neither a file nor a folder (or a link to nothing), and cannot be kept: remove it."
                )
        yield from (Path(place) / name for name in files)


def refused(error: OSError) -> None:
    raise InputError(f"The folder {error.filename!r} cannot be read ({error.strerror}).") from error


def mode_and_size(path: Path) -> tuple[str, tuple[int, int]] | None:
    """Of an image that a codec could know; nothing but the head of the file is read."""
    try:
        with Image.open(path) as image:
            return (image.mode, image.size) if image.mode in ("1", "L", "RGB") else None
    except UNREADABLE:
        return None


def pixels_of(path: Path) -> Pixels | None:
    try:
        with Image.open(path) as image:
            return as_array(image)
    except UNREADABLE:
        return None


def image_codec(codec: Codec | None) -> ImageCodec | None:
    return codec if isinstance(codec, ImageCodec) else None
