"""Images as rows of pixel codes: arrays, files and folders in, arrays of the same form out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ...errors import FormatError, InputError
from ...io.atomic import write_whole
from ...schema import Category, Colour, Ordinal, Schema
from ...validation import is_whole

Pixels = NDArray[Any]
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif")
MOST_PIXELS = 2**16  # variables of an image that anyone would model here
MOST_READ = 2**26  # pixels of a file that is read at all


@final
@dataclass(frozen=True)
class ImageEncoder:
    """Images of one shape, every channel of every pixel a variable: codes 0 .. levels-1, in reading order, channels last.

    With `colours` a pixel is one variable, its colour. With a `base` a value is written in digits of that base, each a
    variable, the most significant first: ARDM's upscaling is an order of the digits, `stages`.
    """

    height: int
    width: int
    channels: int  # 1 or 3
    levels: int
    unit: int = 1  # what one level is worth: black and white files hold 0 and 255
    colours: bool = False
    base: int = 0

    def __post_init__(self) -> None:
        sizes = (self.height, self.width, self.channels, self.levels, self.unit)
        fine = min(sizes) >= 1 and 2 <= self.levels <= 256 and self.channels in (1, 3) and (self.levels - 1) * self.unit <= 255
        if not fine or self.height * self.width * self.channels > MOST_PIXELS:
            raise InputError(
                f"Images of {self.says()} cannot be modelled; expected 1 or 3 channels and at most {MOST_PIXELS} values."
            )
        if self.colours and self.channels != 3:
            raise InputError(f"Images of {self.says()} have no colours; expected 3 channels.")
        if self.base and (not 2 <= self.base < self.levels or self.colours):
            raise InputError(
                f"Values of {self.levels} levels cannot be written in digits of base {self.base}"
                f"{' and be one colour' if self.colours else ''}; expected a base from 2 to {self.levels - 1}, or 0 for none."
            )

    def __len__(self) -> int:
        height, width, channels = self.shape
        return height * width * channels

    @property
    def shape(self) -> tuple[int, int, int]:
        """How the variables lie: rows, columns, and how many a pixel has."""
        return self.height, self.width, 1 if self.colours else self.channels * self.digits

    @property
    def pixels(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def digits(self) -> int:
        """How many variables a value is written in."""
        count = 1
        while self.base and self.base**count < self.levels:
            count += 1
        return count

    @property
    def schema(self) -> Schema:
        domain = Colour(self.levels) if self.colours else Category(self.base) if self.base else Ordinal(self.levels)
        return Schema.repeat(domain, len(self))

    @property
    def stages(self) -> tuple[int, ...]:
        """Of every variable the place of its digit: 0 for the most significant."""
        return tuple(range(self.digits)) * (len(self) // self.digits)

    def says(self) -> str:
        kind = {1: "grey" if self.levels > 2 else "black and white", 3: "colour"}.get(self.channels, f"{self.channels} channels")
        return f"{self.height} x {self.width} pixels, {kind}, {self.levels} levels"

    @classmethod
    def learn(cls, images: Any) -> "ImageEncoder":
        """The shape and the levels of an array of images: (number, height, width), or with 1 or 3 channels at the end.

        Of bytes there are 256 levels, or 2 if only black and white occur; other whole numbers have as many as occur.
        """
        pixels = as_pixels(images)
        if not pixels.size:
            raise InputError(f"The images have shape {np.shape(images)}: there is nothing to learn from.")
        top, (_, height, width, channels) = int(pixels.max()), pixels.shape
        if top <= 1:
            return cls(height, width, channels, 2, colours=channels == 3)
        if pixels.dtype == np.uint8 and set(np.unique(pixels)) <= {0, 255}:
            return cls(height, width, channels, 2, 255, colours=channels == 3)
        return cls(height, width, channels, 256 if pixels.dtype == np.uint8 else top + 1, colours=channels == 3)

    def in_digits(self, base: int) -> "ImageEncoder":
        """The same images, their values written in digits of this base."""
        if not is_whole(base) or not 2 <= base < self.levels:
            raise InputError(f"Got base={base!r}; expected a whole number from 2 to {self.levels - 1} for {self.levels} levels.")
        return replace(self, base=int(base), colours=False)

    def encode(self, images: Any) -> Tensor:
        """Pixels to codes, one row an image."""
        pixels = as_pixels(images)
        if pixels.shape[1:] != self.pixels:
            raise InputError(
                f"The images have the shape {pixels.shape[1:]} (height, width, channels); this model knows {self.pixels}. "
                "Resize or crop them first."
            )
        codes, rest = np.divmod(pixels, self.unit)
        if pixels.size and (rest.any() or codes.max() >= self.levels):
            allowed = f"0 and {self.unit}" if self.levels == 2 else f"0 to {(self.levels - 1) * self.unit}"
            raise InputError(f"The images hold the value {int(pixels.max())}; this model knows {allowed}.")
        return torch.from_numpy(self._split(codes.astype(np.int64)).astype(np.float32)).flatten(1)

    def _split(self, values: Pixels) -> Pixels:
        """(image, row, column, channel) values to (image, row, column, variable) codes."""
        if self.colours:
            return values @ np.array([[self.levels**2], [self.levels], [1]])
        worth = self.base ** np.arange(self.digits - 1, -1, -1) if self.base else np.ones(1, dtype=np.int64)
        digits = values[..., None] // worth
        return (digits % self.base if self.base else digits).reshape(len(values), *self.shape)

    def _joined(self, codes: Pixels) -> Pixels:
        """What `_split` split."""
        if self.colours:
            return codes // np.array([self.levels**2, self.levels, 1]) % self.levels
        worth = self.base ** np.arange(self.digits - 1, -1, -1) if self.base else np.ones(1, dtype=np.int64)
        return codes.reshape(*codes.shape[:3], self.channels, self.digits) @ worth

    def decode(self, x: Tensor, like: Any = None) -> Pixels:
        """Codes to pixels: bytes of shape (number, height, width, channels), or as `like`, whose form is taken over."""
        pixels = self._joined(x.round().long().cpu().numpy().reshape(len(x), *self.shape)) * self.unit
        if like is None:
            return pixels.astype(np.uint8).squeeze(3) if self.channels == 1 else pixels.astype(np.uint8)
        like = np.asarray(like)
        return (pixels.squeeze(3) if like.ndim == 3 else pixels).astype(like.dtype)

    def mask_of(self, missing: Any, images: int) -> Tensor:
        """Which values are missing, from a mask of pixels: one for all images or one each, with or without channels."""
        marks = np.asarray(missing) != 0
        if marks.shape[-2:] == (self.height, self.width):
            marks = np.repeat(marks[..., None], self.channels, axis=-1)
        try:
            wide = np.broadcast_to(marks, (images, *self.pixels))
        except ValueError:
            raise InputError(
                f"The mask has shape {np.shape(missing)}; expected ({self.height}, {self.width}), or ({images}, {self.height}, "
                f"{self.width}) for one mask an image, non-zero where a pixel is missing."
            ) from None
        if not self.colours:
            return torch.from_numpy(wide.repeat(self.digits, axis=-1)).flatten(1)
        if (wide.any(-1) != wide.all(-1)).any():
            raise InputError("The mask hides some channels of a pixel and not the others; this model knows whole colours only.")
        return torch.from_numpy(wide.any(-1).copy()).flatten(1)

    def to_json(self) -> dict[str, int | bool]:
        return asdict(self)

    @classmethod
    def from_json(cls, item: dict[str, Any]) -> "ImageEncoder":
        try:
            sizes: dict[str, Any] = {name: int(value) for name, value in item.items()}
            return cls(**sizes | {"colours": bool(sizes.get("colours", False))})
        except (TypeError, ValueError, AttributeError, InputError) as error:
            raise FormatError(f"What the file says of its images cannot be read ({error}).") from error


def as_pixels(images: Any) -> Pixels:
    """An array (number, height, width, channels) of whole numbers 0 to 255."""
    pixels = np.asarray(images)
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    if pixels.ndim != 4 or pixels.shape[3] not in (1, 3):
        raise InputError(
            f"The images have shape {pixels.shape}; expected (number, height, width), or with 1 or 3 channels at the end. "
            "A single image is images[None]."
        )
    if pixels.dtype == bool:
        return pixels.astype(np.uint8)
    if not np.issubdtype(pixels.dtype, np.number) or np.iscomplexobj(pixels):
        raise InputError(f"The images hold {pixels.dtype}; expected whole numbers 0 to 255, best uint8.")
    if pixels.size and not (
        np.isfinite(pixels).all() and (pixels == np.round(pixels)).all() and 0 <= pixels.min() <= pixels.max() <= 255
    ):
        raise InputError(
            f"The images hold values from {pixels.min():g} to {pixels.max():g}; expected whole numbers 0 to 255. "
            "For numbers from 0 to 1: (255 * images).round().astype('uint8')."
        )
    return pixels if pixels.dtype == np.uint8 else pixels.astype(np.int64)


def looks_like_images(X: Any) -> bool:
    """Arrays of three or four dimensions are images, all else is a table."""
    return isinstance(X, np.ndarray) and X.ndim in (3, 4)


def read_image(path: str | Path) -> Pixels:
    """One file as (height, width) or (height, width, 3) bytes; palettes become colours, transparency is refused."""
    path = Path(path)
    try:
        with Image.open(path) as image:
            if image.width * image.height > MOST_READ:
                raise InputError(f"{path.name} claims {image.width} x {image.height} pixels; at most {MOST_READ} are read.")
            image.load()
            if "A" in image.getbands() or "transparency" in image.info:
                raise InputError(f"{path.name} has transparent pixels; expected grey or colour. Put it on a background first.")
            if image.mode not in ("1", "L", "P", "RGB"):
                raise InputError(f"{path.name} has pixels of kind {image.mode}; expected grey or colour with 8 bits a channel.")
            return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except InputError:
        raise
    except Exception as error:  # what a damaged file leads to in Pillow is for it to choose
        raise InputError(f"{path.name} cannot be read as an image: {error}.") from error


def read_folder(folder: str | Path) -> tuple[Pixels, list[str]]:
    """All images of a folder in the order of their names, and the names; they must have one shape."""
    folder = Path(folder)
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES) if folder.is_dir() else []
    if not paths:
        raise InputError(f"{folder} is no folder with images in it; expected files ending in {', '.join(IMAGE_SUFFIXES)}.")
    images = [read_image(path) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise InputError(
                f"{path.name} has shape {image.shape}, {paths[0].name} has {images[0].shape}. Resize them to one shape."
            )
    return np.stack(images), [path.name for path in paths]


def read_labelled(folder: str | Path) -> tuple[Pixels, list[str] | None]:
    """All images of a folder; if they lie in folders of it, one for each class, the name of its class for each image."""
    folder = Path(folder)
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    loose = any(path.suffix.lower() in IMAGE_SUFFIXES for path in folder.iterdir() if path.is_file())
    if loose or not inside:
        if loose and any(path.suffix.lower() in IMAGE_SUFFIXES for one in inside for path in one.iterdir()):
            raise InputError(f"{folder} holds images beside folders of images. Put every image into the folder of its class.")
        return read_folder(folder)[0], None
    found = [read_folder(one)[0] for one in inside]
    for one, images in zip(inside, found, strict=True):
        if images.shape[1:] != found[0].shape[1:]:
            raise InputError(
                f"The images in {one.name!r} have shape {images.shape[1:]}, those in {inside[0].name!r} {found[0].shape[1:]}. "
                "Resize them to one shape."
            )
    return np.concatenate(found), [one.name for one, images in zip(inside, found, strict=True) for _ in images]


def image_grid(images: Pixels, columns: int, gap: int = 2) -> Pixels:
    """Many images side by side in one, on grey."""
    pixels = np.asarray(images)
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    count, height, width, channels = pixels.shape
    rows = -(-count // columns)
    sheet = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, channels), 128, dtype=np.uint8)
    for k, image in enumerate(pixels):
        row, column = divmod(k, columns)
        top, left = gap + row * (height + gap), gap + column * (width + gap)
        sheet[top : top + height, left : left + width] = image
    return sheet.squeeze(2) if channels == 1 else sheet


def check_lossless(path: str | Path) -> None:
    """Other formats would change pixels."""
    if Path(path).suffix.lower() != ".png":
        raise InputError(f"{Path(path).name} is no name for a picture that keeps every pixel; name it *.png.")


def write_image(path: str | Path, pixels: Pixels, enlarge: int = 1) -> None:
    """A PNG file, whole or not at all."""
    check_lossless(path)
    image = larger(pixels, enlarge)
    write_whole(Path(path), lambda beside: image.save(beside, format="PNG"))


def larger(pixels: Pixels, enlarge: int) -> Image.Image:
    image = Image.fromarray(np.asarray(pixels, dtype=np.uint8))
    return image.resize((image.width * enlarge, image.height * enlarge), Image.Resampling.NEAREST)


def write_film(path: str | Path, frames: Sequence[Pixels], enlarge: int = 1, milliseconds: int = 120) -> None:
    """An animated GIF; the last frame stays."""
    images = [larger(frame, enlarge) for frame in frames]
    waits = [milliseconds] * (len(images) - 1) + [20 * milliseconds]
    write_whole(
        Path(path),
        lambda beside: images[0].save(beside, format="GIF", save_all=True, append_images=images[1:], duration=waits, loop=0),
    )
