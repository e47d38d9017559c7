"""Which path to walk: scoring, sampling, uncertainty and planning, all around one loop."""

from .likelihood import elbo, fixed_orders, log_prob, mixture_log_prob, path_terms, ratio_log_prob
from .planning import plan, step_losses
from .sampling import Estimate, entropy, sample
from .walk import ModeAndStep, Step, seeded, walk

__all__ = [
    "Estimate",
    "ModeAndStep",
    "Step",
    "elbo",
    "entropy",
    "fixed_orders",
    "log_prob",
    "mixture_log_prob",
    "path_terms",
    "plan",
    "ratio_log_prob",
    "sample",
    "seeded",
    "step_losses",
    "walk",
]
