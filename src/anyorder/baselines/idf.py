"""Integer discrete flows (IDF): images become other whole numbers, one for one, which are easier to code.

Hoogeboom et al., Integer Discrete Flows and Lossless Compression (2019), https://arxiv.org/abs/1905.07376; IDF++,
https://arxiv.org/abs/2006.12459
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import cast, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from ..coding import Coder, Decoder, Encoder, shades
from ..coding.frequencies import GRID, TOTAL
from ..distributions import LogisticMixture
from ..errors import FormatError, InputError
from ..networks import IntegerUNet, exactly
from ..networks.integer import rounded
from ..schema import Mask, Ordinal, Schema, Values
from .baseline import Baseline

ROOM = 3  # latent numbers have so many times as many usual values as pixels; what lies beyond is escaped
ESCAPE_BITS = 6  # how long a number beyond is, then its bits
MOST_BEYOND = 2**20  # float32 holds latent numbers exactly up to far beyond this


@final
@dataclass(frozen=True)
class IDFSize:
    """Levels of resolution, couplings in each, and the residual network inside every coupling."""

    levels: int = 2
    flows: int = 8
    width: int = 32
    depth: int = 1
    components: int = 1  # logistic distributions a latent number is a mixture of


@final
class IDF(Baseline):
    r"""Couplings of whole numbers, :math:`z_b = x_b + \lfloor t(x_a) \rceil`, a bijection, so :math:`\log p(x) = \log p(z)`.

    A coupling moves a quarter of the pixels, seen by all others; the network t is our integer U-Net, shown a part of an image as
    it is everywhere else. After `flows` couplings three quarters of the pixels are done and the next level goes on with the rest
    (factor-out); their distributions are discretised logistics, given what is not done yet. The gradient passes through all
    rounding. Couplings begin as the identity and have residual networks, as in IDF++.

    The networks compute with whole numbers, so that `encode` and `decode` agree on every machine; the paper's own, with float
    networks, meet rounding ties that another machine rounds the other way.
    """

    def __init__(self, schema: Schema, shape: tuple[int, int, int], size: IDFSize = IDFSize(), seed: int = 0) -> None:
        super().__init__()
        domain = schema.variables[0].domain
        if any(variable.domain != domain for variable in schema) or not isinstance(domain, Ordinal):
            raise InputError(f"IDF needs pixels that all have the same number of levels, such as Ordinal(256); got {domain}.")
        if size.levels < 1 or size.flows < 0 or 2 ** (size.levels - 1) > min(shape[:2]):
            raise InputError(
                f"IDF got levels={size.levels}, flows={size.flows} for images of {shape}; every level halves both sides."
            )
        self.schema, self.shape, self.size, self.pixel_levels = schema, shape, size, domain.levels
        self.head = LogisticMixture(ROOM * domain.levels, size.components)
        self.offset = (self.head.levels - domain.levels) // 2  # the symbol of latent number 0
        self.unit = 2.0 ** max(0, math.ceil(math.log2(domain.levels / 32)))  # networks say numbers up to 32
        self.seen, self.moved, self.done = masks(shape, size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            widths, count = (size.width,), len(schema)
            self.couplings = nn.ModuleList(IntegerUNet(schema, count, shape, widths, size.depth) for _ in self.moved)
            self.prior = IntegerUNet(schema, count * self.head.width, shape, widths, size.depth)
        with torch.no_grad():
            for network in self.networks():
                network.last.gain.zero_()
            if size.components == 1:  # one component begins at the low end of the scale
                self.prior.last.bias[1 :: self.head.width] = 0.8

    def networks(self) -> list[IntegerUNet]:
        return [*self.flows(), self.prior]

    def flows(self) -> list[IntegerUNet]:
        return [cast(IntegerUNet, network) for network in self.couplings]

    def forward(self, x: Values) -> Values:
        """Latent numbers, one for each pixel."""
        for network, seen, moved in zip(self.flows(), self.seen, self.moved, strict=True):
            x = x + self.translation(network, x, seen) * moved
        return x

    @torch.no_grad()
    def inverse(self, z: Values) -> Values:
        """The image with these latent numbers."""
        for network, seen, moved in reversed(list(zip(self.flows(), self.seen, self.moved, strict=True))):
            z = z - self.translation(network, z, seen) * moved
        return z

    def translation(self, network: IntegerUNet, x: Values, seen: Bool[Tensor, " variable"]) -> Values:
        return rounded(self.unit * network(self.clipped(x), seen.expand(len(x), -1)))

    def clipped(self, z: Values) -> Values:
        """Latent numbers as a network sees them: those beyond the pixels' range at its ends."""
        return z.clamp(0, self.pixel_levels - 1)

    def log_prob(self, x: Values) -> Float[Tensor, " batch"]:
        """log p(x) in nats of every image."""
        self.schema.check(x, torch.ones_like(x, dtype=torch.bool))
        return self.latent_log_prob(self(x)).sum(-1)

    def latent_log_prob(self, z: Values) -> Values:
        """log p of every latent number, given those of deeper levels."""
        symbol = (z + self.offset).clamp(0, self.head.levels - 1)
        total = torch.zeros_like(z)
        for done, given in self.parts():
            params = self.prior(self.clipped(z), given.expand(len(z), -1)).unflatten(-1, (len(self.schema), self.head.width))
            total = total + torch.where(done, self.as_coded(self.head(params).log_prob(symbol)), 0.0)
        return total - math.log(2) * escape_bits(z + self.offset, self.head.levels)

    def as_coded(self, log_p: Values) -> Values:
        """With a little for every symbol, as the coder has it: none is impossible, none costs more than 24 bits."""
        return torch.logaddexp(log_p + math.log1p(-self.head.levels / TOTAL), torch.full_like(log_p, -math.log(TOTAL)))

    def parts(self) -> Iterator[tuple[Bool[Tensor, " variable"], Bool[Tensor, " variable"]]]:
        """From the deepest level up: which latent numbers come next, and which are known."""
        given = torch.zeros(len(self.schema), dtype=torch.bool)
        for done in reversed(self.done):
            yield done, given
            given = given | done

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """log p(x) itself. A flow has no answer for a row with gaps."""
        if not shown.all():
            raise InputError("IDF got images with gaps, and a flow needs all pixels. Fill them first, or use an any-order model.")
        return self.latent_log_prob(self(x)).sum(-1)

    @torch.no_grad()
    def sample(self, n: int, rng: Generator) -> Values:
        """New images; pixels beyond their range, which a flow cannot rule out, at its ends."""
        z = torch.zeros(n, len(self.schema))
        for done, given in self.parts():
            params = self.prior(self.clipped(z), given.expand(n, -1)).unflatten(-1, (len(self.schema), self.head.width))
            z = torch.where(done, self.head(params).sample(rng) - self.offset, z)
        return self.inverse(z).clamp(0, self.pixel_levels - 1)

    def freeze(self) -> "IDF":
        """The same answers from whole numbers alone: faster, and what an archive would keep."""
        frozen = IDF(self.schema, self.shape, self.size)
        frozen.couplings = nn.ModuleList(network.freeze() for network in self.flows())
        frozen.prior = self.prior.freeze()
        return frozen.eval()

    def encode(self, x: Values) -> bytes:
        """Images as bits."""
        self.schema.check(x, torch.ones_like(x, dtype=torch.bool))
        encoder = Encoder()
        with exactly():
            self._coded(encoder, self(x))
        return encoder.content()

    def decode(self, content: bytes, images: int) -> Values:
        """As many images as were encoded."""
        with exactly():
            x = self.inverse(self._coded(Decoder(content), torch.zeros(images, len(self.schema))))
        if ((x < 0) | (x >= self.pixel_levels)).any():
            raise FormatError("The bits stand for no images of this model: they are damaged, or of another one.")
        return x

    def _coded(self, coder: Coder, z: Values) -> Values:
        """Latent numbers to bits or back, level by level; the decoder is shown zeros and finds the numbers."""
        least, z = Decimal(str(self.head.min_scale)), z.clone()
        for done, given in self.parts():
            said = self.prior(self.clipped(torch.where(given, z, 0.0)), given.expand(len(z), -1))
            said = said.unflatten(-1, (len(self.schema), self.head.width))[:, done].flatten(0, 1)
            logits, place, raw = np.split((said.double() * 2**GRID).to(torch.int64).numpy(), 3, axis=-1)
            symbols = (z[:, done] + self.offset).flatten().to(torch.int64).numpy()
            last = self.head.levels - 1
            found = coder(shades(logits, place, raw, last + 1, least), symbols.clip(0, last))
            ends = (found == 0) | (found == last)
            found[ends] += coder.signed((symbols - symbols.clip(0, last))[ends])
            if (np.abs(found) > MOST_BEYOND).any():
                raise FormatError("The bits stand for no latent numbers of this model: they are damaged, or of another one.")
            z[:, done] = torch.from_numpy(found - self.offset).to(z.dtype).unflatten(0, (len(z), -1))
        return z


