"""Which path to walk: scoring, sampling, uncertainty and planning, all around one loop."""

from .acquisition import Path, acquire
from .choice import Choice, GainMinusCost, GainPerCost, Measurement, Policy, Preference, Stop, choose, one_by_one
from .evidence import Allowed, Interval, Members, Particles, within
from .imputation import best_guess, drawn_together, interval
from .likelihood import elbo, fixed_orders, leave_one_out, log_prob, mixture_log_prob, path_terms, ratio_log_prob
from .mutual_information import (
    CandidateBins,
    CandidateRatio,
    EntropyDifference,
    Estimator,
    Information,
    TargetRatio,
    information,
    uncertainty,
)
from .planning import plan, step_losses
from .sampling import Estimate, entropy, sample
from .target_bins import TargetBins
from .walk import ModeAndStep, Step, seeded, walk

__all__ = [
    "Allowed",
    "CandidateBins",
    "CandidateRatio",
    "Choice",
    "EntropyDifference",
    "Estimate",
    "Estimator",
    "GainMinusCost",
    "GainPerCost",
    "Information",
    "Interval",
    "Measurement",
    "Members",
    "ModeAndStep",
    "Particles",
    "Path",
    "Policy",
    "Preference",
    "Step",
    "Stop",
    "TargetBins",
    "TargetRatio",
    "acquire",
    "best_guess",
    "choose",
    "drawn_together",
    "elbo",
    "entropy",
    "fixed_orders",
    "information",
    "interval",
    "leave_one_out",
    "log_prob",
    "mixture_log_prob",
    "one_by_one",
    "path_terms",
    "plan",
    "ratio_log_prob",
    "sample",
    "seeded",
    "step_losses",
    "uncertainty",
    "walk",
    "within",
]
