"""Sets of boosted trees, and the sums of their leaves: by going down every tree, or by what every value leaves reachable."""

from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

Seen = NDArray[np.float32]  # (cell, variable): what is not known is NaN
Leaves = NDArray[np.int64]  # (cell, tree): the number of the leaf that every tree comes to

LARGEST = float(np.finfo(np.float32).max)
WORD = 64  # leaves at most, if they are to be bits of a number
WORDS_AT_ONCE = 2**15  # cells times trees that are looked at together: 256 kB, which caches hold


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
        return cls(torch.ones(shape), torch.full(shape, LARGEST), torch.zeros(sets, trees, nodes + 1), torch.zeros(sets))

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
        works = (threshold < LARGEST) | (feature < 0)  # all others send everything to the left
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
        works = (trees.threshold < LARGEST) | (trees.feature < 0)
        rows = int(works.sum()) + 2 * min(nodes * sets * count, int(trees.feature.abs().max()) if works.any() else 0)
        return 8 * rows * sets * count if nodes < WORD else 2**62

    def leaves(self, seen: Seen) -> Leaves:
        """Which leaf the trees of all sets come to."""
        step = max(1, WORDS_AT_ONCE // max(1, self.trees))
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
