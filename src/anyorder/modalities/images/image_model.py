"""One model of images: train it, fill what is missing of them, draw new ones, say how likely any part is given any other."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor

from ...distributions import ColourMixture, LogisticMixture, default_head
from ...errors import FormatError, InputError, UnavailableError
from ...inference import fixed_orders, mixture_log_prob, sample, seeded, walk
from ...models.any_order import AnyOrderModel
from ...models.trained import Trained
from ...networks import SIZES, UNet, UNetSize, size_named
from ...schema import Mask, Values
from ...subsets import OneByOne, Order, Precedence, Quadratic, Question, RandomOrder, Repeated, Schedule
from ...training import Check, Recipe, ardm, fit, save_model
from ...validation import RandomState, is_whole, seed_of, whole_number
from .pixels import ImageEncoder

IMAGE_STEPS = 4000  # of training, at an effort of 1
IMAGES_PER_CALL = 64
MOST_HELD_OUT_IMAGES = 512  # images that every check scores
SMALLEST_IN_PATCHES = 16  # pixels of a side; smaller images are seen pixel by pixel
Pixels = NDArray[Any]
ClassLabel = int | str | None  # the number of a class, or its name if classes have names


def build_image_model(
    encoder: ImageEncoder, size: UNetSize = SIZES["small"], context: tuple[int, ...] = (), seed: int = 0
) -> AnyOrderModel:
    """An untrained U-Net; `context` is how many codes each thing has that it may be told, such as the class of an image."""
    schema = encoder.schema
    head = default_head(schema.variables[0].domain)
    if isinstance(head, LogisticMixture | ColourMixture):
        head = replace(head, components=size.components)
    heads = [head] * len(schema)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = UNet(
            schema,
            head.width * len(schema),
            encoder.shape,
            size.widths,
            size.depth,
            context,
            size.patch if min(encoder.height, encoder.width) >= SMALLEST_IN_PATCHES else 1,
            size.attention,
            top=encoder.levels - 1 if encoder.base else 0,
            around=size.around,
        )
    return AnyOrderModel(schema, heads, network)


def fit_images(
    encoder: ImageEncoder,
    x: Values,
    labels: Tensor | None = None,
    size: UNetSize = SIZES["small"],
    effort: float = 1.0,
    seed: int = 0,
    device: str = "auto",
    progress: Callable[[Check], None] | None = None,
) -> "ImageModel":
    """A model trained on encoded images, and on the class of each if it is known."""
    model = build_image_model(encoder, size, () if labels is None else (int(labels.max()) + 1,), seed)
    context = None if labels is None else mostly_told(labels, seed)
    recipe = image_recipe(encoder, len(x), max(1, round(IMAGE_STEPS * effort)), seed, device)
    fitted = fit(model, x, torch.ones_like(x, dtype=torch.bool), recipe, context, progress)
    if fitted.stopped == "interrupted":
        raise KeyboardInterrupt
    return ImageModel(encoder, fitted.model.cpu(), fitted.history)


def mostly_told(labels: Tensor, seed: int) -> Tensor:
    """The labels as a context; a third of them is left out, so that images are known without them too."""
    left_out = torch.rand(len(labels), generator=seeded(seed)) < 1 / 3
    return torch.where(left_out, -1, labels)[:, None]


def image_recipe(encoder: ImageEncoder, images: int, steps: int, seed: int = 0, device: str = "auto") -> Recipe:
    """How images are trained: ARDM's objective along the orders that the encoder allows, in small batches."""
    return Recipe(
        replace(ardm(), order=order_of(encoder)),
        steps,
        batch_size=16,
        learning_rate=3e-3,
        average=0.999,
        held_out=min(0.1, MOST_HELD_OUT_IMAGES / max(images, 1)),
        check_every=max(min(steps, 20), steps // 10),
        seed=seed,
        device=device,
    )


def order_of(encoder: ImageEncoder) -> Order:
    """Any order; of digits all most significant ones before the next."""
    return Precedence(encoder.stages) if encoder.base else RandomOrder()


def fit_image_array(
    images: Pixels,
    labels: Any,
    size: str,
    effort: float,
    seed: int,
    device: str,
    progress: Callable[[Check], None] | None,
) -> "ImageModel":
    """From an array of images, and of whole numbers or names that say of which class each is."""
    size_named(size)
    encoder = ImageEncoder.learn(images)
    x, classes, names = encoder.encode(images), None, ()
    if labels is not None and np.asarray(labels).dtype.kind in "UO" and all(isinstance(label, str) for label in labels):
        found, labels = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
        names = tuple(found.tolist())
    if labels is not None:
        classes = torch.as_tensor(np.asarray(labels))
        if classes.shape != (len(x),) or classes.is_floating_point() or (len(x) and int(classes.min()) < 0):
            raise InputError(
                f"The labels are {classes.dtype} of shape {tuple(classes.shape)}; expected {len(x)} whole numbers, 0 or more."
            )
    classes = None if classes is None else classes.long()
    fitted = fit_images(encoder, x, classes, size_named(size), effort, seed, device, progress)
    return replace(fitted, classes=names)


@final
@dataclass(frozen=True)
class ImageModel:
    """A trained model of images and how they were written."""

    encoder: ImageEncoder
    model: AnyOrderModel
    history: list[Check] = field(default_factory=list)
    classes: tuple[str, ...] = ()  # their names, if they have some

    @property
    def order(self) -> Order:
        return order_of(self.encoder)

    def __repr__(self) -> str:
        weights = sum(weight.numel() for weight in self.model.parameters())
        nats = min((check.held_out_nats for check in self.history), default=None)
        bits = "" if nats is None else f", {nats / len(self.encoder) / math.log(2):.3f} bits per dimension on images held out"
        return f"ImageModel of {self.encoder.says()}: a U-Net of {weights:,} weights{bits}"

    def inpaint(
        self,
        images: Any,
        missing: Any,
        draws: int = 1,
        steps: int | None = None,
        temperature: float = 1.0,
        label: ClassLabel = None,
        seed: int = 0,
    ) -> Pixels:
        """Images with what is missing drawn given the rest; no known pixel is touched. (draw, image, height, width, ...)."""
        x = self.encoder.encode(images)
        known = ~self.encoder.mask_of(missing, len(x))
        draws = whole_number("draws", draws, 1)
        filled = self._drawn(x.repeat(draws, 1), known.repeat(draws, 1), steps, temperature, label, seeded(seed))
        return self.encoder.decode(filled, images).reshape(draws, *np.shape(images))

    def sample(
        self, n: int = 1, steps: int | None = None, temperature: float = 1.0, label: ClassLabel = None, seed: int = 0
    ) -> Pixels:
        """New images, `steps` network calls each: fewer are faster, one for every value (None) is exact."""
        nothing = torch.zeros(whole_number("n", n, 0), len(self.encoder))
        return self.encoder.decode(self._drawn(nothing, nothing.bool(), steps, temperature, label, seeded(seed)))

    def film(self, steps: int, n: int = 1, label: ClassLabel = None, seed: int = 0) -> Iterator[tuple[Pixels, Mask]]:
        """New images after every step, and which of their values are there already."""
        x, rng = torch.zeros(n, len(self.encoder)), seeded(seed)
        question = Question(torch.zeros_like(x, dtype=torch.bool), torch.ones_like(x, dtype=torch.bool))
        context = self._context(label, n)
        with torch.no_grad():
            for step in walk(self.model, x, question, order=self.order, schedule=self._schedule(steps), rng=rng, context=context):
                x.copy_(torch.where(step.now, step.conditionals.sample(rng, at=step.now), x))
                yield self.encoder.decode(x), step.given | step.now

    def score_samples(self, images: Any, missing: Any = None, orders: int = 1, steps: int | None = None) -> NDArray[np.float64]:
        """log p(missing | rest) of every image in nats; log p of the whole image if nothing is said to be missing."""
        x = self.encoder.encode(images)
        target = torch.ones_like(x, dtype=torch.bool) if missing is None else self.encoder.mask_of(missing, len(x))
        several = fixed_orders(len(self.encoder), orders, within=self.order)
        out = mixture_log_prob(self.model, x, Question(~target, target), several, schedule=self._schedule(steps))
        return out.double().numpy()

    def save(self, path: str | Path, half: bool = False, attached: Mapping[str, bytes] | None = None, **more: Any) -> None:
        history = [list(check._replace(seconds=0.0)) for check in self.history]
        named = {"classes": list(self.classes)} if self.classes else {}
        save_model(self.model, path, half, attached, images=self.encoder.to_json(), history=history, **named, **more)

    @classmethod
    def rebuilt(cls, model: Trained, images: Any, history: list[Check], classes: Any = ()) -> "ImageModel":
        """From what a file holds."""
        encoder = ImageEncoder.from_json(images)
        if not isinstance(model, AnyOrderModel) or not isinstance(model.network, UNet) or model.network.shape != encoder.shape:
            raise FormatError("The file contradicts itself: its model is not one of the images it describes.")
        if (
            not isinstance(classes, list | tuple)
            or not all(isinstance(name, str) for name in classes)
            or (classes and model.network.sizes["context"] != [len(classes)])
        ):
            raise FormatError("The file contradicts itself: its classes are not those of its model.")
        return cls(encoder, model, history, tuple(classes))

    def _drawn(self, x: Values, known: Mask, steps: int | None, temperature: float, label: ClassLabel, rng: Generator) -> Values:
        parts = [
            sample(
                self.model,
                x[some],
                Question(known[some], ~known[some]),
                rng,
                order=self.order,
                schedule=self._schedule(steps),
                temperature=temperature,
                context=self._context(label, len(some)),
            )
            for some in torch.arange(len(x)).split(IMAGES_PER_CALL)
        ]
        return torch.cat(parts) if len(x) else x

    def _schedule(self, steps: int | None) -> Schedule:
        """`steps` network calls in all, as many for every digit."""
        if steps is None or self.encoder.digits == 1:
            return schedule_of(steps)
        if steps % self.encoder.digits:
            raise InputError(f"steps={steps}; every value has {self.encoder.digits} digits: expected a multiple of that.")
        return Repeated(Quadratic(steps // self.encoder.digits), self.encoder.digits)

    def _context(self, label: ClassLabel, count: int) -> Tensor | None:
        """The class that all images are told to be of."""
        sizes = self.model.network.sizes["context"]
        if label is None:
            return None
        if not sizes:
            raise InputError(f"label={label}, but this model was trained without labels: fit(images, labels).")
        code: Any = self.classes.index(label) if label in self.classes else label
        code = int(code) if isinstance(code, str) and code.isdecimal() else code
        if not is_whole(code) or not 0 <= code < sizes[0]:
            known = ", ".join(self.classes) if self.classes else f"0 to {sizes[0] - 1}"
            raise InputError(f"label={label}; this model knows the labels {known}.")
        return torch.full((count, 1), code)


class ImageVerbs:
    """What the face of all models can do with images."""

    images_: ImageModel | None
    random_state: RandomState

    @property
    def of_images_(self) -> bool:
        check_is_fitted(self)
        return self.images_ is not None

    @property
    def image_model_(self) -> ImageModel:
        if not self.of_images_ or self.images_ is None:
            raise UnavailableError("This is a model of a table, the question is one about images. Fit it to an array of images.")
        return self.images_

    def inpaint(
        self,
        images: Any,
        mask: Any,
        draws: int = 1,
        steps: int | None = None,
        temperature: float = 1.0,
        label: ClassLabel = None,
    ) -> Pixels:
        """Completions of images, as (draw, image, height, width, ...): what the mask marks is drawn given all other pixels.

        No known pixel is touched. The mask is non-zero where a pixel is missing: one for all images, or one each. `steps`
        network calls fill an image: fewer are faster, None is one for every value and exact.
        """
        return self.image_model_.inpaint(images, mask, draws, steps, temperature, label, seed_of(self.random_state))


def schedule_of(steps: int | None) -> Schedule:
    """Few values at first, when little is known, and more later; None for one at a time."""
    if steps is not None and (not is_whole(steps) or steps < 1):
        raise InputError(f"Got steps={steps!r}; expected a whole number, 1 or more, or None for one value at a time.")
    return OneByOne() if steps is None else Quadratic(steps)


def binarise(x: Values, rng: Generator) -> Values:
    """Every pixel black or white, as likely white as it is light (0 to 255): another draw of it every time."""
    return (torch.rand(x.shape, generator=rng, device=x.device) * 255 < x).to(x.dtype)
