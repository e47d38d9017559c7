"""A model without a network: boosted trees on what is known; laws around what they guess of numbers, scores of codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .conditionals import Conditionals, Laws, Some
from .errors import InputError
from .heads import IMPOSSIBLE, CategoricalLaw, LatticeLaw, Law, RecordedLaw, bound
from .heads.bounded import bent
from .memory import UNSEEN
from .schema import Mask, Recorded, Schema, Values, alike, bounds_of, curve_of, levels_of, spacing_of
from .trees import Reachable, Trees

LEAST_SCALE = 1e-4
SCALES = (0.5, 0.15, 0.03)  # first guesses of the laws' widths
NEAREST, FARTHEST = 0.02, 20.0  # to a bound, between which its distance matters
MOST_LEVELS = 32  # of a code that has trees
MOST_BYTES = 2**28  # of tables by which leaves are found fast


class Grown(NamedTuple):
    """The trees of all numbers, and those of all codes.

    Every number has two sets of trees, one for rows with gaps and one for rows of which all else is known: first those for
    gaps of all numbers, then those for whole rows. A code has a set for the score of every level; of two levels, for the second.
    """

    numbers: Trees
    codes: Trees


def score_sets(schema: Schema) -> list[range]:
    """Which sets of trees give the scores of every variable's levels; none for numbers, nor for codes with many levels."""
    out, start = [], 0
    for variable in schema:
        levels = levels_of(variable.domain)
        count = 1 if levels == 2 else levels if levels <= MOST_LEVELS else 0
        out.append(range(start, start := start + count))
    return out


