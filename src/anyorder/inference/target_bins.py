"""The default estimator of information: how far the laws of the targets move, bin by bin, for values drawn of every candidate."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..conditionals import Conditionals
from ..heads import DiscreteLaw
from ..model import Model
from ..schema import Mask, Schema, Values
from .futures import Bins, Futures, Gains, Ways, draw_targets
from .mutual_information import MOST_BINNED, Estimator, Information, Sets


class Outcomes(NamedTuple):
    """How a set may turn out: rows with its values, and how likely each way is."""

    y: Ways
    weight: Float[Tensor, "row way"]
    drawn: bool


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
            laws = model(x[rows], given[rows])
            columns = [self._one(model, laws, x[rows], given[rows], targets, members, rng) for members in sets]
            parts.append([torch.stack(column, dim=-1) for column in zip(*columns, strict=True)])
        return Information(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _one(
        self,
        model: Model,
        laws: Conditionals,
        x: Values,
        given: Mask,
        targets: tuple[int, ...],
        members: tuple[int, ...],
        rng: Generator,
    ) -> Information:
        """Of one set, for every row; nothing where all of it is known."""
        found = self._outcomes(model, laws, x, given, members, rng, exact=len(targets) == len(members) == 1)
        ways = found.y.shape[1]
        total = torch.zeros(found.weight.shape, dtype=torch.float64, device=x.device)
        y, known = found.y.flatten(0, 1).clone(), given.repeat_interleave(ways, 0)
        always = torch.ones(len(x), 1, dtype=torch.bool, device=x.device)
        for place, target in enumerate(targets):
            after = known.clone()
            after[:, list(members)] = True
            now = model(y, after)
            before = laws if place == 0 else model(y, known)
            own = Bins.of(model.schema, now, [target], ways)
            total += own.divergence(Bins.of(model.schema, before, [target], ways, shared=place == 0), always, rng)[:, :, 0]
            if place + 1 < len(targets):
                y[:, target] = now.law(target).sample(rng).to(y.dtype)
                known[:, target] = True
        hidden = (~given[:, list(members)]).any(-1)
        value = torch.where(hidden, (found.weight * total).sum(-1), 0.0)
        error = total.std(-1) / ways**0.5 if found.drawn else torch.zeros_like(value)
        return Information(value, torch.where(hidden, error, 0.0))

    def _outcomes(
        self, model: Model, laws: Conditionals, x: Values, given: Mask, members: tuple[int, ...], rng: Generator, exact: bool
    ) -> Outcomes:
        x = torch.where(given, x, 0.0)
        first = laws.law(members[0])
        if exact and isinstance(first, DiscreteLaw) and first.pmf().shape[-1] <= self.draws:
            weight = first.pmf().to(x.dtype)
            y = x.unsqueeze(1).repeat(1, weight.shape[1], 1)
            y[:, :, members[0]] = torch.arange(weight.shape[1], device=x.device, dtype=x.dtype)
            return Outcomes(y, weight, drawn=False)
        wide = first.each(lambda t: t.unsqueeze(1).expand(-1, self.draws, *t.shape[1:]))
        y = draw_targets(model, x, given, members, self.draws, rng, wide).y
        kept = given.unsqueeze(1).expand_as(y)
        even = torch.full(y.shape[:2], 1 / self.draws, dtype=x.dtype, device=x.device)
        return Outcomes(torch.where(kept, x.unsqueeze(1), y), even, drawn=True)

    def terms(self, model: Model, futures: Futures, sets: Sets, rng: Generator) -> Gains:
        raise NotImplementedError("TargetBins needs no futures: see `estimate`.")

    def exact(self, schema: Schema, members: tuple[int, ...]) -> bool:
        return False
