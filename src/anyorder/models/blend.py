"""Several models behind one forward, each with the weight it earned on rows it had not seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..distributions import Distribution, LatticeDistribution, mixed
from ..errors import FormatError, InputError
from ..schema import Mask, Values
from .conditionals import CellIndex, Conditionals, Distributions, Temperatures, sharpened
from .row_index import MOST_BINS, Recurring
from .trained import WHY_REFUSED, Description, Trained, check_same, described, rebuilt, shapes, tensors_of

MOST_MEMBERS = 64  # that a file may ask for
FEW_CONDITIONS = 3  # at most so many known variables are a few
FARTHEST_DISTANCE = 50.0  # a remembered row beyond this distance is as good as none


class GateInputs(NamedTuple):
    """What the weights of the models depend on, for every cell."""

    variable: Int[Tensor, "*cells"]
    known: Float[Tensor, "*cells"]  # the share of the variables that is known
    few: Float[Tensor, "*cells"]  # 1 / (1 + the number of known variables)
    nearest: Float[Tensor, "*cells"]  # how far the nearest row of the memory is; 0 without a memory


@final
class Blend(Trained):
    r"""The models' distributions mixed, with weights that depend on the variable, on how much is known and on how near
    the memory comes.

    .. math:: p(x_i \mid x_G) = \sum_m \pi_{mi} \, p_m(x_i \mid x_G), \quad
        \pi_{mi} \propto \exp\left(a_{mi} + b_{mi} \frac{|G|}{D} + \frac{c_{mi}}{1 + |G|} + d_{mi} \log(1 + d_i(x_G))
        + e_{mi} [|G| \ge D - 1] \right)

    with d the distance of the nearest remembered row, if a memory is among the models: where a row like this one was seen
    before it knows best, and far from all of them it does not. A model has no weight, and is not asked, where fewer variables
    are known than it needs to be better than the marginal (`least`).

    A mixture of distributions that are right in width is too wide: where more than a few variables are known, all
    models' distributions of a
    number are sharpened by its `temperature` first. Values that were seen often have a share of their own (`recurring`).

    `context` says of training rows which they are: their places in the memory and among all training rows (-1: in none).
    """

    kind, words = "blend", "blend"
    temperature: Tensor
    least: Tensor
    share: Tensor

    def __init__(self, models: Sequence[Trained]) -> None:
        super().__init__()
        if not models or any(model.schema != models[0].schema for model in models):
            raise InputError("A blend needs at least one model, and all of them with the same schema.")
        self.models = nn.ModuleList(models)
        self.schema = models[0].schema
        self._check_grouping()
        width = len(self.schema)
        self.weight = nn.Parameter(torch.zeros(len(models), width, 5))
        self.register_buffer("temperature", torch.ones(width))
        self.register_buffer("least", torch.zeros(len(models), width))  # how many variables must be known
        self.register_buffer("share", torch.zeros(width, MOST_BINS))  # of values that were seen, in every bin of a number
        self.recurring: Recurring | None = None

    @property
    def dtype(self) -> torch.dtype:
        return self.weight.dtype

    def remember(self, recurring: Recurring) -> None:
        """Give the values that were seen their share."""
        recurring.use(self.share)
        self.recurring = recurring

    def forget(self) -> "Blend":
        """Keep nothing of the values that were seen."""
        self.share.zero_()
        self.recurring = None
        return self

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        if context is not None and context.shape[1] != 2:
            raise InputError(
                f"The context of a blend has {context.shape[1]} column(s); expected 2, places in its memory and among all rows."
            )
        place = None if context is None else context[:, :1]
        every = [model(x, given, place if model.knows_rows else None).parts for model in self.members()]
        known, own = given.sum(-1), None if context is None else context[:, 1]
        return Conditionals([BlendDistributions(parts[0].index, self, parts, known, own) for parts in zip(*every, strict=True)])

    def _check_grouping(self) -> None:
        """All models must keep the same variables together: distributions are mixed part by part."""
        nothing = torch.zeros(0, len(self.schema))
        groups = [[part.index.tolist() for part in model(nothing, nothing.bool()).parts] for model in self.members()]
        if any(group != groups[0] for group in groups):
            raise InputError(
                f"The models of a blend group the variables as {groups}; expected the same groups. "
                "Give all numbers heads with room for the same number of atoms, as table_heads does."
            )

    @property
    def has_memory(self) -> bool:
        return any(member.knows_rows for member in self.members())

    def members(self) -> list[Trained]:
        return [model for model in self.models if isinstance(model, Trained)]

    @property
    def parts(self) -> list[str]:
        return [part for member in self.members() for part in member.parts]

    @property
    def rows_held(self) -> int:
        return max(member.rows_held for member in self.members())

    def describe(self) -> Description:
        return {"members": [described(member) for member in self.members()]}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "Blend":
        members = about.get("members")
        if not isinstance(members, list) or not 1 <= len(members) <= MOST_MEMBERS:
            raise FormatError(f"{name} describes a blend of {members!r:.60}; expected a list of models. {WHY_REFUSED}")
        shares = [tensors_of(f"models.{k}", tensors) for k in range(len(members))]
        models = [rebuilt(name, member, share) for member, share in zip(members, shares, strict=True)]
        own = {one: tensor for one, tensor in tensors.items() if not one.startswith("models.")}
        width = len(models[0].schema)
        wanted = {"weight": (len(models), width, 5), "temperature": (width,), "least": (len(models), width)}
        check_same(name, wanted | {"share": (width, MOST_BINS)}, shapes(own))
        if len(tensors) != len(own) + sum(map(len, shares)):
            raise FormatError(f"{name} contradicts itself: it holds tensors of no model of its blend. Save the model again.")
        blend = cls(models)
        blend.load_state_dict(tensors)
        return blend

    def circumstances(self, variable: Int[Tensor, "*cells"], known: Int[Tensor, "*cells"], nearest: Tensor) -> GateInputs:
        """Of cells of which so many variables are known."""
        return GateInputs(variable, known / len(self.schema), 1 / (1 + known.to(nearest.dtype)), nearest)

    def log_weight(self, at: GateInputs, weight: Tensor | None = None) -> Float[Tensor, "*cells model"]:
        """The logarithm of every model's share, from its own weights or from others that are tried."""
        weight = (self.weight if weight is None else weight)[:, at.variable].movedim(0, -2)  # (cell, model, circumstance)
        width = len(self.schema)
        all_else = (at.known * width > width - 1.5).to(weight.dtype)
        distance = at.nearest.clamp(max=FARTHEST_DISTANCE).log1p()
        features = torch.stack([torch.ones_like(distance), at.known, at.few, distance, all_else], dim=-1)
        logits = (weight @ features.unsqueeze(-1)).squeeze(-1)
        return logits.masked_fill(~self.counts(at.variable, 1 / at.few - 1), -torch.inf).log_softmax(-1)

    def counts(self, variable: Int[Tensor, "*cells"], known: Tensor) -> Bool[Tensor, "*cells model"]:
        """Which models have a weight when so many variables are known."""
        return known.unsqueeze(-1) > self.least[:, variable].movedim(0, -1) - 0.5

    def temperatures(self, variable: Int[Tensor, "*cells"], known: Int[Tensor, "*cells"]) -> Float[Tensor, "*cells"]:
        """1 where only a few variables are known."""
        return torch.where(known <= self.few, 1.0, self.temperature[variable])

    @property
    def few(self) -> int:
        return min(FEW_CONDITIONS, len(self.schema) // 4)


@final
@dataclass(frozen=True)
class BlendDistributions(Distributions):
    """The same variables' distributions by every model of a blend."""

    blend: Blend
    parts: tuple[Distributions, ...]
    known: Int[Tensor, " batch"]  # how many variables
    own: Int[Tensor, " batch"] | None  # which training row it is

    @property
    def levels(self) -> Sequence[int]:
        return self.parts[0].levels

    def at(self, cells: CellIndex) -> Distribution:
        if any(part.copies_values for part in self.parts):
            distributions, at = self.each_at(cells)
            return mixed(distributions, self.log_weight(at))
        distributions, at = self._smooth_at(cells)
        return self._with_recurring(mixed(distributions, self.log_weight(at)), cells)  # the same, once for all models

    def masses(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None = None
    ) -> Float[Tensor, "batch place bin"]:
        assert temperature is None, "a blend has temperatures of its own"
        if self.blend.recurring is not None or (self.known <= self.blend.few).any():  # distributions differ from row to row
            return super().masses(places, edges)
        temperature = self.blend.temperature[self.index[places]]
        known = self.known[:, None].expand(-1, len(places))
        variable = self.index[places].expand(len(known), -1)
        masses, nearest = list[Tensor](), torch.zeros(known.shape)
        for part in self._asked(variable, known):
            mass, distance = part.masses_with_distance(places, edges, temperature)
            masses.append(mass)
            nearest = nearest if distance is None else distance
        at = self.blend.circumstances(variable, known, nearest)
        return (torch.stack(masses, dim=-1) * self.log_weight(at).exp().unsqueeze(2)).sum(-1)

    def each_at(self, cells: CellIndex) -> tuple[list[Distribution], GateInputs]:
        """The distributions by each model that is asked, and what their weights depend on."""
        distributions, at = self._smooth_at(cells)
        parts = self._asked(at.variable, 1 / at.few - 1)
        return [
            distribution if part.copies_values else self._with_recurring(distribution, cells)
            for distribution, part in zip(distributions, parts, strict=True)
        ], at

    def _smooth_at(self, cells: CellIndex) -> tuple[list[Distribution], GateInputs]:
        """The same, without the share of values that were seen."""
        row, variable = self.cells_at(cells, len(self.known))
        known = self.known[row]
        distributions, nearest = list[Distribution](), torch.zeros(known.shape)
        for part in self._asked(variable, known):
            distribution, distance = part.with_distance(cells)
            nearest = nearest if distance is None else distance
            distributions.append(sharpened(distribution, self.blend.temperatures(variable, known)))
        return distributions, self.blend.circumstances(variable, known, nearest)

    def _with_recurring(self, distribution: Distribution, cells: CellIndex) -> Distribution:
        if self.blend.recurring is None or not isinstance(distribution, LatticeDistribution):
            return distribution
        row, variable = self.cells_at(cells, len(self.known))
        return self.blend.recurring.distribution(distribution, variable, None if self.own is None else self.own[row])

    def _asked(self, variable: Int[Tensor, "*cells"], known: Tensor) -> list[Distributions]:
        """The parts of those models that have a weight in one of these cells."""
        return [part for part, asked in zip(self.parts, self._some(variable, known), strict=True) if asked]

    def _some(self, variable: Int[Tensor, "*cells"], known: Tensor) -> list[bool]:
        return self.blend.counts(variable, known).flatten(0, -2).any(0).tolist() if known.numel() else [True] * len(self.parts)

    def log_weight(self, at: GateInputs) -> Float[Tensor, "*cells model"]:
        """Of the models that were asked."""
        return self.blend.log_weight(at)[..., torch.tensor(self._some(at.variable, 1 / at.few - 1))]
