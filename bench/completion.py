"""Images completed (SFARM's Fig. 3): ours, VAE, MIWAE and RePaint, each trained for the same CPU minutes.

    python bench/completion.py [--minutes 5] [--images 100] [--picture FOLDER]

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
from digit_classifier import digit_classifier
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
    data = datasets.static_mnist()
    train, test = ENCODER.encode(data.train), ENCODER.encode(data.test)[: args.images]
    methods = {}
    for name, make in {"anyorder": ours, "VAE": latent(VAE), "MIWAE": latent(MIWAE), "RePaint": repaint}.items():
        start = time.process_time()
        methods[name] = make(train, args.minutes, args.seed)
        print(f"{name}: {(time.process_time() - start) / 60:.1f} CPU minutes", flush=True)
    classifier = digit_classifier()
    print("\n| hidden | method | error | error, few | nats a pixel | same digit | seconds |\n|---|---|---|---|---|---|---|")
    for share in SHARES:
        known = torch.rand(test.shape, generator=seeded(7)) >= share
        shown = [test, torch.where(known, test, 0.5)]
        for name, method in methods.items():
            if method.few and share not in PICTURED:
                continue
            count = args.few if method.few else len(test)
            x, question = test[:count], Question(known[:count], ~known[:count])
            errors = [f"{rmse(method.mean(x, question), x, question):.3f}", "-"]
            if method.few:
                errors.reverse()
            else:
                first = Question(known[: args.few], ~known[: args.few])
                errors[1] = f"{rmse(method.mean(test[: args.few], first), test[: args.few], first):.3f}"
            nats = "-" if method.nats is None else f"{-(method.nats(x, question).sum() / question.target.sum()):.4f}"
            start = time.perf_counter()
            filled = method.draw(x, question)
            seconds = (time.perf_counter() - start) / count
            shown.append(filled)
            same = (classifier.digit(filled) == classifier.digit(x)).float().mean()
            print(f"| {share:.0%} | {name} | {errors[0]} | {errors[1]} | {nats} | {same:.0%} | {seconds:.3f} |", flush=True)
        if args.picture and share in PICTURED:
            rows = torch.cat([part[:12] for part in shown]).view(-1, 28, 28)
            write_image(
                args.picture / f"completion_{share:.0%}.png".replace("%", ""), image_grid((rows * 255).byte().numpy(), 12), 2
            )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--few", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, help="a folder for pictures of the completions")
    args = parser.parse_args()
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
