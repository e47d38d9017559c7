"""Diffusion of codes (D3PM): every variable is replaced, step by step, by noise; a network learns the way back.

Austin et al., Structured Denoising Diffusion Models in Discrete State-Spaces (2021), https://arxiv.org/abs/2107.03006
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, cast, final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from ..distributions import Categorical, DiscreteDistribution, Head, LogisticMixture
from ..distributions.distribution import draw_code, draw_place
from ..errors import InputError, UnavailableError
from ..models.any_order import AnyOrderModel, Model, build_model
from ..models.conditionals import Conditionals
from ..networks import UNet, UNetSize
from ..schema import Mask, Schema, Values, levels_of
from ..subsets import Question, check_question
from .baseline import Baseline

States = Int[Tensor, "batch variable"]  # codes 0 .. levels-1; `levels` where the code was absorbed
Steps = Int[Tensor, " batch"]

LOG_ZERO = -1e4  # finite, so that no gradient becomes NaN; its exponential is 0
MOST_TABLE_CELLS = 2**23  # of steps x levels x levels, in each of two tables
PAPER_STEPS = 1000


class Kernel(nn.Module, ABC):
    """q for variables with equally many levels, at chosen times from 0 to T. A step is an index into these times."""

    prior: Tensor  # what is left of a code after the last step, a probability for each state

    @abstractmethod
    def log_ahead(self, log_p: Float[Tensor, "batch part state"], step: Steps) -> Float[Tensor, "batch part state"]:
        """The distribution after `step` steps of a code that begins with this one."""

    @abstractmethod
    def log_jump(self, to: Int[Tensor, "batch part"], step: Steps) -> Float[Tensor, "batch part state"]:
        """log q(x_step = to | x_{step-1}) for every state that x_{step-1} may have been."""

    @abstractmethod
    def noised(self, x: Int[Tensor, "batch part"], step: Steps, rng: Generator) -> Int[Tensor, "batch part"]:
        """A draw of x_step given x_0 = x."""

    @abstractmethod
    def moved(self, x: Int[Tensor, "batch part"], step: Steps, rng: Generator) -> Int[Tensor, "batch part"]:
        """A draw of x_step given x_{step-1} = x."""


@final
class Mixing(Kernel):
    r"""A code is kept, or drawn anew from one fixed distribution: :math:`\bar Q_t = k_t I + (1 - k_t) 1 \pi^T`.

    Closed forms, no tables. With :math:`\pi` uniform this is multinomial diffusion, https://arxiv.org/abs/2102.05379;
    with all of :math:`\pi` on a state of its own it is absorbing diffusion.
    """

    kept: Tensor

    def __init__(self, kept: Float[Tensor, " time"], prior: Float[Tensor, " state"]) -> None:
        super().__init__()
        self.register_buffer("kept", kept, persistent=False)
        self.register_buffer("prior", prior, persistent=False)

    def log_ahead(self, log_p: Float[Tensor, "batch part state"], step: Steps) -> Float[Tensor, "batch part state"]:
        kept = self.kept[step].to(log_p.dtype)[:, None, None]
        return torch.logaddexp(log_p + log_or_zero(kept), log_or_zero((1 - kept) * self.prior.to(log_p.dtype)))

    def log_jump(self, to: Int[Tensor, "batch part"], step: Steps) -> Float[Tensor, "batch part state"]:
        kept = self.ratio(step)[..., None]
        same = F.one_hot(to, len(self.prior)).to(kept.dtype)
        return log_or_zero(kept * same + (1 - kept) * self.prior[to][..., None])

    def noised(self, x: Int[Tensor, "batch part"], step: Steps, rng: Generator) -> Int[Tensor, "batch part"]:
        return self._redrawn(x, self.kept[step][:, None], rng)

    def moved(self, x: Int[Tensor, "batch part"], step: Steps, rng: Generator) -> Int[Tensor, "batch part"]:
        return self._redrawn(x, self.ratio(step), rng)

    def ratio(self, step: Steps) -> Float[Tensor, "batch 1"]:
        """How likely a code is kept in this step."""
        return (self.kept[step] / self.kept[step - 1].clamp(min=1e-300))[:, None]

    def _redrawn(self, x: Tensor, kept: Tensor, rng: Generator) -> Tensor:
        u = torch.rand(x.shape, generator=rng, device=rng.device, dtype=torch.float64)
        return torch.where(u < kept, x, draw_place(self.prior.expand(*x.shape, -1), rng))


@final
class Table(Kernel):
    """Any doubly stochastic transitions, as two tables: of all steps so far, and of every step alone."""

    so_far: Tensor
    alone: Tensor

    def __init__(self, so_far: Float[Tensor, "time level level"], alone: Float[Tensor, "step level level"]) -> None:
        super().__init__()
        self.register_buffer("so_far", so_far, persistent=False)
        self.register_buffer("alone", alone, persistent=False)
        self.register_buffer("prior", torch.full((so_far.shape[-1],), 1 / so_far.shape[-1], dtype=so_far.dtype), persistent=False)

    def log_ahead(self, log_p: Float[Tensor, "batch part state"], step: Steps) -> Float[Tensor, "batch part state"]:
        return log_or_zero(log_p.exp() @ self.so_far[step].to(log_p.dtype))  # (batch, level, level) at most

    def log_jump(self, to: Int[Tensor, "batch part"], step: Steps) -> Float[Tensor, "batch part state"]:
        return log_or_zero(self.alone.mT[(step - 1)[:, None], to])

    def noised(self, x: Int[Tensor, "batch part"], step: Steps, rng: Generator) -> Int[Tensor, "batch part"]:
        return draw_place(self.so_far[step[:, None], x], rng)

    def moved(self, x: Int[Tensor, "batch part"], step: Steps, rng: Generator) -> Int[Tensor, "batch part"]:
        return draw_place(self.alone[(step - 1)[:, None], x], rng)


def log_or_zero(p: Tensor) -> Tensor:
    """The logarithm, with a finite number in place of log 0."""
    return torch.where(p > 0, p.clamp(min=torch.finfo(p.dtype).tiny).log(), LOG_ZERO)


@dataclass(frozen=True)
class Noise(ABC):
    """How codes turn into noise in `steps` steps."""

    absorbing: ClassVar[bool] = False
    steps: int = PAPER_STEPS

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"{type(self).__name__} got steps={self.steps}; expected at least 1.")

    @abstractmethod
    def kernel(self, levels: int, times: Sequence[int]) -> Kernel:
        """The transitions of variables with so many levels, from each of these times to the next."""


@final
@dataclass(frozen=True)
class Absorbing(Noise):
    """Hidden one after the other and never seen again: t of T steps hide each variable with probability t / T.

    The same as an any-order model whose variables are revealed in blocks of random size.
    """

    absorbing: ClassVar[bool] = True

    def kernel(self, levels: int, times: Sequence[int]) -> Kernel:
        return Mixing(1 - torch.tensor(times, dtype=torch.float64) / self.steps, F.one_hot(torch.tensor(levels)).double())


@final
@dataclass(frozen=True)
class Uniform(Noise):
    """Replaced by any code, with the cosine schedule of https://arxiv.org/abs/2102.09672: multinomial diffusion."""

    def kernel(self, levels: int, times: Sequence[int]) -> Kernel:
        time = torch.arange(self.steps + 1, dtype=torch.float64) / self.steps
        share = torch.cos((time + 0.008) / 1.008 * torch.pi / 2) ** 2
        kept = (share[1:] / share[:-1]).clamp(min=1e-3).cumprod(0)  # no step replaces more than .999
        kept = torch.cat([torch.ones(1, dtype=torch.float64), kept])
        return Mixing(kept[list(times)], torch.full((levels,), 1 / levels, dtype=torch.float64))


