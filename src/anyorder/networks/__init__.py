"""(x, given, context) -> the parameters of every variable's law."""

from .network import Network
from .resmlp import ResMLP
from .sizes import SIZES, UNetSize, size_named
from .unet import UNet

NETWORKS: dict[str, type[ResMLP] | type[UNet]] = {network.kind: network for network in (ResMLP, UNet)}

__all__ = ["NETWORKS", "SIZES", "Network", "ResMLP", "UNet", "UNetSize", "size_named"]
