"""Denoising diffusion, and RePaint, which fills gaps with it: known pixels are noised and put back at every step."""

from collections.abc import Iterator
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..networks import UNet, UNetSize
from ..schema import Mask, Schema, Values, levels_of
from .baseline import Baseline


@final
class DDPM(Baseline):
    r"""Ho, Jain and Abbeel's model of images with our U-Net. https://arxiv.org/abs/2006.11239

    Pixels are scaled to -1 .. 1 and noised in `steps` steps, :math:`x_t = \sqrt{\bar a_t} x + \sqrt{1 - \bar a_t} e`, with
    the cosine schedule of https://arxiv.org/abs/2102.09672; the network guesses e. It has no likelihood that could be
    compared with ours.
    """

    kept: Tensor

    def __init__(self, schema: Schema, network: UNet, steps: int) -> None:
        super().__init__()
        if steps < 2:
            raise InputError(f"DDPM got steps={steps}; expected at least 2.")
        self.schema, self.network, self.steps = schema, network, steps
        self.top = levels_of(schema.variables[0].domain) - 1
        time = torch.arange(steps + 1, dtype=torch.float64) / steps
        share = torch.cos((time + 0.008) / 1.008 * torch.pi / 2) ** 2
        beta = (1 - share[1:] / share[:-1]).clamp(max=0.999)
        self.register_buffer("kept", torch.cat([torch.ones(1), (1 - beta).cumprod(0).float()]))  # of the signal, after t steps

    @classmethod
    def build(cls, schema: Schema, shape: tuple[int, int, int], size: UNetSize, steps: int = 250, seed: int = 0) -> "DDPM":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = UNet(schema, len(schema), shape, size.widths, size.depth, (steps + 1,), size.patch, size.attention)
        return cls(schema, network, steps)

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """Minus the squared error of the guessed noise, the simple loss of the paper; all of an image is always shown."""
        t = torch.randint(1, self.steps + 1, (len(x), 1), generator=rng, device=rng.device)
        noise = torch.randn(x.shape, generator=rng, device=rng.device)
        return -(noise - self.noise_in(self.noised(self.scaled(x), t, noise), t)).square().sum(-1)

    def scaled(self, x: Values) -> Values:
        return 2 * x / self.top - 1

    def noised(self, clean: Values, t: Int[Tensor, "#batch 1"], noise: Values) -> Values:
        return self.kept[t].sqrt() * clean + (1 - self.kept[t]).sqrt() * noise

    def noise_in(self, noisy: Values, t: Int[Tensor, "batch 1"]) -> Values:
        """The network's guess; it is told the step, and that all pixels are there."""
        return self.network((noisy + 1) / 2 * self.top, torch.ones_like(noisy, dtype=torch.bool), t)

    @torch.no_grad()
    def sample(self, n: int, rng: Generator) -> Values:
        """New images, as numbers from 0 to the top level."""
        nothing = torch.zeros(n, len(self.schema))
        return self.repaint(nothing, nothing.bool(), rng, jump=1, resample=1)

    @torch.no_grad()
    def repaint(self, x: Values, known: Mask, rng: Generator, jump: int = 10, resample: int = 10) -> Values:
        """The images with what is unknown drawn given the rest. https://arxiv.org/abs/2201.09865

        After every `jump` steps the image is noised again by as many and walked back, `resample` times in all, so that
        the two parts can agree. The last step puts the known pixels in as they are.
        """
        clean, at = self.scaled(x), lambda t: torch.full((len(x), 1), t)
        now = torch.randn(x.shape, generator=rng)
        for t, then in time_embedding(self.steps, jump, resample):
            noise = torch.randn(x.shape, generator=rng)
            if then > t:  # noised again
                left = self.kept[then] / self.kept[t]
                now = left.sqrt() * now + (1 - left).sqrt() * noise
                continue
            guess = self.one_step_back(now, at(t), noise)
            now = torch.where(known, self.noised(clean, at(then), torch.randn(x.shape, generator=rng)), guess)
        return torch.where(known, x, ((now.clamp(-1, 1) + 1) / 2 * self.top))

    def one_step_back(self, now: Values, t: Int[Tensor, "batch 1"], noise: Values) -> Values:
        """A draw of x_{t-1} given x_t, the image in between guessed and kept in range."""
        kept, before = self.kept[t], self.kept[t - 1]
        image = ((now - (1 - kept).sqrt() * self.noise_in(now, t)) / kept.sqrt()).clamp(-1, 1)
        alpha = kept / before
        mean = (before.sqrt() * (1 - alpha) * image + alpha.sqrt() * (1 - before) * now) / (1 - kept)
        return mean + ((1 - alpha) * (1 - before) / (1 - kept)).sqrt() * noise


def time_embedding(steps: int, jump: int, resample: int) -> Iterator[tuple[int, int]]:
    """(from, to) of every move: one step back each, and `jump` steps forward at once where the walk is repeated."""
    if jump < 1 or resample < 1:
        raise InputError(f"RePaint got jump={jump}, resample={resample}; expected at least 1.")
    t, again = steps, dict.fromkeys(range(0, steps - jump + 1, jump), resample - 1)
    while t > 0:
        yield t, t - 1
        t -= 1
        if again.get(t, 0) > 0:
            again[t] -= 1
            yield t, t + jump
            t += jump
