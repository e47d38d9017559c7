"""Arbitrary conditional flows (ACFlow): what is asked for is moved, number by number, to a mixture of bell curves.

Li, Akbar and Oliva, ACFlow: Flow Models for Arbitrary Conditional Likelihoods (2020), https://arxiv.org/abs/1909.06319
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from ..distributions import GaussianMixture
from ..errors import InputError
from ..networks import ResMLP
from ..schema import Mask, Ordinal, Real, Schema, Values, Variable
from ..subsets import GivenAnySize, Question, check_question
from .baseline import Baseline

STEEPEST = 2.0  # one coupling stretches by at most e^2


@final
class ACFlow(Baseline):
    r"""The density of all targets together, given what is known, by one change of variables:

    .. math:: \log p(x_T \mid x_G) = \log p(z_T \mid x_G) + \sum \log |s|

    Every coupling shifts and stretches every other target, seen by the known variables and the targets between (in the paper
    targets are sorted first instead, and linear layers stand between couplings). The network is ours: what it is shown is what is
    known, and it is told which variables are targets. The base is a mixture for each target given what is known; the paper's is
    a recurrent network with mixtures.

    A conditional integrates to one exactly. Marginals and conditionals of different questions need not agree with each other.
    """

    def __init__(
        self, schema: Schema, width: int = 128, depth: int = 2, couplings: int = 4, components: int = 5, seed: int = 0
    ) -> None:
        super().__init__()
        wrong = [variable.name for variable in schema if not isinstance(variable.domain, Real)]
        if wrong:
            raise InputError(f"ACFlow is a model of real numbers; variable {wrong[0]!r} is none. Use an any-order model.")
        if couplings < 0:
            raise InputError(f"ACFlow got couplings={couplings}; expected at least 0.")
        self.schema, self.head = schema, GaussianMixture(components)
        told = Schema((*schema, *(Variable(f"{variable.name} is asked for", Ordinal(2)) for variable in schema)))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.couplings = nn.ModuleList(ResMLP(told, 2 * len(schema), width, depth) for _ in range(couplings))
            self.base = ResMLP(told, len(schema) * self.head.width, width, depth)
        for coupling in self.couplings:
            nn.init.zeros_(coupling.last.weight)  # type: ignore[arg-type, union-attr]
            nn.init.zeros_(coupling.last.bias)  # type: ignore[arg-type, union-attr]

    def log_prob(self, x: Values, question: Question) -> Float[Tensor, " batch"]:
        """log p(target | given) in nats, row by row."""
        check_question(self.schema, x, question)
        self.schema.check(x, question.given | question.target)
        z = torch.where(question.given | question.target, x, 0.0)
        stretched = torch.zeros_like(z)
        for number, coupling in enumerate(self.couplings):
            moved = self.moved(question.target, number)
            shift, log_scale = self.said(coupling, z, question, ~moved)
            z = torch.where(moved, z * log_scale.exp() + shift, z)
            stretched = stretched + torch.where(moved, log_scale, 0.0)
        each = self.head(self.based(z, question)).log_prob(z) + stretched
        return torch.where(question.target, each, 0.0).sum(-1)

    @torch.no_grad()
    def sample(self, x: Values, question: Question, rng: Generator) -> Values:
        """The rows of x with their targets drawn together, given what is known."""
        check_question(self.schema, x, question)
        self.schema.check(x, question.given)
        z = torch.where(question.given, x, 0.0)
        z = torch.where(question.target, self.head(self.based(z, question)).sample(rng), z)
        for number in reversed(range(len(self.couplings))):
            moved = self.moved(question.target, number)
            shift, log_scale = self.said(self.couplings[number], z, question, ~moved)
            z = torch.where(moved, (z - shift) * (-log_scale).exp(), z)
        return torch.where(question.target, z, x)

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """log p of the rest given a random part, which is any number of variables."""
        return self.log_prob(x, GivenAnySize().sample(shown, rng))

    def moved(self, target: Mask, number: int) -> Mask:
        """Every other target, counted from the first: the even ones, then the odd ones, and so on."""
        return target & ((target.cumsum(-1) + number) % 2 == 1)

    def based(self, z: Values, question: Question) -> Float[Tensor, "batch variable number"]:
        """The numbers of the base's mixtures, which see what is known alone."""
        rows, given = self.told(z, question, question.given)
        return self.base(rows, given).unflatten(-1, (len(self.schema), self.head.width))

    def said(self, coupling: nn.Module, z: Values, question: Question, unmoved: Mask) -> tuple[Values, Values]:
        """How far a coupling shifts every variable, and the logarithm of how much it stretches it."""
        rows, given = self.told(z, question, (question.given | question.target) & unmoved)
        shift, raw = coupling(rows, given).chunk(2, dim=-1)
        return shift, STEEPEST * (raw / STEEPEST).tanh()

    def told(self, z: Values, question: Question, shown: Mask) -> tuple[Tensor, Tensor]:
        """What a network is shown: some of the values, and which variables are targets."""
        rows = torch.cat([torch.where(shown, z, 0.0), question.target.to(z.dtype)], dim=-1)
        return rows, torch.cat([shown, torch.ones_like(shown)], dim=-1)
