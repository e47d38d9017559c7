"""From a network's numbers to the law of one variable: one file a family."""

from typing import Any

from ..errors import FormatError
from ..schema import Category, Colour, Domain, Ordinal, Recorded
from .bernoulli import Bernoulli, BernoulliLaw
from .bounded import BoundedNumber, bound
from .categorical import IMPOSSIBLE, Categorical, CategoricalLaw
from .colour_mixture import ColourMixture, ColourMixtureLaw
from .gaussian import Gaussian, GaussianLaw
from .gaussian_mixture import GaussianMixture, GaussianMixtureLaw
from .kernel import KernelLaw
from .lattice import LatticeLaw, mean_place
from .law import DiscreteLaw, Head, Law
from .logistic_mixture import LogisticMixture, LogisticMixtureLaw
from .mixed import MixedCodes, MixedNumber, mixed
from .recorded_number import RecordedLaw, RecordedNumber

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
    "BernoulliLaw",
    "BoundedNumber",
    "Categorical",
    "CategoricalLaw",
    "ColourMixture",
    "ColourMixtureLaw",
    "DiscreteLaw",
    "Gaussian",
    "GaussianLaw",
    "GaussianMixture",
    "GaussianMixtureLaw",
    "Head",
    "KernelLaw",
    "LatticeLaw",
    "Law",
    "LogisticMixture",
    "LogisticMixtureLaw",
    "MixedCodes",
    "MixedNumber",
    "RecordedLaw",
    "RecordedNumber",
    "bound",
    "default_head",
    "head_from_json",
    "mean_place",
    "mixed",
]
