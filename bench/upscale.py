"""Upscaling (ARDM): values as digits of a base, the most significant ones of all pixels first, against values as they are.

    python bench/upscale.py --minutes 10 --bases 0 2 4 16 --seeds 0 --images 500 --picture FILE

Fashion-MNIST, 256 shades; the same network for all, trained for the same CPU minutes; 0 is no base: a mixture of
logistic distributions
over all shades. Bits a pixel of the test images along one random order that keeps the stages, from random places of the
paths; the excess when the paths are cut into 20 (or 5) steps for every digit, and what a sample costs then.
"""

import argparse
import itertools
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from budget import steps_in
from results import Results, flags
from torch import Tensor

from anyorder.inference import seeded
from anyorder.io import datasets
from anyorder.modalities.images.image_model import FittedImages, build_image_model, image_recipe
from anyorder.modalities.images.pixels import ImageEncoder, image_grid, write_image
from anyorder.models.any_order import AnyOrderModel
from anyorder.subsets import OneByOne, Quadratic, Repeated, Schedule
from anyorder.training import PathObjective, edge_loss, fit
from anyorder.training.objectives import AnyStep


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("upscale", args, "Values as digits (upscaling)", ("base",), protocol="test images")
    data, shown = datasets.fashion_mnist(), []
    for base, seed in itertools.product(args.bases, args.seeds):
        key = {"base": str(base or "none"), "seed": seed}
        if results.has(**key):
            continue
        encoder = ImageEncoder(28, 28, 1, 256, base=base)
        train, test = encoder.encode(data.train), encoder.encode(data.test[: args.images])
        model = trained(encoder, train, args.minutes * args.effort, seed)
        bits = [bits_of(model, encoder, test, steps) for steps in (None, 20, 5)]
        start = time.perf_counter()
        shown.append(FittedImages(encoder, model).sample(16, steps=20 * encoder.digits, seed=seed))
        spent = {"ms a sample": 1e3 * (time.perf_counter() - start) / 16}
        sizes = {"digits": encoder.digits, "parameters": sum(p.numel() for p in model.parameters())}
        few = {f"{k} steps a digit, % more": 100 * (b / bits[0] - 1) for k, b in zip((20, 5), bits[1:], strict=True)}
        results.add({**sizes, "bits a pixel": bits[0], **few, **spent}, **key)
    results.print()
    if args.picture and shown:
        write_image(args.picture, image_grid(np.concatenate(shown), 16), 2)


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["fashion-mnist"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--bases", type=int, nargs="+", default=[0, 2, 4, 16])
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--picture", type=Path)
    args: argparse.Namespace = parser.parse_args()
    if args.picture:
        args.picture.parent.mkdir(parents=True, exist_ok=True)
    return args


def trained(encoder: ImageEncoder, x: Tensor, minutes: float, seed: int) -> AnyOrderModel:
    def run(steps: int) -> AnyOrderModel:
        recipe = replace(image_recipe(encoder, len(x), steps, seed, "cpu"), check_every=steps, held_out=64 / len(x))
        return fit(build_image_model(encoder, seed=seed), x, recipe=recipe).model

    return run(steps_in(minutes, run))


@torch.no_grad()
def bits_of(model: AnyOrderModel, encoder: ImageEncoder, x: Tensor, steps: int | None, draws: int = 16) -> float:
    """Bits a pixel along random paths cut into steps; None is one by one."""
    schedule: Schedule = OneByOne() if steps is None else Repeated(Quadratic(steps), encoder.digits)
    distribution = image_recipe(encoder, 1, 1).objective
    assert isinstance(distribution, PathObjective)
    distribution, rng, total = replace(distribution, depth=AnyStep(schedule)), seeded(1), 0.0
    for _ in range(draws):
        edges = distribution.sample(torch.ones_like(x, dtype=torch.bool), rng)
        total += sum((float(edge_loss(model, x[some], edges[some]).sum()) for some in torch.arange(len(x)).split(128)), start=0.0)
    return total / draws / len(x) / 784 / np.log(2)


if __name__ == "__main__":
    main()
