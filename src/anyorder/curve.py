"""A scale that bends: even near its start and even in the logarithm far from it, on which recorded values lie ever closer.

A curve is three numbers, the last dimension of a tensor: `scale`, `start` and `ratio`. With m the number of steps in which a
value was written down, counted from the value at place 0,

    m = ratio (sinh(scale place + start) - sinh(start))

A ratio of 0 stands for values without such steps: every multiple of the spacing may be recorded. Places are kept as whole
multiples of a `spacing` so fine that float32 tells them apart: near the start many of them hold no recorded value, far from
it one may hold several, which are then told apart no more.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Curve = Float[Tensor, "*cells 3"]
FARTHEST = 700.0  # of what is given to sinh: float64 ends soon after


def steps_at(place: Tensor, curve: Curve) -> Tensor:
    """How many steps a place is away from place 0, in double precision and not rounded."""
    scale, start, ratio = curve.double().unbind(-1)
    return ratio * ((scale * place.double() + start).clamp(-FARTHEST, FARTHEST).sinh() - start.sinh())


def place_of(steps: Tensor, curve: Curve) -> Tensor:
    """Where so many steps lie, in double precision."""
    scale, start, ratio = curve.double().unbind(-1)
    return ((steps.double() / ratio + start.sinh()).asinh() - start) / scale


def cell_top(x: Tensor, spacing: Tensor, curve: Curve | None) -> Tensor:
    """The upper end of what was rounded to the last recorded value at or below x, a multiple of the spacing."""
    if curve is None:
        return x + spacing / 2
    return _top((x.double() / spacing.double()).round(), spacing, curve).to(x.dtype)


def cell_of(x: Tensor, spacing: Tensor, curve: Curve | None) -> tuple[Tensor, Tensor]:
    """The middle and the width of what was rounded to x; no width where no recorded value lies."""
    if curve is None:
        return x, spacing
    steps = (x.double() / spacing.double()).round()
    top, bottom = _top(steps, spacing, curve), _top(steps - 1, spacing, curve)
    even = curve[..., 2] == 0
    middle, width = (top + bottom) / 2, (top - bottom).clamp(min=1e-30)
    return torch.where(even, x, middle.to(x.dtype)), torch.where(even, spacing, width.to(x.dtype))


def on_lattice(place: Tensor, spacing: Tensor, curve: Curve | None) -> Tensor:
    """The recorded value that a place is rounded to."""
    if curve is None:
        return torch.round(place / spacing) * spacing
    steps, fine = steps_at(place, curve).round(), spacing.double()
    recorded = torch.where(curve[..., 2] == 0, place.double(), place_of(steps, curve))
    return (torch.round(recorded / fine) * fine).to(place.dtype)


def _top(steps: Tensor, spacing: Tensor, curve: Curve) -> Tensor:
    """Halfway, as values are written down, between the last one at or below this multiple of the spacing and the next."""
    end = (steps + 0.5) * spacing.double()
    return torch.where(curve[..., 2] == 0, end, place_of(steps_at(end, curve).floor() + 0.5, curve))
