"""A model corrected by counting: how often what is asked for was seen among the training rows that match what is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ..distributions import CategoricalDistribution, DiscreteDistribution, Distribution, LatticeDistribution
from ..distributions.combined import ReweightedNumber
from ..errors import InputError
from ..schema import Mask, Real, Values, spacing_of
from .blend import FEW_CONDITIONS, Blend
from .conditionals import CellIndex, Conditionals, Distributions
from .row_index import FEWEST_RECURRING, HELD, NOBODY, UNKNOWN, Binning, BitRows, Codes, MaskTable, Recurring, RowIndex
from .trained import Description, Trained, check_same, described, rebuilt, shapes, tensors_of

MANY = 200  # matching rows, below which those around a single number are looked at, too
WITNESSES = 32  # matching rows whose expectations stand for those of all
WITNESSES_AT_ONCE, COUNTED_CELLS_AT_ONCE = 1024, 2**17  # rows that the model is asked about in one call, and their cells
MATCH_WORDS_AT_ONCE = 2**22  # of sets that are compared or kept: 32 MB
MOST_REMEMBERED = 2**16  # expectations
LEAST_WORTH, USUAL_WORTH, MOST_WORTH = 10.0, 50.0, 2000.0  # of the model's own word, in rows
MOST_ESTIMATED = 4096  # times the columns: of a wide table a few are asked about, and the others get their median
WORTH_QUESTIONS, ENOUGH_WORTH = 256, 500.0  # from which worth is estimated; rows beyond which evidence counts no more
LEAST_MASS = 1e-9  # probability of a bin, where it is divided by


def posterior(seen: Float[Tensor, "cell bin"], expected: Float[Tensor, "cell bin"], worth: Tensor) -> Float[Tensor, "cell bin"]:
    """The probability of every bin when `seen` rows are in it and the model, whose word is worth so many rows, expected others.

    Where rows contradict the model by more than chance, its word is worth less: what minimises the expected divergence if
    this contradiction is the usual one.
    """
    n = seen.sum(-1, keepdim=True)
    freedom = degrees(n * expected)
    surplus = (contradiction(seen, expected) - 2 * freedom) / (2 * n.clamp(min=1))  # nats a row, beyond what chance makes likely
    worth = torch.minimum(worth, freedom / (2 * surplus).clamp(min=1e-9))
    return (seen + worth * expected) / (n + worth)


def contradiction(seen: Float[Tensor, "cell bin"], expected: Float[Tensor, "cell bin"]) -> Float[Tensor, "cell 1"]:
    """Twice the log-likelihood ratio of what was seen: as large as the degrees of freedom on average, if the model is right."""
    share = seen / seen.sum(-1, keepdim=True).clamp(min=1)
    return 2 * (torch.xlogy(seen, share) - torch.xlogy(seen, expected)).sum(-1, keepdim=True)


def degrees(expected: Float[Tensor, "cell bin"]) -> Float[Tensor, "cell 1"]:
    """Of freedom; bins in which less than a row is expected count in part."""
    return (expected.clamp(max=1.0).sum(-1, keepdim=True) - 1).clamp(min=0.5)


@final
class Counted(Trained):
    r"""What a model says, corrected by what was counted among the training rows that match the evidence.

    .. math:: p(b \mid x_G) \propto q(b \mid x_G) \, \frac{n_b + s \, \bar q_b}{(n + s) \, \bar q_b}

    with q the model's own word, n the number of matching rows, of which :math:`n_b` are in bin b of the target, and
    :math:`\bar q_b` what the model expects of them on average. Rows match if all known categories are the same and all known
    numbers fall into the same bins. If only categories are known, :math:`\bar q = q` and the answer is that of a Dirichlet
    prior around the model's word, worth s rows: :math:`(n_b + s q_b) / (n + s)`. Inside a bin of a number the model's
    distribution
    keeps its shape. With fewer than ten matching rows nothing is corrected. Where two or three values are known and few rows
    match, rows around one of the known numbers are counted first; where a number is known, those in its narrow bin last.

    `context` is the number of a row among the training rows, which is then left out (-1: it is not among them).
    """

    kind, words = "counted", "counts"
    rows: Tensor
    held: Tensor
    worth: Tensor
    place: Tensor

    def __init__(self, model: Blend, rows: Values, held: Mask, place: Int[Tensor, " row"] | None = None) -> None:
        super().__init__()
        model.schema.check(rows, held)
        if any(isinstance(variable.domain, Real) for variable in model.schema):
            raise InputError("Counting needs values that repeat or are recorded on a lattice; Real() variables are neither.")
        self.model, self.schema = model, model.schema
        self.register_buffer("rows", torch.where(held, rows, 0.0).float())
        self.register_buffer("held", held.to(torch.uint8))
        self.register_buffer("worth", torch.full((len(self.schema),), USUAL_WORTH))
        nowhere = torch.full((len(rows),), -1.0)
        self.register_buffer("place", nowhere if place is None else place.float())  # in the memory, if it has one
        self.copies = torch.ones(len(rows), dtype=torch.long)  # of every row; no row is a witness of its own copies
        self.expected: dict[bytes, NDArray[np.float32]] = {}
        if model.share.any():
            model.remember(Recurring(self.schema, self.rows, held))

    @cached_property
    def index(self) -> RowIndex:
        return RowIndex(self.schema, self.rows.cpu(), self.held.cpu().bool())

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def clear(self) -> None:
        self.expected.clear()

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        own = None if context is None else context[:, 0]
        base = self.model(x, given, self.places_of(own))
        recount = self.recount(x, given, own)
        return Conditionals([CountedDistributions(part.index, part, recount) for part in base.parts])

    def members(self) -> list[Trained]:
        return self.model.members()

    @property
    def parts(self) -> list[str]:
        return [*self.model.parts, self.words]

    @property
    def rows_held(self) -> int:
        return max(len(self.rows), self.model.rows_held)

    def describe(self) -> Description:
        return {"rows": len(self.rows), "model": described(self.model)}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "Counted":
        blend = rebuilt(name, about["model"], tensors_of("model", tensors))
        if not isinstance(blend, Blend):
            raise TypeError(f"counts around a {blend.kind}")
        own = {one: tensor for one, tensor in tensors.items() if not one.startswith("model.")}
        rows, width = int(about["rows"]), len(blend.schema)
        check_same(name, {"rows": (rows, width), "held": (rows, width), "worth": (width,), "place": (rows,)}, shapes(own))
        memory = max(member.rows_held for member in blend.members())
        if not ((own["worth"] > 0).all() and ((own["place"] >= -1) & (own["place"] < max(1, memory))).all()):
            raise ValueError("a weight that is not positive, or a place that is not in the memory")
        counted = cls(blend, own["rows"], own["held"].bool(), own["place"].long())
        counted.worth.copy_(own["worth"])
        return counted

    def recount(self, x: Values, given: Mask, own: Int[Tensor, " batch"] | None = None) -> "Recount":
        """What was counted of what these rows know."""
        return Recount(self, x, given, own)

    def places_of(self, own: Int[Tensor, " batch"] | None) -> Tensor | None:
        """What the blend is told of training rows: where they are in its memory, and among all of them."""
        if own is None:
            return None
        return torch.stack([torch.where(own >= 0, self.place[own.clamp(min=0)].long(), -1), own], dim=-1)

    def matching(
        self, x: Values, known: Mask, allowed: Mapping[int, Bool[Tensor, " row"]], exactly: bool
    ) -> Int[Tensor, " match"]:
        """The numbers of the training rows that match one row; where values are open, those that are allowed.

        Numbers match if they are the same, or, not `exactly`, if they fall into the same bin.
        """
        found = torch.ones(len(self.rows), dtype=torch.bool)
        codes = torch.from_numpy(self.index.codes_of(x, known))[0]
        for i in known[0].nonzero().squeeze(-1).tolist():
            near = (self.rows[:, i] - x[0, i]).abs() < spacing_of(self.schema.variables[i].domain) / 2
            found &= near & self.held[:, i].bool() if exactly else torch.from_numpy(self.index.codes[:, i]) == codes[i]
        for i, rows in allowed.items():
            found &= rows & self.held[:, i].bool()
        return found.nonzero().squeeze(-1)

    def count(self, rows: Int[Tensor, " match"], variable: int) -> Float[Tensor, "1 bin"]:
        """How many of these rows are in every bin of a variable."""
        codes = torch.from_numpy(self.index.codes[rows.numpy(), variable]).long()
        return torch.bincount(codes[codes >= 0], minlength=self.index.bins[variable])[None].float()


@final
class MatchEvidence:
    """What the rows of a batch know, as bins: all different ways of it, and which of them every row has."""

    def __init__(self, index: RowIndex, codes: Codes) -> None:
        keys = np.ascontiguousarray(codes).view(np.dtype((np.void, codes.shape[1] * codes.itemsize)))[:, 0]
        _, first, self.which = np.unique(keys, return_index=True, return_inverse=True)
        self.index, self.codes = index, codes[first]

    @cached_property
    def _matching(self) -> "Matching":
        return Matching.of(self.index, self.codes)

    def matching(self, some: NDArray[np.int64]) -> "Matching":
        """The training rows that match some of the ways; kept from one question to the next if that is not too much."""
        if len(self.codes) * self.index.words > MATCH_WORDS_AT_ONCE:
            return Matching.of(self.index, self.codes[some])
        return self._matching.of_some(some)


class Matching(NamedTuple):
    """The training rows that match, for every way to know something that enough of them match."""

    place: NDArray[np.int64]  # of every way among the sets; -1 where too few rows match
    sets: BitRows

    @classmethod
    def of(cls, index: RowIndex, codes: Codes) -> "Matching":
        enough, sets = index.matching(codes)
        return cls(np.where(enough, np.cumsum(enough) - 1, -1), sets)

    def of_some(self, some: NDArray[np.int64]) -> "Matching":
        place = self.place[some]
        enough = place >= 0
        return Matching(np.where(enough, np.cumsum(enough) - 1, -1), self.sets[place[enough]])

    def counted(self, index: RowIndex, variable: int) -> tuple[MaskTable, BitRows]:
        """How many of them are in every bin of a variable, and which of them have a value of it."""
        sets = self.sets & index.having[variable]
        seen = np.zeros((len(self.place), index.bins[variable]), dtype=np.float32)
        seen[self.place >= 0] = index.count(sets, variable)
        return seen, sets


class Counts(NamedTuple):
    """Of every way to know something: how many matching rows are in every bin, and the mean of what the model expects of them."""

    seen: MaskTable
    expected: MaskTable  # NaN where it is the same for all of them

    @property
    def against(self) -> NDArray[np.float64]:
        """How far each of them contradicts the model, beyond what chance makes likely; below 0 where nothing is counted."""
        seen, expected = (torch.from_numpy(part).double() for part in self)
        expected = expected.clamp(min=LEAST_MASS)
        beyond = contradiction(seen, expected) - degrees(seen.sum(-1, keepdim=True) * expected)
        return np.asarray(torch.where(seen.sum(-1) >= FEWEST_RECURRING, beyond[:, 0], -1.0).numpy())

    def corrected(self, ratio: Float[Tensor, "cell bin"], own: Float[Tensor, "cell bin"], worth: Tensor) -> Tensor:
        """The factors of the bins after this look; `own` is what the model says of the cells themselves."""
        seen, expected = (torch.from_numpy(part).double() for part in self)
        enough = seen.sum(-1, keepdim=True) >= FEWEST_RECURRING
        if not enough.any():
            return ratio
        prior = torch.where(expected[:, :1].isnan(), own, expected).clamp(min=LEAST_MASS) * ratio
        prior = prior / prior.sum(-1, keepdim=True)
        return torch.where(enough, ratio * posterior(seen, prior, worth) / prior, ratio)


@final
class Recount:
    """Some rows in front of an index. Rows that know the same share the work."""

    def __init__(self, model: Counted, x: Values, given: Mask, own: Int[Tensor, " batch"] | None) -> None:
        self.model, self.x, self.given, self.own = model, x.cpu(), given.cpu(), None if own is None else own.cpu().numpy()
        self.binning: Binning = model.index
        self._around = dict[int, MatchEvidence]()

    @cached_property
    def codes(self) -> Codes:
        return self.model.index.codes_of(self.x, self.given)

    @cached_property
    def alike(self) -> MatchEvidence:
        """Numbers that fall into the same bin are the same."""
        return MatchEvidence(self.model.index, self.codes)

    @cached_property
    def narrow(self) -> Codes:
        return self.model.index.narrow_codes_of(self.x, self.codes)

    @cached_property
    def near(self) -> MatchEvidence:
        """Numbers that fall into the same narrow bin are the same; rows that know no number match nothing, for it is no news."""
        codes = self.narrow.copy()
        codes[~(self.codes[:, self.model.index.numbers] >= 0).any(-1)] = NOBODY
        return MatchEvidence(self.model.index, codes)

    def around(self, number: int) -> MatchEvidence:
        """Only this number has to fall into the same narrow bin; of all else that is known any value will do."""
        if number not in self._around:
            codes = np.where(self.codes >= 0, np.int32(HELD), np.int32(UNKNOWN))
            codes[:, number] = self.narrow[:, number]
            codes[(self.codes[:, number] < 0) | ~self.some_known] = NOBODY
            self._around[number] = MatchEvidence(self.model.index, codes)
        return self._around[number]

    @cached_property
    def some_known(self) -> NDArray[np.bool_]:
        """Rows that know more than one value and not more than a few."""
        known = (self.codes >= 0).sum(-1)
        return (known > 1) & (known <= FEW_CONDITIONS)

    def ratio(
        self, row: NDArray[np.int64], variable: int, mass: "BinMasses"
    ) -> tuple[NDArray[np.int64], Float[Tensor, "cell bin"]]:
        """Which of these rows are corrected, and the factors of the bins of a variable in them.

        Up to three looks, from far to near; what one says is the prior of the next.
        """
        wide = self.counts(row, variable)
        far = self._far(row, variable, wide)
        chosen = np.flatnonzero((wide.seen.sum(-1) >= FEWEST_RECURRING) | (far.seen.sum(-1) >= FEWEST_RECURRING))
        if not len(chosen):
            return chosen, torch.zeros(0, self.model.index.bins[variable])
        near = self._counts(self.near, row[chosen], variable, self._only_counts)
        looks = [Counts(*(part[chosen] for part in far)), Counts(*(part[chosen] for part in wide)), near]
        needed = np.any([np.isnan(look.expected[:, 0]) & (look.seen.sum(-1) >= FEWEST_RECURRING) for look in looks], axis=0)
        own = torch.ones(len(chosen), self.model.index.bins[variable], dtype=torch.float64)
        own[needed] = mass(chosen[needed]).double().clamp(min=LEAST_MASS)
        ratio = torch.ones_like(own)
        for look in looks:
            ratio = look.corrected(ratio, own, self.model.worth[variable])
        return chosen, ratio

    def _far(self, row: NDArray[np.int64], variable: int, wide: Counts) -> Counts:
        """Where few rows match: those around one of the known numbers, the one that tells most against the model."""
        found = Counts(np.zeros_like(wide.seen), np.full_like(wide.seen, np.nan))
        few = np.flatnonzero(self.some_known[row] & (wide.seen.sum(-1) < MANY))
        most = np.zeros(len(few))
        for number in self.model.index.numbers if len(few) else ():
            if number == variable or not (self.codes[row[few], number] >= 0).any():
                continue
            look = self._counts(self.around(number), row[few], variable, self._with_expectations)
            against = look.against
            better = against > most
            most[better] = against[better]
            for mine, other in zip(found, look, strict=True):
                mine[few[better]] = other[better]
        return found

    def compared(self, row: NDArray[np.int64], variable: int) -> tuple[Float[Tensor, "cell bin"], Float[Tensor, "cell bin"]]:
        """How many rows are in every bin, and the shares that the model expects, where there are enough rows."""
        counts = self.counts(row, variable)
        chosen = np.flatnonzero(counts.seen.sum(-1) >= FEWEST_RECURRING)
        expected = torch.from_numpy(counts.expected[chosen])
        alone = expected[:, 0].isnan()
        if alone.any():
            asked = torch.from_numpy(row[chosen])[alone]
            distribution = self.model.model(self.x[asked], self.given[asked]).distribution(variable)
            expected[alone] = self.model.index.masses(distribution, variable).float().cpu()
        return torch.from_numpy(counts.seen[chosen]), expected.clamp(min=LEAST_MASS)

    def counts(self, row: NDArray[np.int64], variable: int) -> Counts:
        """Of every row, where numbers in the same bin match."""
        return self._counts(self.alike, row, variable, self._with_expectations)

    def _counts(self, evidence: MatchEvidence, row: NDArray[np.int64], variable: int, of: Callable[..., Counts]) -> Counts:
        """Of every row, computed once for all that know the same."""
        which, back = np.unique(evidence.which[row], return_inverse=True)
        step = max(1, MATCH_WORDS_AT_ONCE // self.model.index.words)
        parts = [of(evidence, which[k : k + step], variable) for k in range(0, max(1, len(which)), step)]
        found = Counts(*(np.concatenate(part)[back] for part in zip(*parts, strict=True)))
        return found if self.own is None else found._replace(seen=self._without_own(found.seen, evidence, row, variable))

    def _only_counts(self, evidence: MatchEvidence, which: NDArray[np.int64], variable: int) -> Counts:
        seen, _ = evidence.matching(which).counted(self.model.index, variable)
        return Counts(seen, np.full_like(seen, np.nan))

    def _with_expectations(self, evidence: MatchEvidence, which: NDArray[np.int64], variable: int) -> Counts:
        index, codes, memory = self.model.index, evidence.codes[which], self.model.expected
        matching = evidence.matching(which)
        seen, sets = matching.counted(index, variable)
        expected = np.full(seen.shape, np.nan, dtype=np.float32)
        needed = np.flatnonzero((seen.sum(-1) >= FEWEST_RECURRING) & (codes[:, index.numbers] >= 0).any(-1))
        keys = [codes[k].tobytes() + variable.to_bytes(4, "little") for k in needed]
        if len(memory) > MOST_REMEMBERED:
            memory.clear()
        new = [place for place, key in enumerate(keys) if key not in memory]
        if new:
            tables = self._expectations(sets[matching.place[needed[new]]], codes[needed[new]] != UNKNOWN, variable)
            memory.update(zip([keys[place] for place in new], tables, strict=True))
        for place, key in zip(needed, keys, strict=True):
            expected[place] = memory[key]
        return Counts(seen, expected)

    @torch.no_grad()
    def _expectations(self, sets: BitRows, known: NDArray[np.bool_], variable: int) -> MaskTable:
        """What the model expects, on average over some of the rows of every set given their own values."""
        chosen = [self.model.index.members(one, WITNESSES) for one in sets]
        group = torch.arange(len(chosen)).repeat_interleave(torch.tensor([len(rows) for rows in chosen]))
        rows = torch.from_numpy(np.concatenate(chosen))
        total = torch.zeros(len(chosen), self.model.index.bins[variable])
        at_once = max(1, min(WITNESSES_AT_ONCE, COUNTED_CELLS_AT_ONCE // len(self.model.schema)))
        for some in torch.arange(len(rows)).split(at_once):
            given = torch.from_numpy(known)[group[some]]
            base = self.model.model(self.model.rows[rows[some]], given, self.model.places_of(rows[some]))
            total.index_add_(0, group[some], self.model.index.masses(base.distribution(variable), variable).float().cpu())
        return np.asarray((total / total.sum(-1, keepdim=True)).numpy())

    def _without_own(self, seen: MaskTable, evidence: MatchEvidence, row: NDArray[np.int64], variable: int) -> MaskTable:
        """A training row is no witness of itself."""
        assert self.own is not None
        index, own, wanted = self.model.index, self.own[row], evidence.codes[evidence.which[row]]
        code = index.codes[own, variable]
        same = (wanted == UNKNOWN) | (wanted == index.codes[own]) | (wanted == index.near[own])
        same = (same | ((wanted == HELD) & (index.codes[own] >= 0))).all(-1)
        there = np.flatnonzero((own >= 0) & (code >= 0) & same & (seen.sum(-1) > 0))
        seen = seen.copy()
        seen[there, code[there]] -= self.model.copies[torch.from_numpy(own[there])].numpy()
        return seen


@runtime_checkable
class Recounted(Protocol):
    """Some rows, and what was counted of what they know."""

    @property
    def binning(self) -> Binning: ...

    @property
    def x(self) -> Values: ...

    def ratio(
        self, row: NDArray[np.int64], variable: int, mass: "BinMasses"
    ) -> tuple[NDArray[np.int64], Float[Tensor, "cell bin"]]:
        """Which of these rows are corrected, and the factors of the bins of a variable in them."""


class BinMasses:
    """The model's own probabilities of the bins of a variable, for some of the cells."""

    def __init__(self, binning: Binning, distribution: Distribution, cells: NDArray[np.int64], variable: int) -> None:
        self.binning, self.distribution, self.cells, self.variable = binning, distribution, cells, variable

    def __call__(self, chosen: NDArray[np.int64]) -> Tensor:
        some = torch.from_numpy(self.cells[chosen])
        return self.binning.masses(self.distribution.map_tensors(lambda t: t[some]), self.variable).cpu()


