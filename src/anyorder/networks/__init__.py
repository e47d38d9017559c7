"""(x, given, context) -> the parameters of every variable's distribution."""

from .integer import IntegerUNet, exactly
from .integer_columns import IntegerColumns
from .resmlp import Network, ResMLP
from .unet import SIZES, UNet, UNetSize, size_named

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
    "integer",
    "size_named",
]
