"""How much measurements would tell about the targets: conditional mutual information in nats, exact or drawn."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..distributions import DiscreteDistribution, Distribution
from ..errors import InputError
from ..models.any_order import Model
from ..models.conditionals import Conditionals
from ..schema import Mask, Schema, Values, levels_of
from .joint_draws import (
    Columns,
    DrawPlan,
    Draws,
    Gains,
    JointDraws,
    Keep,
    OutcomeBins,
    divergence,
    draw_jointly,
    draw_targets,
    plan_draws,
)
from .sampling import Estimate

MOST_DRAWS, MOST_BINNED = 128, 512  # rows of one model call: the distributions of a memory hold a number for every row remembered
RARE = 1.5  # how much more than it tells on average a rare outcome may tell about the targets

Sets = Sequence[tuple[int, ...]]


class Information(NamedTuple):
    """I(targets; candidate | known) for every row and candidate, in nats, and how far it may be off: its standard error.

    An exact value has standard error 0. The error is that of the draws: how well the model knows the joint is not in it.
    """

    value: Float[Tensor, "batch candidate"]
    standard_error: Float[Tensor, "batch candidate"]


@dataclass(frozen=True)
class Estimator(ABC):
    """How the expectation over what has not been measured is taken; `draws` draws for every row."""

    draws: int = 16
    at_once: ClassVar[int] = MOST_DRAWS

    def __post_init__(self) -> None:
        if self.draws < 2:
            raise InputError(
                f"{type(self).__name__} got draws={self.draws}; expected at least 2, since the standard error comes from "
                "their spread."
            )

    @abstractmethod
    def estimate(self, model: Model, x: Values, given: Mask, targets: tuple[int, ...], sets: Sets, rng: Generator) -> Information:
        """The information of every set, for rows that were checked."""


@dataclass(frozen=True)
class JointDrawsEstimator(Estimator):
    """The draws that a row may turn out are drawn once, and shared by all candidates."""

    def estimate(self, model: Model, x: Values, given: Mask, targets: tuple[int, ...], sets: Sets, rng: Generator) -> Information:
        plan = plan_draws(model.schema, targets, self.draws, all(self.exact(model.schema, members) for members in sets))
        parts = []
        for rows in torch.arange(len(x)).split(max(1, self.at_once // plan.draws)):
            futures = draw_jointly(model, x[rows], given[rows], targets, sets, plan, rng, self.keep(model.schema))
            found = _summary(self.terms(model, futures, sets, rng), futures.weight, plan)
            drawn = [plan.levels == 1 or not self.exact(model.schema, members) for members in sets]
            told = most_told(model, x[rows], given[rows], targets, sets, drawn) / plan.draws
            parts.append(Information(found.value, found.standard_error.hypot(told)))
        return Information(*(torch.cat(column) for column in zip(*parts, strict=True)))

    @abstractmethod
    def terms(self, model: Model, futures: JointDraws, sets: Sets, rng: Generator) -> Gains:
        """What every set tells in every way: (row, way, set). Their weighted mean over the draws is the information."""

    def keep(self, schema: Schema) -> Keep:
        """What of the candidates' distributions is kept to compare them."""
        return Columns.of

    @abstractmethod
    def exact(self, schema: Schema, members: tuple[int, ...]) -> bool:
        """Whether the candidate's values are summed over, not drawn."""


