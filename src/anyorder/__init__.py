"""anyorder: train once, ask in any order."""

from .conditionals import Conditionals
from .errors import AnyOrderError, FormatError, InputError, TrainingError
from .estimator import AnyOrder
from .inference import (
    elbo,
    entropy,
    fixed_orders,
    log_prob,
    mixture_log_prob,
    path_terms,
    plan,
    ratio_log_prob,
    sample,
    seeded,
    step_losses,
    walk,
)
from .model import AnyOrderModel, build_model
from .schema import Category, Ordinal, Real, Recorded, Schema, Variable
from .subsets import Question, ask
from .training import Recipe, fit, load_model, progress_bar, save_model

__version__ = "0.1.0"

__all__ = [
    "AnyOrder",
    "AnyOrderError",
    "AnyOrderModel",
    "Category",
    "Conditionals",
    "FormatError",
    "InputError",
    "Ordinal",
    "Question",
    "Real",
    "Recipe",
    "Recorded",
    "Schema",
    "TrainingError",
    "Variable",
    "ask",
    "build_model",
    "elbo",
    "entropy",
    "fit",
    "fixed_orders",
    "load_model",
    "log_prob",
    "mixture_log_prob",
    "path_terms",
    "plan",
    "progress_bar",
    "ratio_log_prob",
    "sample",
    "save_model",
    "seeded",
    "step_losses",
    "walk",
]
