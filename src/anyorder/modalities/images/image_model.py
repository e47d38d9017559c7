"""One model of images: train it, fill what is missing of them, draw new ones, say how likely any part is given any other."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from ...distributions import ColourMixture, LogisticMixture, default_head
from ...errors import InputError
from ...inference import ModeAndStep, fixed_orders, mixture_log_prob, plan, sample, seeded, step_losses, walk
from ...models.any_order import AnyOrderModel
from ...networks import SIZES, UNet, UNetSize
from ...schema import Mask, Values
from ...subsets import Order, Planned, Precedence, Quadratic, Question, RandomOrder, Repeated, Schedule
from ...training import Check, Objective, Recipe, ardm, fit
from ...training.distributed import this_world
from ...validation import is_whole, whole_number
from ..base import Document, Fitted, Training, chosen_schedule
from .pixels import ImageEncoder
from .regions import modes

IMAGE_STEPS = 4000  # of training, at an effort of 1
IMAGES_PER_CALL = 64
MOST_HELD_OUT_IMAGES = 512  # images that every check scores
SMALLEST_IN_PATCHES = 16  # pixels of a side; smaller images are seen pixel by pixel
Pixels = NDArray[Any]
Label = Any  # None, the number of a class, or its name if classes have names; or one of these for every image


def build_image_model(
    encoder: ImageEncoder,
    size: UNetSize = SIZES["small"],
    context: tuple[int, ...] = (),
    seed: int = 0,
    step: int | None = None,
) -> AnyOrderModel:
    """An untrained U-Net; `context` is how many codes each thing has that it may be told, such as the class of an image.

    `step` is the column of the context that counts the values that are known, if there is one.
    """
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
            step=step if size.step_by_sines else None,
        )
    return AnyOrderModel(schema, heads, network)


def fit_images(
    encoder: ImageEncoder,
    x: Values,
    labels: Tensor | None = None,
    size: UNetSize = SIZES["small"],
    training: Training = Training(),
    objective: Objective | None = None,
) -> "FittedImages":
    """A model trained on encoded images, and on the class of each if it is known."""
    modes = () if objective is None else objective.modes()
    told = (len(modes), len(encoder) + 1) if modes else ()
    classes = () if labels is None else (int(labels.max()) + 1,)
    model = build_image_model(encoder, size, (*told, *classes), training.seed, 1 if modes else None)
    context = None if labels is None else mostly_told(labels, training.seed)
    recipe = image_recipe(encoder, len(x), max(1, round(IMAGE_STEPS * training.effort)), training.seed, training.device)
    if objective is not None:
        recipe = replace(recipe, objective=objective.named(named_orders(encoder)))
    world = this_world()
    known = torch.ones_like(x, dtype=torch.bool)
    fitted = fit(model, x, known, recipe, context, training.progress, checkpoint=world.checkpoint, world=world)
    if fitted.stopped == "interrupted":
        raise KeyboardInterrupt
    return FittedImages(encoder, fitted.model.cpu(), fitted.history, modes=modes)


def named_orders(encoder: ImageEncoder) -> dict[str, Order]:
    """What the names of orders mean for these images; none where the digits of a value have to come one after the other."""
    return {} if encoder.base else modes(encoder.shape)


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
    images: Pixels, labels: Any, training: Training, size: UNetSize, base: int, objective: Objective | None
) -> "FittedImages":
    """From an array of images, and of whole numbers or names that say of which class each is."""
    encoder = ImageEncoder.learn(images)
    encoder = encoder.in_digits(base) if base else encoder
    if base and objective is not None:
        raise InputError("base= sets the order, digit after digit, and objective= sets it too. Give one of them.")
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
    fitted = fit_images(encoder, x, classes, size, training, objective)
    return replace(fitted, classes=names)


@final
@dataclass
class FittedImages(Fitted):
    """A trained model of images, and how they were written."""

    encoder: ImageEncoder
    model: AnyOrderModel
    history: list[Check] = field(default_factory=list)
    classes: tuple[str, ...] = ()  # their names, if they have some
    modes: tuple[str, ...] = ()  # the orders that it was trained for, if the network is told which one it is

    what = "images"

    @property
    def order(self) -> Order:
        return order_of(self.encoder)

    def about(self) -> Document:
        more = {"classes": self.classes, "modes": self.modes}
        return {"images": self.encoder.to_json(), **{name: list(some) for name, some in more.items() if some}}

    def describe(self) -> Document:
        return {
            "what": self.encoder.says(),
            "network": "a U-Net",
            "held_out_bits_per_dimension": self.held_out_bits,
            "parameters": self.weights,
            "keeps_rows": 0,
        }

    @property
    def weights(self) -> int:
        """How many numbers the network has."""
        return sum(weight.numel() for weight in self.model.parameters())

    @property
    def held_out_bits(self) -> float | None:
        """Bits per dimension on images that were held out of training, if any were."""
        nats = min((check.held_out_nats for check in self.history), default=None)
        return None if nats is None else nats / len(self.encoder) / math.log(2)

    def outline(self) -> list[str]:
        bits = "" if self.held_out_bits is None else f", {self.held_out_bits:.3f} bits per dimension on images held out"
        return [f"a model of {self.encoder.says()}: a U-Net of {self.weights:,} weights{bits}"]

    def inpaint(
        self,
        images: Any,
        mask: Any,
        draws: int = 1,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        temperature: float = 1.0,
        label: Label = None,
        mode: str | None = None,
        seed: int = 0,
    ) -> Pixels:
        """Images with what is missing drawn given the rest; no known pixel is touched. (draw, image, height, width, ...)."""
        x = self.encoder.encode(images)
        known = ~self.encoder.mask_of(mask, len(x))
        draws, cut = whole_number("draws", draws, 1), self._schedule(steps, schedule)
        how = Drawing(self._order(mode), cut, temperature, self._context(label, len(x), mode))
        filled = self._drawn(x.repeat(draws, 1), known.repeat(draws, 1), how.repeat(draws), seeded(seed))
        return self.encoder.decode(filled, images).reshape(draws, *np.shape(images))

    def sample(
        self,
        n: int = 1,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        order: Order | None = None,
        temperature: float = 1.0,
        label: Label = None,
        mode: str | None = None,
        seed: int = 0,
    ) -> Pixels:
        """New images, `steps` network calls each: fewer are faster, one for every value (None) is exact."""
        nothing = torch.zeros(whole_number("n", n, 0), len(self.encoder))
        context = self._context(label, len(nothing), mode)
        how = Drawing(order or self._order(mode), self._schedule(steps, schedule), temperature, context)
        return self.encoder.decode(self._drawn(nothing, nothing.bool(), how, seeded(seed)))

    def film(
        self,
        steps: int,
        n: int = 1,
        label: Label = None,
        *,
        images: Any = None,
        mask: Any = None,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> Iterator[tuple[Pixels, Mask]]:
        """New images after every step, and which of their values are there already.

        With a single image and a mask `n` completions of it, as `inpaint` with the same seed ends with.
        """
        if (images is None) != (mask is None):
            raise InputError("film got an image without a mask, or a mask without an image. Give both or none of them.")
        x, rng = torch.zeros(n, len(self.encoder)), seeded(seed)
        asked = torch.ones_like(x, dtype=torch.bool)
        if images is not None:
            x, asked = self.encoder.encode(images).repeat(n, 1), self.encoder.mask_of(mask, 1).repeat(n, 1)
        question = Question(~asked, asked)
        context, cut = self._context(label, n), self._schedule(steps)
        with torch.no_grad():
            for step in walk(self.model, x, question, order=self.order, schedule=cut, rng=rng, context=context):
                x.copy_(torch.where(step.now, step.conditionals.sample(rng, temperature, at=step.now), x))
                yield self.encoder.decode(x), step.given | step.now

    def score_samples(
        self,
        X: Any,
        target: Any = None,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        order: Order | None = None,
        label: Label = None,
        mode: str | None = None,
        orders: int = 1,
    ) -> NDArray[np.float64]:
        """log p(target | rest) of every image in nats; log p of the whole image if there is no target."""
        x = self.encoder.encode(X)
        asked = torch.ones_like(x, dtype=torch.bool) if target is None else self.encoder.mask_of(target, len(x))
        several: list[Order] = [order] if order else [*fixed_orders(len(self.encoder), orders, within=self._order(mode))]
        context, cut = self._context(label, len(x), mode), self._schedule(steps, schedule)
        out = mixture_log_prob(self.model, x, Question(~asked, asked), several, schedule=cut, context=context)
        return out.double().numpy()

    def plan(self, X: Any, steps: int, *, seed: int = 0) -> Planned:
        """The schedule of so many steps that costs images like these the fewest nats."""
        if self.encoder.base:
            raise InputError(f"Values with {self.encoder.digits} digits each are revealed digit after digit: use steps=.")
        x = self.encoder.encode(X)
        losses = step_losses(self.model, x, torch.ones_like(x, dtype=torch.bool), seeded(seed))
        return plan(losses, whole_number("steps", steps, 1))

    def _drawn(self, x: Values, known: Mask, how: "Drawing", rng: Generator) -> Values:
        parts = [
            sample(
                self.model,
                x[some],
                Question(known[some], ~known[some]),
                rng,
                order=how.order,
                schedule=how.schedule,
                temperature=how.temperature,
                context=how.of(some),
            )
            for some in torch.arange(len(x)).split(IMAGES_PER_CALL)
        ]
        return torch.cat(parts) if len(x) else x

    def _schedule(self, steps: int | None, schedule: Schedule | None = None) -> Schedule:
        """`steps` network calls in all, as many for every digit; few values at first, when little is known."""
        if schedule is not None or steps is None or self.encoder.digits == 1:
            return chosen_schedule(steps, schedule, Quadratic)
        if steps % self.encoder.digits:
            raise InputError(f"steps={steps}; every value has {self.encoder.digits} digits: expected a multiple of that.")
        return Repeated(Quadratic(steps // self.encoder.digits), self.encoder.digits)

    def _order(self, mode: str | None) -> Order:
        """The order that a mode was trained for, or any."""
        return self.order if mode is None else named_orders(self.encoder)[self._mode(mode)]

    def _mode(self, mode: str | None) -> str:
        """A mode that the network knows; the uniform one, or the first, if none is named."""
        if mode is not None and mode not in self.modes:
            known = f"this model knows {', '.join(self.modes)}" if self.modes else "this model was trained without modes"
            raise InputError(f"mode={mode!r}; {known}.")
        return mode or ("uniform" if "uniform" in self.modes else self.modes[0])

    def _context(self, label: Label, count: int, mode: str | None = None) -> Tensor | ModeAndStep | None:
        """What the network is told besides the pixels: the mode and the step, the class."""
        told = self._labels(label, count)
        if not self.modes:
            self._order(mode)  # refuses a mode
            return told
        if told is None and len(self.model.network.sizes["context"]) > 2:
            told = torch.full((count, 1), -1)
        return ModeAndStep(self.modes.index(self._mode(mode)), told)

    def _labels(self, label: Label, count: int) -> Tensor | None:
        """The class that each image is told to be of: one for all, or one each."""
        if label is None:
            return None
        sizes = self.model.network.sizes["context"][2 * bool(self.modes) :]
        if not sizes:
            raise InputError(f"label={label}, but this model was trained without labels: fit(images, labels).")
        each = [label] * count if isinstance(label, int | str) or is_whole(label) else list(label)
        if len(each) != count:
            raise InputError(f"Got {len(each)} labels for {count} images; expected one for all, or one each.")
        return torch.tensor([[self._code(one, sizes[0])] for one in each], dtype=torch.long).view(count, 1)

    def _code(self, label: Any, classes: int) -> int:
        """The number of a class, from its name or its number."""
        code: Any = self.classes.index(label) if label in self.classes else label
        code = int(code) if isinstance(code, str) and code.isdecimal() else code
        if not is_whole(code) or not 0 <= code < classes:
            known = ", ".join(self.classes) if self.classes else f"0 to {classes - 1}"
            raise InputError(f"label={label}; this model knows the labels {known}.")
        return int(code)


class Drawing(NamedTuple):
    """How images are drawn: along which order, in which steps, how usual, and what the network is told."""

    order: Order
    schedule: Schedule
    temperature: float
    context: Tensor | ModeAndStep | None

    def repeat(self, draws: int) -> "Drawing":
        """For so many copies of the same images."""
        told = self.context
        if isinstance(told, ModeAndStep) and told.label is not None:
            told = ModeAndStep(told.mode, told.label.repeat(draws, 1))
        return self._replace(context=told.repeat(draws, 1) if isinstance(told, Tensor) else told)

    def of(self, some: Tensor) -> Tensor | ModeAndStep | None:
        """What is told of some of the images."""
        if isinstance(self.context, Tensor):
            return self.context[some]
        if self.context is None or self.context.label is None:
            return self.context
        return ModeAndStep(self.context.mode, self.context.label[some])


def binarise(x: Values, rng: Generator) -> Values:
    """Every pixel black or white, as likely white as it is light (0 to 255): another draw of it every time."""
    return (torch.rand(x.shape, generator=rng, device=x.device) * 255 < x).to(x.dtype)
