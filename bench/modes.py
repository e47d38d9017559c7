"""SFARM's modes (Fig. 4): does training for structured masks help? Uniform, mixture of seven modes, matched.

    python bench/modes.py --minutes 10 --seeds 0 1 --questions "right half" --matched

Binary MNIST, trained on greys binarised anew, scored on static-binarised test images. Three ways to train the same network for
the same number of steps (as many as --minutes of CPU time hold): uniform (any order, ARDM's objective); mixture
(SFARM's seven modes,
told to the network with the step); matched (only the questions that are then asked). Scored: the nats of all pixels asked for
together, given the rest, along random orders inside what is asked, from random places of the paths. The mixture is told the
mode that fits the question, and in a second column the uniform mode. A shifted box fits no mode. Differences to uniform are
paired over images; their error is over images, the spread over seeds stands beside it. A line for every seed shows that the mode
matters to the network at all.
"""

import argparse
from dataclasses import dataclass, replace

import numpy as np
import torch
from budget import steps_in
from results import Results, flags
from torch import Tensor

from anyorder.inference import seeded
from anyorder.io import datasets
from anyorder.modalities.images import regions
from anyorder.modalities.images.image_model import binarise, build_image_model, image_recipe
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.models.any_order import AnyOrderModel
from anyorder.subsets import EachWithProbability, QuestionDistribution, Regions
from anyorder.training import Objective, PathObjective, ardm, edge_loss, fit, sfarm

ENCODER = ImageEncoder(28, 28, 1, 2)
SHAPE = ENCODER.shape
MODES = list(regions.modes(SHAPE).values())
HALF = {name: regions.half(SHAPE, name) for name in regions.HALVES}
INSIDE = regions.interior(SHAPE)


@dataclass(frozen=True)
class Asked:
    """Questions, and the mode that SFARM has for them: the one that reveals first what is known here."""

    questions: QuestionDistribution
    mode: int


def region(mask: Tensor) -> QuestionDistribution:
    return Regions(mask[None])


QUESTIONS = {
    "half the pixels": Asked(EachWithProbability(0.5), 0),
    "nine tenths of the pixels": Asked(EachWithProbability(0.1), 0),
    "right half": Asked(region(HALF["right"]), 1),
    "left half": Asked(region(HALF["left"]), 2),
    "lower half": Asked(region(HALF["bottom"]), 3),
    "upper half": Asked(region(HALF["top"]), 4),
    "exterior": Asked(region(~INSIDE), 5),
    "interior": Asked(region(INSIDE), 6),
    "shifted box": Asked(region(regions.box(SHAPE, 4, 9, 14, 14)), 0),
}


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("modes", args, "SFARM's modes", ("asked for", "method"), protocol="test images")
    x = torch.from_numpy(datasets.mnist().train.astype(np.float32)).flatten(1)
    test = ENCODER.encode(datasets.static_mnist().test)[: args.images]
    steps = steps_in(args.minutes * args.effort, lambda count: trained(x, ardm(), count, 0, ()))
    results.note(f"{steps} steps of training for every network.")
    for seed in args.seeds:
        uniform = trained(x, ardm(), steps, seed, ())
        several = trained(x, sfarm(MODES), steps, seed, (len(MODES), len(ENCODER) + 1))
        for name in args.questions:
            asked = QUESTIONS[name]
            objective = replace(ardm(), questions=asked.questions)
            matched = trained(x, objective, steps, seed, ()) if args.matched else None
            answers = {
                "uniform": nats(uniform, test, objective),
                "mixture, its mode": nats(several, test, replace(objective, mode=asked.mode)),
                "mixture, uniform mode": nats(several, test, replace(objective, mode=0)),
            } | ({} if matched is None else {"matched": nats(matched, test, objective)})
            for method, each in answers.items():
                away = each - answers["uniform"]
                scores = {
                    "nats": float(each.mean()),
                    "- uniform": float(away.mean()),
                    "error": float(away.std() / len(away) ** 0.5),
                }
                results.add(scores, method=method, seed=seed, **{"asked for": name})
        results.note(f"Seed {seed}: a change of mode moves the scores of pixels by {moved(several, test):.3f} on average.")
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["mnist"], seeds=(0, 1))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--matched", action="store_true", help="train a network for every question, too")
    args: argparse.Namespace = parser.parse_args()
    return args


def trained(x: Tensor, objective: Objective, steps: int, seed: int, context: tuple[int, ...]) -> AnyOrderModel:
    recipe = replace(
        image_recipe(ENCODER, len(x), steps, seed, "cpu"), objective=objective, check_every=steps, held_out=64 / len(x)
    )
    model = build_image_model(ENCODER, context=context, seed=seed)
    return fit(model, x, torch.ones_like(x, dtype=torch.bool), recipe, resample=binarise).model


@torch.no_grad()
def nats(model: AnyOrderModel, x: Tensor, objective: PathObjective, draws: int = 8) -> Tensor:
    """What the questions cost, image by image; the same places of the same paths for every model."""
    rng, total = seeded(1), torch.zeros(len(x))
    for _ in range(draws):
        edges = objective.sample(torch.ones_like(x, dtype=torch.bool), rng)
        total += torch.cat([edge_loss(model, x[some], edges[some]) for some in torch.arange(len(x)).split(256)])
    return total / draws


@torch.no_grad()
def moved(model: AnyOrderModel, x: Tensor) -> float:
    """How far the network's numbers move when it is told another mode, on half-hidden images."""
    given = torch.rand(64, x.shape[1], generator=seeded(2)) < 0.5
    told = [torch.stack([torch.full((64,), mode), given.sum(-1)], dim=-1) for mode in range(len(MODES))]
    each = torch.stack([model.network(torch.where(given, x[:64], 0.0), given, context) for context in told])
    return float((each[1:] - each[0]).abs()[:, ~given].mean())


if __name__ == "__main__":
    main()