@final
@dataclass(frozen=True)
class Gauss(Noise):
    r"""Replaced by a near code: :math:`Q_{ij} \propto e^{-4 (i-j)^2 / ((K-1)^2 \beta_t)}` for a value on a scale.

    :math:`\beta` rises linearly. Its ends are the paper's for 1000 steps, and grow as the steps become fewer, so that as much
    noise is added in all. Noise much narrower than one level never moves a code: for few levels take larger ends.
    """

    first: float = 1e-4
    last: float = 0.02

    def kernel(self, levels: int, times: Sequence[int]) -> Kernel:
        check_tables(levels, times)
        betas = torch.linspace(self.first, self.last, self.steps, dtype=torch.float64) * PAPER_STEPS / self.steps
        alone, now = [], torch.eye(levels, dtype=torch.float64)
        for t in range(1, self.steps + 1):
            now = now @ gauss_step(levels, betas[t - 1])
            if t in times:
                alone.append(now)
                now = torch.eye(levels, dtype=torch.float64)
        return table_of(alone)


@final
@dataclass(frozen=True, eq=False)
class Nearest(Noise):
    r"""Replaced by a code with a similar embedding: steps are :math:`e^{a_t R}`, where R moves a code to one of its neighbours.

    R is made symmetric, so that the steps are doubly stochastic. The rates are such that what a noised code tells about the
    code falls linearly with time, if all codes are as frequent.
    """

    embedding: Float[Tensor, "level feature"] | None = None
    neighbours: int = 3

    def kernel(self, levels: int, times: Sequence[int]) -> Kernel:
        check_tables(levels, times)
        if self.embedding is None or len(self.embedding) != levels:
            shape = None if self.embedding is None else tuple(self.embedding.shape)
            raise InputError(
                f"Nearest got an embedding of shape {shape} for a variable with {levels} levels; expected one row a level."
            )
        rate = neighbour_rates(self.embedding.double(), self.neighbours)
        value, vector = torch.linalg.eigh(rate)
        amount = [amount_for(value, vector, 1 - t / self.steps) for t in times]
        steps = [b - a for a, b in pairwise(amount)]
        return table_of([exponential(value, vector, step) for step in steps])


