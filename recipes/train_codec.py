"""Train the codecs that come with the package, each from one seed.

    python recipes/train_codec.py fashion-mnist --checkpoint fashion.codec

A run that is broken off goes on from its checkpoints, one for every stage. Times are for one core.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from anyorder.codecs import fit_image_codec, save_codec
from anyorder.data import ImageEncoder, datasets
from anyorder.images import binarised_anew
from anyorder.shipped import HERE
from anyorder.training import Check
from anyorder.training.fit import Anew


@dataclass(frozen=True)
class Shipped:
    """What a codec is trained on and how long."""

    data: Callable[[], datasets.ImageSet]
    encoder: ImageEncoder
    steps: int
    anew: Anew | None = None


CODECS = {
    "digits": Shipped(datasets.digits, ImageEncoder(8, 8, 1, 17), 3_000),
    "mnist": Shipped(datasets.mnist, ImageEncoder(28, 28, 1, 2), 6_000, binarised_anew),
    "fashion-mnist": Shipped(datasets.fashion_mnist, ImageEncoder(28, 28, 1, 256), 14_000),
    "cifar10": Shipped(datasets.cifar10, ImageEncoder(32, 32, 3, 256, colours=True), 14_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=CODECS)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shipped = CODECS[args.name]
    x = torch.from_numpy(pixels(shipped)).flatten(1)
    codec = fit_image_codec(shipped.encoder, x, args.steps or shipped.steps, args.seed, said, args.checkpoint, shipped.anew)
    save_codec(codec, args.output or HERE / f"{args.name}.codec")


def pixels(shipped: Shipped) -> np.ndarray:
    """The codes of the training images, or shades that are made black and white anew in every batch."""
    images = shipped.data().train
    return images.astype(np.float32) if shipped.anew else shipped.encoder.encode(images).numpy()


def said(stage: int, check: Check) -> None:
    print(
        f"stage {stage}: {check.step} of {check.steps} steps, {check.seconds:.0f} s: {check.held_out_nats:.3f} nats held out",
        flush=True,
    )


if __name__ == "__main__":
    main()
