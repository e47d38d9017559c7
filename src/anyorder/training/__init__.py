"""Which edges to practise, and how: training objectives, the loss, the loop and the files."""

from .blending import fit_share, fit_temperature, fit_weights
from .checkpoint import Check, load_model, load_model_and_more, save_model
from .loop import Fitted, Recipe, edge_loss, fit, held_out_nats
from .objectives import (
    Edges,
    Objective,
    PathObjective,
    ace,
    ardm,
    mac,
    mac_all_edges,
    mac_exact,
    mdlm,
    mixture,
    resampled,
    reweighted,
    sfarm,
)
from .progress import progress_bar

__all__ = [
    "Check",
    "Edges",
    "Fitted",
    "Objective",
    "PathObjective",
    "Recipe",
    "ace",
    "ardm",
    "edge_loss",
    "fit",
    "fit_share",
    "fit_temperature",
    "fit_weights",
    "held_out_nats",
    "load_model",
    "load_model_and_more",
    "mac",
    "mac_all_edges",
    "mac_exact",
    "mdlm",
    "mixture",
    "progress_bar",
    "resampled",
    "reweighted",
    "save_model",
    "sfarm",
]
