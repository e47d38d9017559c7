"""Files of images that hold pixels of at most eight bits and nothing else: those that may be written anew."""

import io
import struct
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...archives import ClosedArchive, Codec, Done, Lost, OpenArchive, Source
from ...archives.archive import MOST_ARCHIVE_BYTES
from ...archives.blocks import MODELLED, MOST_REST, PLAIN, Content, crc, shorter
from ...archives.folders import checked_name, every_file, write_files
from ...errors import AnyOrderError, FormatError, InputError
from ...models.trained import BAD_CONTENT
from ...schema import Values
from .pixels import ImageEncoder
from .pyramid_codec import ImageCodec, fit_own_codec


class PixelFormat(NamedTuple):
    """A format that keeps every pixel."""

    name: str
    only_pixels: Callable[[bytes], bool]  # whether a file holds pixels of at most eight bits and nothing else


def only_pixels_in_png(raw: bytes) -> bool:
    at, last = 8, b""
    while last != b"IEND" and at + 12 <= len(raw):
        length, last = struct.unpack_from(">I4s", raw, at)
        if last not in (b"IHDR", b"IDAT", b"IEND", b"pHYs") or (last == b"IHDR" and raw[at + 16 : at + 17] > b"\x08"):
            return False
        at += 12 + length
    return last == b"IEND" and at == len(raw)


def only_pixels_in_bmp(raw: bytes) -> bool:
    """The plain form: a head of 40 bytes, a palette for up to 8 bits, rows of whole words."""
    if len(raw) < 54:
        return False
    start, head, width, height, _, bits, compression = struct.unpack_from("<IIiiHHI", raw, 10)
    palette = 0 if bits == 24 else 4 * 2**bits
    rows = (bits * width + 31) // 32 * 4 * abs(height)
    return bits in (1, 8, 24) and head == 40 and not compression and start == 54 + palette and len(raw) == start + rows


PIXEL_FORMATS = {".png": PixelFormat("PNG", only_pixels_in_png), ".bmp": PixelFormat("BMP", only_pixels_in_bmp)}


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
    kinds = [None if codec is None else kind_of_file(codec.encoder, image) for image in images]
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


def kind_of_file(encoder: ImageEncoder, image: Image.Image | None) -> tuple[str, int] | None:
    """The mode of an image and the unit its levels are written in, if the model knows such images."""
    found = None if image is None else known(encoder, as_array(image)[None])
    return None if image is None or found is None else (image.mode, found[0].unit)


def unpack_files(codec: ImageCodec | None, content: Content, count: int) -> list[tuple[str, Image.Image | bytes]]:
    """Every file: its image, or its bytes."""
    try:
        names = [checked_name(str(name)) for name in content.notes["names"]]
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
    kind = PIXEL_FORMATS.get(PurePosixPath(name).suffix.lower())
    if kind is None or not kind.only_pixels(raw):
        return None
    try:
        with Image.open(io.BytesIO(raw)) as image:
            if image.format != kind.name or getattr(image, "n_frames", 1) != 1 or image.size != (encoder.width, encoder.height):
                return None
            image.load()
            usual = image.mode in (("RGB",) if encoder.channels == 3 else ("1", "L")) and not set(image.info) - HARMLESS
            return image.copy() if usual else None
    except Exception:  # whatever Pillow says of it, it is no image that a model could know
        return None


def as_array(image: Image.Image) -> Pixels:
    """Bytes; black and white as 0 and 255."""
    return np.asarray(image.convert("L") if image.mode == "1" else image)


def file_of(name: str, image: Image.Image | bytes) -> bytes:
    """What is written under this name."""
    if isinstance(image, bytes):
        return image
    kind, out = PIXEL_FORMATS.get(PurePosixPath(name).suffix.lower()), io.BytesIO()
    image.save(out, format=kind.name if kind else "PNG")
    return out.getvalue()


class ImageSource(Source):
    """Items that are images, or some of them are."""

    what = "images"
    items: ClassVar[dict[str, str]] = {"array": "images", "folder": "files"}
    wants = ImageCodec

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
        paths = [self.folder / name for name in self.names if Path(name).suffix.lower() in PIXEL_FORMATS]
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


