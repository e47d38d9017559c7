"""Pictures: completed, drawn anew step by step, and how surprising every pixel is."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..modalities.base import ask as checked
from .jobs import Job
from .wording import command, python_call
from .workspace import OpenModel, Workspace

Document = dict[str, Any]
Pixels = NDArray[Any]
MOST_DRAWN, MOST_STEPS, PIXELS_SCORED_AT_ONCE = 16, 4000, 32
SECONDS_BETWEEN_FRAMES = 0.15


def picture(pixels: Pixels) -> Document:
    """Bytes 0 to 255 as the page draws them."""
    shape = np.shape(pixels)
    content = base64.b64encode(np.ascontiguousarray(pixels, dtype=np.uint8).tobytes()).decode()
    return {"height": shape[0], "width": shape[1], "channels": shape[2] if len(shape) > 2 else 1, "bytes": content}


def canvas_of(space: Workspace, model: str, verb: str) -> OpenModel:
    """A model that draws."""
    kept = space.model(model)
    checked(kept.model.fitted_, verb, {})
    return kept


def canvas(space: Workspace, model: str) -> Document:
    """The size of the pictures that a model knows, and their classes."""
    kept = canvas_of(space, model, "inpaint")
    encoder = kept.model.encoder_
    return {
        "model": model,
        "name": kept.name,
        "height": encoder.height,
        "width": encoder.width,
        "channels": encoder.channels,
        "levels": encoder.levels,
        "labels": list(kept.model.fitted_.classes),
        "data": kept.data,
    }


def read_bytes_of(name: str, text: str, size: int) -> Pixels:
    try:
        found = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (binascii.Error, ValueError):
        raise InputError(f"{name} is not written in base64.") from None
    if len(found) != size:
        raise InputError(f"{name} has {len(found)} bytes; expected {size}, one for each value of a pixel.")
    return found


def image_of(kept: OpenModel, text: str) -> Pixels:
    """An array of one image with the values that the model knows, from bytes 0 to 255."""
    encoder = kept.model.encoder_
    shown = read_bytes_of("image", text, encoder.height * encoder.width * encoder.channels)
    levels = np.round(shown / 255 * (encoder.levels - 1)) * encoder.unit
    return levels.astype(np.uint8).reshape(1, encoder.height, encoder.width, *[encoder.channels][: encoder.channels > 1])


def brightened(kept: OpenModel, images: Pixels) -> Pixels:
    """Few levels, such as 0 and 1, from black to white."""
    encoder = kept.model.encoder_
    return np.round(images.astype(np.float64) * 255 / ((encoder.levels - 1) * encoder.unit)).astype(np.uint8)


def check_drawing(draws: int, steps: int, temperature: float) -> None:
    for name, value, most in (("draws", draws, MOST_DRAWN), ("steps", steps, MOST_STEPS)):
        if not 1 <= value <= most:
            raise InputError(f"Got {name}={value}; expected a whole number from 1 to {most}.")
    if not 0.05 <= temperature <= 5:
        raise InputError(f"Got temperature={temperature:g}; expected a number from 0.05 to 5.")


def paint(
    space: Workspace,
    model: str,
    image: str,
    missing: str,
    draws: int = 4,
    steps: int = 20,
    temperature: float = 1.0,
    label: str | None = None,
    seed: int = 0,
) -> Document:
    """Complete a picture several times where it is missing, as a job that shows every step. Both are bytes in base64."""
    kept = canvas_of(space, model, "inpaint")
    encoder = kept.model.encoder_
    check_drawing(draws, steps, temperature)
    images = image_of(kept, image)
    mask = read_bytes_of("missing", missing, encoder.height * encoder.width).reshape(encoder.height, encoder.width) != 0
    if not mask.any():
        raise InputError("Nothing is missing: paint over what is to be drawn anew.")
    told = "" if label is None else f", label={label!r}"
    options = f"{draws}, steps={steps}, temperature={temperature}{told}"
    call = f"model.set_params(random_state={seed})\nmodel.inpaint(images, mask, {options})"
    words = ["anyorder", "inpaint", kept.name, "image.png", "--mask", "mask.png", "-n", str(draws), "--steps", str(steps)]
    shown = {
        "python": python_call(kept.name, call),
        "command": command(*words, "--temperature", f"{temperature:g}", "--seed", str(seed)),
    }
    drawn: Document = {"images": images, "mask": mask, "temperature": temperature, "label": label, "seed": seed}
    return film(space, kept, f"Paint with {kept.name}", draws, steps, drawn, shown)


def new_pictures(
    space: Workspace, model: str, n: int = 4, steps: int = 20, temperature: float = 1.0, label: str | None = None, seed: int = 0
) -> Document:
    """Draw new pictures, as a job that shows every step."""
    kept = canvas_of(space, model, "film")
    check_drawing(n, steps, temperature)
    told = "" if label is None else f", label={label!r}"
    call = f"model.set_params(random_state={seed})\nmodel.sample({n}, steps={steps}, temperature={temperature}{told})"
    words = ["anyorder", "sample", kept.name, "-n", str(n), "--steps", str(steps), "--temperature", f"{temperature:g}"]
    words += ["--seed", str(seed), *([] if label is None else ["--label", label]), "--grid", "new.png"]
    shown = {"python": python_call(kept.name, call), "command": command(*words)}
    options: Document = {"temperature": temperature, "label": label, "seed": seed}
    return film(space, kept, f"Draw with {kept.name}", n, steps, options, shown)


def film(space: Workspace, kept: OpenModel, title: str, count: int, steps: int, options: Document, shown: Document) -> Document:
    """A job that tells the pictures as they come about: grey where a pixel is not there yet."""
    encoder, fitted = kept.model.encoder_, kept.model.fitted_
    if steps % encoder.digits:
        steps += encoder.digits - steps % encoder.digits

    def work(job: Job) -> Document:
        drawn: Pixels | None = None
        frames: Iterator[tuple[Pixels, Any]] = fitted.film(steps, count, **options)
        for step, (drawn, known) in enumerate(frames, start=1):
            there = known.reshape(count, encoder.height, encoder.width, -1).all(-1).cpu().numpy()
            seen = brightened(kept, drawn)
            half = np.where(there.reshape(*there.shape, *[1] * (seen.ndim - 3)), seen, 128)
            job.tell(step=step, steps=steps, pictures=[picture(one) for one in half])
        assert drawn is not None
        return {"pictures": [picture(one) for one in brightened(kept, drawn)], **shown}

    return space.jobs.start(title, work).document()


def likelihood(space: Workspace, model: str, image: str) -> Document:
    """How many nats every pixel of a picture takes given all the others, as a job."""
    kept = canvas_of(space, model, "inpaint")
    encoder, images = kept.model.encoder_, image_of(kept, image)
    call = "mask = np.eye(images[0].size, dtype=bool).reshape(-1, *images.shape[1:])\n"
    call += "model.score_samples(images.repeat(len(mask), 0), mask)"

    def work(job: Job) -> Document:
        pixels = encoder.height * encoder.width
        nats = np.zeros(pixels)
        for start in range(0, pixels, PIXELS_SCORED_AT_ONCE):
            job.tell(done=start, of=pixels)
            places = np.arange(start, min(start + PIXELS_SCORED_AT_ONCE, pixels))
            marks = (np.arange(pixels) == places[:, None]).reshape(-1, encoder.height, encoder.width)
            nats[places] = -kept.model.score_samples(images.repeat(len(places), 0), marks)
        top = max(float(nats.max()), 1e-9)
        shades = np.round(255 * nats / top).reshape(encoder.height, encoder.width)
        result = {"map": picture(shades), "most": top, "total": float(nats.sum()), "mean": float(nats.mean())}
        return {**result, "python": "import numpy as np\n" + python_call(kept.name, call), "command": ""}

    return space.jobs.start(f"Look at every pixel with {kept.name}", work).document()