@final
@dataclass(frozen=True)
class CountedDistributions(Distributions):
    """The distributions of a model, corrected when they are asked for."""

    base: Distributions
    recount: Recounted

    @property
    def levels(self) -> Sequence[int]:
        return self.base.levels

    def at(self, cells: CellIndex) -> Distribution:
        distribution = self.base.at(cells)
        row, variable = self.cells_at(cells, len(self.recount.x))
        flat = distribution.map_tensors(lambda t: t.flatten(0, row.ndim - 1) if row.ndim else t.unsqueeze(0))
        corrected = self._corrected(flat, row.flatten(), variable.flatten())
        return (
            distribution
            if corrected is None
            else corrected.map_tensors(lambda t: t.unflatten(0, row.shape) if row.ndim else t.squeeze(0))
        )

    def _corrected(
        self, distribution: Distribution, row: Int[Tensor, " cell"], variable: Int[Tensor, " cell"]
    ) -> Distribution | None:
        """The distributions of a list of cells; None if there is nothing to correct."""
        binning, weight = self.recount.binning, None
        for one in variable.unique().tolist():
            places = (variable == one).nonzero().squeeze(-1).numpy()
            mass = BinMasses(binning, distribution, places, one)
            chosen, ratio = self.recount.ratio(row.numpy()[places], one, mass)
            if not len(chosen):
                continue
            if weight is None:
                weight = torch.ones(len(row), max(binning.bins[i] for i in self.index.tolist()), dtype=torch.float64)
            few = weight.shape[1] - ratio.shape[1]  # empty bins, between the last edge and itself
            weight[torch.from_numpy(places[chosen])] = torch.cat([ratio, ratio[:, -1:].expand(-1, few)], dim=-1).double()
        if weight is None:
            return None
        if isinstance(distribution, DiscreteDistribution):
            return CategoricalDistribution((distribution.log_pmf().double() + weight.log()).to(distribution.log_pmf().dtype))
        assert isinstance(distribution, LatticeDistribution)
        edges = self._edges.to(distribution.spacing)[torch.searchsorted(self.index, variable.contiguous())]
        return ReweightedNumber(distribution.spacing, distribution, edges, weight.to(edges))

    @cached_property
    def _edges(self) -> Float[Tensor, "part edge"]:
        """Of all numbers of this part; the last is repeated where there are fewer."""
        found = [edges for i in self.index.tolist() if (edges := self.recount.binning.edges[i]) is not None]
        most = max(map(len, found))
        return torch.stack([torch.cat([e, (e[-1:] if len(e) else e.new_zeros(1)).expand(most - len(e))]) for e in found])


