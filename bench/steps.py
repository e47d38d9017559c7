"""Images in few steps (SFARM's Figs. 7 and 8, ARDM's parallel table): bits and quality against network calls.

    python bench/steps.py --data mnist --images 256 --samples 512 --picture FILE

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
from results import Results, flags
from summary import Score
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
ALL = 784  # pixels, one by one


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("steps", args, "Few network calls", ("steps",), protocol="test images")
    model = AnyOrder.load(args.tables[0]).fitted_
    images, seed = round(args.images * args.effort), args.seeds[0]
    test = model.encoder.encode(datasets.static_mnist().test)
    train = binarise(torch.from_numpy(datasets.mnist().train[:images].astype(np.float32)).flatten(1), seeded(1))
    fitted, scored = (losses(model.model, x) for x in (train, test[:images]))
    drawn = quality(model, test, fitted, args)
    for k in STEPS:
        more = {f"{name}, % more bits": 100 * excess(s, scored) for name, s in schedules(k, fitted).items()}
        results.add(more | drawn.get(k, {}), steps=str(k), seed=seed)
    results.add({"nats an image": float(scored.sum()), **drawn[ALL]}, steps=f"one by one ({ALL})", seed=seed)
    results.add(drawn[0], steps="test images against each other", seed=seed)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["mnist"])
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--picture", type=Path)
    args: argparse.Namespace = parser.parse_args()
    if args.picture:
        args.picture.parent.mkdir(parents=True, exist_ok=True)
    return args


def schedules(steps: int, fitted: Tensor) -> dict[str, Schedule]:
    return {"even": Even(steps), "cosine": Cosine(steps), "quadratic": Quadratic(steps), "planned": plan(fitted, steps)}


def losses(model: AnyOrderModel, x: Tensor) -> Tensor:
    """The mean loss of a pixel when t others are known."""
    return step_losses(model, x, torch.ones_like(x, dtype=torch.bool), seeded(3))


def excess(schedule: Schedule, loss: Tensor) -> float:
    """How much more the blocks cost than single pixels."""
    bounds = schedule.bounds(torch.tensor([[len(loss)]]))[0]
    return float((bounds.diff() * loss[bounds[:-1].clamp(max=len(loss) - 1)]).sum() / loss.sum() - 1)


def quality(model: FittedImages, test: Tensor, fitted: Tensor, args: argparse.Namespace) -> dict[int, dict[str, Score]]:
    """The Frechet distances of every number of steps and schedule, and what a sample takes; 0 steps are test images."""
    classifier = digit_classifier()
    real, half, count = classifier.seen(test), len(test) // 2, args.samples
    found: dict[int, dict[str, Score]] = {0: {"even, Frechet": frechet(real[:half], real[half:])}}
    shown = []
    for k in (*DRAWN, ALL):
        found[k] = {}
        for name, schedule in ({"even": OneByOne()} if k == ALL else schedules(k, fitted)).items():
            start = time.perf_counter()
            drawn = torch.cat([draw(model, schedule, 64, seed) for seed in range(count // 64)])
            found[k] |= {f"{name}, Frechet": frechet(classifier.seen(drawn), real)}
            found[k]["ms a sample"] = 1e3 * (time.perf_counter() - start) / count
            if isinstance(schedule, Quadratic | OneByOne):
                shown.append(drawn[:16])
    if args.picture:
        write_image(args.picture, image_grid((torch.cat(shown).view(-1, 28, 28) * 255).byte().numpy(), 16), 2)
    return found


def draw(model: FittedImages, schedule: Schedule, count: int, seed: int) -> Tensor:
    nothing = torch.zeros(count, 784)
    question = Question(nothing.bool(), ~nothing.bool())
    return sample(model.model, nothing, question, seeded(seed), schedule=schedule)


if __name__ == "__main__":
    main()
