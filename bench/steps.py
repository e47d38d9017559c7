"""Images in few steps (SFARM's Figs. 7 and 8, ARDM's parallel table): bits and quality against network calls.

    python bench/steps.py [--model mnist] [--images 256] [--samples 512] [--picture FILE]

Bits: what the test images cost when their pixels are revealed in k blocks of a random order, relative to one by one; from
the mean loss of a pixel when t others are known, measured on test images. Planned: ARDM's policy, fitted on other images
(of the training set) than it is scored on. Frechet: the squared distance between samples and test images in 64 features of a
classifier trained here (bench/digit_classifier.py); test images against each other give the floor. Milliseconds: of one
sample in a batch of 64, one thread; RePaint's steps are beside it in bench/completion.py.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from digit_classifier import digit_classifier, frechet
from torch import Tensor

from anyorder.estimator import AnyOrder
from anyorder.inference import plan, sample, seeded, step_losses
from anyorder.io import datasets
from anyorder.modalities.images.image_model import FittedImages, binarise
from anyorder.modalities.images.pixels import image_grid, write_image
from anyorder.models.any_order import AnyOrderModel
from anyorder.subsets import Cosine, Even, OneByOne, Quadratic, Question, Schedule

STEPS = (2, 5, 10, 20, 50, 100, 200)
DRAWN = (2, 5, 10, 20, 50, 100)


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    model = AnyOrder.load(args.model).fitted_
    test = model.encoder.encode(datasets.static_mnist().test)
    train = binarise(torch.from_numpy(datasets.mnist().train[: args.images].astype(np.float32)).flatten(1), seeded(1))
    fitted, scored = (losses(model.model, x) for x in (train, test[: args.images]))
    print("| steps | even | cosine | quadratic | planned |\n|---|---|---|---|---|")
    for k in STEPS:
        schedule: list[Schedule] = [Even(k), Cosine(k), Quadratic(k), plan(fitted, k)]
        print(f"| {k} | " + " | ".join(f"{excess(b, scored):+.1%}" for b in schedule) + " |", flush=True)
    print(f"\none by one: {scored.sum():.2f} nats an image ({scored.sum() / 784 / np.log(2):.4f} bits a pixel)\n")
    quality(model, test, fitted, args)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mnist")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args()
    if args.picture:
        args.picture.parent.mkdir(parents=True, exist_ok=True)
    return args


def losses(model: AnyOrderModel, x: Tensor) -> Tensor:
    """The mean loss of a pixel when t others are known."""
    return step_losses(model, x, torch.ones_like(x, dtype=torch.bool), seeded(3))


def excess(schedule: Schedule, loss: Tensor) -> float:
    """How much more the blocks cost than single pixels."""
    bounds = schedule.bounds(torch.tensor([[len(loss)]]))[0]
    return float((bounds.diff() * loss[bounds[:-1].clamp(max=len(loss) - 1)]).sum() / loss.sum() - 1)


def quality(model: FittedImages, test: Tensor, fitted: Tensor, args: argparse.Namespace) -> None:
    classifier = digit_classifier()
    real = classifier.seen(test)
    half = len(test) // 2
    print(f"test images against each other: {frechet(real[:half], real[half:]):.2f}\n")
    print("| steps | even | cosine | quadratic | planned | ms an image |\n|---|---|---|---|---|---|")
    shown = []
    for k in (*DRAWN, 784):
        cells, seconds = [], 0.0
        for schedule in [OneByOne()] if k == 784 else [Even(k), Cosine(k), Quadratic(k), plan(fitted, k)]:
            start = time.perf_counter()
            count = args.samples
            drawn = torch.cat([draw(model, schedule, 64, seed) for seed in range(count // 64)])
            seconds = (time.perf_counter() - start) / count
            cells.append(f"{frechet(classifier.seen(drawn), real):.1f}")
            if isinstance(schedule, Quadratic | OneByOne):
                shown.append(drawn[:16])
        cells += [""] * (4 - len(cells)) if k == 784 else []
        print(f"| {k} | " + " | ".join(cells) + f" | {1000 * seconds:.1f} |", flush=True)
    if args.picture:
        write_image(args.picture, image_grid((torch.cat(shown).view(-1, 28, 28) * 255).byte().numpy(), 16), 2)


def draw(model: FittedImages, schedule: Schedule, count: int, seed: int) -> Tensor:
    nothing = torch.zeros(count, 784)
    question = Question(nothing.bool(), ~nothing.bool())
    return sample(model.model, nothing, question, seeded(seed), schedule=schedule)


if __name__ == "__main__":
    main()