@torch.no_grad()
def estimate_worth(model: Counted, rng: torch.Generator) -> None:
    """How many rows the model's word about every variable is worth: the more, the less rows contradict it.

    Asked about `QUESTIONS` rows of which one to three values are known. If the model is off by K nats a row, an answer that
    mixes its word with n rows in b bins is off by the least if its word counts as (b - 1) / 2 K rows.
    """
    count, width = model.rows.shape
    rows = torch.randint(count, (WORTH_QUESTIONS,), generator=rng)
    place = torch.rand(WORTH_QUESTIONS, width, generator=rng).argsort(-1).argsort(-1)
    known = place < torch.randint(1, 4, (WORTH_QUESTIONS, 1), generator=rng)
    known &= model.held[rows].bool()
    recount = Recount(model, model.rows[rows], known, rows)
    some = torch.randperm(width, generator=rng)[: max(4, MOST_ESTIMATED // width)].sort().values.tolist()
    for variable in some:
        row = (~known[:, variable]).nonzero().squeeze(-1).numpy()
        n, q = recount.compared(row, variable)
        if not len(n):
            continue
        many, freedom = n.sum(-1, keepdim=True), degrees(n.sum(-1, keepdim=True) * q)
        weight = many.clamp(max=ENOUGH_WORTH)
        off = (weight * (contradiction(n, q) - freedom) / (2 * many)).sum() / weight.sum()
        found = (weight * freedom).sum() / weight.sum() / (2 * off.clamp(min=1e-6))
        model.worth[variable] = found.clamp(LEAST_WORTH, MOST_WORTH)
    if len(some) < width:
        others = torch.ones(width, dtype=torch.bool)
        others[some] = False
        model.worth[others] = model.worth[some].median()
