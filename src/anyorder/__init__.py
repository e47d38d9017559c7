"""anyorder: train once, ask in any order."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from .modalities.compression import compress, decompress
    from .modalities.tables.acquisition import plot_next_best
    from .modalities.tables.ranges import Between, OneOf
    from .modalities.tables.rubin import pool
    from .models.any_order import AnyOrderModel, build_model
    from .models.blend import Blend
    from .models.conditionals import Conditionals
    from .models.memory import Memory
    from .models.trees import Boosted
    from .schema import Category, Colour, Ordinal, Real, Recorded, Schema, Variable
    from .subsets import Question, ask
    from .training import Recipe, fit, load_model, progress_bar, save_model

__version__ = "0.2.0"

__all__ = [
    "AnyOrder",
    "AnyOrderError",
    "AnyOrderModel",
    "Between",
    "Blend",
    "Boosted",
    "Category",
    "Colour",
    "Conditionals",
    "FormatError",
    "InputError",
    "Memory",
    "OneOf",
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
    "compress",
    "decompress",
    "elbo",
    "entropy",
    "fit",
    "fixed_orders",
    "load_model",
    "log_prob",
    "mixture_log_prob",
    "path_terms",
    "plan",
    "plot_next_best",
    "pool",
    "progress_bar",
    "ratio_log_prob",
    "sample",
    "save_model",
    "seeded",
    "step_losses",
    "walk",
]

ROOMS = (
    "errors",
    "schema",
    "subsets",
    "models.conditionals",
    "models.any_order",
    "models.memory",
    "models.trees",
    "models.blend",
    "training",
    "inference",
    "modalities.tables.ranges",
    "modalities.tables.rubin",
    "modalities.tables.acquisition",
    "modalities.compression",
    "estimator",
)


def __getattr__(name: str) -> Any:
    """Names are fetched when they are first used, so that `anyorder --help` does not wait for torch."""
    for room in ROOMS if name in __all__ else ():
        found = vars(import_module(f".{room}", __name__)).get(name)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
