"""Numbers seen before, each with a weight: exact copies of them, and logistic distributions around them."""

from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from .distribution import Cells, draw_place, take
from .lattice import (
    BROAD,
    FLOOR,
    LatticeDistribution,
    at_or_below,
    cell_of,
    cell_top,
    for_all,
    logistic_integrated_cdf,
    logistic_mass,
    on_lattice,
    with_floor,
)


@final
@dataclass(frozen=True)
class KernelDistribution(LatticeDistribution):
    r"""A mixture over remembered values :math:`v_k`, each copied, or blurred over the lattice.

    .. math:: P(x) = \sum_k w_k \Big( c_0 [x = v_k] + \sum_m c_m \left[ F_{v_k, s_m}(x + h) - F_{v_k, s_m}(x - h) \right] \Big)

    with h half the spacing and F a logistic cdf. A share of a thousandth is a fixed broad distribution.
    """

    weight: Float[Tensor, "*cells values"]  # sums to 1
    value: Float[Tensor, "*cells values"]
    share: Float[Tensor, "*cells kernels"]  # of the copy, then of each blur; sums to 1
    blur: Float[Tensor, "*cells blurs"]  # scales of the logistic distributions
    curve: Float[Tensor, "*cells 3"] | None = None  # how the lattice bends

    def log_prob(self, x: Cells) -> Cells:
        middle, width = cell_of(x, self.spacing, self.curve)
        at, spacing = middle.unsqueeze(-1), width.unsqueeze(-1)
        kernel = self.share[..., :1] * ((x.unsqueeze(-1) - self.value).abs() < self.spacing.unsqueeze(-1) / 2)
        for m in range(self.blur.shape[-1]):
            mass = logistic_mass(at, self.value, self.blur[..., m : m + 1], spacing)
            kernel = kernel + self.share[..., m + 1 : m + 2] * mass
        return with_floor((self.weight * kernel).sum(-1), middle, width)

    def cdf(self, x: Cells) -> Cells:
        x = at_or_below(x, self.spacing)
        top = cell_top(x, self.spacing, self.curve).unsqueeze(-1)
        kernel = self.share[..., :1] * (self.value < top)
        for m in range(self.blur.shape[-1]):
            kernel = kernel + self.share[..., m + 1 : m + 2] * ((top - self.value) / self.blur[..., m : m + 1]).sigmoid()
        return (1 - FLOOR) * (self.weight * kernel).sum(-1) + FLOOR * (top.squeeze(-1) / BROAD).sigmoid()

    def reach(self) -> Cells:
        return 60 + self.value.abs().amax(-1) + 60 * self.blur.amax(-1)

    def integrated_cdf(self, x: Cells) -> Cells:
        at = x.unsqueeze(-1)
        kernel = self.share[..., :1] * (at - self.value).clamp(min=0.0)
        for m in range(self.blur.shape[-1]):
            kernel = kernel + self.share[..., m + 1 : m + 2] * logistic_integrated_cdf(at, self.value, self.blur[..., m : m + 1])
        broad = logistic_integrated_cdf(x, torch.zeros_like(x), torch.full_like(x, BROAD))
        return (1 - FLOOR) * (self.weight * kernel).sum(-1) + FLOOR * broad

    def sample(self, rng: Generator) -> Cells:
        which, how = draw_place(self.weight, rng), draw_place(self.share, rng)
        u = torch.rand(self.spacing.shape, generator=rng, device=rng.device, dtype=torch.float64).clamp(min=1e-300)
        noise = u.log() - torch.log1p(-u)
        scale = take(torch.cat([torch.zeros_like(self.share[..., :1]), self.blur], dim=-1), how)
        broad = torch.rand(self.spacing.shape, generator=rng, device=rng.device) < FLOOR
        place = torch.where(broad, BROAD * noise, take(self.value, which) + scale * noise)
        return on_lattice(place.to(self.value.dtype), self.spacing, self.curve)

    def mean(self) -> Cells:
        """Of the distribution before rounding, which is within half a spacing of the mean after it."""
        return (1 - FLOOR) * (self.weight * self.value).sum(-1)

    def tempered(self, temperature: float | Cells) -> "KernelDistribution":
        """The weights, the shares and the scales are tempered."""
        t = for_all(temperature)
        weight, share = ((p.log() / t).softmax(-1) for p in (self.weight, self.share))
        return replace(self, weight=weight, share=share, blur=self.blur * t)