@final
class Boosted(nn.Module):
    r"""The law of a number is a few logistic laws around the sum of its trees, as wide as the guesses are usually off.

    .. math:: P(x_i \mid x_G) = \sum_k \pi_k \, \mathrm{Logistic}(x_i; m, \sigma_k), \quad m = \sum_t f_{it}(x_G), \quad
        \log \sigma_k = a_{ik} + b_{ik} \frac{h}{D} + \frac{c_{ik}}{1 + h} + d_{ik} m + e_{ik} \log(r + \delta)

    integrated over what a value was rounded from, with h the number of other variables that are hidden and r the distance of
    the guess from the nearer bound of its variable; the share of each depends on the same. Where h is 0, trees and widths are
    others, made for that question alone, if they can be trusted. Codes have the softmax of their levels' scores, made
    less sure, and a thousandth of the marginal; with many levels, the marginal.
    """

    frequency: Tensor
    sureness: Tensor
    spacing: Tensor
    bounds: Tensor
    curve: Tensor
    place: Tensor
    trusted: Tensor

    def __init__(self, schema: Schema, grown: Grown, frequency: Float[Tensor, "variable level"]) -> None:
        super().__init__()
        check_trees(schema, grown)
        self.schema = schema
        self.groups = [torch.tensor(group) for group in alike(schema)]
        self.scores = score_sets(schema)
        for kind, trees in grown._asdict().items():
            for name, tensor in trees._asdict().items():
                self.register_buffer(f"{kind}_{name}", tensor)
        self.register_buffer("frequency", frequency)
        self.register_buffer("sureness", torch.ones(len(schema)))  # times which the scores of a code's levels are taken
        self.register_buffer("spacing", torch.tensor([spacing_of(variable.domain) for variable in schema]), persistent=False)
        self.register_buffer("bounds", torch.tensor([bounds_of(variable.domain) for variable in schema]), persistent=False)
        self.register_buffer("curve", torch.tensor([curve_of(variable.domain) for variable in schema]), persistent=False)
        place = torch.tensor([isinstance(v.domain, Recorded) for v in schema]).cumsum(0) - 1
        self.register_buffer("place", place, persistent=False)  # of a number among the numbers
        count = len(grown.numbers.base)
        self.register_buffer("trusted", torch.ones(count // 2))  # 1 where the trees for whole rows are used, 0 where not
        self.scale = nn.Parameter(torch.zeros(count, len(SCALES), 5))
        self.scale.data[..., 0] = torch.tensor(SCALES).log()
        self.share = nn.Parameter(torch.zeros(count, len(SCALES), 5))
        self.reachable: dict[tuple[str, int], Reachable | None] = {}  # made when they are first needed

    @property
    def trees(self) -> Grown:
        return Grown(*(Trees(*(self.get_buffer(f"{kind}_{name}") for name in Trees._fields)) for kind in Grown._fields))

    @property
    def dtype(self) -> torch.dtype:
        return self.scale.dtype

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        seen = torch.where(given, x, torch.nan).to(self.dtype)  # hidden values cannot leak
        return Conditionals([Guessed(group.to(x.device), self, seen) for group in self.groups])

    def plant(self, grown: Grown) -> None:
        """Other trees, grown from more rows; the laws around their guesses stay."""
        check_trees(self.schema, grown)
        for mine, other in zip(self.trees, grown, strict=True):
            for old, new in zip(mine, other, strict=True):
                old.copy_(new)
        self.reachable.clear()
        self.trusted *= grown.numbers.value[len(self.trusted) :].flatten(1).any(-1)  # of these rows too few may have been whole

    def law(self, seen: Float[Tensor, "cell variable"], target: Int[Tensor, " cell"]) -> LatticeLaw:
        """Of one number in every row; what is not known is NaN, and the target itself is never looked at."""
        hidden = seen.isnan().sum(-1) - seen.gather(1, target[:, None]).isnan().squeeze(1).long()
        which = self.set_of(target, hidden)
        return self.around(self.within(self.guess(seen, which), target), hidden, which, target)

    def set_of(self, target: Int[Tensor, " cell"], hidden: Int[Tensor, " cell"]) -> Int[Tensor, " cell"]:
        """Which trees guess a number when so many of the other variables are hidden."""
        number = self.place[target]
        return number + len(self.trusted) * ((hidden == 0) & (self.trusted[number] == 1))

    @torch.no_grad()
    def guess(self, seen: Float[Tensor, "cell variable"], which: Int[Tensor, " cell"]) -> Float[Tensor, " cell"]:
        """The sum of a set of trees."""
        out = torch.zeros_like(seen[:, 0])
        for one in which.unique().tolist():
            rows = which == one
            out[rows] = self.sums("numbers", slice(one, one + 1), seen[rows])[:, 0]
        return out

    @torch.no_grad()
    def level_scores(self, seen: Float[Tensor, "cell variable"], target: int) -> Float[Tensor, "cell level"]:
        """Of a code; its own value is never looked at, since no tree of its own does."""
        sets = self.scores[target]
        found = self.sums("codes", slice(sets.start, sets.stop), seen)
        return torch.cat([torch.zeros_like(found), found], dim=-1) if len(sets) == 1 else found

    def sums(self, kind: str, sets: slice, seen: Float[Tensor, "cell variable"]) -> Float[Tensor, "cell set"]:
        """Of some sets of trees."""
        trees = Trees(*(self.get_buffer(f"{kind}_{name}")[sets].cpu() for name in Trees._fields))
        if (kind, sets.start) not in self.reachable:
            taken = sum(8 * table.size for one in self.reachable.values() if one for table in one.open)
            self.reachable[kind, sets.start] = Reachable(trees) if taken + Reachable.bytes_of(trees) <= MOST_BYTES else None
        finder = self.reachable[kind, sets.start] or trees
        return trees.sums(finder.leaves(seen.float().cpu().numpy())).to(seen)

    def code_law(self, seen: Float[Tensor, "cell variable"], target: int) -> CategoricalLaw:
        """Of one code in every row."""
        usual = self.frequency[target, : levels_of(self.schema.variables[target].domain)]
        if not self.scores[target]:
            return CategoricalLaw(usual.log().expand(len(seen), -1))
        sure = (self.sureness[target] * self.level_scores(seen, target)).softmax(-1)
        return CategoricalLaw(((1 - UNSEEN) * sure + UNSEEN * usual).log())

    def within(self, guess: Float[Tensor, " cell"], target: Int[Tensor, " cell"]) -> Float[Tensor, " cell"]:
        """Trees do not know that a number ends somewhere: the nearest guess that does."""
        low, high = self.bounds[target].unbind(-1)
        return guess.maximum(low).minimum(high)

    def around(
        self,
        guess: Float[Tensor, " cell"],
        hidden: Int[Tensor, " cell"],
        which: Int[Tensor, " cell"],
        target: Int[Tensor, " cell"],
    ) -> LatticeLaw:
        """The law around a guess, made by a set of trees when so many of the other variables were hidden."""
        low, high = self.bounds[target].unbind(-1)
        near = (torch.minimum(guess - low, high - guess).clamp(0.0, FARTHEST) + NEAREST).log()
        circumstances = torch.stack(
            [torch.ones_like(guess), hidden / len(self.schema), 1 / (1 + hidden), guess, near], dim=-1
        ).unsqueeze(-1)
        sigma = (self.scale[which] @ circumstances).squeeze(-1).clamp(-12.0, 6.0).exp() + LEAST_SCALE
        share = (self.share[which] @ circumstances).squeeze(-1)
        curve = bent(self.curve[target])
        mu, none = guess.unsqueeze(-1).expand_as(sigma), guess.new_zeros(len(guess), 0)
        law = RecordedLaw(self.spacing[target], guess.new_zeros(len(guess), 1), share, mu, sigma, none, curve)
        return bound(law, low, high, curve)


@final
@dataclass(frozen=True)
class Guessed(Laws):
    """The laws that boosted trees give, made when they are asked for."""

    model: Boosted
    seen: Float[Tensor, "batch variable"]

    @property
    def levels(self) -> Sequence[int]:
        return [levels_of(self.model.schema.variables[i].domain) for i in self.index.tolist()]

    def at(self, cells: Some) -> Law:
        row, variable = self.cells_at(cells, len(self.seen))
        domain = self.model.schema.variables[int(self.index[0])].domain
        flat, seen = variable.flatten(), self.seen[row.flatten()]
        if isinstance(domain, Recorded):
            law: Law = self.model.law(seen, flat)
        else:
            table = seen.new_full((len(flat), max(self.levels)), IMPOSSIBLE)
            for target in flat.unique().tolist():
                scores = self.model.code_law(seen[flat == target], target).logits
                table[flat == target, : scores.shape[1]] = scores
            law = CategoricalLaw(table)
        return law.each(lambda t: t.unflatten(0, variable.shape) if variable.ndim else t.squeeze(0))


def check_trees(schema: Schema, grown: Grown) -> None:
    """Trees from a file may be anything; what passes can be walked down."""
    numbers = sum(isinstance(variable.domain, Recorded) for variable in schema)
    for trees, sets, of in zip(
        grown,
        (2 * numbers, score_sets(schema)[-1].stop),
        (f"each of 2 sets of {numbers} numbers", "the score of every level"),
        strict=True,
    ):
        _, count, nodes = trees.feature.shape
        shapes = [(sets, count, nodes), (sets, count, nodes), (sets, count, nodes + 1), (sets,)]
        found = [tuple(tensor.shape) for tensor in trees]
        if found != shapes or nodes & (nodes + 1):
            raise InputError(
                f"The trees have the shapes {found}; expected (set, tree, node) twice, one leaf more than nodes, a power of 2, "
                f"and a base for {of}."
            )
        looked_at = trees.feature.abs()
        if not ((looked_at == looked_at.round()) & (looked_at >= 1) & (looked_at <= len(schema))).all():
            raise InputError(f"A tree looks at a variable that does not exist; expected 1 to {len(schema)}, or their negatives.")
        if not all(tensor.isfinite().all() for tensor in trees):
            raise InputError("The trees hold numbers that are not finite. Scale the values before the trees are grown.")
