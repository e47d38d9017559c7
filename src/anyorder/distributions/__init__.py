"""From a network's numbers to the distribution of one variable: one file a family."""

from typing import Any

from ..errors import FormatError
from ..schema import Category, Colour, Domain, Ordinal, Recorded
from .bounded import BoundedNumber, bound
from .categorical import IMPOSSIBLE, Bernoulli, BernoulliDistribution, Categorical, CategoricalDistribution
from .colour_mixture import ColourMixture, ColourMixtureDistribution
from .combined import MixedCodes, MixedNumber, mixed
from .distribution import DiscreteDistribution, Distribution, Head
from .gaussian import Gaussian, GaussianDistribution, GaussianMixture, GaussianMixtureDistribution
from .kernel import KernelDistribution
from .lattice import LatticeDistribution, mean_place
from .logistic_mixture import LogisticMixture, LogisticMixtureDistribution
from .recorded_number import RecordedDistribution, RecordedNumber

HEADS: tuple[type[Head], ...] = (
    Bernoulli,
    Categorical,
    ColourMixture,
    Gaussian,
    GaussianMixture,
    LogisticMixture,
    RecordedNumber,
)


def default_head(domain: Domain) -> Head:
    """The head that suits a domain when nobody chose one."""
    match domain:
        case Category(levels=2) | Ordinal(levels=2):
            return Bernoulli()
        case Category(levels=levels):
            return Categorical(levels)
        case Ordinal(levels=levels):
            return LogisticMixture(levels)
        case Colour(shades=shades):
            return ColourMixture(shades)
        case Recorded(atoms=atoms):
            return RecordedNumber(len(atoms))
    return GaussianMixture()


def head_from_json(item: dict[str, Any]) -> Head:
    """The head that `to_json` wrote."""
    sizes = {key: value for key, value in item.items() if key != "kind"}
    for head in HEADS:
        if head.kind == item.get("kind"):
            return head(**sizes)
    raise FormatError(f"Unknown head {item.get('kind')!r}; this version knows {', '.join(h.kind for h in HEADS)}.")


__all__ = [
    "HEADS",
    "IMPOSSIBLE",
    "Bernoulli",
    "BernoulliDistribution",
    "BoundedNumber",
    "Categorical",
    "CategoricalDistribution",
    "ColourMixture",
    "ColourMixtureDistribution",
    "DiscreteDistribution",
    "Distribution",
    "Gaussian",
    "GaussianDistribution",
    "GaussianMixture",
    "GaussianMixtureDistribution",
    "Head",
    "KernelDistribution",
    "LatticeDistribution",
    "LogisticMixture",
    "LogisticMixtureDistribution",
    "MixedCodes",
    "MixedNumber",
    "RecordedDistribution",
    "RecordedNumber",
    "bound",
    "default_head",
    "head_from_json",
    "mean_place",
    "mixed",
]