def escape_bits(symbol: Values, levels: int) -> Values:
    """What a symbol at or beyond an end of the usual ones costs besides: how far beyond it is."""
    end = symbol.clamp(0, levels - 1)
    beyond = (symbol - end).detach().abs()
    folded = 2 * beyond - (symbol < end).to(symbol.dtype)
    bits = torch.where(folded > 0, (folded.clamp(min=1) + 0.5).log2().floor() + 1, 0.0)
    return torch.where((symbol <= 0) | (symbol >= levels - 1), ESCAPE_BITS + bits, 0.0)


def masks(shape: tuple[int, int, int], size: IDFSize) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """For every coupling the pixels it sees and those it moves; for every level the pixels that are done after it."""
    height, width, _ = shape
    row = torch.arange(height)[:, None, None].expand(shape).flatten()
    column = torch.arange(width)[None, :, None].expand(shape).flatten()
    seen, moved, done = [], [], []
    for level in range(size.levels):
        stride = 2**level
        active = (row % stride == 0) & (column % stride == 0)
        quarter = row // stride % 2 * 2 + column // stride % 2
        for flow in range(size.flows):
            moved.append(active & (quarter == 3 - flow % 4))
            seen.append(active & ~moved[-1])
        done.append(active & (quarter > 0) if level < size.levels - 1 else active)
    return seen, moved, done
