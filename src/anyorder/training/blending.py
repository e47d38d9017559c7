"""Work beside the work: one more thread for what mostly leaves Python's lock alone."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import itemgetter
from threading import Event
from types import TracebackType
from typing import NamedTuple, ParamSpec, TypeVar, final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn import functional as F

from ..distributions import Distribution, LatticeDistribution
from ..distributions.recurring import RecurringNumber
from ..models.any_order import Context
from ..models.blend import FEW_CONDITIONS, Blend, BlendDistributions, GateInputs
from ..models.conditionals import sharpened
from ..models.row_index import Recurring
from ..schema import Mask, Values, levels_of
from .loop import usual_loss
from .objectives import Edges, Objective

P = ParamSpec("P")
R = TypeVar("R")


@final
class Background:
    """Jobs done in turn while the caller does something else. When the caller ends, what has not begun is dropped.

    A job that takes long should call `raise_if_cancelled` now and then: it raises KeyboardInterrupt if the caller
    ended with an error.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._given_up = Event()

    def start(self, job: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._thread.submit(job, *args, **kwargs)

    def raise_if_cancelled(self) -> None:
        if self._given_up.is_set():
            raise KeyboardInterrupt

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._given_up.set()
        self._thread.shutdown(cancel_futures=True)


GATE_QUESTIONS, GATE_STEPS, RIDGE = 2048, 120, 0.003
ALL_ELSE = 16384  # questions about a value given all else, at most
FEW_KNOWN = 1024  # questions of which a few values are known
OFTEN, ALL_ELSE_ROWS = (
    0.5,
    400,
)  # how much those two kinds of questions count each, next to all others, if so many rows were kept back
SMALL_ERROR = 0.1  # standard deviations, below which an error is small when models are left out
WORTH_ASKING = 0.02  # a model with less weight is not asked
ENOUGH_CELLS = 20  # to say that a model is worse than the marginal
FEWER_QUESTIONS, TEMPERATURES = 1024, (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
TEMPERATURE_ROWS = 30  # kept back; fewer cannot tell how sharp distributions should be
MARGIN = 0.5  # standard errors over rows by which a lower temperature must be better than none
GATE_ROWS_PER_CALL, GATE_CELLS_PER_CALL = 256, 2**17
MOST_KINDS = 12  # of questions that errors are compared within, by how much is known: in wide tables they would be few of each
ERROR, SPREAD = 1.0, 1.0  # nats that a squared error, and a CRPS, as large as the best model's is worth
CRPS_DRAWS = 8  # of every model's distribution


class Answered(NamedTuple):
    """What every model said to cells that are known after all."""

    at: GateInputs
    log_p: Float[Tensor, "cell model"]
    off: Float[Tensor, "cell model"]  # how far the best guess of a number is off; 0 for codes
    away: Float[Tensor, "cell model"]  # how far draws are from the truth on average; 0 for codes
    apart: Float[Tensor, "cell model model"]  # how far draws of two models are from each other, or two draws of one
    skill: Float[Tensor, "cell model"]  # nats by which the bin of the truth is likelier than by its share of all rows
    weight: Float[Tensor, " cell"]

    def by(self, models: list[int], near: bool) -> "Answered":
        """What some of the models said; without a memory among them, nobody knows how near it comes."""
        at = self.at if near else self.at._replace(nearest=torch.zeros_like(self.at.nearest))
        log_p, off, away, skill = (part[:, models] for part in (self.log_p, self.off, self.away, self.skill))
        return Answered(at, log_p, off, away, self.apart[:, models][:, :, models], skill, self.weight)

    def crps(self, mix: Float[Tensor, "cell model"]) -> Float[Tensor, " cell"]:
        """Of the mixture: E|X - y| - E|X - X'| / 2, linear and quadratic in the weights."""
        return (mix * self.away).sum(-1) - torch.einsum("cm,cmn,cn->c", mix, self.apart, mix) / 2

    def usual(self, loss: Float[Tensor, "cell model"], width: int) -> Float[Tensor, " cell"]:
        """For the same variable when about as many are known."""
        kinds = min(width, MOST_KINDS)
        alike = self.at.variable * (kinds + 1) + (self.at.known * kinds).round().long()
        return usual_loss(loss, alike, width * (kinds + 1))


class Usual(NamedTuple):
    """What errors and CRPS are divided by, so that they count as nats."""

    error: Float[Tensor, " cell"]
    crps: Float[Tensor, " cell"]

    def at_least(self, error: float, crps: float) -> "Usual":
        return Usual(self.error.clamp(min=error), self.crps.clamp(min=crps))


def fit_weights(
    blend: Blend,
    x: Values,
    present: Mask,
    objective: Objective,
    context: Context | None,
    rng: Generator,
    steps: int = GATE_STEPS,
    recurring: Recurring | None = None,
    pays: Sequence[float] = (),
    least: Sequence[int] = (),
) -> list[int]:
    """Give every model the weights at which the mixture needs the fewest nats and its best guesses and its draws are near.

    Nats alone would leave best guesses and draws to whoever knows the last digits. `context` says which of the training rows
    these are. Returns the models that have a weight somewhere and save as many nats a cell as they must (`pays`). None has a
    weight where fewer variables are known than its `least`.
    """
    blend.least.zero_()
    rows, edges = questions(present, objective, rng)
    said = answers(blend, torch.where(present, x, 0.0)[rows], edges, None if context is None else context[rows], rng, recurring)
    usual = Usual(
        said.usual(said.off.square(), x.shape[1]),
        said.usual(said.away - said.apart.diagonal(dim1=-2, dim2=-1) / 2, x.shape[1]),
    )
    blend.least.copy_(least_known(said, x.shape[1]))
    if least:
        blend.least.copy_(blend.least.maximum(torch.tensor(least)[:, None]))
    kept = list(range(len(blend.weight)))
    weight = best_weights(blend, said, usual, steps)
    for model in [one for one, must in enumerate(pays) if must > 0]:
        rest = [one for one in kept if one != model]
        now, fewer = some_of(blend, kept), some_of(blend, rest)
        fewer_said = said.by(rest, fewer.has_memory)
        other = best_weights(fewer, fewer_said, usual, steps)
        saved = mean_loss(fewer, fewer_said, other, usual) - mean_loss(now, said.by(kept, now.has_memory), weight, usual)
        if saved < pays[model]:
            kept, weight = rest, other
    blend.weight.data.zero_()
    blend.weight.data[kept] = weight
    rest_of = some_of(blend, kept)
    blend.least[kept] = least_weight(rest_of, said.by(kept, rest_of.has_memory), weight)
    return [model for model in kept if (blend.least[model] <= x.shape[1]).any()]


@torch.no_grad()
def least_weight(blend: Blend, said: Answered, weight: Tensor) -> Float[Tensor, "model variable"]:
    """How many variables must be known before a model has any weight to speak of; with fewer it need not be asked."""
    width, models = len(blend.schema), len(blend.weight)
    known = (1 / said.at.few - 1).round().long()
    group = said.at.variable * width + known
    count = torch.bincount(group, minlength=width * width).clamp(min=1)[:, None]
    share = torch.zeros(width * width, models).index_add(0, group, blend.log_weight(said.at, weight).exp()) / count
    little = (share < WORTH_ASKING).unflatten(0, (width, width)).long()  # what was not asked about counts as little
    least = little.cumprod(1).sum(1).T.to(blend.least.dtype)
    least[0] = 0
    return torch.where(least == width, width + 1, least).maximum(blend.least)


def some_of(blend: Blend, models: list[int]) -> Blend:
    """The blend of some of the models, with all that they share, and without weights."""
    rest = Blend([blend.members()[one] for one in models])
    rest.least, rest.share, rest.temperature = blend.least[models], blend.share, blend.temperature
    rest.recurring = blend.recurring
    return rest


def best_weights(blend: Blend, said: Answered, usual: Usual, steps: int) -> Float[Tensor, "model variable circumstance"]:
    """The weights of least loss."""
    shared = torch.zeros(len(blend.weight), 1, 4, requires_grad=True)  # what is best when all else is known is nobody's guide
    own = torch.zeros_like(blend.weight, requires_grad=True)  # how a variable differs from the others, where it pays
    optimizer = torch.optim.Adam([shared, own], lr=0.1)
    for _ in range(steps):
        loss = losses(blend, said, F.pad(shared, (0, 1)) + own, usual)
        optimizer.zero_grad()
        ((said.weight * loss).sum() / said.weight.sum() + RIDGE * own.square().mean()).backward()
        optimizer.step()
    return (F.pad(shared, (0, 1)) + own).detach()


def losses(blend: Blend, said: Answered, weight: Tensor, usual: Usual) -> Float[Tensor, " cell"]:
    """Nats, and how far best guesses and draws are off, of the mixture with these weights."""
    mix = blend.log_weight(said.at, weight)
    nats = -(said.log_p + mix).logsumexp(-1)
    error = (said.off * mix.exp()).sum(-1).square() / usual.error
    return nats + ERROR * error + SPREAD * said.crps(mix.exp()) / usual.crps


@torch.no_grad()
def mean_loss(blend: Blend, said: Answered, weight: Tensor, usual: Usual) -> float:
    """A cell; errors are compared with a tenth of a standard deviation at least, or with what is usual."""
    loss = losses(blend, said, weight, usual.at_least(SMALL_ERROR**2, SMALL_ERROR))
    return float((said.weight * loss).sum() / said.weight.sum())


def least_known(said: Answered, width: int) -> Float[Tensor, "model variable"]:
    """How many variables must be known before a model tells more than the marginal; the first model is always asked."""
    models = said.skill.shape[1]
    known = (1 / said.at.few - 1).round().long()
    few = known <= FEW_CONDITIONS
    group = (said.at.variable * (FEW_CONDITIONS + 1) + known)[few]
    count = torch.bincount(group, minlength=width * (FEW_CONDITIONS + 1))
    mean = torch.zeros(len(count), models).index_add(0, group, said.skill[few]) / count.clamp(min=1)[:, None]
    worse = ((mean < 0) & (count >= ENOUGH_CELLS)[:, None]).unflatten(0, (width, FEW_CONDITIONS + 1))
    least = torch.where(worse, torch.arange(1, FEW_CONDITIONS + 2)[:, None], 0).amax(1).T.float()
    least[0] = 0
    return least


def fit_share(blend: Blend, x: Values, present: Mask, objective: Objective, context: Context | None, rng: Generator) -> None:
    """How much of every number's probability belongs to values that were seen, by the first model's distributions."""
    assert blend.recurring is not None
    count = min(len(x), FEWER_QUESTIONS)
    rows = torch.arange(count).repeat(max(1, FEWER_QUESTIONS // count))
    edges = objective.sample(present[rows], rng)
    smooth, seen, bins = list[Tensor](), list[Tensor](), list[Tensor]()
    with torch.no_grad():
        for one in asked(blend, torch.where(present, x, 0.0)[rows], edges, None if context is None else context[rows]):
            if isinstance(first := one.distributions[0], RecurringNumber):
                for all_, part in zip((smooth, seen, bins), first.parts(one.truth), strict=True):
                    all_.append(part)
    if smooth:
        blend.share.copy_(blend.recurring.learned_share(torch.cat(smooth), torch.cat(seen), torch.cat(bins), x.shape[1]))
        blend.recurring.use(blend.share)


def questions(present: Mask, objective: Objective, rng: Generator) -> tuple[Int[Tensor, " question"], Edges]:
    """Rows and what is asked about each: any subset, as in training, every value given all else, and all values given a few.

    The last two are what people ask most, and of few rows the first would hold them a few times only.
    """
    count, width = present.shape
    rows = torch.arange(min(count, GATE_QUESTIONS)).repeat(max(1, GATE_QUESTIONS // count))
    drawn = objective.sample(present[rows], rng)
    each = torch.arange(min(count, max(1, ALL_ELSE // width))).repeat_interleave(width)
    alone = torch.eye(width, dtype=torch.bool).repeat(len(each) // width, 1) & present[each]
    often = OFTEN if count >= ALL_ELSE_ROWS else 1 / width  # a few rows must not be asked the same too often
    weight = alone * (often * width * len(rows) / len(each))
    some = torch.randint(count, (FEW_KNOWN,), generator=rng)
    place = torch.rand(FEW_KNOWN, width, generator=rng).masked_fill(~present[some], 2.0).argsort(-1).argsort(-1)
    known = torch.randint(min(FEW_CONDITIONS, width - 1) + 1, (FEW_KNOWN, 1), generator=rng)
    few = present[some] & (place < known)
    hidden = (present[some] & ~few) * (width / (width - known)) * (often * len(rows) / FEW_KNOWN)
    edges = Edges(
        torch.cat([drawn.given, present[each] & ~alone, few]),
        torch.cat([drawn.weight, weight.to(drawn.weight), hidden.to(drawn.weight)]),
        None,
    )
    return torch.cat([rows, each, some]), edges


@torch.no_grad()
def fit_temperature(
    blend: Blend, x: Values, present: Mask, objective: Objective, context: Context | None, rng: Generator
) -> None:
    """Sharpen the distributions of every number as far as the mixture needs no more nats than without; its intervals
    become narrower.

    A few rows cannot tell that, and would make distributions too narrow: then there is no temperature.
    """
    blend.temperature.fill_(1.0)
    if len(x) < TEMPERATURE_ROWS:
        return
    count = min(len(x), FEWER_QUESTIONS)
    rows = torch.arange(count).repeat(FEWER_QUESTIONS // count)
    edges = objective.sample(present[rows], rng)
    edges = Edges(edges.given, edges.weight * (edges.given.sum(-1, keepdim=True) > blend.few))
    x, own = torch.where(present, x, 0.0)[rows], None if context is None else context[rows]
    nats = nats_when_tempered(blend, x, edges, own).unflatten(1, (-1, count)).mean(1)  # (temperature, row, variable)
    more = nats - nats[0]
    fine = more.mean(1) + MARGIN * more.std(1, correction=0) / count**0.5 <= 0
    lowest = torch.where(fine, torch.tensor(TEMPERATURES)[:, None], torch.inf).amin(0)
    blend.temperature.copy_(torch.where((more == 0).all(0).all(0), 1.0, lowest))  # codes, and what was not asked for


def nats_when_tempered(
    blend: Blend, x: Values, edges: Edges, context: Context | None
) -> Float[Tensor, "temperature question variable"]:
    """What the mixture, which has no temperature yet, needs for every cell that counts, times its weight."""
    nats = torch.zeros(len(TEMPERATURES), *x.shape)
    for one in asked(blend, x, edges, context):
        if not isinstance(one.distributions[0], LatticeDistribution):
            continue  # codes have no temperature
        for place, temperature in enumerate(TEMPERATURES):
            distributions = [
                sharpened(distribution, torch.full_like(one.truth, temperature)) for distribution in one.distributions
            ]
            log_p = torch.stack([distribution.log_prob(one.truth) for distribution in distributions], dim=-1)
            nats[place, one.row, one.at.variable] = -one.weight * (log_p + one.mix).logsumexp(-1)
    return nats


class Asked(NamedTuple):
    """Cells that are known after all, and the distributions of them by every model."""

    row: Int[Tensor, " cell"]
    at: GateInputs
    distributions: list[Distribution]  # of those that have a weight in one of the cells
    mix: Float[Tensor, "cell model"]  # the logarithms of their weights
    truth: Float[Tensor, " cell"]
    weight: Float[Tensor, " cell"]


def asked(blend: Blend, x: Values, edges: Edges, context: Context | None) -> Iterator[Asked]:
    """Every cell that counts, some rows and variables of one kind at a time."""
    for rows in torch.arange(len(x)).split(max(1, min(GATE_ROWS_PER_CALL, GATE_CELLS_PER_CALL // x.shape[1]))):
        for part in blend(x[rows], edges.given[rows], None if context is None else context[rows]).parts:
            assert isinstance(part, BlendDistributions)
            weight = edges.weight[rows][:, part.index]
            cells = weight > 0
            distributions, at = part.each_at(cells)
            truth = x[rows][:, part.index][cells]
            yield Asked(rows[cells.nonzero()[:, 0]], at, distributions, part.log_weight(at), truth, weight[cells])


@torch.no_grad()
def answers(
    blend: Blend, x: Values, edges: Edges, context: Context | None, rng: Generator, recurring: Recurring | None = None
) -> Answered:
    """Every model about every cell that counts."""
    out = []
    for one in asked(blend, x, edges, context):
        log_p = torch.stack([distribution.log_prob(one.truth) for distribution in one.distributions], dim=-1)
        skill = skills(blend, one, recurring) if recurring is not None else torch.zeros_like(log_p)
        out.append(Answered(one.at, log_p, *distances(one.distributions, one.truth, rng), skill, one.weight))
    where, *rest = zip(*out, strict=True)
    return Answered(GateInputs(*map(torch.cat, zip(*where, strict=True))), *map(torch.cat, rest))


def skills(blend: Blend, one: "Asked", recurring: Recurring) -> Float[Tensor, "cell model"]:
    """By how many nats every model's probability of the truth's bin is above the share of that bin among all rows."""
    few = (1 / one.at.few - 1).round() <= FEW_CONDITIONS
    out = torch.zeros(len(one.truth), len(one.distributions))
    for variable in one.at.variable[few].unique().tolist():
        cells = few & (one.at.variable == variable)
        rows = recurring.rows[:, variable]
        rows, truth = rows[rows.isfinite()], one.truth[cells]
        distributions = [distribution.map_tensors(itemgetter(cells)) for distribution in one.distributions]
        if levels := levels_of(blend.schema.variables[variable].domain):
            share = torch.bincount(rows.long(), minlength=levels) / len(rows)
            said = [distribution.log_prob(truth) for distribution in distributions]
            code = truth.long()
        else:
            edges = recurring.edges[variable]
            ends = torch.cat([edges.new_tensor([-1e4]), edges, edges.new_tensor([1e4])])
            code = torch.bucketize(truth.contiguous(), edges)
            share = torch.bincount(torch.bucketize(rows.contiguous(), edges), minlength=len(edges) + 1) / len(rows)
            between = torch.stack([ends[code], ends[code + 1]], dim=-1)
            said = [distribution.cdfs(between).diff(dim=-1).squeeze(-1).clamp(min=1e-9).log() for distribution in distributions]
        out[cells] = torch.stack(said, dim=-1) - share[code].clamp(min=1e-9).log()[:, None]
    return out


def distances(distributions: list[Distribution], truth: Float[Tensor, " cell"], rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Of best guesses and draws to the truth, and of draws to each other; codes have none."""
    numbers = [distribution for distribution in distributions if isinstance(distribution, LatticeDistribution)]
    if not numbers:
        none = torch.zeros(len(truth), len(distributions))
        return none, none, none.unsqueeze(-1).expand(-1, -1, len(distributions))
    off = torch.stack([distribution.mean() for distribution in numbers], dim=-1) - truth[:, None]
    draws = torch.stack(
        [torch.stack([distribution.sample(rng) for _ in range(CRPS_DRAWS)], dim=-1) for distribution in numbers], dim=1
    )
    pairs = torch.cdist(draws.flatten(1).unsqueeze(-1), draws.flatten(1).unsqueeze(-1), p=1)
    apart = pairs.unflatten(1, draws.shape[1:]).unflatten(3, draws.shape[1:]).mean((2, 4))
    itself = torch.eye(len(distributions), dtype=torch.bool)
    return off, (draws - truth[:, None, None]).abs().mean(-1), torch.where(itself, apart * CRPS_DRAWS / (CRPS_DRAWS - 1), apart)
