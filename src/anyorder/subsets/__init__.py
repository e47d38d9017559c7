"""Which variables are known, asked for, and revealed next."""

from . import pictures
from .blocks import Blocks, Cosine, Even, OneByOne, Planned, Quadratic, Repeated
from .orders import CanonicalOrder, MixtureOfOrders, MostCertainFirst, Order, Precedence, RandomOrder, StagedOrder, TwoStage
from .questions import (
    AnySize,
    EachWithProbability,
    Everything,
    FirstK,
    GivenAnySize,
    Mixture,
    Observed,
    Question,
    Questions,
    Regions,
)
from .roles import ask, check_question, mode_and_step

__all__ = [
    "AnySize",
    "Blocks",
    "CanonicalOrder",
    "Cosine",
    "EachWithProbability",
    "Even",
    "Everything",
    "FirstK",
    "GivenAnySize",
    "Mixture",
    "MixtureOfOrders",
    "MostCertainFirst",
    "Observed",
    "OneByOne",
    "Order",
    "Planned",
    "Precedence",
    "Quadratic",
    "Question",
    "Questions",
    "RandomOrder",
    "Regions",
    "Repeated",
    "StagedOrder",
    "TwoStage",
    "ask",
    "check_question",
    "mode_and_step",
    "pictures",
]
