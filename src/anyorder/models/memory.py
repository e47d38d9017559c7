"""A model without a network: the training rows under a learned metric on what is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ..distributions import IMPOSSIBLE, CategoricalDistribution, Distribution, KernelDistribution, bound
from ..distributions.bounded import FAR_IN_SCALES, bent, just_outside, share_inside
from ..errors import InputError
from ..schema import Mask, Real, Recorded, Schema, Values, alike, bounds_of, curve_of, levels_of, spacing_of
from .conditionals import CellIndex, Conditionals, Distributions, Temperatures, between
from .trained import Description, Trained, check_same, shapes

DISTANCES_AT_ONCE = 2**23  # of features of (query, remembered row) pairs: 32 MB
UNSEEN = 1e-3  # share of all codes alike: no code is ever impossible
BLURS = (0.3, 0.03)  # first guesses of the kernels' widths


@final
class Memory(Trained):
    r"""The distribution of x_i is a mixture over remembered rows k, the nearer in what is known the heavier.

    .. math:: w_k \propto \exp\Big( -s_i(|G|) \sum_{j \in G}
        a_{ij} |x_j - x_{kj}| + b_{ij} [x_j \ne x_{kj}] + c_{ij} |r_j - r_{kj}| \Big)

    with r the rank among the column's values. A number is a copy of the remembered one or blurred around it, a code is
    the remembered one; a share of the marginal is mixed in. All of it is learned by predicting every row from the others:
    `context` is the number of the row itself among the remembered ones, which is then left out (-1: it is not among them).
    """

    kind, words, knows_rows = "memory", "memory", True
    rows: Tensor
    held: Tensor
    copies: Tensor
    rank: Tensor
    ordered: Tensor
    spacing: Tensor
    bounds: Tensor
    curve: Tensor

    def __init__(self, schema: Schema, rows: Values, present: Mask, copies: Int[Tensor, " row"] | None = None) -> None:
        super().__init__()
        check_memory(schema, rows, present)
        self.schema = schema
        self.groups = [torch.tensor(group) for group in alike(schema)]
        width = len(schema)
        self.register_buffer("rows", torch.where(present, rows, 0.0).float())
        self.register_buffer("held", present.float())
        self.register_buffer("copies", torch.ones(len(rows)) if copies is None else copies.float())  # how often every row counts
        self.register_buffer(
            "ordered", torch.where(present, rows, torch.inf).float().T.sort(-1).values.contiguous(), persistent=False
        )
        self.register_buffer("rank", self._ranks(self.rows), persistent=False)
        self.register_buffer("spacing", torch.tensor([spacing_of(variable.domain) for variable in schema]), persistent=False)
        self.register_buffer("bounds", torch.tensor([bounds_of(variable.domain) for variable in schema]), persistent=False)
        self.register_buffer("curve", torch.tensor([curve_of(variable.domain) for variable in schema]), persistent=False)
        self.metric = nn.Parameter(torch.full((width, 4, width), -1.0))  # (target, feature, known)
        self.sharpness = nn.Parameter(torch.zeros(width, width + 1))  # (target, number known), as a logarithm
        self.share = nn.Parameter(torch.zeros(width, 1 + len(BLURS)))
        self.blur = nn.Parameter(torch.tensor(BLURS).log().repeat(width, 1))
        self.marginal = nn.Parameter(torch.full((width,), -4.0))

    @property
    def dtype(self) -> torch.dtype:
        return self.metric.dtype

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        seen = torch.where(given, x, 0.0).to(self.dtype)  # hidden values cannot leak
        recall = Neighbours(self, seen, given, None if context is None else context[:, 0])
        return Conditionals([MemoryDistributions(group.to(x.device), recall) for group in self.groups])

    @property
    def rows_held(self) -> int:
        return len(self.rows)

    def describe(self) -> Description:
        return {"schema": self.schema.to_json(), "rows": len(self.rows)}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "Memory":
        schema, rows, held = Schema.from_json(about["schema"]), tensors["rows"], tensors["held"]
        size = (int(about["rows"]), len(schema))
        check_same(name, {"rows": size, "held": size}, shapes({"rows": rows, "held": held}))
        memory = cls(schema, rows, held.bool())
        check_same(name, shapes(memory.state_dict()), shapes(tensors))
        memory.load_state_dict(tensors)
        if not (memory.copies > 0).all():
            raise ValueError("a row that counts less than nothing")
        return memory

    def weigh(
        self,
        features: Float[Tensor, "batch feature remembered"],
        given: Mask,
        own: Int[Tensor, " batch"] | None,
        targets: Int[Tensor, " target"],
        columns: Int[Tensor, "#batch column"],
    ) -> "NeighbourWeights":
        """How much every remembered row counts for every target, and how far the nearest of them is."""
        distance = torch.bmm(self._scaled_metric(given, targets, columns), features)
        away = (self.held.T[targets] == 0).unsqueeze(0)
        if own is not None:
            away = away | (own[:, None, None] == torch.arange(len(self.rows), device=own.device))
        distance = distance.masked_fill(away, 1e9)
        share = self.marginal[targets].sigmoid()[:, None]
        even = (~away).to(distance.dtype) * self.copies
        weight = (1 - share) * (self.copies.log() - distance).softmax(-1) + share / even.sum(-1, keepdim=True).clamp(min=1) * even
        return NeighbourWeights(weight, distance.detach().amin(-1))

    def _scaled_metric(
        self, given: Mask, targets: Int[Tensor, " target"], columns: Int[Tensor, "#batch column"]
    ) -> Float[Tensor, "batch target feature"]:
        """What a unit of every feature adds to the distance, for every target; nothing where the value is not known."""
        scale = self.sharpness[targets][:, given.sum(-1)].exp().T  # (batch, target)
        weight = F.softplus(self.metric[targets])[:, : 4 if self._has_gaps else 3, columns].permute(2, 0, 1, 3)
        known = given.gather(1, columns.expand(len(given), -1))
        return (weight * known[:, None, None]).flatten(2) * scale[:, :, None]

    @torch.no_grad()
    def features(self, x: Values, columns: Int[Tensor, "#batch column"]) -> Float[Tensor, "batch feature remembered"]:
        """How the values of some columns differ from those remembered: how far, if at all, by how many ranks, or not held."""
        mine, count = columns.expand(len(x), -1), columns.shape[1]
        out = x.new_empty(len(x), 4 if self._has_gaps else 3, count, len(self.rows))
        apart, differs, ranks, *missing = out.unbind(1)
        torch.sub(x.gather(1, mine)[:, :, None], self.rows.T[columns], out=apart).abs_()
        torch.gt(apart, self.spacing[columns, None] / 2, out=differs)
        torch.sub(self._ranks(x).gather(1, mine)[:, :, None], self.rank.T[columns], out=ranks).abs_()
        apart.clamp_(max=4.0)
        for feature in missing:
            held = self.held.T[columns]
            out[:, :3].mul_(held.unsqueeze(1))
            feature.copy_((1 - held).expand_as(feature))
        return out.flatten(1, 2)

    @torch.no_grad()
    def kernel_cdf(
        self, variable: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None
    ) -> Float[Tensor, "place remembered edge"]:
        """The cdf, at the edges, of the distribution around every remembered value."""
        value = self.rows.T[variable][:, :, None].expand(-1, -1, edges.shape[1])
        t = 1.0 if temperature is None else temperature[:, None]
        share, blur = (self.share[variable].log_softmax(-1) / t).softmax(-1), (self.blur[variable].exp() + 1e-4) * t
        alike = lambda t: t[:, None, None].expand(*value.shape, *t.shape[1:])  # noqa: E731
        alone = KernelDistribution(
            alike(self.spacing[variable]),
            torch.ones_like(value).unsqueeze(-1),
            value.unsqueeze(-1),
            alike(share),
            alike(blur),
            None if (curve := bent(self.curve[variable])) is None else alike(curve),
        )
        return alone.cdf(edges[:, None].expand_as(value))

    @property
    def _has_gaps(self) -> bool:
        return bool(self.held.amin() == 0)

    def _ranks(self, x: Values) -> Values:
        """The share of the remembered values below x, ties half."""
        columns = x.T.contiguous()
        below = torch.searchsorted(self.ordered, columns) + torch.searchsorted(self.ordered, columns, right=True)
        return (below.T / 2 / self.held.sum(0).clamp(min=1)).to(x.dtype)


class NeighbourWeights(NamedTuple):
    """Of every cell (row and target, or a list of them)."""

    weight: Float[Tensor, "*cells remembered"]
    nearest: Float[Tensor, "*cells"]  # the distance of the row that is nearest


@final
class Neighbours:
    """Some rows in front of a memory. What two questions about them share is computed once, if it is not too large."""

    def __init__(self, memory: Memory, x: Values, given: Mask, own: Int[Tensor, " batch"] | None) -> None:
        self.memory, self.x, self.given, self.own = memory, x, given, own
        self.columns = worth_comparing(given)
        self.at_once = max(
            1, DISTANCES_AT_ONCE // (4 * len(memory.rows) * max(1, self.columns.shape[1]))
        )  # rows whose features fit

    @cached_property
    def features(self) -> Tensor:
        return self.memory.features(self.x, self.columns)

    def all_weights(self, targets: Int[Tensor, " target"]) -> NeighbourWeights:
        """Every remembered row's weight for these variables of all rows."""
        if len(self.x) <= self.at_once:
            return self.memory.weigh(self.features, self.given, self.own, targets, self.columns)
        parts = [self._weigh(rows, targets) for rows in torch.arange(len(self.x), device=self.x.device).split(self.at_once)]
        return NeighbourWeights(*map(torch.cat, zip(*parts, strict=True)))

    def weights(self, row: Int[Tensor, " cell"], variable: Int[Tensor, " cell"]) -> NeighbourWeights:
        """The same of some cells. They come sorted by row: all variables of a row share its distances."""
        targets, column = torch.unique(variable, return_inverse=True)
        if len(self.x) <= self.at_once:
            return NeighbourWeights(*(part[row, column] for part in self.all_weights(targets)))
        rows, place = torch.unique(row, return_inverse=True)
        out = [NeighbourWeights(self.x.new_zeros(0, len(self.memory.rows)), self.x.new_zeros(0))]
        bounds = torch.searchsorted(place, torch.arange(0, len(rows) + self.at_once, self.at_once, device=place.device)).tolist()
        for k, some in enumerate(rows.split(self.at_once) if len(rows) else ()):
            cells = slice(bounds[k], bounds[k + 1])
            out.append(
                NeighbourWeights(*(part[place[cells] - k * self.at_once, column[cells]] for part in self._weigh(some, targets)))
            )
        return NeighbourWeights(*map(torch.cat, zip(*out, strict=True)))

    def _weigh(self, rows: Int[Tensor, " some"], targets: Int[Tensor, " target"]) -> NeighbourWeights:
        columns = self.columns if len(self.columns) == 1 else self.columns[rows]
        own = None if self.own is None else self.own[rows]
        return self.memory.weigh(self.memory.features(self.x[rows], columns), self.given[rows], own, targets, columns)


