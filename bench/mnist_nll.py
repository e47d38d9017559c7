"""Static-binarised MNIST (SFARM's Table 2): nats of the test images against CPU minutes of training, one order and several.

    python bench/mnist_nll.py --data mnist fashion-mnist --minutes 5 30 --seeds 0 --images 64 --orders 8

Trained on MNIST's greys, binarised anew at every step; scored on Larochelle's test images, which are those of the papers; a
model of shades is scored on the test images of Fashion-MNIST.
The one-order bound is estimated on all test images from random places of random paths, several each; its standard error is
over images. What a mixture of K orders gains is measured on the first images along whole paths, and its error is of that
difference. CPU minutes are of one thread, checks not counted; the length of a run is told by the speed of its first steps.
"""

import argparse
import itertools
import time
from dataclasses import replace

import numpy as np
import torch
from budget import steps_in
from results import Results, flags
from summary import Score

from anyorder.estimator import AnyOrder
from anyorder.inference import fixed_orders, path_terms, seeded
from anyorder.io import datasets
from anyorder.modalities.images.image_model import binarise, build_image_model, image_recipe
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.models.any_order import AnyOrderModel
from anyorder.subsets import Question
from anyorder.training import ardm, edge_loss, fit

ENCODER = ImageEncoder(28, 28, 1, 2)
PAPERS = "SFARM 78.12 (300 epochs on a GPU, mixture of K orders), PixelCNN 81.30, PixelRNN 79.20, locally masked PixelCNN 77.58"


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("mnist_nll", args, "Nats of a binarised MNIST digit", ("model",), protocol="test images")
    results.note(f"The papers print {PAPERS}.")
    for name in args.tables:
        ours = AnyOrder.load(name).fitted_
        data = datasets.static_mnist() if ours.encoder.levels == 2 else datasets.fashion_mnist()
        results.add(scores(ours.model, ours.encoder.encode(data.test), args), model=f"{name}, comes with the package", seed=0)
    for minutes, seed in itertools.product(args.minutes, args.seeds):
        key = {"model": f"small, {minutes:g} minutes asked for", "seed": seed}
        if not results.has(**key):
            model, spent, seen = trained(minutes * args.effort, seed)
            test = ENCODER.encode(datasets.static_mnist().test)
            results.add({"CPU minutes": spent, "images seen": seen, **scores(model, test, args)}, **key)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["mnist", "fashion-mnist"])
    parser.add_argument("--minutes", type=float, nargs="*", default=[5, 30])
    parser.add_argument("--images", type=int, default=64, help="how many a mixture of orders is measured on")
    parser.add_argument("--orders", type=int, default=8)
    args: argparse.Namespace = parser.parse_args()
    return args


def trained(minutes: float, seed: int) -> tuple[AnyOrderModel, float, int]:
    """A model, the CPU minutes it took, and how many images it saw."""
    x = torch.from_numpy(datasets.mnist().train.astype(np.float32)).flatten(1)
    steps = steps_in(minutes, lambda steps: run(x, steps, seed))
    start = time.process_time()
    model = run(x, steps, seed)
    return model, (time.process_time() - start) / 60, 16 * steps


def run(x: torch.Tensor, steps: int, seed: int) -> AnyOrderModel:
    recipe = replace(image_recipe(ENCODER, len(x), steps, seed, "cpu"), check_every=steps, held_out=64 / len(x))
    model = build_image_model(ENCODER, seed=seed)
    return fit(model, x, torch.ones_like(x, dtype=torch.bool), recipe, resample=binarise).model


def scores(model: AnyOrderModel, test: torch.Tensor, args: argparse.Namespace) -> dict[str, Score]:
    bound, error = one_order(model, test)
    gain, spread = gained(model, test[: args.images], args.orders)
    bits = bound / np.log(2) / test.shape[1]
    return {
        "one order, nats": (bound, error),
        "bits a pixel": bits,
        f"mixture of {args.orders} orders": bound - gain,
        "gain of the mixture": (gain, spread),
    }


@torch.no_grad()
def one_order(model: AnyOrderModel, x: torch.Tensor, draws: int = 4) -> tuple[float, float]:
    """The mean cost of an image along a random order, and its standard error."""
    rng, total = seeded(1), torch.zeros(len(x))
    for _ in range(draws):
        edges = ardm().sample(torch.ones_like(x, dtype=torch.bool), rng)
        total += torch.cat([edge_loss(model, x[some], edges[some]) for some in torch.arange(len(x)).split(256)])
    each = total / draws
    return float(each.mean()), float(each.std() / len(x) ** 0.5)


def gained(model: AnyOrderModel, x: torch.Tensor, orders: int) -> tuple[float, float]:
    """How much likelier images are under a mixture of fixed orders than along one of them, on average over these."""
    question = Question.joint(torch.ones_like(x, dtype=torch.bool))
    paths = path_terms(model, x, question, fixed_orders(x.shape[1], orders)).double().sum(-1)  # (order, image)
    gain = paths.logsumexp(0) - np.log(orders) - paths.mean(0)
    return float(gain.mean()), float(gain.std() / len(x) ** 0.5)


if __name__ == "__main__":
    main()