@dataclass(frozen=True)
class CandidateEstimator(JointDrawsEstimator):
    r"""How far the distribution of the candidate moves when the targets become known.

    .. math:: I(x_T; x_A \mid x_G) = \mathbb{E}_{x_T} \, KL(p(x_A \mid x_T, x_G) \,\|\, p(x_A \mid x_G))

    Information is symmetric, and a model gives the distributions of all candidates at once: every way of a row needs
    one model call,
    however many single candidates there are. Larger sets go one variable after the other and share common beginnings.
    """

    def terms(self, model: Model, futures: JointDraws, sets: Sets, rng: Generator) -> Gains:
        total = torch.zeros(*futures.y.shape[:2], len(sets), dtype=torch.float64, device=futures.y.device)
        for prefix, steps in _steps(sets).items():
            variables = futures.after.variables if not prefix else tuple(sorted(steps))
            gains = self._gains(model, futures, prefix, variables, rng)
            for variable, places in steps.items():
                total[:, :, places] += gains[:, :, variables.index(variable)].unsqueeze(-1)
        return total

    def _gains(
        self, model: Model, futures: JointDraws, prefix: tuple[int, ...], variables: tuple[int, ...], rng: Generator
    ) -> Gains:
        """Of every variable, when those of the prefix are known; nothing from what is known already."""
        hidden = ~futures.given[:, list(variables)]
        before, after, keep = futures.before, futures.after, self.keep(model.schema)
        if prefix:
            rows, draws = futures.y.flatten(0, 1), futures.y.shape[1]
            before = keep(model(rows, futures.known(*prefix)), variables, draws, False)
            after = keep(model(rows, futures.known(*prefix, *futures.targets)), variables, draws, False)
        if isinstance(after, OutcomeBins) and isinstance(before, OutcomeBins):
            return after.divergence(before) * hidden.unsqueeze(1)
        assert isinstance(after, Columns)
        assert isinstance(before, Columns)
        return after.divergence(before, hidden, rng)


@final
@dataclass(frozen=True)
class CandidateRatio(CandidateEstimator):
    """Unbiased: numbers are compared at values drawn from their distributions."""

    def exact(self, schema: Schema, members: tuple[int, ...]) -> bool:
        return len(members) == 1 and levels_of(schema.variables[members[0]].domain) > 0


@final
@dataclass(frozen=True)
class CandidateBins(CandidateEstimator):
    """The fastest one: numbers are compared bin by bin, at some thirty places of their scale, and not drawn.

    What is finer than a bin is not counted, so that it tells a little less than all; and it is less noisy than draws are.
    """

    draws: int = 8
    at_once: ClassVar[int] = MOST_BINNED

    def keep(self, schema: Schema) -> Keep:
        return lambda distributions, variables, draws, shared: OutcomeBins.of(schema, distributions, variables, draws, shared)

    def exact(self, schema: Schema, members: tuple[int, ...]) -> bool:
        return len(members) == 1


def _steps(sets: Sets) -> dict[tuple[int, ...], dict[int, list[int]]]:
    """{what of a set is known: {what comes next: the places of the sets that take this step}}."""
    steps: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for place, members in enumerate(sets):
        for k, variable in enumerate(members):
            steps.setdefault(members[:k], {}).setdefault(variable, []).append(place)
    return steps


@dataclass(frozen=True)
class TargetEstimator(JointDrawsEstimator):
    """Asks for the targets given every candidate: a model call for every way, candidate and target."""

    @abstractmethod
    def gain(self, after: Distribution, before: Distribution, rng: Generator) -> Float[Tensor, "row way"]:
        """What is known more about one target after a measurement than before."""

    def terms(self, model: Model, futures: JointDraws, sets: Sets, rng: Generator) -> Gains:
        y = futures.filled(rng)
        before = [
            futures.first,
            *(distribution_of_target(model, futures, y, (), place) for place in range(1, len(futures.targets))),
        ]
        total = torch.zeros(*y.shape[:2], len(sets), dtype=torch.float64, device=y.device)
        for place, members in enumerate(sets):
            hidden = (~futures.given[:, list(members)]).any(-1, keepdim=True)
            for weight, outcome in self._outcomes(model.schema, futures, y, members):
                after = [distribution_of_target(model, futures, outcome, members, k) for k in range(len(before))]
                gain = torch.stack([self.gain(a, b, rng) for a, b in zip(after, before, strict=True)]).sum(0)
                total[:, :, place] += torch.where(hidden & (weight > 0), weight * gain, 0.0)
        return total

    def exact(self, schema: Schema, members: tuple[int, ...]) -> bool:
        return len(members) == 1 and 0 < levels_of(schema.variables[members[0]].domain) <= self.draws

    def _outcomes(
        self, schema: Schema, futures: JointDraws, drawn: Draws, members: tuple[int, ...]
    ) -> Iterator[tuple[Float[Tensor, "row way"], Draws]]:
        """The values a set is given, and their weight: those drawn, or every level with its probability."""
        if not self.exact(schema, members):
            yield torch.ones_like(drawn[:, :, 0]), drawn
            return
        (variable,) = members
        assert isinstance(futures.after, Columns)
        distribution = futures.after.distribution(variable)
        assert isinstance(distribution, DiscreteDistribution)
        for code, weight in enumerate(distribution.pmf().unbind(-1)):
            y = drawn.clone()
            y[:, :, variable] = torch.where(futures.given[:, variable, None], y[:, :, variable], float(code))
            yield weight, y