@final
@dataclass(frozen=True)
class MemoryDistributions(Distributions):
    """The distributions that a memory gives, made when they are asked for."""

    recall: Neighbours
    copies_values = True

    @property
    def levels(self) -> Sequence[int]:
        return [levels_of(self.recall.memory.schema.variables[i].domain) for i in self.index.tolist()]

    def at(self, cells: CellIndex) -> Distribution:
        return self.with_distance(cells)[0]

    def masses(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None = None
    ) -> Float[Tensor, "batch place bin"]:
        return self.masses_with_distance(places, edges, temperature)[0]

    def masses_with_distance(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None
    ) -> tuple[Float[Tensor, "batch place bin"], Float[Tensor, "batch place"]]:
        """What every remembered row has up to an edge is the same for all queries: the rest is a product of matrices.

        The millionth beyond the bounds is left out.
        """
        memory, variable = self.recall.memory, self.index[places]
        if not isinstance(memory.schema.variables[int(self.index[0])].domain, Recorded):
            distribution, nearest = self.with_distance((slice(None), places))
            assert isinstance(distribution, CategoricalDistribution)
            return distribution.pmf(), nearest
        weighed = self.recall.all_weights(variable)
        low, high = memory.bounds[variable].clamp(-FAR_IN_SCALES, FAR_IN_SCALES).unbind(-1)
        edges = torch.cat([torch.stack(just_outside(low, high, memory.spacing[variable]), dim=-1), edges], dim=-1)
        weight = weighed.weight
        if temperature is not None:
            weight = F.normalize(weight.pow(1 / temperature[:, None]), p=1.0, dim=-1)
        cdf = torch.einsum("bpr,pre->bpe", weight, memory.kernel_cdf(variable, edges, temperature))
        below, upto, rest = cdf.split([1, 1, cdf.shape[-1] - 2], dim=-1)
        return between(share_inside(rest, below, upto - below)), weighed.nearest

    def with_distance(self, cells: CellIndex) -> tuple[Distribution, Float[Tensor, "*cells"]]:
        """The distributions, and how far the nearest remembered row is."""
        memory = self.recall.memory
        row, variable = self.cells_at(cells, len(self.recall.x))
        weighed = self.recall.weights(row.flatten(), variable.flatten())
        weight, nearest = weighed.weight.view(*row.shape, len(memory.rows)), weighed.nearest.view(row.shape)
        value = memory.rows.T[variable]
        domain = memory.schema.variables[int(self.index[0])].domain
        if isinstance(domain, Recorded):
            share, blur = memory.share.softmax(-1)[variable], memory.blur.exp()[variable] + 1e-4
            curve = bent(memory.curve[variable])
            distribution = KernelDistribution(memory.spacing[variable], weight, value, share, blur, curve)
            low, high = memory.bounds[variable].unbind(-1)
            return bound(distribution, low, high, curve), nearest
        levels = torch.tensor(self.levels, device=variable.device)
        own = levels[torch.searchsorted(self.index, variable.contiguous())].unsqueeze(-1)
        table = weight.new_zeros(*variable.shape, int(levels.max())).scatter_add(-1, value.long(), weight)
        others = torch.arange(table.shape[-1], device=own.device) >= own
        table = torch.where(others, 1.0, (1 - UNSEEN) * table + UNSEEN / own)
        return CategoricalDistribution(table.log().masked_fill(others, IMPOSSIBLE)), nearest


def worth_comparing(given: Mask) -> Int[Tensor, "#batch column"]:
    """The columns that some row knows, for all rows alike; or every row its own, where each knows few of them.

    What a row does not know adds nothing to any distance.
    """
    together, most = given.any(0).nonzero().T, int(given.sum(-1).max()) if len(given) else 0
    return (
        together if 2 * most > together.shape[1] else given.float().sort(dim=-1, descending=True, stable=True).indices[:, :most]
    )


def check_memory(schema: Schema, rows: Values, present: Bool[Tensor, "_ _"]) -> None:
    schema.check(rows, present)
    if not len(rows):
        raise InputError("A memory needs at least one row.")
    for variable in schema:
        if isinstance(variable.domain, Real):
            raise InputError(
                f"A memory copies values, and {variable.name!r} is Real(): a density gives no mass to a copy. "
                "Use Recorded(spacing=...) with the precision its values were written down in."
            )
