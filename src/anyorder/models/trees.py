"""Sets of boosted trees, and the sums of their leaves: by going down every tree, or by what every value leaves reachable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from ..distributions import IMPOSSIBLE, CategoricalDistribution, Distribution, LatticeDistribution, RecordedDistribution, bound
from ..distributions.bounded import bent
from ..errors import InputError
from ..schema import Mask, Recorded, Schema, Values, alike, bounds_of, curve_of, levels_of, spacing_of
from .conditionals import CellIndex, Conditionals, Distributions
from .memory import UNSEEN
from .trained import Description, Shapes, Trained, check_same, shapes

Seen = NDArray[np.float32]  # (cell, variable): what is not known is NaN
Leaves = NDArray[np.int64]  # (cell, tree): the number of the leaf that every tree comes to

LARGEST_THRESHOLD = float(np.finfo(np.float32).max)
WORD = 64  # leaves at most, if they are to be bits of a number
LEAF_WORDS_AT_ONCE = 2**15  # cells times trees that are looked at together: 256 kB, which caches hold


class Trees(NamedTuple):
    """So many trees in every set, all of one depth: node k has the children 2k + 1 and 2k + 2, and leaves follow nodes.

    A node looks at a variable, and goes left if its value is not above the threshold. If the value is not known, the sign
    decides: variable v is written v + 1 where a gap goes left, and -(v + 1) where it goes right.
    """

    feature: Float[Tensor, "set tree node"]
    threshold: Float[Tensor, "set tree node"]
    value: Float[Tensor, "set tree leaf"]
    base: Float[Tensor, " set"]  # to which the leaves are added

    @classmethod
    def empty(cls, sets: int, trees: int, depth: int) -> "Trees":
        """Trees that guess 0: all goes left."""
        nodes = 2**depth - 1
        shape = (sets, trees, nodes)
        return cls(
            torch.ones(shape), torch.full(shape, LARGEST_THRESHOLD), torch.zeros(sets, trees, nodes + 1), torch.zeros(sets)
        )

    def of(self, place: int | slice) -> "Trees":
        """One set, or some, as views."""
        return Trees(*(tensor[place] for tensor in self))

    def leaves(self, seen: Seen) -> Leaves:
        """Which leaf the trees of all sets come to: all go down together, a level at a time."""
        sets, trees, nodes = self.feature.shape
        feature, threshold = self.feature.numpy().ravel(), self.threshold.numpy().ravel()
        first, node = np.arange(sets * trees) * nodes, np.zeros((len(seen), sets * trees), dtype=np.int64)
        for _ in range((nodes + 1).bit_length() - 1):
            signed = feature[first + node]
            value = np.take_along_axis(seen, np.abs(signed).astype(np.int64) - 1, axis=1)
            left = np.where(np.isnan(value), signed > 0, value <= threshold[first + node])
            node = 2 * node + 2 - left
        return node - nodes

    def sums(self, leaves: Leaves) -> Float[Tensor, "cell set"]:
        """What every set guesses: the sum of the leaves its trees came to."""
        sets, trees, count = self.value.shape
        place = torch.from_numpy(leaves + np.arange(sets * trees) * count)
        return self.base + self.value.reshape(-1)[place].unflatten(1, (sets, trees)).sum(-1)


@final
class Reachable:
    """The leaves that every value of every variable leaves reachable in the trees of some sets, as bits of a number.

    A node that sends a value to the right closes the leaves on its left. Of the leaves that no node closes, the tree comes to
    the first (Lucchese et al., QuickScorer, 2015). What all nodes of one variable close together depends only on how many of
    their thresholds lie below the value: it is looked up.
    """

    def __init__(self, trees: Trees) -> None:
        sets, count, nodes = trees.feature.shape
        feature, threshold = (t.numpy().reshape(sets * count, nodes) for t in (trees.feature, trees.threshold))
        closes = np.array([left_leaves(node, nodes + 1) for node in range(nodes)], dtype=np.uint64)
        works = (threshold < LARGEST_THRESHOLD) | (feature < 0)  # all others send everything to the left
        self.trees = sets * count
        self.variables = np.unique(np.abs(feature[works]).astype(np.int64)) - 1
        self.cuts, self.open = list[NDArray[np.float32]](), list[NDArray[np.uint64]]()
        for variable in self.variables:
            tree, node = np.nonzero(works & (np.abs(feature) == variable + 1))
            cuts, rank = np.unique(threshold[tree, node], return_inverse=True)
            table = np.full((len(cuts) + 2, self.trees), ~np.uint64(0))  # so many thresholds lie below; last, a gap
            np.bitwise_and.at(table, (rank + 1, tree), ~closes[node])
            table[:-1] = np.bitwise_and.accumulate(table[:-1], axis=0)
            right = feature[tree, node] < 0
            np.bitwise_and.at(table, (np.full(right.sum(), -1), tree[right]), ~closes[node[right]])
            self.cuts.append(cuts)
            self.open.append(table)

    @staticmethod
    def bytes_of(trees: Trees) -> int:
        """How much memory it takes, at most; infinite where there are more leaves than bits."""
        sets, count, nodes = trees.feature.shape
        works = (trees.threshold < LARGEST_THRESHOLD) | (trees.feature < 0)
        rows = int(works.sum()) + 2 * min(nodes * sets * count, int(trees.feature.abs().max()) if works.any() else 0)
        return 8 * rows * sets * count if nodes < WORD else 2**62

    def leaves(self, seen: Seen) -> Leaves:
        """Which leaf the trees of all sets come to."""
        step = max(1, LEAF_WORDS_AT_ONCE // max(1, self.trees))
        parts = [self._leaves(seen[k : k + step]) for k in range(0, max(1, len(seen)), step)]
        return np.concatenate(parts)

    def _leaves(self, seen: Seen) -> Leaves:
        left = np.full((len(seen), self.trees), ~np.uint64(0))
        for variable, cuts, table in zip(self.variables, self.cuts, self.open, strict=True):
            value = seen[:, variable]
            left &= table[np.where(np.isnan(value), len(cuts) + 1, np.searchsorted(cuts, value))]
        return np.bitwise_count((left & (~left + np.uint64(1))) - np.uint64(1)).astype(np.int64)


def left_leaves(node: int, leaves: int) -> int:
    """The leaves on the left of a node, as bits."""
    level = (node + 1).bit_length() - 1
    below = leaves >> level
    return ((1 << below // 2) - 1) << (node + 1 - (1 << level)) * below


LEAST_SCALE = 1e-4
SCALES = (0.5, 0.15, 0.03)  # first guesses of the distributions' widths
NEAREST, FARTHEST_BOUND = 0.02, 20.0  # to a bound, between which its distance matters
MOST_LEVELS_OF_TREES = 32  # of a code that has trees
MOST_SCORE_BYTES = 2**28  # of tables by which leaves are found fast


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
        count = 1 if levels == 2 else levels if levels <= MOST_LEVELS_OF_TREES else 0
        out.append(range(start, start := start + count))
    return out


@final
class Boosted(Trained):
    r"""The distribution of a number is a few logistic distributions around the sum of its trees, as wide as the
    guesses are usually off.

    .. math:: P(x_i \mid x_G) = \sum_k \pi_k \, \mathrm{Logistic}(x_i; m, \sigma_k), \quad m = \sum_t f_{it}(x_G), \quad
        \log \sigma_k = a_{ik} + b_{ik} \frac{h}{D} + \frac{c_{ik}}{1 + h} + d_{ik} m + e_{ik} \log(r + \delta)

    integrated over what a value was rounded from, with h the number of other variables that are hidden and r the distance of
    the guess from the nearer bound of its variable; the share of each depends on the same. Where h is 0, trees and widths are
    others, made for that question alone, if they can be trusted. Codes have the softmax of their levels' scores, made
    less sure, and a thousandth of the marginal; with many levels, the marginal.
    """

    kind, words = "boosted", "boosted trees"
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
        return Conditionals([TreeDistributions(group.to(x.device), self, seen) for group in self.groups])

    def describe(self) -> Description:
        sizes = {kind: list(trees.feature.shape) for kind, trees in self.trees._asdict().items()}
        return {"schema": self.schema.to_json(), "trees": sizes, "levels": self.frequency.shape[1]}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "Boosted":
        schema = Schema.from_json(about["schema"])
        wanted: Shapes = {"frequency": (len(schema), about["levels"])}
        for kind in Grown._fields:
            sets, trees, nodes = about["trees"][kind]
            sizes = {"feature": (nodes,), "threshold": (nodes,), "value": (nodes + 1,), "base": ()}
            wanted |= {f"{kind}_{one}": (sets, *((trees, *size) if size else ())) for one, size in sizes.items()}
        check_same(name, wanted, shapes({one: tensors[one] for one in wanted}))
        grown = Grown(*(Trees(*(tensors[f"{kind}_{one}"] for one in Trees._fields)) for kind in Grown._fields))
        boosted = cls(schema, grown, tensors["frequency"])
        check_same(name, shapes(boosted.state_dict()), shapes(tensors))
        boosted.load_state_dict(tensors)
        return boosted

    def plant(self, grown: Grown) -> None:
        """Other trees, grown from more rows; the distributions around their guesses stay."""
        check_trees(self.schema, grown)
        for mine, other in zip(self.trees, grown, strict=True):
            for old, new in zip(mine, other, strict=True):
                old.copy_(new)
        self.reachable.clear()
        self.trusted *= grown.numbers.value[len(self.trusted) :].flatten(1).any(-1)  # of these rows too few may have been whole

    def distribution(self, seen: Float[Tensor, "cell variable"], target: Int[Tensor, " cell"]) -> LatticeDistribution:
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
            self.reachable[kind, sets.start] = Reachable(trees) if taken + Reachable.bytes_of(trees) <= MOST_SCORE_BYTES else None
        finder = self.reachable[kind, sets.start] or trees
        return trees.sums(finder.leaves(seen.float().cpu().numpy())).to(seen)

    def code_distribution(self, seen: Float[Tensor, "cell variable"], target: int) -> CategoricalDistribution:
        """Of one code in every row."""
        usual = self.frequency[target, : levels_of(self.schema.variables[target].domain)]
        if not self.scores[target]:
            return CategoricalDistribution(usual.log().expand(len(seen), -1))
        sure = (self.sureness[target] * self.level_scores(seen, target)).softmax(-1)
        return CategoricalDistribution(((1 - UNSEEN) * sure + UNSEEN * usual).log())

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
    ) -> LatticeDistribution:
        """The distribution around a guess, made by a set of trees when so many of the other variables were hidden."""
        low, high = self.bounds[target].unbind(-1)
        near = (torch.minimum(guess - low, high - guess).clamp(0.0, FARTHEST_BOUND) + NEAREST).log()
        circumstances = torch.stack(
            [torch.ones_like(guess), hidden / len(self.schema), 1 / (1 + hidden), guess, near], dim=-1
        ).unsqueeze(-1)
        sigma = (self.scale[which] @ circumstances).squeeze(-1).clamp(-12.0, 6.0).exp() + LEAST_SCALE
        share = (self.share[which] @ circumstances).squeeze(-1)
        curve = bent(self.curve[target])
        mu, none = guess.unsqueeze(-1).expand_as(sigma), guess.new_zeros(len(guess), 0)
        distribution = RecordedDistribution(self.spacing[target], guess.new_zeros(len(guess), 1), share, mu, sigma, none, curve)
        return bound(distribution, low, high, curve)


@final
@dataclass(frozen=True)
class TreeDistributions(Distributions):
    """The distributions that boosted trees give, made when they are asked for."""

    model: Boosted
    seen: Float[Tensor, "batch variable"]

    @property
    def levels(self) -> Sequence[int]:
        return [levels_of(self.model.schema.variables[i].domain) for i in self.index.tolist()]

    def at(self, cells: CellIndex) -> Distribution:
        row, variable = self.cells_at(cells, len(self.seen))
        domain = self.model.schema.variables[int(self.index[0])].domain
        flat, seen = variable.flatten(), self.seen[row.flatten()]
        if isinstance(domain, Recorded):
            distribution: Distribution = self.model.distribution(seen, flat)
        else:
            table = seen.new_full((len(flat), max(self.levels)), IMPOSSIBLE)
            for target in flat.unique().tolist():
                scores = self.model.code_distribution(seen[flat == target], target).logits
                table[flat == target, : scores.shape[1]] = scores
            distribution = CategoricalDistribution(table)
        return distribution.map_tensors(lambda t: t.unflatten(0, variable.shape) if variable.ndim else t.squeeze(0))


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