def mode_and_size(path: Path) -> tuple[str, tuple[int, int]] | None:
    """Of an image that a codec could know; nothing but the head of the file is read."""
    try:
        with Image.open(path) as image:
            return (image.mode, image.size) if image.mode in ("1", "L", "RGB") else None
    except Exception:  # whatever Pillow says of it, it is no image that a model could know
        return None


def pixels_of(path: Path) -> Pixels | None:
    try:
        with Image.open(path) as image:
            return as_array(image)
    except Exception:  # whatever Pillow says of it, it is no image that a model could know
        return None


def image_codec(codec: Codec | None) -> ImageCodec | None:
    return codec if isinstance(codec, ImageCodec) else None


BROKEN = (*BAD_CONTENT, ArithmeticError, MemoryError)  # whatever a forged block may lead to


def decompress_array(archive: OpenArchive, rows: range | None = None, done: Done | None = None) -> tuple[Pixels, list[Lost]]:
    """The array, zeros where blocks are damaged, and what is lost; of some rows only their blocks are read."""
    if archive.form["kind"] != "array":
        raise InputError(f"The archive holds a {archive.form['kind']}, not an array: decompress it with `anyorder decompress`.")
    shape, dtype = shape_and_dtype(archive)
    wanted = range(archive.count) if rows is None else rows
    parts, lost = list[Pixels](), list[Lost]()
    for some, content in archive.contents(wanted):
        size = (len(some), *shape[1:])
        try:
            if isinstance(content, Content):
                pixels = unpack_array(image_codec(archive.codec), content, size, dtype)
        except BROKEN as error:
            content = Lost(some.start // archive.per_block, some, told(error))
        if isinstance(content, Lost):
            lost.append(content)
            pixels = blank(size if some.start < archive.there else (0, *shape[1:]), dtype)
        parts.append(pixels[max(wanted.start - some.start, 0) : wanted.stop - some.start])
        if done is not None:
            done(some.stop, wanted.stop)
    whole = np.concatenate(parts) if parts else np.zeros((0, *shape[1:]), dtype)
    return whole.astype(dtype, copy=False), lost  # in its byte order


def blank(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Pixels:
    """What stands for lost images."""
    try:
        return np.zeros(shape, dtype)
    except MemoryError as error:
        raise FormatError(f"The archive claims to hold images of shape {shape}, which do not fit into memory.") from error


def told(error: BaseException) -> str:
    return str(error) if isinstance(error, AnyOrderError) else f"it cannot be read ({error!r:.200})"


def shape_and_dtype(archive: ClosedArchive) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """As the archive claims, if there can be such an array."""
    try:
        shape, dtype = tuple(int(n) for n in archive.form["shape"]), np.dtype(str(archive.form["dtype"]))
        np.zeros((0, *shape[1:]), dtype)
    except (KeyError, TypeError, ValueError, OverflowError, SyntaxError) as error:
        raise FormatError(f"The description of the archive cannot be read ({error!r}).") from error
    if dtype.hasobject or not dtype.itemsize or not shape or shape[0] != archive.count or min(shape) < 0:
        raise FormatError(f"The archive claims to hold an array of {dtype} of shape {shape}.")
    item = int(np.prod(shape[1:], dtype=object)) * dtype.itemsize
    if item > MOST_REST or (archive.per_block > 1 and item * archive.per_block > MOST_ARCHIVE_BYTES):
        raise FormatError(f"The archive claims to hold {archive.per_block} images of shape {shape[1:]} in a block: too many.")
    return shape, dtype


def decompress_folder(archive: OpenArchive, folder: Path, done: Done | None = None) -> list[Lost]:
    """All files into a folder; what is lost, or cannot be written there, is left out and told."""
    if archive.form["kind"] != "folder":
        raise InputError(f"The archive holds a {archive.form['kind']}, not a folder of images.")
    folder.mkdir(parents=True, exist_ok=True)
    lost = []
    for some, content in archive.contents():
        try:
            if isinstance(content, Lost):
                lost.append(content)
            else:
                found = unpack_files(image_codec(archive.codec), content, len(some))
                files = ((name, file_of(name, one)) for name, one in found)
                lost.extend(write_files(folder, files, some, archive.per_block))
        except BROKEN as error:
            lost.append(Lost(some.start // archive.per_block, some, told(error)))
        if done is not None:
            done(some.stop, archive.count)
    return lost
