"""Blocks of images: arrays, and files. What the model does not know, comes back all the same: it is stored as it is."""

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from ...data import ImageEncoder
from ...errors import FormatError, InputError
from ...schema import Values
from ..blocks import MODELLED, PLAIN, Content, crc, shorter
from .formats import WRITTEN
from .pyramid import ImageCodec

Pixels = NDArray[Any]
HARMLESS = {"dpi", "compression"}  # what a file may say besides, and we do not keep


def pack_array(codec: ImageCodec | None, images: Pixels) -> Content:
    """Some images of an array; `images` has their number first."""
    plain = Content(PLAIN, {}, b"", np.ascontiguousarray(images).tobytes())
    found = None if codec is None else known(codec.encoder, images.astype(images.dtype.newbyteorder("="), copy=False))
    if codec is None or found is None:
        return plain
    encoder, x = found
    notes = {} if encoder.unit == codec.encoder.unit else {"unit": encoder.unit}
    return shorter(Content(MODELLED, notes, codec.encode(x), b"", crc(plain.rest)), plain)


def unpack_array(codec: ImageCodec | None, content: Content, shape: Sequence[int], dtype: np.dtype[Any]) -> Pixels:
    if content.method == PLAIN:
        if len(content.rest) != int(np.prod(shape)) * dtype.itemsize:
            raise FormatError(f"A block holds {len(content.rest)} bytes; images of shape {tuple(shape)} have another number.")
        return np.frombuffer(content.rest, dtype).reshape(shape).copy()
    pixels = decoded(codec, content, shape[0])
    if pixels.size != int(np.prod(shape)):
        raise FormatError(f"A block holds {pixels.size} values; images of shape {tuple(shape)} have another number.")
    found = pixels.astype(dtype).reshape(shape)
    content.checked(found.tobytes())
    return found


