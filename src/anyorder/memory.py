"""A model without a network: the training rows under a learned metric on what is known."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from .conditionals import Conditionals, Laws, Some, between
from .errors import InputError
from .heads import CategoricalLaw, KernelLaw, Law
from .schema import Mask, Real, Recorded, Schema, Values, levels_of

NUMBERS_AT_ONCE = 2**23  # of features of (query, remembered row) pairs: 32 MB
UNSEEN = 1e-3  # share of all codes alike: no code is ever impossible
BLURS = (0.3, 0.03)  # first guesses of the kernels' widths


@final
class Memory(nn.Module):
    r"""The law of x_i is a mixture over remembered rows k, the nearer in what is known the heavier.

    .. math:: w_k \propto \exp\Big( -s_i(|G|) \sum_{j \in G}
        a_{ij} |x_j - x_{kj}| + b_{ij} [x_j \ne x_{kj}] + c_{ij} |r_j - r_{kj}| \Big)

    with r the rank among the column's values. A number is a copy of the remembered one or blurred around it, a code is
    the remembered one; a share of the marginal is mixed in. All of it is learned by predicting every row from the others:
    `context` is the number of the row itself among the remembered ones, which is then left out (-1: it is not among them).
    """

    rows: Tensor
    held: Tensor
    rank: Tensor
    ordered: Tensor
    spacing: Tensor

    def __init__(self, schema: Schema, rows: Values, present: Mask) -> None:
        super().__init__()
        check_memory(schema, rows, present)
        self.schema = schema
        self.groups = [torch.tensor(group) for group in alike(schema)]
        width = len(schema)
        self.register_buffer("rows", torch.where(present, rows, 0.0).float())
        self.register_buffer("held", present.float())
        self.register_buffer(
            "ordered", torch.where(present, rows, torch.inf).float().T.sort(-1).values.contiguous(), persistent=False
        )
        self.register_buffer("rank", self._ranks(self.rows), persistent=False)
        spacing = [v.domain.spacing if isinstance(v.domain, Recorded) else 1.0 for v in schema]
        self.register_buffer("spacing", torch.tensor(spacing), persistent=False)
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
        own = torch.full((len(x),), -1, device=x.device) if context is None else context[:, 0]
        recall = Recall(self, seen, given, own)
        return Conditionals([Recalled(group.to(x.device), recall) for group in self.groups])

    def weigh(
        self,
        features: Float[Tensor, "batch feature remembered"],
        given: Mask,
        own: Int[Tensor, " batch"],
        targets: Int[Tensor, " target"],
        columns: Int[Tensor, " column"],
    ) -> "Weighed":
        """How much every remembered row counts for every target, and how far the nearest of them is."""
        distance = torch.bmm(self._scaled_metric(given, targets, columns), features)
        away = (self.held.T[targets] == 0) | (own[:, None, None] == torch.arange(len(self.rows), device=own.device))
        closeness = (-distance).masked_fill(away, -1e9)
        near = closeness.softmax(-1)
        share = self.marginal[targets].sigmoid()[:, None]
        even = (~away).to(near.dtype)
        weight = (1 - share) * near + share / even.sum(-1, keepdim=True).clamp(min=1) * even
        return Weighed(weight, -closeness.detach().amax(-1))

    def _scaled_metric(
        self, given: Mask, targets: Int[Tensor, " target"], columns: Int[Tensor, " column"]
    ) -> Float[Tensor, "batch target feature"]:
        """What a unit of every feature adds to the distance, for every target; nothing where the value is not known."""
        scale = self.sharpness[targets][:, given.sum(-1)].exp().T  # (batch, target)
        weight = F.softplus(self.metric[targets][:, : 4 if self._has_gaps else 3, columns])  # (target, feature, known)
        return (weight.flatten(1) * given[:, columns].repeat(1, weight.shape[1])[:, None]) * scale[:, :, None]

    @torch.no_grad()
    def features(self, x: Values, columns: Int[Tensor, " column"]) -> Float[Tensor, "batch feature remembered"]:
        """How the values of some columns differ from those remembered: how far, if at all, by how many ranks, or not held."""
        apart = (x[:, columns, None] - self.rows.T[columns]).abs_()
        differs = (apart > self.spacing[columns, None] / 2).to(apart.dtype)
        ranks = (self._ranks(x)[:, columns, None] - self.rank.T[columns]).abs_()
        features = [apart.clamp_(max=4.0), differs, ranks]
        if self._has_gaps:
            held = self.held.T[columns]
            features = [feature.mul_(held) for feature in features]
            features.append((1 - held).expand_as(apart))
        return torch.cat(features, dim=1)

    @torch.no_grad()
    def kernel_cdf(
        self, variable: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: float
    ) -> Float[Tensor, "place remembered edge"]:
        """The cdf, at the edges, of the law around every remembered value."""
        value = self.rows.T[variable][:, :, None].expand(-1, -1, edges.shape[1])
        alike = lambda t: t[variable][:, None, None].expand(*value.shape, *t.shape[1:])  # noqa: E731
        share, blur = self.share.softmax(-1), self.blur.exp() + 1e-4
        alone = KernelLaw(
            alike(self.spacing), torch.ones_like(value).unsqueeze(-1), value.unsqueeze(-1), alike(share), alike(blur)
        )
        return alone.tempered(temperature).cdf(edges[:, None].expand_as(value))

    @property
    def _has_gaps(self) -> bool:
        return bool(self.held.amin() == 0)

    def _ranks(self, x: Values) -> Values:
        """The share of the remembered values below x, ties half."""
        columns = x.T.contiguous()
        below = torch.searchsorted(self.ordered, columns) + torch.searchsorted(self.ordered, columns, right=True)
        return (below.T / 2 / self.held.sum(0).clamp(min=1)).to(x.dtype)


class Weighed(NamedTuple):
    """Of every cell (row and target, or a list of them)."""

    weight: Float[Tensor, "*cells remembered"]
    nearest: Float[Tensor, "*cells"]  # the distance of the row that is nearest


@final
class Recall:
    """Some rows in front of a memory. What two questions about them share is computed once, if it is not too large."""

    def __init__(self, memory: Memory, x: Values, given: Mask, own: Int[Tensor, " batch"]) -> None:
        self.memory, self.x, self.given, self.own = memory, x, given, own
        self.columns = given.any(0).nonzero().squeeze(-1)  # what no row knows adds nothing to any distance
        self.at_once = max(1, NUMBERS_AT_ONCE // (4 * len(memory.rows) * max(1, len(self.columns))))  # rows whose features fit

    @cached_property
    def features(self) -> Tensor:
        return self.memory.features(self.x, self.columns)

    def weights(self, row: Int[Tensor, " cell"], variable: Int[Tensor, " cell"]) -> Weighed:
        """Every remembered row's weight for every cell. Cells come sorted by row: all variables of a row share its distances."""
        targets, column = torch.unique(variable, return_inverse=True)
        if len(self.x) <= self.at_once:
            weighed = self.memory.weigh(self.features, self.given, self.own, targets, self.columns)
            return Weighed(*(part[row, column] for part in weighed))
        rows, place = torch.unique(row, return_inverse=True)
        out = [Weighed(self.x.new_zeros(0, len(self.memory.rows)), self.x.new_zeros(0))]
        bounds = torch.searchsorted(place, torch.arange(0, len(rows) + self.at_once, self.at_once, device=place.device)).tolist()
        for k, some in enumerate(rows.split(self.at_once) if len(rows) else ()):
            cells = slice(bounds[k], bounds[k + 1])
            features = self.memory.features(self.x[some], self.columns)
            weighed = self.memory.weigh(features, self.given[some], self.own[some], targets, self.columns)
            out.append(Weighed(*(part[place[cells] - k * self.at_once, column[cells]] for part in weighed)))
        return Weighed(*map(torch.cat, zip(*out, strict=True)))


