"""The oracle: models whose every conditional is computed exactly, and distributions of questions, orders and edges by
enumeration.

Everything here is slow and obvious on purpose, and shares no formula with the package.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import torch

from anyorder.distributions import CategoricalDistribution, GaussianDistribution
from anyorder.models.conditionals import Conditionals, NetworkDistributions
from anyorder.schema import Category, Real, Schema
from anyorder.subsets import (
    AnySize,
    CanonicalOrder,
    EachWithProbability,
    Everything,
    FirstK,
    GivenAnySize,
    Mixture,
    MixtureOfOrders,
    Observed,
    Precedence,
    RandomOrder,
)


class JointTable:
    """p(x_i | x_G) of a joint over a few small variables, by summing the table."""

    def __init__(self, probs):
        self.probs = probs.double() / probs.sum()
        self.sizes = tuple(probs.shape)
        self.schema = Schema.of(**{f"v{i}": Category(k) for i, k in enumerate(self.sizes)})

    @classmethod
    def random(cls, *sizes, seed=0):
        noise = torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return cls((2 * noise).exp())

    def states(self):
        return all_states(self.sizes)

    def log_marginal(self, x, mask):
        """log p(x_mask) for every row."""
        states, probs = self.states(), self.probs.flatten()
        agree = ((x[:, None] == states[None]) | ~mask[:, None]).all(-1)  # (row, state)
        return (agree * probs).sum(-1).log()

    def __call__(self, x, given, context=None):
        states, probs = self.states(), self.probs.flatten()
        agree = ((x[:, None] == states[None]) | ~given[:, None]).all(-1) * probs  # (row, state)
        parts = []
        for i, size in enumerate(self.sizes):
            table = torch.stack([(agree * (states[:, i] == k)).sum(-1) for k in range(size)], dim=-1)
            parts.append(
                NetworkDistributions(
                    torch.tensor([i]), CategoricalDistribution, (table / table.sum(-1, keepdim=True)).log()[:, None]
                )
            )
        return Conditionals(parts)


class GaussianOracle:
    """p(x_i | x_G) of a full-covariance Gaussian, by conditioning."""

    def __init__(self, mean, covariance):
        self.mean, self.covariance = mean.double(), covariance.double()
        self.schema = Schema.of(**{f"v{i}": Real() for i in range(len(mean))})

    @classmethod
    def random(cls, variables, seed=0):
        rng = torch.Generator().manual_seed(seed)
        root = torch.randn(variables, variables, generator=rng, dtype=torch.float64)
        return cls(torch.randn(variables, generator=rng), root @ root.T + 0.1 * torch.eye(variables))

    def log_marginal(self, x, mask):
        out = []
        for row, keep in zip(x.double(), mask, strict=True):
            if not keep.any():
                out.append(torch.zeros((), dtype=torch.float64))
                continue
            distribution = torch.distributions.MultivariateNormal(self.mean[keep], self.covariance[keep][:, keep])
            out.append(distribution.log_prob(row[keep]))
        return torch.stack(out)

    def __call__(self, x, given, context=None):
        params = torch.empty(*x.shape, 2, dtype=torch.float64)
        for r, (row, known) in enumerate(zip(x.double(), given, strict=True)):
            gain = self.covariance[:, known] @ torch.linalg.inv(self.covariance[known][:, known])
            params[r, :, 0] = self.mean + gain @ (row - self.mean)[known]
            params[r, :, 1] = (self.covariance - gain @ self.covariance[known]).diagonal().clamp(min=1e-12).sqrt()
        head = lambda p: GaussianDistribution(p[..., 0], p[..., 1])  # noqa: E731
        return Conditionals([NetworkDistributions(torch.arange(x.shape[1]), head, params)])


def all_states(sizes):
    return torch.tensor(list(itertools.product(*map(range, sizes))), dtype=torch.float64)


def subsets(items):
    items = sorted(items)
    return [frozenset(c) for k in range(len(items) + 1) for c in itertools.combinations(items, k)]


def disjoint_pairs(variables):
    """All (given, target) with a non-empty target."""
    for given in subsets(range(variables)):
        for target in subsets(set(range(variables)) - given):
            if target:
                yield given, target


def mask_of(chosen, variables, rows=1):
    return torch.tensor([[i in chosen for i in range(variables)]] * rows)


def sets_of(mask):
    """The set of True columns of every row."""
    codes = (mask.long() * 2 ** torch.arange(mask.shape[1])).sum(-1).tolist()
    names = {code: frozenset(i for i in range(mask.shape[1]) if code >> i & 1) for code in set(codes)}
    return [names[code] for code in codes]


# Distributions by enumeration, with fractions: {outcome: probability}


def question_distribution(distribution, present):
    """{(given, target): probability} of a row whose present variables are these."""
    present = frozenset(present)
    out = defaultdict(Fraction)
    match distribution:
        case Everything():
            out[frozenset(), present] += 1
        case FirstK(k=k):
            out[frozenset(), present & frozenset(range(k))] += 1
        case AnySize(favour_large=False):
            for target in subsets(present):
                if target:
                    out[frozenset(), target] += Fraction(1, len(present) * math.comb(len(present), len(target)))
            if not present:
                out[frozenset(), present] += 1
        case GivenAnySize():
            for given in subsets(present):
                if given != present:
                    out[given, present - given] += Fraction(1, len(present) * math.comb(len(present), len(given)))
            if not present:
                out[present, present] += 1
        case EachWithProbability(p=p):
            p = Fraction(p)
            for given in subsets(present):
                out[given, present - given] += p ** len(given) * (1 - p) ** (len(present) - len(given))
        case Observed(masks=masks):
            for given in sets_of(masks):
                out[given & present, present - given] += Fraction(1, len(masks))
        case Mixture(distributions=distributions, weights=weights):
            weights = [Fraction(w) for w in weights or [1] * len(distributions)]
            for inner, weight in zip(distributions, weights, strict=True):
                for question, p in question_distribution(inner, present).items():
                    out[question] += p * weight / sum(weights)
        case _:
            raise TypeError(distribution)
    return out


def path_distribution(order, target, variables):
    """{order of the targets: probability}."""
    match order:
        case RandomOrder():
            legal = list(itertools.permutations(sorted(target)))
        case CanonicalOrder(order=fixed):
            legal = [tuple(i for i in (fixed or range(variables)) if i in target)]
        case Precedence(stage=stage):
            legal = [
                path
                for path in itertools.permutations(sorted(target))
                if all(stage[a] <= stage[b] for a, b in itertools.pairwise(path))
            ]
        case MixtureOfOrders(orders=orders, weights=weights):
            weights = [Fraction(w) for w in weights or [1] * len(orders)]
            out = defaultdict(Fraction)
            for inner, weight in zip(orders, weights, strict=True):
                for path, p in path_distribution(inner, target, variables).items():
                    out[path] += p * weight / sum(weights)
            return out
        case _:
            raise TypeError(order)
    return {path: Fraction(1, len(legal)) for path in legal}


def edge_mass(questions, order, present, variables, block=1):
    """{(given, next): expected number of times a question's walk takes this edge}; block = variables per step."""
    out = defaultdict(Fraction)
    for (given, target), p in question_distribution(questions, present).items():
        for path, q in path_distribution(order, target, variables).items():
            for start in range(0, len(path), block):
                for j in path[start : start + block]:
                    out[given | frozenset(path[:start]), j] += p * q
    return out


def mask_distribution(questions, order, present, variables):
    """{given: probability} when every step of a question's path is equally likely; questions without targets add nothing."""
    out = defaultdict(Fraction)
    for (given, target), p in question_distribution(questions, present).items():
        for path, q in path_distribution(order, target, variables).items():
            for s in range(len(path)):
                out[given | frozenset(path[:s])] += p * q / len(path)
    return out
