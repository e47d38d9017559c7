"""(x, given, context) -> the parameters of every variable's law."""

from .network import Network
from .resmlp import ResMLP
from .unet import UNet

NETWORKS: dict[str, type[ResMLP] | type[UNet]] = {network.kind: network for network in (ResMLP, UNet)}

__all__ = ["NETWORKS", "Network", "ResMLP", "UNet"]
