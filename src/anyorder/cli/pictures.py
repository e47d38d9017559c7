"""What the commands do with images: learn a folder, fill what is missing, draw new ones; as files and plain documents."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..archives import Done
from ..errors import InputError
from ..modalities.images.image_model import IMAGES_PER_CALL
from ..modalities.images.pixels import image_grid, read_image, write_film, write_image
from ..modalities.images.regions import HALVES, half
from ..validation import seed_of
from .printing import calls_shown

Document = dict[str, Any]
Marks = NDArray[np.bool_]
ENLARGE = 4  # small pictures are shown larger


class Missing(NamedTuple):
    """What the caller says is missing: a painted file, a box x,y,w,h, or a half."""

    mask: Path | None
    box: str | None
    half: str | None

    def marks(self, shape: tuple[int, ...]) -> Marks:
        """True where a pixel is missing."""
        said = [part for part in self if part is not None]
        if len(said) != 1:
            raise InputError(f"Say once what is missing: --mask FILE, --box x,y,w,h or --half left; {len(said)} were given.")
        if self.mask is not None:
            return painted(self.mask, shape)
        return box_of(self.box, shape) if self.box is not None else half_of(str(self.half), shape)


def painted(path: Path, shape: tuple[int, ...]) -> Marks:
    """A picture of the same size, painted where something is missing: any pixel that is not black."""
    marks = read_image(path)
    if marks.shape[:2] != shape[:2]:
        raise InputError(f"{path.name} has {marks.shape[1]} x {marks.shape[0]} pixels, the image {shape[1]} x {shape[0]}.")
    return (marks != 0).any(-1) if marks.ndim == 3 else marks != 0


def box_of(text: str, shape: tuple[int, ...]) -> Marks:
    try:
        x, y, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--box {text!r} cannot be read; expected whole numbers x,y,width,height, such as 4,4,8,8.") from None
    if min(x, y) < 0 or min(width, height) < 1 or x + width > shape[1] or y + height > shape[0]:
        raise InputError(f"--box {text} does not lie in the image of {shape[1]} x {shape[0]} pixels.")
    marks = np.zeros(shape[:2], dtype=bool)
    marks[y : y + height, x : x + width] = True
    return marks


def half_of(name: str, shape: tuple[int, ...]) -> Marks:
    if name not in HALVES:
        raise InputError(f"--half {name!r} is unknown; expected {', '.join(HALVES)}.")
    return half((shape[0], shape[1], 1), name).view(shape[:2]).numpy()


Options = Mapping[str, Any]  # how images are drawn, as options of a verb


def inpaint(model: Any, photo: Path, missing: Missing, draws: int, how: Options, steps: int | None, output: Path) -> Document:
    """The image, what was kept of it, and its completions side by side in one file; each also in a file of its own."""
    image = read_image(photo)
    white = white_of(image, model)
    marks = missing.marks(image.shape)
    with drawing(model, draws, int(marks.sum()), steps):
        filled = model.inpaint(image[None] // white, marks, draws, **how)[:, 0] * white
    shown = brightened(np.stack([image, image, *filled]) // white, model)
    shown[1][marks] = 128  # what was kept
    write_image(output, image_grid(shown, columns=draws + 2), enlarged(image.shape))
    files = [output.with_name(f"{output.stem}-{k}{output.suffix}") for k in range(1, draws + 1)]
    for path, one in zip(files, filled, strict=True):
        write_image(path, one)
    return {"missing_pixels": int(marks.sum()), "overview": str(output), "files": [str(path) for path in files]}


def white_of(image: NDArray[Any], model: Any) -> int:
    """What a level of the model is worth in the file: files of black and white hold 0 and 255 where a model may know 0 and 1."""
    encoder = model.fitted_.encoder
    return 255 if (encoder.levels, encoder.unit) == (2, 1) and set(np.unique(image)) <= {0, 255} else 1


def sample(model: Any, n: int, how: Options, steps: int | None, output: Path, film: Path | None) -> Document:
    """New images in one grid, and how they came about."""
    encoder, columns = model.fitted_.encoder, int(np.ceil(np.sqrt(n)))
    with drawing(model, n, encoder.height * encoder.width, steps):
        if film is None:
            drawn = model.sample(n, **how)
        else:
            states = list(model.fitted_.film(steps or len(encoder), n, how["label"], seed=seed_of(model.random_state)))
            drawn = states[-1][0]
            frames = [image_grid(unfinished(brightened(images, model), known, model), columns) for images, known in states]
            write_film(film, frames, enlarged(drawn.shape[1:]))
    write_image(output, image_grid(brightened(drawn, model), columns), enlarged(drawn.shape[1:]))
    return {"images": n, "steps": steps, "file": str(output)} | ({"film": str(film)} if film else {})


def check_film(film: Path, how: Options) -> None:
    if film.suffix.lower() != ".gif":
        raise InputError(f"{film.name} is no name for a film; name it *.gif.")
    if how.get("steps") is None or how["temperature"] != 1.0 or how["order"] is not None or how["mode"] is not None:
        raise InputError("--film shows usual steps in any order, at the temperature 1: only say how many, with --steps 20.")


def unfinished(images: NDArray[np.uint8], known: Tensor, model: Any) -> NDArray[np.uint8]:
    """Images with grey where a pixel is not there yet."""
    encoder = model.fitted_.encoder
    there = known.view(-1, *encoder.shape).all(-1).numpy()
    return np.where(there.reshape(*there.shape, *[1] * (images.ndim - 3)), images, 128).astype(np.uint8)


def drawing(model: Any, images: int, pixels: int, steps: int | None) -> AbstractContextManager[Done]:
    """A bar that goes on with every call of the network."""
    network, encoder = model.fitted_.model.network, model.fitted_.encoder
    values = pixels * len(encoder) // (encoder.height * encoder.width)
    return calls_shown("drawing", network, -(-images // IMAGES_PER_CALL) * (values if steps is None else min(steps, values)))


def enlarged(shape: tuple[int, ...]) -> int:
    return ENLARGE if max(shape) < 128 else 1


def brightened(images: NDArray[Any], model: Any) -> NDArray[np.uint8]:
    """Few levels, such as 0 and 1, are shown from black to white."""
    top = (model.fitted_.encoder.levels - 1) * model.fitted_.encoder.unit
    return np.round(images.astype(np.float64) * 255 / top).astype(np.uint8)
