"""Train the codecs that come with the package, each from one seed.

    python recipes/train_codec.py fashion-mnist --checkpoint fashion.run

The codec is put into the model of that name (recipes/train.py), or into a file of its own. A run that is broken off goes on
from its checkpoints, one for every stage.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from anyorder.archives import save_codec
from anyorder.estimator import AnyOrder
from anyorder.io import datasets
from anyorder.io.shipped import HERE, names
from anyorder.modalities.images.image_model import binarise
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.pyramid_codec import ImageCodec, fit_image_codec
from anyorder.training import Check
from anyorder.training.loop import Resample


@dataclass(frozen=True)
class Shipped:
    """What a codec is trained on and how long."""

    data: Callable[[], datasets.ImageSet]
    encoder: ImageEncoder
    steps: int | tuple[int, ...]  # of every stage, the coarsest first
    resample: Resample | None = None


CODECS = {
    "digits": Shipped(datasets.digits, ImageEncoder(8, 8, 1, 17), 3_000),
    "mnist": Shipped(datasets.mnist, ImageEncoder(28, 28, 1, 2), 6_000, binarise),
    "fashion-mnist": Shipped(datasets.fashion_mnist, ImageEncoder(28, 28, 1, 256), (14_000, 14_000, 20_000)),
    "cifar10": Shipped(datasets.cifar10, ImageEncoder(32, 32, 3, 256, colours=True), (8_000, 10_000, 10_000)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=CODECS)
    parser.add_argument("--steps", type=int, nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if not args.output and args.name not in names():
        parser.error(f"no model called {args.name} comes with the package: say where to write the codec, with --output")
    torch.set_num_threads(1)
    shipped = CODECS[args.name]
    x = torch.from_numpy(pixels(shipped)).flatten(1)
    steps = args.steps if args.steps and len(args.steps) > 1 else (args.steps or [shipped.steps])[0]
    codec = fit_image_codec(shipped.encoder, x, steps, args.seed, said, args.checkpoint, shipped.resample)
    if args.output:
        save_codec(codec, args.output)
    else:
        attach(codec, args.name)


def attach(codec: ImageCodec, name: str) -> None:
    """Into the file of the shipped model."""
    model = AnyOrder.load(name)
    model.codec_ = codec
    model.fitted_.save(HERE / f"{name}.ao", half=True, attached=model.attached_(), orders=model.orders)


def pixels(shipped: Shipped) -> np.ndarray:
    """The codes of the training images, or shades that are made black and white anew in every batch."""
    images = shipped.data().train
    return images.astype(np.float32) if shipped.resample else shipped.encoder.encode(images).numpy()


def said(stage: int, check: Check) -> None:
    print(
        f"stage {stage}: {check.step} of {check.steps} steps, {check.seconds:.0f} s: {check.held_out_nats:.3f} nats held out",
        flush=True,
    )


if __name__ == "__main__":
    main()