@final
@dataclass(frozen=True)
class Recalled(Laws):
    """The laws that a memory gives, made when they are asked for."""

    recall: Recall

    def at(self, cells: Some) -> Law:
        return self.with_distance(cells)[0]

    def masses(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: float = 1.0
    ) -> Float[Tensor, "batch place bin"]:
        return self.masses_with_distance(places, edges, temperature)[0]

    def masses_with_distance(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: float
    ) -> tuple[Float[Tensor, "batch place bin"], Float[Tensor, "batch place"]]:
        """What every remembered row puts between the edges is the same for all queries: the rest is a product of matrices."""
        memory, variable = self.recall.memory, self.index[places]
        if not isinstance(memory.schema.variables[int(self.index[0])].domain, Recorded):
            law, nearest = self.with_distance((slice(None), places))
            assert isinstance(law, CategoricalLaw)
            return law.pmf(), nearest
        count = len(self.recall.x)
        row = torch.arange(count, device=variable.device).repeat_interleave(len(places))
        weighed = self.recall.weights(row, variable.repeat(count))
        each = between(memory.kernel_cdf(variable, edges, temperature))  # (place, remembered, bin)
        weight = weighed.weight if temperature == 1.0 else (weighed.weight.log() / temperature).softmax(-1)
        weight = weight.view(count, len(places), -1)
        return torch.einsum("bpr,prk->bpk", weight, each), weighed.nearest.view(count, len(places))

    def with_distance(self, cells: Some) -> tuple[Law, Float[Tensor, "*cells"]]:
        """The laws, and how far the nearest remembered row is."""
        memory, count = self.recall.memory, len(self.recall.x)
        row = torch.arange(count, device=self.index.device)[:, None].expand(-1, len(self.index))[cells]
        variable = self.index.expand(count, -1)[cells]
        weighed = self.recall.weights(row.flatten(), variable.flatten())
        weight, nearest = weighed.weight.view(*row.shape, len(memory.rows)), weighed.nearest.view(row.shape)
        value = memory.rows.T[variable]
        domain = memory.schema.variables[int(self.index[0])].domain
        if isinstance(domain, Recorded):
            share, blur = memory.share.softmax(-1)[variable], memory.blur.exp()[variable] + 1e-4
            return KernelLaw(memory.spacing[variable], weight, value, share, blur), nearest
        levels = levels_of(domain)
        table = weight.new_zeros(*variable.shape, levels).scatter_add(-1, value.long(), weight)
        return CategoricalLaw(((1 - UNSEEN) * table + UNSEEN / levels).log()), nearest


def alike(schema: Schema) -> list[list[int]]:
    """The variables grouped by the kind of their law, in order of appearance."""
    groups: dict[object, list[int]] = {}
    for i, variable in enumerate(schema):
        key = Recorded if isinstance(variable.domain, Recorded) else variable.domain
        groups.setdefault(key, []).append(i)
    return list(groups.values())


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
