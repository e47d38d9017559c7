"""Several models behind one forward, each with the weight it earned on rows it had not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .conditionals import Conditionals, Laws, Some
from .errors import InputError
from .heads import Law, mixed
from .memory import Memory
from .model import AnyOrderModel, check_context
from .schema import Mask, Values


@final
class Blend(nn.Module):
    r"""For every variable and every number of known ones, the models' laws mixed.

    .. math:: p(x_i \mid x_G) = \sum_m \pi_{mi}(|G|) \, p_m(x_i \mid x_G), \quad
        \pi_{mi}(g) \propto \exp\left(a_{mi} + b_{mi} \, g / D\right)
    """

    def __init__(self, models: Sequence[AnyOrderModel | Memory]) -> None:
        super().__init__()
        if not models or any(model.schema != models[0].schema for model in models):
            raise InputError("A blend needs at least one model, and all of them with the same schema.")
        self.models = nn.ModuleList(models)
        self.schema = models[0].schema
        self._check_grouping()
        self.weight = nn.Parameter(torch.zeros(len(models), len(self.schema), 2))

    @property
    def dtype(self) -> torch.dtype:
        return self.weight.dtype

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        check_context([], context, len(x))
        every = [model(x, given).parts for model in self.members()]
        log_weight = self.log_weight(given)
        return Conditionals([Mixed(parts[0].index, parts, log_weight[:, parts[0].index]) for parts in zip(*every, strict=True)])

    def _check_grouping(self) -> None:
        """All models must keep the same variables together: laws are mixed part by part."""
        nothing = torch.zeros(0, len(self.schema))
        groups = [[part.index.tolist() for part in model(nothing, nothing.bool()).parts] for model in self.members()]
        if any(group != groups[0] for group in groups):
            raise InputError(
                f"The models of a blend group the variables as {groups}; expected the same groups. "
                "Give all numbers heads with room for the same number of atoms, as table_heads does."
            )

    def members(self) -> list[AnyOrderModel | Memory]:
        return [model for model in self.models if isinstance(model, AnyOrderModel | Memory)]

    def log_weight(self, given: Mask, weight: Tensor | None = None) -> Float[Tensor, "batch variable model"]:
        """The logarithm of every model's share, from its own weights or from others that are tried."""
        level, slope = (self.weight if weight is None else weight).unbind(-1)  # (model, variable)
        known = given.sum(-1)[:, None, None] / len(self.schema)
        return (level.T + known * slope.T).log_softmax(-1)


@final
@dataclass(frozen=True)
class Mixed(Laws):
    """The same variables' laws by every model, and the weights of the models."""

    parts: tuple[Laws, ...]
    log_weight: Float[Tensor, "batch part model"]

    def at(self, cells: Some) -> Law:
        return mixed([part.at(cells) for part in self.parts], self.log_weight[cells])
