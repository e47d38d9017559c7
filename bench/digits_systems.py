"""The slides' systems on 8 x 8 digits, each trained for the same CPU seconds on one thread: bits per pixel of test images.

    python bench/digits_systems.py --seconds 60 --seeds 0 1 --systems ardm uniform --images 200

All see the same 1437 training images of 17 shades (a tenth of them held out), batches of 64, AdamW with learning rate 2e-3
and averaged weights, but "ours", which is trained as the library trains images. ARDM and the four D3PM have one and the same
U-Net; time is an input of it for all noise that needs one. Scores are bounds of log p for ARDM (mean over fixed random orders),
ours (the same orders, and their mixture beside) and D3PM (all terms, one draw of the noise each), exact for PixelCNN++ and IDF.
The training time does not include finding out how many steps fit, or scoring.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from budget import steps_in
from jaxtyping import Float
from results import Results, flags
from torch import Generator, Tensor

from anyorder.baselines import (
    D3PM,
    IDF,
    Absorbing,
    Baseline,
    BaselineRecipe,
    Gauss,
    IDFSize,
    PixelCNN,
    PixelCNNSize,
    Uniform,
    fit_baseline,
)
from anyorder.distributions import Categorical
from anyorder.inference import elbo, fixed_orders, mixture_log_prob, seeded
from anyorder.io import datasets
from anyorder.modalities.images.image_model import build_image_model, image_recipe
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.models.any_order import AnyOrderModel
from anyorder.networks import SIZES, UNet, UNetSize
from anyorder.schema import Mask, Values
from anyorder.subsets import Question
from anyorder.training import ardm, edge_loss, fit

SHAPE = (8, 8, 1)
ENCODER = ImageEncoder(8, 8, 1, 17)
NETWORK = UNetSize((32, 64), 1)
ORDERS = 2
SYSTEMS: dict[str, Callable[[int], Any]] = {
    "ardm": lambda seed: AnyOrder(seed),
    "absorbing": lambda seed: diffusion(Absorbing(64), seed),
    "uniform": lambda seed: diffusion(Uniform(100), seed),
    "gauss": lambda seed: diffusion(Gauss(100), seed),
    "gauss+logistic": lambda seed: diffusion(Gauss(100), seed, logistic=True),
    "idf": lambda seed: IDF(ENCODER.schema, SHAPE, IDFSize(2, 8, 32, 1, 1), seed),
    "pixelcnn++": lambda seed: PixelCNN(ENCODER.schema, SHAPE, PixelCNNSize(32, 1, 2), seed),
    "ours": lambda seed: build_image_model(ENCODER, SIZES["small"], seed=seed),
}


class AnyOrder(Baseline):
    """ARDM with the network and the training of its rivals: a score for every shade, any order."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.schema = ENCODER.schema
        heads = [Categorical(17)] * len(ENCODER)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = UNet(ENCODER.schema, 17 * len(ENCODER), SHAPE, NETWORK.widths, NETWORK.depth)
        self.model = AnyOrderModel(ENCODER.schema, heads, network)

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        return -edge_loss(self.model, x, ardm().sample(shown, rng))


def diffusion(noise: Absorbing | Uniform | Gauss, seed: int, logistic: bool = False) -> D3PM:
    return D3PM.build_convolutional(ENCODER.schema, SHAPE, NETWORK, noise, logistic, hybrid=1e-3, seed=seed)


@dataclass(frozen=True)
class Trained:
    model: Any
    steps: int
    seconds: float


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("digits_systems", args, "The slides' systems on 8 x 8 digits", ("system",), protocol="test images")
    data = datasets.digits()
    train = ENCODER.encode(data.train)
    test = ENCODER.encode(data.test)[: args.images]
    for seed in args.seeds:
        for system in args.systems:
            if not results.has(system=system, seed=seed):
                trained = trained_for(system, seed, args.seconds * args.effort, train)
                found = {"steps": trained.steps, "CPU s": trained.seconds, **score(trained.model, test)}
                results.add({name.replace("_", " "): value for name, value in found.items()}, system=system, seed=seed)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["digits"], seeds=(0, 1))
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds of training for every system")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--images", type=int, default=200, help="test images")
    args: argparse.Namespace = parser.parse_args()
    return args


def trained_for(system: str, seed: int, seconds: float, x: Tensor) -> Trained:
    def run(steps: int) -> Any:
        model = SYSTEMS[system](seed)
        if system == "ours":
            recipe = image_recipe(ENCODER, len(x), steps, seed, "cpu")
            return fit(model, x, torch.ones_like(x, dtype=torch.bool), recipe).model
        fit_baseline(model, x, recipe=BaselineRecipe(steps=steps, check_every=max(steps // 4, 1), seed=seed))
        return model

    steps = steps_in(seconds / 60, run, trial=10)
    start = time.process_time()
    model = run(steps)
    return Trained(model, steps, time.process_time() - start)


@torch.no_grad()
def score(model: Any, x: Tensor) -> dict[str, float]:
    """Bits per pixel and their standard error over images; what it takes to score an image and to draw one."""
    start = time.process_time()
    found = {"parameters": float(sum(p.numel() for p in model.parameters()))}
    if isinstance(model, AnyOrder | AnyOrderModel):
        network = model.model if isinstance(model, AnyOrder) else model
        question, orders = Question.joint(torch.ones_like(x, dtype=torch.bool)), fixed_orders(x.shape[1], ORDERS)
        found |= bits(elbo(network, x, question, orders))
        found["mixture_bits"] = bits(mixture_log_prob(network, x, question, orders))["bits"]
    elif isinstance(model, D3PM):
        found |= bits(model.elbo(x, seeded()))
    else:
        found |= bits(model.log_prob(x))
    found["ms_to_score"] = 1000 * (time.process_time() - start) / len(x)
    if isinstance(model, IDF):
        frozen, start = model.freeze(), time.process_time()
        content = frozen.encode(x)
        found["coded_bits"] = 8 * len(content) / x.numel()
        found["images_a_second_coded"] = len(x) / (time.process_time() - start)
        assert torch.equal(frozen.decode(content, len(x)), x)
    return found


def bits(nats: Tensor) -> dict[str, float]:
    each = -nats.double().numpy() / len(ENCODER) / math.log(2)
    return {"bits": float(each.mean()), "bits_se": float(each.std() / np.sqrt(len(each)))}


if __name__ == "__main__":
    main()