def gauss_step(levels: int, beta: Tensor) -> Float[Tensor, "level level"]:
    """One step of the discretised Gaussian: what does not move stays, so that rows and columns sum to one."""
    place = torch.arange(-(levels - 1), levels, dtype=torch.float64)
    weight = (-4 * place**2 / ((levels - 1) ** 2 * beta)).softmax(0)
    apart = torch.arange(levels)[:, None] - torch.arange(levels)
    moves = weight[apart + levels - 1].fill_diagonal_(0.0)
    return moves + torch.diag(1 - moves.sum(-1))


def neighbour_rates(embedding: Float[Tensor, "level feature"], neighbours: int) -> Float[Tensor, "level level"]:
    """How often a code is replaced by each other one; symmetric, rows sum to zero."""
    levels = len(embedding)
    if not 1 <= neighbours < levels:
        raise InputError(f"Nearest got neighbours={neighbours} for {levels} levels; expected 1 to {levels - 1}.")
    far = torch.cdist(embedding, embedding).fill_diagonal_(torch.inf)
    near = torch.zeros_like(far).scatter_(1, far.topk(neighbours, largest=False).indices, 1.0)
    moves = (near + near.T) / (2 * neighbours)
    reached = torch.linalg.matrix_power((moves > 0).double() + torch.eye(levels), levels).clamp(max=1)
    if (reached == 0).any():
        raise InputError(
            f"With neighbours={neighbours} some codes are never replaced by some others, so noise would not forget them. "
            "Take more neighbours."
        )
    return moves - torch.diag(moves.sum(-1))


def exponential(value: Tensor, vector: Tensor, amount: float) -> Float[Tensor, "level level"]:
    """The matrix exponential of a symmetric matrix, from its eigenvalues; rounding may not make a probability negative."""
    return ((vector * (value * amount).exp()) @ vector.T).clamp(min=0.0)


def amount_for(value: Tensor, vector: Tensor, share: float) -> float:
    """How far to go until a noised code tells this share of the code."""
    if share >= 1:
        return 0.0

    def told(amount: float) -> float:
        moved = exponential(value, vector, amount)
        return 1 + float(torch.xlogy(moved, moved).sum()) / len(moved) / math.log(len(moved))

    low, high = 0.0, 1.0
    while told(high) > max(share, 1e-4):
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if told(middle) > max(share, 1e-4) else (low, middle)
    return high


def table_of(alone: Sequence[Tensor]) -> Table:
    so_far = [torch.eye(alone[0].shape[-1], dtype=torch.float64)]
    for step in alone:
        so_far.append(so_far[-1] @ step)
    return Table(torch.stack(so_far).float(), torch.stack(list(alone)).float())


def check_tables(levels: int, times: Sequence[int]) -> None:
    if len(times) * levels**2 > MOST_TABLE_CELLS:
        raise InputError(
            f"{len(times) - 1} steps of {levels} levels need two tables of {len(times) * levels**2 / 2**18:.0f} MB. "
            f"Take at most {MOST_TABLE_CELLS // levels**2 - 1} steps, or Uniform or Absorbing, which need none."
        )


class Guess(NamedTuple):
    """What the network says of the codes of some variables before all noise."""

    variables: Int[Tensor, " part"]
    levels: int
    log_p: Float[Tensor, "batch part state"]


