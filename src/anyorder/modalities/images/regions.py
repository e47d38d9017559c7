"""Parts and orders of pictures, whose variables lie as (row, column, channel) in reading order."""

import torch
from jaxtyping import Bool
from torch import Generator, Tensor

from ...errors import InputError
from ...subsets import CanonicalOrder, Order, Precedence, RandomOrder, TwoStage

Shape = tuple[int, int, int]  # rows, columns, variables of a pixel
Region = Bool[Tensor, " variable"]
HALVES = ("left", "right", "top", "bottom")


def half(shape: Shape, name: str) -> Region:
    """One half of the picture, by name; the middle line of an odd side belongs to the right and the bottom half."""
    rows, columns = torch.meshgrid(torch.arange(shape[0]), torch.arange(shape[1]), indexing="ij")
    halves = {"left": columns < shape[1] // 2, "top": rows < shape[0] // 2}
    halves |= {"right": ~halves["left"], "bottom": ~halves["top"]}
    if name not in halves:
        raise InputError(f"There is no half called {name!r}; expected {', '.join(HALVES)}.")
    return of_pixels(halves[name], shape)


def box(shape: Shape, left: int, top: int, width: int, height: int) -> Region:
    """A rectangle, as far as it lies in the picture."""
    inside = torch.zeros(shape[:2], dtype=torch.bool)
    inside[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = True
    return of_pixels(inside, shape)


def interior(shape: Shape) -> Region:
    """The middle of the picture, half as wide and half as high."""
    rows, columns, _ = shape
    return box(shape, (columns - (columns + 1) // 2) // 2, (rows - (rows + 1) // 2) // 2, (columns + 1) // 2, (rows + 1) // 2)


def patch(shape: Shape, side: int, rng: Generator) -> Region:
    """A square somewhere in the picture."""
    top, left = (int(torch.randint(max(1, length - side + 1), (), generator=rng)) for length in shape[:2])
    return box(shape, left, top, side, side)


def of_pixels(pixels: Bool[Tensor, "row column"], shape: Shape) -> Region:
    return pixels[..., None].expand(shape).flatten()


# Orders


MODES = ("uniform", *HALVES, "interior", "exterior")  # SFARM's seven


def modes(shape: Shape) -> dict[str, Order]:
    """SFARM's seven: at random; and in two stages, each half first, the interior first, the exterior first."""
    first = [*(half(shape, name) for name in HALVES), interior(shape), ~interior(shape)]
    return dict(zip(MODES, [RandomOrder(), *map(TwoStage, first)], strict=True))


def raster(shape: Shape) -> CanonicalOrder:
    """As one reads."""
    return CanonicalOrder(tuple(range(shape[0] * shape[1] * shape[2])))


def coarse_to_fine(shape: Shape, stride: int = 4) -> Precedence:
    """A coarse lattice of pixels first, then what halves its spacing, down to every pixel; inside a stage at random.

    >>> coarse_to_fine((3, 4, 1), stride=2).stage
    (0, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1)
    """
    if stride < 1 or stride & (stride - 1):
        raise InputError(f"coarse_to_fine got stride={stride}; expected a power of two.")
    rows, columns = torch.meshgrid(torch.arange(shape[0]), torch.arange(shape[1]), indexing="ij")
    stage, later = torch.zeros(shape[:2], dtype=torch.long), 0
    while stride > 1:
        later += 1
        stage[((rows % stride) > 0) | ((columns % stride) > 0)] = later
        stride //= 2
    return Precedence(tuple(stage[..., None].expand(shape).flatten().tolist()))