def distribution_of_target(model: Model, futures: JointDraws, y: Draws, members: tuple[int, ...], place: int) -> Distribution:
    """Of one target when these members and the targets before it are known: cells (row, way)."""
    known = futures.known(*members, *futures.targets[:place])
    return Columns.of(model(y.flatten(0, 1), known), futures.targets[place : place + 1], y.shape[1]).distribution(
        futures.targets[place]
    )


@final
@dataclass(frozen=True)
class TargetRatio(TargetEstimator):
    r"""How far the distributions of the targets move when the candidate becomes known: the reward of ACFlow-DFA, with less noise.

    .. math:: I(x_T; x_A \mid x_G) = \mathbb{E} \log \frac{p(x_T \mid x_A, x_G)}{p(x_T \mid x_G)}
    """

    def gain(self, after: Distribution, before: Distribution, rng: Generator) -> Float[Tensor, "row way"]:
        return divergence(after, before, rng)


@final
@dataclass(frozen=True)
class EntropyDifference(TargetEstimator):
    r"""How much less uncertain the targets become, with the entropy of every distribution as the distribution itself gives it.

    .. math:: I(x_T; x_A \mid x_G) = H(x_T \mid x_G) - \mathbb{E} \, H(x_T \mid x_A, x_G)

    Before and after are taken along the same draws. Slow where entropies are: for numbers on a lattice.
    """

    def gain(self, after: Distribution, before: Distribution, rng: Generator) -> Float[Tensor, "row way"]:
        return before.entropy() - after.entropy()


@torch.no_grad()
def information(
    model: Model,
    x: Tensor,
    given: Tensor,
    target: Sequence[int],
    candidates: Sequence[Sequence[int]],
    rng: Generator,
    *,
    estimator: Estimator = CandidateRatio(),
) -> Information:
    """What knowing each candidate would tell about the targets, on average over what it may turn out to be.

    A candidate is a set of variables that would become known together. What a row knows already of a candidate tells nothing
    more. With a single target and single candidates, all of few levels, the answer is exact.
    """
    targets, sets = check_sets(model.schema, x, given, target, candidates)
    if not len(x):
        return Information(x.new_zeros(0, len(sets)), x.new_zeros(0, len(sets)))
    return estimator.estimate(model, x, given, targets, sets, rng)


