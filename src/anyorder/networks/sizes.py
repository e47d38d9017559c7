"""Sizes of the network for images, by name: from what a laptop trains in minutes to what the papers trained for weeks."""

from dataclasses import dataclass
from typing import final

from ..errors import InputError


@final
@dataclass(frozen=True)
class UNetSize:
    """What a U-Net is built with; see `UNet`."""

    widths: tuple[int, ...]
    depth: int
    patch: int = 1
    attention: bool = False
    around: tuple[int, ...] = ()
    components: int = 5  # of the mixtures that shades and colours have as laws


SIZES: dict[str, UNetSize] = {
    "small": UNetSize((32, 64), 1, patch=2),
    "fine": UNetSize((24, 48, 96), 1, around=(3, 7)),  # for shades: every pixel on its own, and what is known around it
    "medium": UNetSize((48, 96), 2, patch=2),
    "large": UNetSize((96, 192, 256), 3, patch=2),
    # SFARM's Table 4: in_planes, doubled by every further layer; blocks per layer, going down and coming up; n_mix
    "sfarm-mnist": UNetSize((32,), 4),
    "sfarm-fashion-mnist": UNetSize((32,), 4, components=1),
    "sfarm-cifar10": UNetSize((128,), 32, components=30),
    "sfarm-celeba64": UNetSize((128, 256), 16, components=30),
    "sfarm-imagenet64": UNetSize((128, 256), 16, components=30),
    # ARDM's: 32 blocks down and 32 up at full resolution, each with attention
    "ardm-cifar10": UNetSize((256,), 32, attention=True),
}


def size_named(name: str) -> UNetSize:
    if name not in SIZES:
        raise InputError(f"size={name!r} is unknown; expected {', '.join(SIZES)}.")
    return SIZES[name]