def known(encoder: ImageEncoder, images: Pixels) -> tuple[ImageEncoder, Values] | None:
    """The codes of images, and how they are written: with the model's unit, or with levels spread up to 255."""
    if images.dtype.kind not in "uib" or images.ndim not in (3, 4):
        return None
    for unit in dict.fromkeys((encoder.unit, 1, 255 // (encoder.levels - 1))):
        written = replace(encoder, unit=unit)
        try:
            return written, written.encode(images)
        except InputError:
            continue
    return None


def decoded(codec: ImageCodec | None, content: Content, rows: int) -> Pixels:
    """The images in the stream of a block."""
    if codec is None:
        raise FormatError("A block was coded by a model, but the archive names none.")
    if rows > codec.most_rows:
        raise FormatError(f"A block claims to hold {rows} images of {len(codec.encoder)} values; that is too many for one block.")
    try:
        encoder = replace(codec.encoder, unit=int(content.notes.get("unit", codec.encoder.unit)))
    except (TypeError, ValueError, OverflowError, InputError) as error:
        raise FormatError(f"The notes of a block cannot be read ({error}).") from error
    return encoder.decode(codec.decode(content.stream, rows))


# Files


def pack_files(codec: ImageCodec | None, folder: Path, names: Sequence[str]) -> Content:
    """Some files of a folder: the images that the model knows coded by it, all others byte for byte."""
    files = [(folder / name).read_bytes() for name in names]
    images = [None if codec is None else readable(codec.encoder, *pair) for pair in zip(names, files, strict=True)]
    kinds = [None if codec is None else kind_of(codec.encoder, image) for image in images]
    counts = Counter(kind for kind in kinds if kind is not None)
    kind = counts.most_common(1)[0][0] if counts else None
    fits = [kind is not None and each == kind for each in kinds]
    plain = Content(PLAIN, {"names": list(names)} | as_they_are(files, fits=[False] * len(files)), b"", b"".join(files))
    if codec is None or kind is None:
        return plain
    mode, unit = kind
    pixels = np.stack([as_array(image) for image, fit in zip(images, fits, strict=True) if fit and image is not None])
    stream = codec.encode(replace(codec.encoder, unit=unit).encode(pixels))
    notes = {"names": list(names)} | as_they_are(files, fits) | {"mode": mode, "unit": unit}
    rest = b"".join(file for file, fit in zip(files, fits, strict=True) if not fit)
    back = [image if fit and image is not None else file for image, file, fit in zip(images, files, fits, strict=True)]
    return shorter(Content(MODELLED, notes, stream, rest, crc(*map(kept, back))), plain)


def kept(item: Image.Image | bytes) -> bytes:
    """What must come back of a file."""
    return item if isinstance(item, bytes) else as_array(item).tobytes()


def as_they_are(files: Sequence[bytes], fits: Sequence[bool]) -> dict[str, Any]:
    """Numbers and lengths of the files that no model codes, if there are any."""
    whole = {str(k): len(file) for k, (file, fit) in enumerate(zip(files, fits, strict=True)) if not fit}
    return {"whole": whole} if whole else {}


def kind_of(encoder: ImageEncoder, image: Image.Image | None) -> tuple[str, int] | None:
    """The mode of an image and the unit its levels are written in, if the model knows such images."""
    found = None if image is None else known(encoder, as_array(image)[None])
    return None if image is None or found is None else (image.mode, found[0].unit)


def unpack_files(codec: ImageCodec | None, content: Content, count: int) -> list[tuple[str, Image.Image | bytes]]:
    """Every file: its image, or its bytes."""
    try:
        names = [checked(str(name)) for name in content.notes["names"]]
        whole = {int(k): int(length) for k, length in content.notes.get("whole", {}).items()}
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise FormatError(f"The notes of a block cannot be read ({error!r}).") from error
    coded = [k for k in range(len(names)) if k not in whole]
    right = sum(whole.values()) == len(content.rest) and min(whole.values(), default=0) >= 0 and len(names) == count
    if not right or not whole.keys() <= set(range(count)) or (coded and content.method == PLAIN):
        raise FormatError("The notes of a block do not fit what is in it.")
    mode = content.notes.get("mode", "L")
    if mode not in ("1", "L", "RGB"):
        raise FormatError(f"A block claims to hold images of kind {mode!r}.")
    pixels = decoded(codec, content, len(coded)) if coded else np.zeros(0, dtype=np.uint8)
    images, rest = iter(pixels), io.BytesIO(content.rest)
    found = [rest.read(whole[k]) if k in whole else Image.fromarray(next(images)).convert(mode) for k in range(count)]
    content.checked(*map(kept, found))
    return list(zip(names, found, strict=True))


def readable(encoder: ImageEncoder, name: str, raw: bytes) -> Image.Image | None:
    """The image in a file, if its pixels, size and kind are all there is to it, and it could be one that the model knows."""
    kind = WRITTEN.get(PurePosixPath(name).suffix.lower())
    if kind is None or not kind.only_pixels(raw):
        return None
    try:
        with Image.open(io.BytesIO(raw)) as image:
            if image.format != kind.name or getattr(image, "n_frames", 1) != 1 or image.size != (encoder.width, encoder.height):
                return None
            image.load()
            usual = image.mode in (("RGB",) if encoder.channels == 3 else ("1", "L")) and not set(image.info) - HARMLESS
            return image.copy() if usual else None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def as_array(image: Image.Image) -> Pixels:
    """Bytes; black and white as 0 and 255."""
    return np.asarray(image.convert("L") if image.mode == "1" else image)


def file_of(name: str, image: Image.Image | bytes) -> bytes:
    """What is written under this name."""
    if isinstance(image, bytes):
        return image
    kind, out = WRITTEN.get(PurePosixPath(name).suffix.lower()), io.BytesIO()
    image.save(out, format=kind.name if kind else "PNG")
    return out.getvalue()


def checked(name: str, kind: type[PurePath] = PurePath) -> str:
    """A name that stays inside its folder, on a system with such paths."""
    path = kind(name)
    if path.anchor or not path.parts or ".." in path.parts or "\0" in name or not is_text(name):
        raise FormatError(f"The archive holds a file called {name!r}, which would lie outside of its folder.")
    return name


def is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