@torch.no_grad()
def uncertainty(model: Model, x: Tensor, given: Tensor, target: Sequence[int], rng: Generator, *, draws: int = 64) -> Estimate:
    """The entropy of the targets given what is known, in nats: exact for one target of codes, else minus log p of draws.

    `entropy` sums the entropies of distributions instead: less noise, but slow for numbers on a lattice.
    """
    targets = check_targets(model.schema, x, given, target)
    if draws < 2:
        raise InputError(f"uncertainty got draws={draws}; expected at least 2, since the standard error comes from their spread.")
    if not len(x):
        return Estimate(x.new_zeros(0), x.new_zeros(0))
    if len(targets) == 1 and levels_of(model.schema.variables[targets[0]].domain):
        chunks = torch.arange(len(x)).split(MOST_DRAWS)
        value = torch.cat([model(x[rows], given[rows]).distribution(targets[0]).entropy() for rows in chunks])
        return Estimate(value, torch.zeros_like(value))
    parts = [
        -draw_targets(model, x[rows], given[rows], targets, draws, rng).log_p()
        for rows in torch.arange(len(x)).split(max(1, MOST_DRAWS // draws))
    ]
    return Estimate(torch.cat(parts).mean(-1), torch.cat(parts).std(-1) / draws**0.5)


def most_told(
    model: Model, x: Values, given: Mask, targets: tuple[int, ...], sets: Sets, drawn: Sequence[bool]
) -> Float[Tensor, "row set"]:
    """What every set that is drawn can tell at most: the entropy of the targets, or its own; 0 where both are numbers'.

    Few draws of codes may all be alike, or miss a rare one that tells much: their spread knows nothing of it. So what a set
    can tell at most counts as one more draw that is off by so much.
    """
    levels = [levels_of(variable.domain) for variable in model.schema]
    told = torch.zeros(len(x), len(sets), dtype=torch.float64, device=x.device)
    if not any(drawn):
        return told
    conditionals = model(torch.where(given, x, 0.0), given)

    def entropy(members: Sequence[int]) -> Tensor | None:
        if not all(levels[member] for member in members):
            return None
        each = [conditionals.distribution(v).entropy().double().masked_fill(given[:, v], 0.0) for v in members]
        return torch.stack(each).sum(0)

    of_targets = entropy(targets)
    for place, members in enumerate(sets):
        bounds = [bound for bound in (of_targets, entropy(members)) if bound is not None] if drawn[place] else []
        if bounds:
            told[:, place] = torch.stack(bounds).amin(0)
    return told


def _summary(terms: Gains, weight: Float[Tensor, "row level"], plan: DrawPlan) -> Information:
    """The weighted mean, and its standard error from the spread inside every level."""
    terms = terms.unflatten(1, (plan.levels, plan.repeats))  # (row, level, repeat, set)
    weight = weight.unsqueeze(-1)
    terms = torch.where(weight.unsqueeze(-1) > 0, terms, 0.0)  # an impossible level has no distributions
    value = (weight * terms.mean(2)).sum(1)
    if plan.repeats == 1:
        return Information(value, torch.zeros_like(value))
    return Information(value, ((weight**2 * terms.var(2)).sum(1) / plan.repeats).sqrt())


def check_sets(
    schema: Schema, x: Any, given: Any, target: Sequence[int], candidates: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The targets and the sets, after refusing what does not fit the rows or contradicts itself."""
    targets = check_targets(schema, x, given, target)
    if not len(candidates):
        raise InputError("There is nothing to choose from: `candidates` is empty. Give at least one set of variables.")
    sets = [_variables(schema, f"Candidate {place}", members) for place, members in enumerate(candidates)]
    for place, members in enumerate(sets):
        both = sorted(set(members) & set(targets))
        if both:
            name = schema.names[both[0]]
            raise InputError(
                f"Candidate {place} contains the target {name!r}. A target cannot be measured: remove one of the two."
            )
    return targets, sets


def check_targets(schema: Schema, x: Any, given: Any, target: Sequence[int]) -> tuple[int, ...]:
    """The targets, none of which may be known."""
    schema.check(x, given)
    targets = _variables(schema, "The target", target)
    known = given[:, list(targets)].nonzero()
    if len(known):
        row, place = known[0].tolist()
        name = schema.names[targets[place]]
        raise InputError(f"The target {name!r} is already known in row {row}: nothing can be learned about it. Leave it out.")
    return targets


def _variables(schema: Schema, what: str, numbers: Sequence[int]) -> tuple[int, ...]:
    """Numbers of variables, each once."""
    chosen = tuple(int(number) for number in numbers)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= number < len(schema) for number in chosen):
        raise InputError(
            f"{what} is {list(chosen)}; expected one or more different numbers of variables, 0 .. {len(schema) - 1}. "
            "schema.index(name) gives the number of a name."
        )
    return chosen


class Outcomes(NamedTuple):
    """How a set may turn out: rows with its values, and how likely each way is."""

    y: Draws
    weight: Float[Tensor, "row way"]
    drawn: bool

    def summary(self, moved: Float[Tensor, "row way"], hidden: Bool[Tensor, " row"]) -> Information:
        """The mean over the draws, and its standard error; an impossible code has no distributions, what is known
        tells nothing.
        """
        moved = torch.where(self.weight > 0, moved, 0.0)
        value = (self.weight * moved).sum(-1)
        error = moved.std(-1) / moved.shape[1] ** 0.5 if self.drawn else torch.zeros_like(value)
        return Information(torch.where(hidden, value, 0.0), torch.where(hidden, error, 0.0))


@final
@dataclass(frozen=True)
class TargetBins(Estimator):
    r"""How far the distributions of the targets move when the candidate becomes known, numbers compared bin by bin.

    .. math:: I(x_T; x_A \mid x_G) = \mathbb{E}_{x_A} \, KL(p(x_T \mid x_A, x_G) \,\|\, p(x_T \mid x_G))

    It asks the model what it will say about the targets, where `CandidateBins` asks what the targets say about the candidate:
    in a trained model the two differ, and this is the one that matters for guessing the targets. A candidate of few
    codes, for a single target, is not drawn: every code, or every combination of codes, is visited, with its probability.
    """

    draws: int = 8
    at_once: ClassVar[int] = MOST_BINNED

    def estimate(self, model: Model, x: Values, given: Mask, targets: tuple[int, ...], sets: Sets, rng: Generator) -> Information:
        parts = []
        for rows in torch.arange(len(x)).split(max(1, self.at_once // self.draws)):
            start = Start.of(model, x[rows], given[rows], targets)
            together = max(1, self.at_once // self.draws // len(rows))  # sets that share a call of the model
            told = [self._some(model, start, sets[k : k + together], rng) for k in range(0, len(sets), together)]
            value, error = (torch.cat(column, dim=-1) for column in zip(*told, strict=True))
            drawn = [not self._counted(model.schema, targets, members) for members in sets]
            error = error.hypot(RARE * most_told(model, x[rows], given[rows], targets, sets, drawn) / self.draws)
            parts.append([value, error])
        return Information(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _some(self, model: Model, start: "Start", sets: Sets, rng: Generator) -> Information:
        """Of some sets, for every row; nothing where all of a set is known."""
        outcomes = self._outcomes(model, start, sets, rng)
        owner = torch.cat([torch.arange(len(start.x)).repeat_interleave(found.weight.shape[1]) for found in outcomes])
        owner = owner.to(start.x.device)
        measured = start.given[owner]
        for members, rows in zip(sets, torch.arange(len(owner)).split([found.weight.numel() for found in outcomes]), strict=True):
            measured[rows[:, None], list(members)] = True
        total = self._moved(model, start, owner, torch.cat([found.y.flatten(0, 1) for found in outcomes]), measured, rng)
        each = total.split([found.weight.numel() for found in outcomes])
        columns = [
            found.summary(moved.view(found.weight.shape), (~start.given[:, list(members)]).any(-1))
            for found, moved, members in zip(outcomes, each, sets, strict=True)
        ]
        return Information(*(torch.stack(column, dim=-1) for column in zip(*columns, strict=True)))

    def _counted(self, schema: Schema, targets: tuple[int, ...], members: tuple[int, ...]) -> bool:
        """Whether all that a set may turn out to be is visited."""
        ways = math.prod(levels_of(schema.variables[member].domain) for member in members)
        return len(targets) == 1 and 0 < ways <= self.draws

    def _combinations(self, model: Model, start: "Start", members: tuple[int, ...], levels: Sequence[int]) -> Outcomes:
        """All combinations of codes of a set, and how likely they are: one variable after the other."""
        codes = torch.cartesian_prod(*(torch.arange(levels[member], device=start.x.device) for member in members))
        y, known = start.x.unsqueeze(1).repeat(1, len(codes), 1), start.given.unsqueeze(1).repeat(1, len(codes), 1)
        weight = torch.ones_like(y[:, :, 0], dtype=torch.float64)
        for place, member in enumerate(members):
            here, fixed = codes[:, place].expand(len(y), -1), start.given[:, member, None]
            found = model(y.flatten(0, 1), known.flatten(0, 1)).distribution(member)
            assert isinstance(found, DiscreteDistribution)
            probability = found.pmf().unflatten(0, here.shape).gather(-1, here.unsqueeze(-1)).squeeze(-1)
            weight *= torch.where(fixed, (y[:, :, member] == here).to(weight.dtype), probability.double())
            y[:, :, member] = torch.where(fixed, y[:, :, member], here.to(y.dtype))
            known[:, :, member] = True
        return Outcomes(y, weight, drawn=False)

    def _moved(
        self, model: Model, start: "Start", owner: Int[Tensor, " way"], y: Values, measured: Mask, rng: Generator
    ) -> Float[Tensor, " way"]:
        """How far the distributions of the targets move, one after the other, when what is measured becomes known."""
        total, known = torch.zeros(len(y), dtype=torch.float64, device=y.device), start.given[owner]
        for place, target in enumerate(start.targets):
            distributions = model(y, measured)
            before = (
                start.first.of_rows(owner) if place == 0 else OutcomeBins.of(model.schema, model(y, known), [target], draws=1)
            )
            total += OutcomeBins.of(model.schema, distributions, [target], draws=1).divergence(before)[:, 0, 0]
            if place + 1 < len(start.targets):
                y[:, target] = distributions.distribution(target).sample(rng).to(y.dtype)
                known[:, target] = measured[:, target] = True
        return total

    def _outcomes(self, model: Model, start: "Start", sets: Sets, rng: Generator) -> list[Outcomes]:
        """Every code of few, draws of all other single variables, drawn together, and draws of larger sets."""
        levels = [levels_of(variable.domain) for variable in model.schema]
        counted = [members for members in sets if self._counted(model.schema, start.targets, members)]
        alone = [members[0] for members in sets if len(members) == 1 and members not in counted]
        together = Columns.of(start.distributions, alone, self.draws, shared=True).sample(rng).unbind(-1) if alone else ()
        drawn = dict(zip(alone, together, strict=True))
        codes_of = Columns.of(start.distributions, [members[0] for members in counted if len(members) == 1], 1, shared=True)
        out = []
        for members in sets:
            if members in counted and len(members) > 1:
                out.append(self._combinations(model, start, members, levels))
                continue
            if members in counted:
                distribution = codes_of.distribution(members[0])
                assert isinstance(distribution, DiscreteDistribution)
                codes = torch.arange(levels[members[0]], device=start.x.device, dtype=start.x.dtype)
                y = start.with_value(members[0], codes.expand(len(start.x), -1))
                out.append(Outcomes(y, distribution.pmf()[:, 0], drawn=False))
                continue
            if len(members) == 1:
                y = start.with_value(members[0], drawn[members[0]])
            else:
                y = draw_targets(model, start.x, start.given, members, self.draws, rng).y
            out.append(Outcomes(y, torch.full_like(y[:, :, 0], 1 / self.draws), drawn=True))
        return out


@final
@dataclass(frozen=True)
class Start:
    """Some rows before any measurement, and what is the same for all candidates."""

    x: Values  # 0 where nothing is known
    given: Mask
    targets: tuple[int, ...]
    distributions: Conditionals
    first: OutcomeBins  # of the first target

    @classmethod
    def of(cls, model: Model, x: Values, given: Mask, targets: tuple[int, ...]) -> "Start":
        x = torch.where(given, x, 0.0)
        distributions = model(x, given)
        return cls(x, given, targets, distributions, OutcomeBins.of(model.schema, distributions, targets[:1], draws=1))

    def with_value(self, variable: int, value: Float[Tensor, "row way"]) -> Draws:
        """The rows, with these values of one variable where it is not known."""
        y = self.x.unsqueeze(1).repeat(1, value.shape[1], 1)
        y[:, :, variable] = torch.where(self.given[:, variable, None], y[:, :, variable], value.to(y.dtype))
        return y