@final
class D3PM(Baseline):
    r"""A denoising model of codes. Its network guesses :math:`\tilde p(x_0 \mid x_t)`, every variable alone, and

    .. math:: p(x_{t-1} \mid x_t) \propto q(x_t \mid x_{t-1}) \sum_{x_0} q(x_{t-1} \mid x_0) \, \tilde p(x_0 \mid x_t)

    at every step, the last one included, as in multinomial diffusion. (The paper's own code takes the network's word at the last
    step, and adds 1e-6 to probabilities; both change the numbers a little.)

    `model` is any model of ours: what is absorbed is hidden from it, time is its context. With `hybrid`, training adds so many
    times the cross-entropy of the guess to each term of the bound. `times` are the steps that are kept, see `fewer`.

    >>> from anyorder.inference import seeded
    >>> from anyorder.schema import Category
    >>> d3pm = D3PM.build(Schema.repeat(Category(3), 4), Absorbing(10), width=8, depth=1)
    >>> d3pm.sample(2, seeded()).shape
    torch.Size([2, 4])
    """

    levels: Tensor
    times: Tensor

    def __init__(self, model: Model, noise: Noise, hybrid: float = 0.0, times: Sequence[int] | None = None) -> None:
        super().__init__()
        if not 0 <= hybrid < math.inf:
            raise InputError(f"D3PM got hybrid={hybrid}; expected a number from 0.")
        self.schema, self.model, self.noise, self.hybrid = model.schema, model, noise, hybrid
        levels = code_levels(model.schema)
        times = range(noise.steps + 1) if times is None else times
        self.kernels = nn.ModuleDict({str(one): noise.kernel(one, times) for one in sorted(set(levels))})
        self.register_buffer("levels", torch.tensor(levels), persistent=False)
        self.register_buffer("times", torch.tensor(list(times)), persistent=False)

    @classmethod
    def build(
        cls,
        schema: Schema,
        noise: Noise,
        heads: Sequence[Head] | None = None,
        width: int = 128,
        depth: int = 3,
        hybrid: float = 0.0,
        seed: int = 0,
    ) -> "D3PM":
        """An untrained model of rows or texts with the network of our tables; a score for every code unless `heads` are given."""
        heads = scores_of(schema) if heads is None else heads
        return cls(build_model(schema, heads, width, depth, context_of(noise), seed), noise, hybrid)

    @classmethod
    def build_convolutional(
        cls,
        schema: Schema,
        shape: tuple[int, int, int],
        size: UNetSize,
        noise: Noise,
        logistic: bool = False,
        hybrid: float = 0.0,
        seed: int = 0,
    ) -> "D3PM":
        """An untrained model of images with our U-Net; `logistic` is the paper's head with a place and a scale for a pixel."""
        heads: Sequence[Head] = scores_of(schema)
        if logistic:
            heads = [LogisticMixture(levels_of(variable.domain), components=1) for variable in schema]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            outputs = sum(head.width for head in heads)
            network = UNet(schema, outputs, shape, size.widths, size.depth, context_of(noise), size.patch, size.attention)
        return cls(AnyOrderModel(schema, heads, network), noise, hybrid)

    @property
    def steps(self) -> int:
        return len(self.times) - 1

    def kernel(self, levels: int) -> Kernel:
        """The transitions of variables with so many levels."""
        return cast(Kernel, self.kernels[str(levels)])

    def fewer(self, steps: int) -> "D3PM":
        """The same network with the same noise in fewer, larger steps: faster to draw from, with a bound of its own."""
        if not 1 <= steps <= self.noise.steps:
            raise InputError(f"Got steps={steps}; expected 1 to {self.noise.steps}.")
        times = [round(self.noise.steps * i / steps) for i in range(steps + 1)]
        return D3PM(self.model, self.noise, self.hybrid, times)

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """An estimate of `elbo` from one random step a row, minus what `hybrid` adds. Gaps are for absorbing noise only."""
        if not self.noise.absorbing and not shown.all():
            raise InputError(
                "Rows with gaps can be learned with absorbing noise only: a gap is what it makes of a code. Use Absorbing."
            )
        step = (((torch.arange(len(x)) + torch.rand(1, generator=rng)) / len(x)).frac() * self.steps).long() + 1
        state = torch.where(shown, self.noised(x.long(), step, rng), self.levels)
        kl, cross_entropy = self.terms(x, state, step)
        cost = self.steps * (kl + self.hybrid * cross_entropy)
        return -torch.where(shown, cost, 0.0).sum(-1) - self.prior_cost(x, shown)

    @torch.no_grad()
    def elbo(self, x: Values, rng: Generator, draws: int = 1) -> Float[Tensor, " batch"]:
        """The bound of log p(x) in nats: all steps, each with `draws` noised rows, and what the end of the noise still tells."""
        self.schema.check(x, torch.ones_like(x, dtype=torch.bool))
        everything = torch.ones_like(x, dtype=torch.bool)
        return self._elbo(x, ~everything, everything, rng, draws) - self.prior_cost(x, everything)

    @torch.no_grad()
    def conditional_elbo(self, x: Values, question: Question, rng: Generator, draws: int = 1) -> Float[Tensor, " batch"]:
        """A bound of log p(target | given) in nats; absorbing noise only."""
        if not self.noise.absorbing:
            raise UnavailableError(
                f"A D3PM with {type(self.noise).__name__} noise bounds log p of whole rows: it has no conditional "
                "likelihood, and a difference of two bounds bounds nothing. Use Absorbing, or `fill`, which is approximate."
            )
        check_question(self.schema, x, question)
        self.schema.check(x, question.given | question.target)
        return self._elbo(x, question.given, question.target, rng, draws)

    def _elbo(self, x: Values, given: Mask, target: Mask, rng: Generator, draws: int) -> Float[Tensor, " batch"]:
        codes, total = torch.where(given | target, x, 0.0).long(), torch.zeros(len(x))
        for number in range(1, self.steps + 1):
            step = torch.full((len(x),), number)
            for _ in range(draws):
                noised = torch.where(target, self.noised(codes, step, rng), self.levels)
                kl = self.terms(codes.to(x.dtype), torch.where(given, codes, noised), step)[0]
                total = total - torch.where(target, kl, 0.0).sum(-1) / draws
        return total

    def terms(self, x: Values, state: States, step: Steps) -> tuple[Values, Values]:
        """KL(q(x_{t-1} | x_t, x_0) || p(x_{t-1} | x_t)) of every variable, and the cross-entropy of the guess of x_0, in nats."""
        kl, cross_entropy = torch.zeros_like(x), torch.zeros_like(x)
        for guess in self.guesses(state, step):
            kernel, here = self.kernel(guess.levels), state[:, guess.variables]
            code = x[:, guess.variables].long()
            known = log_or_zero(F.one_hot(code, len(kernel.prior)).to(guess.log_p.dtype))
            jump = kernel.log_jump(here, step).to(guess.log_p.dtype)
            right = (jump + kernel.log_ahead(known, step - 1)).log_softmax(-1)
            found = (jump + kernel.log_ahead(guess.log_p, step - 1)).log_softmax(-1)
            kl = kl.index_copy(1, guess.variables, (right.exp() * (right - found)).sum(-1).to(x.dtype))
            missed = -guess.log_p.gather(-1, code[..., None]).squeeze(-1)
            cross_entropy = cross_entropy.index_copy(1, guess.variables, missed.to(x.dtype))
        return kl, cross_entropy

    def guesses(self, state: States, step: Steps) -> Iterator[Guess]:
        """What the network says of x_0, variables with equally many levels together; absorbed is none of the codes."""
        seen = state < self.levels
        timed = not self.noise.absorbing
        conditionals = self.model(torch.where(seen, state, 0).float(), seen, self.times[step][:, None] if timed else None)
        for index, levels, log_p in code_tables(conditionals):
            states = len(self.kernel(levels).prior)
            yield Guess(index, levels, F.pad(log_p, (0, states - levels), value=LOG_ZERO))

    def prior_cost(self, x: Values, shown: Mask) -> Float[Tensor, " batch"]:
        """KL(q(x_T | x_0) || p(x_T)): what noise still tells of a row when all steps are done, in nats."""
        cost = torch.zeros_like(x)
        for levels in map(int, self.kernels):
            kernel = self.kernel(levels)
            every = log_or_zero(F.one_hot(torch.arange(levels), len(kernel.prior)).double())[None]
            left = kernel.log_ahead(every, torch.tensor([self.steps])).squeeze(0)
            table = (left.exp() * (left - log_or_zero(kernel.prior.double()))).sum(-1)
            index = (self.levels == levels).nonzero().squeeze(-1)
            cost[:, index] = table[torch.where(shown, x, 0.0)[:, index].long()].to(x.dtype)
        return torch.where(shown, cost, 0.0).sum(-1)

    @torch.no_grad()
    def sample(self, n: int, rng: Generator) -> Values:
        """New rows, one network call a step."""
        nothing = torch.zeros(n, len(self.schema))
        return self.fill(nothing, nothing.bool(), rng)

    @torch.no_grad()
    def fill(self, x: Values, known: Mask, rng: Generator, resample: int = 1) -> Values:
        """Rows with what is unknown drawn given the rest: after every step the known codes, noised as much, are put in.

        Exact (for this many steps) with absorbing noise, where known codes are simply never hidden. With any other it is an
        approximation: what is drawn does not know the code before its noise. `resample` repeats every step that often, each time
        after noising the row again, so that both parts can agree.
        """
        self.schema.check(x, known)
        if resample < 1:
            raise InputError(f"Got resample={resample}; expected at least 1.")
        codes = torch.where(known, x, 0.0).long()
        state = torch.where(known, self._known(codes, self.steps, rng), self._drawn_prior(len(x), rng))
        for number in range(self.steps, 0, -1):
            step = torch.full((len(x),), number)
            for left in reversed(range(resample)):
                before = torch.where(known, self._known(codes, number - 1, rng), self.one_step_back(state, step, rng))
                if left:
                    state = torch.where(known, self._known(codes, number, rng), self.moved(before, step, rng))
            state = before
        return torch.where(known, x, state.to(x.dtype))

    def one_step_back(self, state: States, step: Steps, rng: Generator) -> States:
        """A draw of x_{t-1} given x_t, every variable alone."""
        out = state.clone()
        for guess in self.guesses(state, step):
            kernel = self.kernel(guess.levels)
            log_p = kernel.log_jump(state[:, guess.variables], step) + kernel.log_ahead(guess.log_p, step - 1)
            out[:, guess.variables] = draw_code(log_p, rng)
        return out

    def noised(self, x: States, step: Steps, rng: Generator) -> States:
        """A draw of x_t given x_0."""
        return self._by_levels(x, lambda kernel, part: kernel.noised(part, step, rng))

    def moved(self, x: States, step: Steps, rng: Generator) -> States:
        """A draw of x_t given x_{t-1}."""
        return self._by_levels(x, lambda kernel, part: kernel.moved(part, step, rng))

    def _known(self, x: States, number: int, rng: Generator) -> States:
        """Known codes beside a row after so many steps."""
        return x if self.noise.absorbing else self.noised(x, torch.full((len(x),), number), rng)

    def _drawn_prior(self, rows: int, rng: Generator) -> States:
        x = torch.zeros(rows, len(self.schema), dtype=torch.long)
        return self._by_levels(x, lambda kernel, part: draw_place(kernel.prior.expand(*part.shape, -1), rng))

    def _by_levels(self, x: States, draw: Callable[[Kernel, Tensor], Tensor]) -> States:
        out = x.clone()
        for levels in map(int, self.kernels):
            index = (self.levels == levels).nonzero().squeeze(-1)
            out[:, index] = draw(self.kernel(levels), x[:, index])
        return out


