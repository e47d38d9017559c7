"""Images completed (SFARM's Fig. 3): ours, VAE, MIWAE and RePaint, each trained for the same CPU minutes.

    python bench/completion.py --seeds 0 --minutes 5 --images 100 --picture FOLDER

Static-binarised MNIST; the same backbone for all (convolutions of widths 32 and 64). Pixels are hidden at random, the same
ones for all methods. Error: root mean square of the mean completion against the truth, over hidden pixels; ours is one call,
the latent models' a weighted mean of 500 draws, RePaint's a mean of 8 completions. Nats a hidden pixel: of all hidden pixels
together given the rest; RePaint has none. Digit: how often a classifier sees in one completion the digit it sees in the
original. Seconds: one completion of one image in a batch of all. RePaint: 100 steps, jumps of 10, resampled 10 times, the
known pixels put in at the end, at half and at nine tenths hidden only and on fewer images (--few), because it takes a
thousand calls; the error of the others on these images stands beside it.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from budget import steps_in
from digit_classifier import Classifier, digit_classifier
from results import Results, flags
from summary import Score
from torch import Tensor

from anyorder import baselines
from anyorder.baselines import DDPM, MIWAE, VAE, BaselineRecipe, LatentModel, build_convolutional, fit_baseline
from anyorder.inference import fixed_orders, log_prob, sample, seeded
from anyorder.io import datasets
from anyorder.modalities.images.image_model import build_image_model, image_recipe
from anyorder.modalities.images.pixels import ImageEncoder, image_grid, write_image
from anyorder.models.any_order import AnyOrderModel
from anyorder.networks import SIZES
from anyorder.subsets import Quadratic, Question
from anyorder.training import fit

ENCODER = ImageEncoder(28, 28, 1, 2)
SHARES = (0.05, 0.25, 0.5, 0.75, 0.9)
PICTURED = (0.5, 0.9)
DRAWS, MEAN_OF = 500, 8


@dataclass(frozen=True)
class Method:
    """What can be asked of a method: the mean of what is hidden, one completion, and how likely the truth was."""

    mean: Callable[[Tensor, Question], Tensor]
    draw: Callable[[Tensor, Question], Tensor]
    nats: Callable[[Tensor, Question], Tensor] | None
    few: bool = False


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("completion", args, "Completing images", ("hidden", "method"), ("error",), protocol="test images")
    data = datasets.static_mnist()
    train, test = ENCODER.encode(data.train), ENCODER.encode(data.test)[: args.images]
    classifier = digit_classifier()
    for seed in args.seeds:
        shown: dict[float, list[Tensor]] = {share: [] for share in SHARES}
        for name, make in {"anyorder": ours, "VAE": latent(VAE), "MIWAE": latent(MIWAE), "RePaint": repaint}.items():
            if results.has(hidden=f"{SHARES[-1]:.0%}", method=name, seed=seed):
                continue
            start = time.process_time()
            method = make(train, args.minutes * args.effort, seed)
            minutes = (time.process_time() - start) / 60
            for share in PICTURED if method.few else SHARES:
                scores, filled = completed(method, test, share, args.few, classifier)
                results.add({**scores, "trained, CPU minutes": minutes}, hidden=f"{share:.0%}", method=name, seed=seed)
                shown[share].append(filled)
        if args.picture:
            for share in PICTURED:
                known = hidden_at(test, share)
                rows = torch.cat([part[:12] for part in (test, torch.where(known, test, 0.5), *shown[share])]).view(-1, 28, 28)
                name = f"completion_{100 * share:.0f}.png"
                write_image(args.picture / name, image_grid((rows * 255).byte().numpy(), 12), 2)
    results.print()


def hidden_at(test: Tensor, share: float) -> Tensor:
    """What is known; the same for every method and seed."""
    return torch.rand(test.shape, generator=seeded(7)) >= share


def completed(method: Method, test: Tensor, share: float, few: int, classifier: Classifier) -> tuple[dict[str, Score], Tensor]:
    """The scores of one method, and its completions."""
    known, count = hidden_at(test, share), few if method.few else len(test)
    x, question = test[:count], Question(known[:count], ~known[:count])
    first = Question(known[:few], ~known[:few])
    found: dict[str, Score] = {} if method.few else {"error": rmse(method.mean(x, question), x, question)}
    found[f"error, {few} images"] = rmse(method.mean(test[:few], first), test[:few], first)
    if method.nats is not None:
        found["nats a pixel"] = -float(method.nats(x, question).sum() / question.target.sum())
    start = time.perf_counter()
    filled = method.draw(x, question)
    found["seconds"] = (time.perf_counter() - start) / count
    found["same digit, %"] = 100 * float((classifier.digit(filled) == classifier.digit(x)).float().mean())
    return found, filled


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["mnist"])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--few", type=int, default=12)
    parser.add_argument("--picture", type=Path, help="a folder for pictures of the completions")
    args: argparse.Namespace = parser.parse_args()
    if args.picture:
        args.picture.mkdir(parents=True, exist_ok=True)
    return args


def rmse(filled: Tensor, x: Tensor, question: Question) -> float:
    return float((filled - x)[question.target].square().mean().sqrt())


def ours(x: Tensor, minutes: float, seed: int) -> Method:
    def run(steps: int) -> AnyOrderModel:
        recipe = replace(image_recipe(ENCODER, len(x), steps, seed, "cpu"), check_every=steps, held_out=64 / len(x))
        return fit(build_image_model(ENCODER, seed=seed), x, recipe=recipe).model

    model = run(steps_in(minutes, run))

    def mean(x: Tensor, question: Question) -> Tensor:
        with torch.no_grad():
            return torch.where(question.target, model(x, question.given).mean(), x)

    def draw(x: Tensor, question: Question) -> Tensor:
        return sample(model, x, question, seeded(seed), schedule=Quadratic(20))

    def nats(x: Tensor, question: Question) -> Tensor:
        return log_prob(model, x, question, order=fixed_orders(x.shape[1], 1)[0])

    return Method(mean, draw, nats)


def latent(kind: type[LatentModel]) -> Callable[[Tensor, float, int], Method]:
    def make(x: Tensor, minutes: float, seed: int) -> Method:
        def run(steps: int) -> LatentModel:
            model = build_convolutional(kind, ENCODER.schema, ENCODER.pixels, seed=seed)
            fit_baseline(model, x, recipe=BaselineRecipe(steps, learning_rate=1e-3, average=0.999, check_every=steps, seed=seed))
            return model

        model = run(steps_in(minutes, run))
        return Method(
            lambda x, question: baselines.mean(model, x, question, seeded(seed), DRAWS),
            lambda x, question: baselines.sample(model, x, question, seeded(seed), DRAWS),
            lambda x, question: baselines.log_prob(model, x, question, seeded(seed), DRAWS),
        )

    return make


def repaint(x: Tensor, minutes: float, seed: int) -> Method:
    def run(steps: int) -> DDPM:
        model = DDPM.build(ENCODER.schema, ENCODER.pixels, SIZES["small"], steps=100, seed=seed)
        recipe = BaselineRecipe(steps, batch_size=16, learning_rate=1e-3, average=0.999, check_every=steps, seed=seed)
        fit_baseline(model, x, recipe=recipe)
        return model

    model = run(steps_in(minutes, run))

    def draw(x: Tensor, question: Question) -> Tensor:
        return model.repaint(x, question.given, seeded(seed)).round()

    def mean(x: Tensor, question: Question) -> Tensor:
        many = model.repaint(x.repeat(MEAN_OF, 1), question.given.repeat(MEAN_OF, 1), seeded(seed))
        return many.view(MEAN_OF, *x.shape).mean(0)

    return Method(mean, draw, None, few=True)


if __name__ == "__main__":
    main()
