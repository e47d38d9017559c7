"""(x, given, context) -> the parameters of every variable's law."""

from .resmlp import ResMLP

NETWORKS = {ResMLP.kind: ResMLP}

__all__ = ["NETWORKS", "ResMLP"]
