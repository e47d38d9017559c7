"""Several models behind one forward, each with the weight it earned on rows it had not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .boosting import Boosted
from .conditionals import Conditionals, Laws, Some, Temperatures, sharpened
from .errors import InputError
from .heads import Law, mixed
from .memory import Memory, Recalled
from .model import AnyOrderModel
from .schema import Mask, Values

Member = AnyOrderModel | Memory | Boosted  # what may be blended
FARTHEST = 50.0  # a remembered row beyond this distance is as good as none


class Circumstances(NamedTuple):
    """What the weights of the models depend on, for every cell."""

    variable: Int[Tensor, "*cells"]
    known: Float[Tensor, "*cells"]  # the share of the variables that is known
    nearest: Float[Tensor, "*cells"]  # how far the nearest row of the memory is; 0 without a memory


@final
class Blend(nn.Module):
    r"""The models' laws mixed, with weights that depend on the variable, on how much is known and on how near the memory comes.

    .. math:: p(x_i \mid x_G) = \sum_m \pi_{mi} \, p_m(x_i \mid x_G), \quad
        \pi_{mi} \propto \exp\left(a_{mi} + b_{mi} \, |G| / D + c_{mi} \log(1 + d_i(x_G)) + e_{mi} [|G| \ge D - 1] \right)

    with d the distance of the nearest remembered row, if a memory is among the models: where a row like this one was seen
    before it knows best, and far from all of them it does not. `context` is the memory's: which of its own rows a row is.

    A mixture of laws that are right in width is too wide: all models' laws of a number are sharpened by its `temperature` first.
    """

    temperature: Tensor

    def __init__(self, models: Sequence[Member]) -> None:
        super().__init__()
        if not models or any(model.schema != models[0].schema for model in models):
            raise InputError("A blend needs at least one model, and all of them with the same schema.")
        self.models = nn.ModuleList(models)
        self.schema = models[0].schema
        self._check_grouping()
        self.weight = nn.Parameter(torch.zeros(len(models), len(self.schema), 4))
        self.register_buffer("temperature", torch.ones(len(self.schema)))

    @property
    def dtype(self) -> torch.dtype:
        return self.weight.dtype

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        if context is not None and not any(isinstance(model, Memory) for model in self.members()):
            raise InputError("`context` numbers the rows of a memory, and there is none in this blend. Leave it out.")
        every = [model(x, given, context if isinstance(model, Memory) else None).parts for model in self.members()]
        known = given.sum(-1) / len(self.schema)
        return Conditionals([Mixed(parts[0].index, self, parts, known) for parts in zip(*every, strict=True)])

    def _check_grouping(self) -> None:
        """All models must keep the same variables together: laws are mixed part by part."""
        nothing = torch.zeros(0, len(self.schema))
        groups = [[part.index.tolist() for part in model(nothing, nothing.bool()).parts] for model in self.members()]
        if any(group != groups[0] for group in groups):
            raise InputError(
                f"The models of a blend group the variables as {groups}; expected the same groups. "
                "Give all numbers heads with room for the same number of atoms, as table_heads does."
            )

    def members(self) -> list[Member]:
        return [model for model in self.models if isinstance(model, Member)]

    def log_weight(self, at: Circumstances, weight: Tensor | None = None) -> Float[Tensor, "*cells model"]:
        """The logarithm of every model's share, from its own weights or from others that are tried."""
        weight = (self.weight if weight is None else weight)[:, at.variable].movedim(0, -2)  # (cell, model, circumstance)
        width = len(self.schema)
        all_else = (at.known * width > width - 1.5).to(weight.dtype)
        distance = at.nearest.clamp(max=FARTHEST).log1p()
        circumstances = torch.stack([torch.ones_like(distance), at.known, distance, all_else], dim=-1)
        return (weight @ circumstances.unsqueeze(-1)).squeeze(-1).log_softmax(-1)


Trained = Member | Blend  # what a file may hold
WORDS: dict[type, str] = {AnyOrderModel: "network", Memory: "memory", Boosted: "boosted trees"}


def members_of(model: Trained) -> list[Member]:
    """The models that make up this one."""
    return model.members() if isinstance(model, Blend) else [model]


@final
@dataclass(frozen=True)
class Mixed(Laws):
    """The same variables' laws by every model of a blend."""

    blend: Blend
    parts: tuple[Laws, ...]
    known: Float[Tensor, " batch"]

    def at(self, cells: Some) -> Law:
        laws, circumstances = self.each_at(cells)
        return mixed(laws, self.blend.log_weight(circumstances))

    def masses(
        self, places: Int[Tensor, " place"], edges: Float[Tensor, "place edge"], temperature: Temperatures | None = None
    ) -> Float[Tensor, "batch place bin"]:
        assert temperature is None, "a blend has temperatures of its own"
        temperature = self.blend.temperature[self.index[places]]
        known = self.known[:, None].expand(-1, len(places))
        masses, nearest = list[Tensor](), torch.zeros_like(known)
        for part in self.parts:
            if isinstance(part, Recalled):
                mass, nearest = part.masses_with_distance(places, edges, temperature)
            else:
                mass = part.masses(places, edges, temperature)
            masses.append(mass)
        at = Circumstances(self.index[places].expand(len(known), -1), known, nearest)
        return (torch.stack(masses, dim=-1) * self.blend.log_weight(at).exp().unsqueeze(2)).sum(-1)

    def each_at(self, cells: Some) -> tuple[list[Law], Circumstances]:
        """The laws by each model, and what their weights depend on."""
        row, variable = self.cells_at(cells, len(self.known))
        known = self.known[row]
        laws, nearest = list[Law](), torch.zeros_like(known)
        for part in self.parts:
            if isinstance(part, Recalled):
                law, nearest = part.with_distance(cells)
            else:
                law = part.at(cells)
            laws.append(sharpened(law, self.blend.temperature[variable]))
        return laws, Circumstances(variable, known, nearest)
