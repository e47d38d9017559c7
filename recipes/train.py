"""Train the models that come with the package, each from one seed: the same file every time on the same kind of machine.

    python recipes/train.py mnist --checkpoint mnist.run

A run that is broken off goes on from its checkpoint. Without `--steps` the numbers below are taken; times are for one core.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from anyorder import AnyOrder
from anyorder.io import datasets
from anyorder.io.shipped import HERE
from anyorder.modalities.images.image_model import (
    FittedImages,
    binarise,
    build_image_model,
    image_recipe,
    mostly_told,
    named_orders,
)
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.regions import MODES
from anyorder.networks import SIZES, UNetSize
from anyorder.training import Check, Objective, fit, sfarm
from anyorder.training.loop import Resample


@dataclass(frozen=True)
class Shipped:
    """What a model is trained on and how."""

    data: Callable[[], datasets.ImageSet]
    encoder: ImageEncoder
    size: UNetSize
    steps: int
    resample: Resample | None = None
    with_labels: bool = False
    objective: Objective | None = None


MODELS = {
    "digits": Shipped(datasets.digits, ImageEncoder(8, 8, 1, 17), SIZES["small"], 3_000, with_labels=True),
    "mnist": Shipped(
        datasets.mnist,
        ImageEncoder(28, 28, 1, 2),
        SIZES["small"],
        100_000,  # an hour and a quarter
        binarise,
    ),
    "sfarm-mnist": Shipped(  # SFARM's seven modes with its network and its embeddings; does not come with the package
        datasets.mnist,
        ImageEncoder(28, 28, 1, 2),
        SIZES["sfarm-mnist"],
        100_000,
        binarise,
        with_labels=True,
        objective=sfarm(MODES),
    ),
    "fashion-mnist": Shipped(datasets.fashion_mnist, ImageEncoder(28, 28, 1, 256), SIZES["fine"], 24_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shipped = MODELS[args.name]
    model = train(shipped, args.steps or shipped.steps, args.seed, args.checkpoint)
    AnyOrder.of(model).save(args.output or HERE / f"{args.name}.ao", half=True)


def train(shipped: Shipped, steps: int, seed: int, checkpoint: Path | None) -> FittedImages:
    data = shipped.data()
    x = torch.from_numpy(data.train.astype(np.float32)).flatten(1)
    recipe = image_recipe(shipped.encoder, len(x), steps, seed, "cpu")
    recipe = replace(recipe, check_every=max(1, steps // 40), patience=40, average=0.9998 if steps > 20_000 else 0.999)
    labels = torch.from_numpy(np.asarray(data.train_labels)).long() if shipped.with_labels else None
    modes = () if shipped.objective is None else shipped.objective.modes()
    told = (len(modes), len(shipped.encoder) + 1) if modes else ()
    classes = () if labels is None else (int(labels.max()) + 1,)
    model = build_image_model(shipped.encoder, shipped.size, (*told, *classes), seed, 1 if modes else None)
    if shipped.objective is not None:
        recipe = replace(recipe, objective=shipped.objective.named(named_orders(shipped.encoder)))
    context = None if labels is None else mostly_told(labels, seed)
    present = torch.ones_like(x, dtype=torch.bool)
    fitted = fit(model, x, present, recipe, context, said, checkpoint, shipped.resample)
    return FittedImages(shipped.encoder, fitted.model, fitted.history, modes=modes)


def said(check: Check) -> None:
    print(f"{check.step} of {check.steps} steps, {check.seconds:.0f} s: {check.held_out_nats:.3f} nats held out", flush=True)


if __name__ == "__main__":
    main()