def code_tables(conditionals: Conditionals) -> Iterator[tuple[Int[Tensor, " part"], int, Float[Tensor, "batch part level"]]]:
    """Variables, how many levels each of them has, and the log probability of every code."""
    for part in conditionals.parts:
        sizes = torch.tensor(part.levels or [0] * len(part.index))
        for size in sizes.unique().tolist():
            places = (sizes == size).nonzero().squeeze(-1)
            distribution = part.at((slice(None), places))
            assert isinstance(distribution, DiscreteDistribution)
            log_p = distribution.log_pmf()
            log_p = log_p[..., :size] if size else log_p
            yield part.index[places], log_p.shape[-1], log_p.clamp(min=LOG_ZERO)


def scores_of(schema: Schema) -> list[Head]:
    """A score for every code, whatever the codes mean."""
    return [Categorical(levels) for levels in code_levels(schema)]


def code_levels(schema: Schema) -> list[int]:
    """How many codes every variable has; none may be a number."""
    levels = [levels_of(variable.domain) for variable in schema]
    if min(levels) < 2:
        wrong = schema.names[levels.index(min(levels))]
        raise InputError(f"D3PM is a model of codes; variable {wrong!r} is a number. Cut it into bins first.")
    return levels


def context_of(noise: Noise) -> tuple[int, ...]:
    """The network is told the time, unless what is hidden tells as much."""
    return () if noise.absorbing else (noise.steps + 1,)
