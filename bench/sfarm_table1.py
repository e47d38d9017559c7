"""SFARM's Table 1: the nats that unobserved features of small tables cost. Floors, rivals, SFARM and ours by one protocol.

    ANYORDER_DATA=../shared/data python bench/sfarm_table1.py --splits 4 --steps 3000 --draws 1000 --seeds 0

The paper does not say its protocol; this is the one of the same first author's earlier code (HH-VAEM): 10 folds, z-scores
of the training rows, each feature of a test row observed with probability 1/2, targets never, nats of density per unobserved
feature (targets among them), then the mean over rows. Every learned scale has the same floor, a thousandth of a standard
deviation: on Energy, whose columns nearly determine each other, density is as much about that floor as about the model.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from results import Results, flags
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.model_selection import KFold
from torch import Generator, Tensor

from anyorder import baselines
from anyorder.baselines import MIWAE, VAE, BaselineRecipe, FixedGaussian, LatentModel, fit_baseline
from anyorder.baselines.latent import total
from anyorder.baselines.latent_answers import weighted
from anyorder.distributions import Gaussian, GaussianMixture, Head
from anyorder.inference import ModeAndStep, fixed_orders, log_prob, mixture_log_prob, seeded
from anyorder.models.any_order import AnyOrderModel, build_model
from anyorder.schema import Real, Schema
from anyorder.subsets import Even, Question, RandomOrder
from anyorder.training import Recipe, ardm, fit, sfarm

TARGETS = {"energy": 2, "yacht": 1, "concrete": 1}  # how many of the last columns are never observed
PAPER = {
    "VAE": {"energy": "4.90 ± .59", "yacht": "4.42 ± .83", "concrete": "4.10 ± .08"},
    "MIWAE": {"energy": "4.74 ± .56", "yacht": "4.14 ± 1.22", "concrete": "3.06 ± .17"},
    "SFARM": {"energy": ".21 ± 2.14", "yacht": "2.50 ± 1.19", "concrete": "1.05 ± .06"},
}
FLOOR = 1e-3  # of every learned scale, in standard deviations
ORDERS = 4


@dataclass(frozen=True)
class Split:
    """Training rows, test rows and what is asked about each of these, in z-scores."""

    train: Tensor
    test: Tensor
    question: Question

    @property
    def schema(self) -> Schema:
        return Schema.repeat(Real(), self.train.shape[1])


@dataclass(frozen=True)
class Scores:
    """Nats of every test row: of its targets each alone (one pass) and all together (chain).

    For latent models also the mean over z of -log p(x_T | z), which is no likelihood: never fewer nats than the chain.
    """

    one_pass: Tensor
    chain: Tensor
    mean_over_z: Tensor | None = None

    def columns(self) -> list[Tensor]:
        return [nats for nats in (self.one_pass, self.chain, self.mean_over_z) if nats is not None]


@dataclass(frozen=True)
class Budget:
    steps: int
    draws: int
    seed: int


Method = Callable[[Split, Budget], Scores]


# The protocol


def splits(name: str, count: int, seed: int) -> Iterator[Split]:
    folder = os.environ.get("ANYORDER_DATA")
    if not folder:
        raise SystemExit("Set ANYORDER_DATA to the folder that holds uci/energy.csv, uci/yacht.csv and uci/concrete.csv.")
    table = np.loadtxt(Path(folder) / "uci" / f"{name}.csv", delimiter=",", skiprows=1)
    folds = KFold(10, shuffle=True, random_state=seed).split(table)
    for number, (train, test) in enumerate(folds):
        if number == count:
            return
        mean, std = table[train].mean(0), table[train].std(0)
        z = torch.from_numpy((table - mean) / std)
        given = torch.rand(len(test), table.shape[1], generator=seeded(seed + number)) < 0.5
        given[:, -TARGETS[name] :] = False
        yield Split(z[train], z[test], Question(given, ~given))


# The floors


def standard_normal(split: Split, budget: Budget) -> Scores:
    each = 0.5 * (split.test**2 + math.log(2 * math.pi))
    nats = torch.where(split.question.target, each, 0.0).sum(-1)
    return Scores(nats, nats)


@dataclass(frozen=True)
class Bells:
    """A mixture of full-covariance Gaussians, whose marginals and conditionals are closed forms."""

    log_weight: Tensor  # (component,)
    mu: Tensor  # (component, variable)
    covariance: Tensor  # (component, variable, variable)

    def log_marginal(self, x: Tensor, mask: Tensor) -> Tensor:
        """log p(x_mask): what is not asked for becomes independent, standard and exactly at its mean."""
        both = (mask.unsqueeze(-1) & mask.unsqueeze(-2)).unsqueeze(1)
        covariance = torch.where(both, self.covariance, torch.eye(x.shape[1], dtype=x.dtype))  # (batch, component, ...)
        away = torch.where(mask.unsqueeze(1), x.unsqueeze(1) - self.mu, 0.0)
        distribution = torch.distributions.MultivariateNormal(torch.zeros_like(away), covariance)
        spare = 0.5 * math.log(2 * math.pi) * (~mask).sum(-1, keepdim=True)
        return (self.log_weight + distribution.log_prob(away) + spare).logsumexp(-1)

    def scores(self, split: Split) -> Scores:
        given, target = split.question.given, split.question.target
        known = self.log_marginal(split.test, given)
        one_pass = torch.zeros_like(known)
        for i in range(given.shape[1]):
            alone = target & (torch.arange(given.shape[1]) == i)
            one_pass += known - self.log_marginal(split.test, given | alone)
        return Scores(one_pass, known - self.log_marginal(split.test, given | target))


def full_gaussian(split: Split, budget: Budget) -> Scores:
    covariance = split.train.T.cov(correction=0) + FLOOR**2 * torch.eye(split.train.shape[1])
    return Bells(torch.zeros(1).double(), split.train.mean(0, keepdim=True), covariance.unsqueeze(0)).scores(split)


def gaussian_mixture(split: Split, budget: Budget) -> Scores:
    """As many components as suit a tenth of the training rows best."""
    rows = split.train.numpy()
    rows = rows[np.random.default_rng(budget.seed).permutation(len(rows))]
    held_out, rest = np.split(rows, [len(rows) // 10])

    def fitted(components: int, data: np.ndarray) -> SklearnMixture:
        return SklearnMixture(components, reg_covar=FLOOR**2, n_init=2, random_state=budget.seed, max_iter=200).fit(data)

    best = max((1, 2, 4, 8, 16, 32), key=lambda k: fitted(k, rest).score(held_out))
    model = fitted(best, rows)
    return Bells(*map(torch.from_numpy, (np.log(model.weights_), model.means_, model.covariances_))).scores(split)


# The networks


def rival(kind: type[LatentModel], head: Head) -> Method:
    def method(split: Split, budget: Budget) -> Scores:
        model = kind.build(split.schema, [head] * len(split.schema), seed=budget.seed)
        fit_baseline(model, split.train.float(), recipe=BaselineRecipe(steps=budget.steps, seed=budget.seed))
        test, rng = split.test.float(), seeded(budget.seed)
        each = baselines.each_log_prob(model, test, split.question, rng, budget.draws).sum(-1)
        chain = baselines.log_prob(model, test, split.question, rng, budget.draws)
        return Scores(-each, -chain, -mean_over_z(model, test, split.question, rng))

    return method


@torch.no_grad()
def mean_over_z(model: LatentModel, x: Tensor, question: Question, rng: Generator) -> Tensor:
    drawn = weighted(model, x, question, rng, draws=100)
    return (drawn.log_weight.exp() * total(drawn.terms, question.target)).sum(0)


def sfarm_net(split: Split, budget: Budget) -> Scores:
    """Three layers of 32 units, one Gaussian a variable, told the step; one mode, as the paper scores."""
    variables = len(split.schema)
    model = build_model(split.schema, [Gaussian(FLOOR)] * variables, 32, 3, (1, variables + 1), budget.seed)
    fit(model, split.train.float(), recipe=Recipe(objective=sfarm([RandomOrder()]), steps=budget.steps, seed=budget.seed))
    return any_order_scores(model, split, ModeAndStep(0))


def ours(split: Split, budget: Budget) -> Scores:
    model = build_model(split.schema, [GaussianMixture(8, FLOOR)] * len(split.schema), seed=budget.seed)
    fit(model, split.train.float(), recipe=Recipe(objective=ardm(), steps=budget.steps, seed=budget.seed))
    return any_order_scores(model, split, None)


def any_order_scores(model: AnyOrderModel, split: Split, context: ModeAndStep | None) -> Scores:
    """One pass reveals all targets in one step; the chain is the mixture of a few orders fixed in advance."""
    test, orders = split.test.float(), fixed_orders(len(split.schema), ORDERS)
    one_pass = -log_prob(model, test, split.question, schedule=Even(1), context=context)
    return Scores(one_pass, -mixture_log_prob(model, test, split.question, orders, context=context))


METHODS: dict[str, Method] = {
    "N(0, 1)": standard_normal,
    "full-covariance Gaussian": full_gaussian,
    "Gaussian mixture": gaussian_mixture,
    "VAE, variance .1": rival(VAE, FixedGaussian(0.1)),
    "MIWAE, variance .1": rival(MIWAE, FixedGaussian(0.1)),
    "VAE, learned variance": rival(VAE, Gaussian(FLOOR)),
    "MIWAE, learned variance": rival(MIWAE, Gaussian(FLOOR)),
    "SFARM's net and head": sfarm_net,
    "ours, 8 Gaussians": ours,
}


# The tables


def per_feature(nats: Tensor, split: Split) -> float:
    return (nats / split.question.count.squeeze(-1)).mean().item()


def per_row(nats: Tensor, split: Split) -> float:
    return nats.mean().item()


def median_row(nats: Tensor, split: Split) -> float:
    return (nats / split.question.count.squeeze(-1)).median().item()


READINGS: dict[str, Callable[[Tensor, Split], float]] = {
    "per feature": per_feature,
    "per row": per_row,
    "per feature, median row": median_row,
}


def main() -> None:
    parser = flags(__doc__, TARGETS)
    parser.add_argument("--splits", type=int, default=4, help="folds of ten")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = Results.open(
        "sfarm_table1", args, "SFARM, Table 1: nats of density", ("method", "table", "fold"), protocol="ten folds"
    )
    for seed, table in itertools.product(args.seeds, args.tables):
        budget = Budget(round(args.steps * args.effort), args.draws, seed)
        for fold, split in enumerate(splits(table, args.splits, seed)):
            for name, method in METHODS.items():
                key = {"method": name, "table": table, "fold": str(fold), "seed": seed}
                if not results.has(**key):
                    results.add(readings(split, method(split, budget)), **key)
    for whose, printed in PAPER.items():
        for table in args.tables:
            results.add(
                {"printed in the paper": printed[table]}, method=f"paper: {whose}", table=table, fold="", seed=args.seeds[0]
            )
    results.print()


def readings(split: Split, scores: Scores) -> dict[str, float]:
    """Nats of one pass, of the chain, and of latent models the mean over z of -log p, each read in three ways."""
    names = ("one pass", "chain", "mean over z of -log p")
    columns = list(zip(names, scores.columns(), strict=False))
    return {f"{name}, {how}": read(nats, split) for how, read in READINGS.items() for name, nats in columns}


if __name__ == "__main__":
    main()
