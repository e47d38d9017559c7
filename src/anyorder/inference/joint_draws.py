"""How the targets and the candidates of a row may turn out: drawn once, and shared by all that is compared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..distributions import CategoricalDistribution, DiscreteDistribution, Distribution
from ..errors import InputError
from ..models.any_order import Model
from ..models.conditionals import Conditionals, Distributions
from ..schema import Mask, Real, Recorded, Schema, Values, Variable, levels_of

Draws = Float[Tensor, "row way variable"]
Gains = Float[Tensor, "row way place"]
LEAST_PROBABILITY = 1e-30


@final
@dataclass(frozen=True)
class Columns:
    """The distributions of some variables, kept: a memory makes a distribution anew whenever it is asked for one, and
    that is what costs.
    """

    variables: tuple[int, ...]
    draws: int
    parts: tuple[
        tuple[list[int], Distribution], ...
    ]  # places among `variables`, and their distributions: cells (row, way, place)
    levels: Mapping[int, int]  # how many codes the variables at some places have, where they share a longer table

    @classmethod
    def of(cls, conditionals: Conditionals, variables: Sequence[int], draws: int, shared: bool = False) -> "Columns":
        """From distributions of every way of every row, or, if `shared`, from distributions of every row that hold for
        all its draws.
        """
        change = _repeated(draws) if shared else lambda t: t.unflatten(0, (-1, draws))
        found, levels = list(_parts_with(conditionals, variables)), dict[int, int]()
        for part, mine, inside in found:
            if part.levels:
                levels |= {place: part.levels[k] for place, k in zip(mine, inside.tolist(), strict=True)}
        parts = tuple((mine, part.at((slice(None), inside)).map_tensors(change)) for part, mine, inside in found)
        return cls(tuple(variables), draws, parts, levels)

    def distribution(self, variable: int) -> Distribution:
        """The distribution of one of the variables: cells (row, way)."""
        place = self.variables.index(variable)
        mine, distribution = next((mine, distribution) for mine, distribution in self.parts if place in mine)
        alone = distribution.map_tensors(lambda t: t[:, :, mine.index(place)])
        if isinstance(alone, DiscreteDistribution) and place in self.levels:
            return CategoricalDistribution(alone.log_pmf()[..., : self.levels[place]])
        return alone

    def sample(self, rng: Generator) -> Gains:
        return _join([distribution.sample(rng) for _, distribution in self.parts], self.parts)

    def divergence(self, other: "Columns", at: Bool[Tensor, "row place"], rng: Generator) -> Gains:
        """How far these distributions are from others of the same variables, in nats; only where `at`, and 0 elsewhere."""
        pairs = zip(self.parts, other.parts, strict=True)
        cells = at.unsqueeze(1).expand(-1, self.draws, -1)
        return _join(
            [_divergence_at(distribution, theirs, cells[:, :, mine], rng) for (mine, distribution), (_, theirs) in pairs],
            self.parts,
        )


@final
@dataclass(frozen=True)
class OutcomeBins:
    """How likely some variables are to lie in each of their bins: coarser than their distributions, and much faster."""

    variables: tuple[int, ...]
    parts: tuple[tuple[list[int], Float[Tensor, "row way _ _"]], ...]  # places among `variables`, and their masses

    @classmethod
    def of(
        cls, schema: Schema, conditionals: Conditionals, variables: Sequence[int], draws: int, shared: bool = False
    ) -> "OutcomeBins":
        """As `Columns.of`; the bins of a number lie between its knots, those of codes are the codes."""
        change = _repeated(draws) if shared else lambda t: t.unflatten(0, (-1, draws))
        parts = []
        for part, mine, inside in _parts_with(conditionals, variables):
            edges = bin_edges([schema.variables[variables[place]] for place in mine])
            parts.append((mine, change(part.masses(inside, edges))))
        return cls(tuple(variables), tuple(parts))

    def of_rows(self, rows: Int[Tensor, " some"]) -> "OutcomeBins":
        """The same of some rows, each as often as it is named."""
        return OutcomeBins(self.variables, tuple((mine, mass[rows]) for mine, mass in self.parts))

    def divergence(self, other: "OutcomeBins") -> Gains:
        """How far these are from others of the same variables, in nats, summed over the bins: nothing is drawn."""
        found = [
            torch.where(p > 0, p * (p.clamp(min=LEAST_PROBABILITY) / q.clamp(min=LEAST_PROBABILITY)).log(), 0.0).sum(-1)
            for (_, p), (_, q) in zip(self.parts, other.parts, strict=True)
        ]
        return _join(found, self.parts)


def _parts_with(
    conditionals: Conditionals, variables: Sequence[int]
) -> Iterator[tuple[Distributions, list[int], Int[Tensor, " place"]]]:
    """The parts that hold some of these variables, their places among the variables, and those in the part."""
    for part in conditionals.parts:
        inside = {variable: place for place, variable in enumerate(part.index.tolist())}
        mine = [place for place, variable in enumerate(variables) if variable in inside]
        if mine:
            yield part, mine, torch.tensor([inside[variables[place]] for place in mine])


def _join(answers: list[Tensor], parts: Sequence[tuple[list[int], object]]) -> Gains:
    """Answers of several parts, in the order of the variables."""
    places = torch.tensor([place for mine, _ in parts for place in mine])
    return torch.cat(answers, dim=-1)[:, :, places.argsort()]


def bin_edges(variables: Sequence[Variable]) -> Float[Tensor, "variable edge"]:
    """Between the knots of a number and at two places between neighbours, halfway between values it can take."""
    rows = []
    for variable in variables:
        if isinstance(variable.domain, Real):
            raise InputError(f"Bins needs numbers with a precision, and {variable.name!r} is Real(). Use CandidateRatio.")
        if not isinstance(variable.domain, Recorded):
            rows.append(torch.zeros(1))
            continue
        knots = torch.tensor(variable.domain.knots or (0.0,), dtype=torch.float64)
        fine = torch.lerp(knots[:-1, None], knots[1:, None], torch.tensor([0.0, 1 / 3, 2 / 3], dtype=torch.float64))
        steps = torch.cat([fine.flatten(), knots[-1:]]) / variable.domain.spacing
        rows.append(((steps - 1e-3).ceil().unique() * variable.domain.spacing - variable.domain.spacing / 2).float())
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1e30)


def divergence(distribution: Distribution, other: Distribution, rng: Generator) -> Float[Tensor, "*cells"]:
    r"""The relative entropy of two distributions: exact for codes; for numbers an unbiased guess from one draw of each
    distribution.

    .. math:: KL(p \| q) = \int (p + q) \left[ \ell \, \sigma(\ell) - \tanh(\ell / 2) \right], \quad \ell = \log p / q

    The usual guess, :math:`\ell` at a draw of p, is as noisy as the root of twice the divergence; what is in brackets
    (p log p/q - p + q, over p + q) is never negative and for near distributions about as noisy as the divergence itself is large.
    """
    if isinstance(distribution, DiscreteDistribution) and isinstance(other, DiscreteDistribution):
        log_p, log_q = distribution.log_pmf(), other.log_pmf()
        p = log_p.exp()
        return torch.where(p > 0, p * (log_p - log_q), 0.0).sum(-1)
    draws = (distribution.sample(rng), other.sample(rng))
    ratios = [(distribution.log_prob(draw) - other.log_prob(draw)).clamp(min=-100.0) for draw in draws]
    return sum((ratio * ratio.sigmoid() - (ratio / 2).tanh() for ratio in ratios), start=torch.zeros_like(draws[0]))


def _divergence_at(
    distribution: Distribution, other: Distribution, cells: Bool[Tensor, "row way place"], rng: Generator
) -> Gains:
    if cells.all():
        return divergence(distribution, other, rng)
    found = divergence(distribution.map_tensors(lambda t: t[cells]), other.map_tensors(lambda t: t[cells]), rng)
    return torch.zeros(cells.shape, dtype=found.dtype, device=found.device).masked_scatter(cells, found)


# What of the candidates' distributions is kept: (distributions, candidates, draws, whether all draws of a row share them).
Keep = Callable[[Conditionals, Sequence[int], int, bool], Columns | OutcomeBins]


def _repeated(draws: int) -> Callable[[Tensor], Tensor]:
    return lambda t: t.unsqueeze(1).expand(-1, draws, *t.shape[1:])


class DrawPlan(NamedTuple):
    """How many draws a row is given: every level of the target so many times, or only draws (one level then)."""

    levels: int
    repeats: int

    @property
    def draws(self) -> int:
        return self.levels * self.repeats


def plan_draws(schema: Schema, targets: Sequence[int], draws: int, exact: bool) -> DrawPlan:
    """A single target of at most `draws` levels is not drawn; and if the rest is `exact` too, each level is visited once."""
    levels = levels_of(schema.variables[targets[0]].domain)
    if len(targets) > 1 or not 0 < levels <= draws:
        return DrawPlan(1, draws)
    return DrawPlan(levels, 1 if exact else max(2, draws // levels))


@final
@dataclass(frozen=True)
class JointDraws:
    """Values of the targets of some rows in several draws, and the distributions that hold before and after they are known."""

    targets: tuple[int, ...]
    given: Mask  # what is known beforehand: (row, variable)
    together: tuple[int, ...]  # candidates that are in a set with others, drawn jointly
    y: Draws  # what is known, targets, and what is together
    weight: Float[Tensor, "row level"]  # of every level of the target; sums to 1
    first: Distribution  # of the first target, given what is known: cells (row, way)
    before: "Columns | OutcomeBins"  # distributions of the candidates, given what is known
    after: "Columns | OutcomeBins"  # distributions of the candidates when the targets are known too

    def known(self, *more: int) -> Mask:
        """What is known beforehand and these variables, for every way of every row."""
        return _with(self.given, more).repeat_interleave(self.y.shape[1], 0)

    def filled(self, rng: Generator) -> Draws:
        """With values for all candidates; those of single candidates are drawn now."""
        assert isinstance(self.after, Columns)
        y, drawn = self.y.clone(), self.after.sample(rng).to(self.y.dtype)
        for place, variable in enumerate(self.after.variables):
            if variable not in self.together:
                y[:, :, variable] = torch.where(self.given[:, variable, None], y[:, :, variable], drawn[:, :, place])
        return y


def draw_jointly(
    model: Model,
    x: Values,
    given: Mask,
    targets: tuple[int, ...],
    sets: Sequence[tuple[int, ...]],
    plan: DrawPlan,
    rng: Generator,
    keep: "Keep",
) -> JointDraws:
    """The targets first, then the candidates given them; variables that belong to one set are drawn one after the other."""
    candidates = sorted({variable for members in sets for variable in members})
    distributions = model(x, given)
    first = distributions.distribution(targets[0]).map_tensors(_repeated(plan.draws))
    if isinstance(first, DiscreteDistribution) and plan.levels > 1:
        y, weight = _laid_out(x, targets[0], plan), first.pmf()[:, 0]
    else:
        y, weight = draw_targets(model, x, given, targets, plan.draws, rng, first).y, x.new_ones(len(x), 1)
    known = _with(given, targets).repeat_interleave(plan.draws, 0)
    after = keep(model(y.flatten(0, 1), known), candidates, plan.draws, False)
    together = tuple(sorted({variable for members in sets if len(members) > 1 for variable in members}))
    for variable in together:
        drawn = model(y.flatten(0, 1), known).distribution(variable).sample(rng).to(y.dtype).unflatten(0, y.shape[:2])
        y[:, :, variable] = torch.where(given[:, variable, None], y[:, :, variable], drawn)
        known[:, variable] = True
    before = keep(distributions, candidates, plan.draws, True)
    return JointDraws(targets, given, together, y, weight, first, before, after)


class DrawnTargets(NamedTuple):
    """How the targets may turn out."""

    y: Draws
    hidden: Bool[Tensor, "row target"]
    distributions: list[tuple[int, Distribution]]  # every target with the distribution that it was drawn from: cells (row, way)

    def log_p(self) -> Float[Tensor, "row way"]:
        """How likely they were; what was known already is no surprise."""
        terms = [distribution.log_prob(self.y[:, :, target]).double() for target, distribution in self.distributions]
        return torch.where(self.hidden.unsqueeze(1), torch.stack(terms, dim=-1), 0.0).sum(-1)


def draw_targets(
    model: Model, x: Values, given: Mask, targets: Sequence[int], draws: int, rng: Generator, first: Distribution | None = None
) -> DrawnTargets:
    """One target after the other; the distribution of the first, cells (row, way), need not be asked for if it is there already.

    What is known already keeps its value.
    """
    y, distributions = x.unsqueeze(1).repeat(1, draws, 1), list[tuple[int, Distribution]]()
    for place, target in enumerate(targets):
        if place:
            known = _with(given, targets[:place]).repeat_interleave(draws, 0)
            distribution = model(y.flatten(0, 1), known).distribution(target).map_tensors(lambda t: t.unflatten(0, (-1, draws)))
        else:
            distribution = first or model(x, given).distribution(target).map_tensors(_repeated(draws))
        y[:, :, target] = torch.where(given[:, target].unsqueeze(1), y[:, :, target], distribution.sample(rng).to(y.dtype))
        distributions.append((target, distribution))
    return DrawnTargets(y, ~given[:, list(targets)], distributions)


def _laid_out(x: Values, target: int, plan: DrawPlan) -> Draws:
    """Every level of the target, each as often as planned."""
    y = x.unsqueeze(1).repeat(1, plan.draws, 1)
    y[:, :, target] = torch.arange(plan.levels, device=x.device, dtype=x.dtype).repeat_interleave(plan.repeats)
    return y


def _with(given: Mask, variables: Sequence[int]) -> Mask:
    given = given.clone()
    given[:, list(variables)] = True
    return given
