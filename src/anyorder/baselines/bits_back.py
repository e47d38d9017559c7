"""Bits back with one VAE (BB-ANS): what the choice of latent numbers costs is got back by hiding other bits in the choice.

Townsend, Bird and Barber, Practical Lossless Compression with Latent Variables using Bits Back Coding (2019),
https://arxiv.org/abs/1901.04866
"""

from dataclasses import dataclass
from typing import Any, final

import constriction
import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ..distributions import DiscreteDistribution
from ..errors import InputError
from ..models.conditionals import Conditionals
from ..schema import Values
from .latent import VAE, Posterior

WORD_BITS = 32
BINS = 2**10  # of every latent number, all equally likely under the prior
LEAST_MASS = 1e-9
Stack = Any  # constriction.stream.stack.AnsCoder
Table = constriction.stream.model.Categorical(perfect=False)


@final
@dataclass(frozen=True, eq=False)
class Sent:
    """A stack of bits with images on it, and what it took."""

    words: NDArray[np.uint32]
    images: int
    bits_before: int  # in the stack before the first image: they are hidden in the choices and come back
    bits_after: int

    @property
    def net_bits(self) -> int:
        """What the images cost if the bits that were there before are of use to somebody."""
        return self.bits_after - self.bits_before


@final
class BitsBack:
    """Codes images one after the other onto a stack, with a trained VAE of codes.

    To code an image, latent numbers are *read* from the stack with q(z | x), which takes bits off, then the image is written
    with p(x | z), and z with p(z). Net cost: KL(q || p) - log p(x | z), minus the VAE's bound.

    The stack must hold enough bits to be read before the first image, as many as the chosen z would take. A single image
    therefore costs all of -log p(z) - log p(x | z), which with a large latent space (Bit-Swap, HiLLoC, VDM) is 8 bits a value
    and more; only in a long chain does it come down. An any-order codec has no such beginning.

    Both ways ask the same float network, one image at a time: bits come back on the machine that wrote them.
    """

    def __init__(self, model: VAE) -> None:
        parameter = next(model.parameters())
        if any(not hasattr(variable.domain, "levels") for variable in model.schema):
            raise InputError("Bits back needs codes, such as pixels; the model has variables that are real numbers.")
        self.model, self.dtype = model.eval(), parameter.dtype
        edges = torch.arange(BINS + 1, dtype=torch.float64) / BINS
        self.edges = torch.special.ndtri(edges)  # of the bins; infinite at both ends
        self.centres = torch.special.ndtri((edges[1:] + edges[:-1]) / 2)

    def encode(self, x: Values, seed_words: int = 0, seed: int = 0) -> Sent:
        """The images on a stack that holds `seed_words` random words first; by default as many as the first image needs."""
        self.model.schema.check(x, torch.ones_like(x, dtype=torch.bool))
        words = seed_words or 4 + self.posterior(x[:1]).mu.shape[1]  # a choice takes at most log2 of the bins, and precision
        before = np.random.default_rng(seed).integers(1, 2**32, words, dtype=np.uint32)
        coder = constriction.stream.stack.AnsCoder(before)
        bits = int(coder.num_bits())
        for row in x:
            self.push(coder, row[None])
        return Sent(coder.get_compressed(), len(x), bits, int(coder.num_bits()))

    def decode(self, sent: Sent) -> tuple[Values, NDArray[np.uint32]]:
        """The images, and the words that the stack held before them."""
        coder = constriction.stream.stack.AnsCoder(sent.words)
        rows = [self.pop(coder) for _ in range(sent.images)]
        return torch.cat(rows[::-1]), coder.get_compressed()

    def push(self, coder: Stack, x: Values) -> Float[Tensor, ""]:
        """One image onto the stack; the bits that the formula says, from what was really chosen."""
        choice = self.choices(x)
        bins = torch.from_numpy(coder.decode(Table, choice.numpy()).astype(np.int64))
        pixels = self.pixels(bins)
        coder.encode_reverse(x[0].numpy().astype(np.int32), Table, pixels.numpy())
        even = np.full((len(bins), BINS), 1 / BINS)
        coder.encode_reverse(bins.numpy().astype(np.int32), Table, even)
        written = pixels.gather(-1, x[0].long()[:, None]).log2().sum()
        chosen = choice.gather(-1, bins[:, None]).log2().sum()
        return chosen - written + len(bins) * float(np.log2(BINS))

    def pop(self, coder: Stack) -> Values:
        """One image off the stack, the bits that were read for it back on it."""
        count = self.posterior(torch.zeros(1, len(self.model.schema))).mu.shape[1]
        bins = coder.decode(Table, np.full((count, BINS), 1 / BINS))
        pixels = self.pixels(torch.from_numpy(bins.astype(np.int64)))
        x = torch.from_numpy(coder.decode(Table, pixels.numpy()).astype(np.float32))[None]
        coder.encode_reverse(bins.astype(np.int32), Table, self.choices(x).numpy())
        return x

    @torch.no_grad()
    def posterior(self, x: Values) -> Posterior:
        return self.model.encode(x.to(self.dtype), torch.ones_like(x, dtype=torch.bool))

    def choices(self, x: Values) -> Float[Tensor, "latent bin"]:
        """q(z | x) of every bin of every latent number."""
        found = self.posterior(x)
        at = (self.edges - found.mu.double().T) / found.sigma.double().T  # (latent, edge)
        # In the upper half the complement is precise, where the cdf is nearly 1.
        low, high = torch.special.ndtr(at), torch.special.ndtr(-at)
        mass = torch.where(at[:, :-1] > 0, high[:, :-1] - high[:, 1:], low[:, 1:] - low[:, :-1])
        return (mass + LEAST_MASS) / (mass + LEAST_MASS).sum(-1, keepdim=True)

    @torch.no_grad()
    def pixels(self, bins: Int[Tensor, " latent"]) -> Float[Tensor, "variable level"]:
        """p(x | z) of every code of every variable."""
        table = pmf_table(self.model.decode(self.centres[bins][None].to(self.dtype)))
        return (table + LEAST_MASS) / (table + LEAST_MASS).sum(-1, keepdim=True)


def pmf_table(conditionals: Conditionals) -> Float[Tensor, "variable level"]:
    """All probabilities of the one row, variables with fewer codes filled up with zeros."""
    found: dict[int, Tensor] = {}
    for part in conditionals.parts:
        distribution = part.at(...)
        assert isinstance(distribution, DiscreteDistribution)
        found |= dict(zip(part.index.tolist(), distribution.pmf()[0].double(), strict=True))
    widest = max(len(pmf) for pmf in found.values())
    rows = [torch.nn.functional.pad(found[i], (0, widest - len(found[i]))) for i in range(len(found))]
    return torch.stack(rows)
