"""(x, given, context) -> the parameters of every variable's law."""

from .network import Network
from .resmlp import ResMLP

NETWORKS = {network.kind: network for network in (ResMLP,)}

__all__ = ["NETWORKS", "Network", "ResMLP"]
