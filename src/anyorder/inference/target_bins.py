"""The default estimator of information: how far the laws of the targets move, bin by bin, for values drawn of every candidate."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from ..conditionals import Conditionals
from ..heads import DiscreteLaw
from ..model import Model
from ..schema import Mask, Values, levels_of
from .futures import Bins, Columns, Ways, draw_targets
from .mutual_information import MOST_BINNED, Estimator, Information, Sets


class Outcomes(NamedTuple):
    """How a set may turn out: rows with its values, and how likely each way is."""

    y: Ways
    weight: Float[Tensor, "row way"]
    drawn: bool

    def summary(self, moved: Float[Tensor, "row way"], hidden: Bool[Tensor, " row"]) -> Information:
        """The mean over the ways, and its standard error; an impossible code has no laws, what is known tells nothing."""
        moved = torch.where(self.weight > 0, moved, 0.0)
        value = (self.weight * moved).sum(-1)
        error = moved.std(-1) / moved.shape[1] ** 0.5 if self.drawn else torch.zeros_like(value)
        return Information(torch.where(hidden, value, 0.0), torch.where(hidden, error, 0.0))


@final
@dataclass(frozen=True)
class TargetBins(Estimator):
    r"""How far the laws of the targets move when the candidate becomes known, numbers compared bin by bin.

    .. math:: I(x_T; x_A \mid x_G) = \mathbb{E}_{x_A} \, KL(p(x_T \mid x_A, x_G) \,\|\, p(x_T \mid x_G))

    It asks the model what it will say about the targets, where `CandidateBins` asks what the targets say about the candidate:
    in a trained model the two differ, and this is the one that matters for guessing the targets. A single candidate of few
    codes, for a single target, is not drawn: every code is visited, with its probability.
    """

    draws: int = 8
    at_once: ClassVar[int] = MOST_BINNED

    def estimate(self, model: Model, x: Values, given: Mask, targets: tuple[int, ...], sets: Sets, rng: Generator) -> Information:
        parts = []
        for rows in torch.arange(len(x)).split(max(1, self.at_once // self.draws)):
            start = Start.of(model, x[rows], given[rows], targets)
            together = max(1, self.at_once // self.draws // len(rows))  # sets that share a call of the model
            told = [self._some(model, start, sets[k : k + together], rng) for k in range(0, len(sets), together)]
            parts.append([torch.cat(column, dim=-1) for column in zip(*told, strict=True)])
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

    def _moved(
        self, model: Model, start: "Start", owner: Int[Tensor, " way"], y: Values, measured: Mask, rng: Generator
    ) -> Float[Tensor, " way"]:
        """How far the laws of the targets move, one after the other, when what is measured becomes known."""
        total, known = torch.zeros(len(y), dtype=torch.float64, device=y.device), start.given[owner]
        for place, target in enumerate(start.targets):
            laws = model(y, measured)
            before = start.first.of_rows(owner) if place == 0 else Bins.of(model.schema, model(y, known), [target], ways=1)
            total += Bins.of(model.schema, laws, [target], ways=1).divergence(before)[:, 0, 0]
            if place + 1 < len(start.targets):
                y[:, target] = laws.law(target).sample(rng).to(y.dtype)
                known[:, target] = measured[:, target] = True
        return total

    def _outcomes(self, model: Model, start: "Start", sets: Sets, rng: Generator) -> list[Outcomes]:
        """Every code of few, draws of all other single variables, drawn together, and draws of larger sets."""
        levels = [levels_of(variable.domain) for variable in model.schema]
        counted = [
            members for members in sets if len(members) == len(start.targets) == 1 and 0 < levels[members[0]] <= self.draws
        ]
        alone = [members[0] for members in sets if len(members) == 1 and members not in counted]
        together = Columns.of(start.laws, alone, self.draws, shared=True).sample(rng).unbind(-1) if alone else ()
        drawn = dict(zip(alone, together, strict=True))
        codes_of = Columns.of(start.laws, [members[0] for members in counted], 1, shared=True)
        out = []
        for members in sets:
            if members in counted:
                law = codes_of.law(members[0])
                assert isinstance(law, DiscreteLaw)
                codes = torch.arange(levels[members[0]], device=start.x.device, dtype=start.x.dtype)
                y = start.with_value(members[0], codes.expand(len(start.x), -1))
                out.append(Outcomes(y, law.pmf()[:, 0], drawn=False))
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
    laws: Conditionals
    first: Bins  # of the first target

    @classmethod
    def of(cls, model: Model, x: Values, given: Mask, targets: tuple[int, ...]) -> "Start":
        x = torch.where(given, x, 0.0)
        laws = model(x, given)
        return cls(x, given, targets, laws, Bins.of(model.schema, laws, targets[:1], ways=1))

    def with_value(self, variable: int, value: Float[Tensor, "row way"]) -> Ways:
        """The rows, with these values of one variable where it is not known."""
        y = self.x.unsqueeze(1).repeat(1, value.shape[1], 1)
        y[:, :, variable] = torch.where(self.given[:, variable, None], y[:, :, variable], value.to(y.dtype))
        return y
