"""What whole numbers cost: the network of a codec with all its roundings, without them, and the usual U-Net of this size.

    python bench/integer.py --steps 5000 --seeds 0

Fashion-MNIST, the finest lattice (three of four pixels), the codec's own plan, optimiser, batches and number of steps for
all three. Bits a pixel of test images, and the ratio to the best of the two that compute with floating-point numbers.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from results import Results, flags
from torch import Tensor

from anyorder.inference import log_prob
from anyorder.io import datasets
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.pyramid_codec import StagePlan, plans, stage_recipe, untrained_stage, widths_of
from anyorder.models.any_order import AnyOrderModel
from anyorder.networks import UNet, integer
from anyorder.schema import Values
from anyorder.subsets import CanonicalOrder, Planned, Question
from anyorder.training import fit

IMAGES = 2000  # of the test images


def main() -> None:
    parser = flags(__doc__, ["fashion-mnist"])
    parser.add_argument("--steps", type=int, default=5000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = Results.open("integer", args, "What whole numbers cost", ("network",), protocol="test images")
    steps = round(args.steps * args.effort)
    encoder, images = ImageEncoder(28, 28, 1, 256), datasets.fashion_mnist()
    train, test, plan = encoder.encode(images.train), encoder.encode(images.test[:IMAGES]), plans(encoder)[-1]
    for seed in args.seeds:
        ours = trained(untrained_stage(encoder, plan, seed), plan, train, test, steps, seed)
        with unrounded():
            smooth = trained(untrained_stage(encoder, plan, seed), plan, train, test, steps, seed)
        usual = trained(usual_unet(encoder, plan, seed), plan, train, test, steps, seed)
        found = {"whole numbers, the codec's": ours, "without rounding": smooth, "floating point, with norms": usual}
        for network, bits in found.items():
            results.add({"bits a pixel": bits, "whole numbers to it, %": 100 * (ours / bits - 1)}, network=network, seed=seed)
    results.print()


def trained(model: AnyOrderModel, plan: StagePlan, train: Values, test: Values, steps: int, seed: int) -> float:
    fitted = fit(model, train, torch.ones_like(train, dtype=torch.bool), stage_recipe(plan, len(train), steps, seed))
    known = plan.known.expand(len(test), -1)
    question = Question(known, ~known)
    nats = log_prob(fitted.model.eval(), test, question, order=CanonicalOrder(plan.order), schedule=Planned(plan.places))
    return -float(nats.mean()) / int((~plan.known).sum()) / math.log(2)


def usual_unet(encoder: ImageEncoder, plan: StagePlan, seed: int) -> AnyOrderModel:
    """In floating point, with norms and smooth activations."""
    like = untrained_stage(encoder, plan, seed)
    torch.manual_seed(seed)
    network = UNet(like.schema, like.heads[0].width * len(like.schema), plan.shape, widths_of(plan), 1)
    return AnyOrderModel(like.schema, like.heads, network)


@contextmanager
def unrounded() -> Iterator[None]:
    """The network of whole numbers without its roundings: activations are still cut."""

    def cut(x: Tensor) -> Tensor:
        return x.clamp(0, integer.TOP)

    with patch.multiple(integer, rounded=lambda x: x, activated=cut), patch.object(integer, "activated", cut):
        yield


if __name__ == "__main__":
    main()
