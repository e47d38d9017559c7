"""(x, given, context) -> the parameters of every variable's law."""

from . import int8
from .columns import IntegerColumns
from .integer import IntegerUNet
from .network import Network
from .resmlp import ResMLP
from .sizes import SIZES, UNetSize, size_named
from .unet import UNet
from .whole import exactly

NETWORKS: dict[str, type[ResMLP] | type[UNet] | type[IntegerUNet] | type[IntegerColumns]] = {
    network.kind: network for network in (ResMLP, UNet, IntegerUNet, IntegerColumns)
}

__all__ = [
    "NETWORKS",
    "SIZES",
    "IntegerColumns",
    "IntegerUNet",
    "Network",
    "ResMLP",
    "UNet",
    "UNetSize",
    "exactly",
    "int8",
    "size_named",
]
