"""Counts without rows: how often every bin of every variable goes with every bin of every other, and nothing else."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..schema import Mask, Recorded, Values
from .blend import Blend
from .conditionals import Conditionals
from .counts import LEAST_MASS, BinMasses, Counted, CountedDistributions, posterior
from .row_index import FEWEST_RECURRING, Binning
from .trained import Description, Shapes, Trained, check_same, described, rebuilt, shapes, tensors_of

MOST_PAIRS = 2**22  # of bins: 16 MB, twice


@final
class PairCounted(Trained):
    """A model corrected by counting, as `Counted`, where nothing or the value of a single variable is known.

    For tables whose rows must not be kept: counts of pairs of bins tell little of a row, and those of fewer than ten rows are
    left out. With two or more known variables the model's own word stands.
    """

    kind, words = "pairs", "counts of pairs"
    seen: Tensor
    expected: Tensor
    worth: Tensor
    cuts: Tensor
    cut_count: Tensor

    def __init__(self, model: Blend, seen: Tensor, expected: Tensor, worth: Tensor, cuts: Tensor, cut_count: Tensor) -> None:
        super().__init__()
        self.model, self.schema = model, model.schema
        tensors = {"seen": seen, "expected": expected, "worth": worth, "cuts": cuts, "cut_count": cut_count}
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)
        bins = sum(self.index.bins)
        shapes = [tuple(tensor.shape) for tensor in (seen, expected)]
        if shapes != [(bins + 1, bins)] * 2:
            raise InputError(f"The counts have the shapes {shapes}; expected ({bins + 1}, {bins}), one row more than bins.")

    @classmethod
    def of(cls, counted: Counted) -> "PairCounted":
        """What is left of a model that counts rows when they are taken away."""
        index, schema = counted.index, counted.schema
        bins = sum(index.bins)
        if bins * bins > MOST_PAIRS:
            raise InputError(f"{bins} bins are too many to count all their pairs; expected at most {int(MOST_PAIRS**0.5)}.")
        seen, expected = torch.zeros(bins + 1, bins), torch.full((bins + 1, bins), -1.0)
        first = np.cumsum([0, *index.bins])
        for place, (x, known) in evidence_of_one(counted):
            recount = counted.recount(x, known)
            for target, count in enumerate(index.bins):
                if not known[0, target]:
                    columns = slice(first[target], first[target] + count)
                    counts = recount.counts(np.zeros(1, dtype=np.int64), target)
                    if counts.seen.sum() >= FEWEST_RECURRING:
                        seen[place, columns] = torch.from_numpy(counts.seen[0])
                        if not np.isnan(counts.expected).any():
                            expected[place, columns] = torch.from_numpy(counts.expected[0])
        most = max((len(edges) for edges in index.edges if edges is not None), default=0)
        cuts, cut_count = torch.zeros(len(schema), most), torch.zeros(len(schema))
        for i, edges in enumerate(index.edges):
            if edges is not None:
                cuts[i, : len(edges)], cut_count[i] = edges, len(edges)
        return cls(counted.model.forget(), seen, expected, counted.worth, cuts, cut_count)

    @cached_property
    def index(self) -> Binning:
        counts = self.cut_count.long().tolist()
        numbers = [isinstance(variable.domain, Recorded) for variable in self.schema]
        edges = [cuts[:count] if number else None for cuts, count, number in zip(self.cuts.cpu(), counts, numbers, strict=True)]
        return Binning(self.schema, edges)

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        base, recount = self.model(x, given, context), PairRecount(self, x, given)
        return Conditionals([CountedDistributions(part.index, part, recount) for part in base.parts])

    def members(self) -> list[Trained]:
        return self.model.members()

    @property
    def parts(self) -> list[str]:
        return [*self.model.parts, self.words]

    @property
    def rows_held(self) -> int:
        return self.model.rows_held

    def describe(self) -> Description:
        return {"bins": sum(self.index.bins), "cuts": self.cuts.shape[1], "model": described(self.model)}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "PairCounted":
        blend = rebuilt(name, about["model"], tensors_of("model", tensors))
        if not isinstance(blend, Blend):
            raise TypeError(f"counts around a {blend.kind}")
        own = {one: tensor for one, tensor in tensors.items() if not one.startswith("model.")}
        bins, cuts, width = int(about["bins"]), int(about["cuts"]), len(blend.schema)
        wanted: Shapes = {"seen": (bins + 1, bins), "expected": (bins + 1, bins), "worth": (width,)}
        check_same(name, wanted | {"cuts": (width, cuts), "cut_count": (width,)}, shapes(own))
        count = own["cut_count"]
        if not ((own["worth"] > 0).all() and (own["seen"] >= 0).all() and ((count >= 0) & (count <= cuts)).all()):
            raise ValueError("counts below zero, or weights or edges that cannot be")
        return cls(blend, **own)


def evidence_of_one(counted: Counted) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Nothing, and then for every bin that some row is in, a row in which it alone is known; and where its counts stand."""
    width, place = len(counted.schema), 0
    yield place, (torch.zeros(1, width), torch.zeros(1, width, dtype=torch.bool))
    for i, bins in enumerate(counted.index.bins):
        for code in range(bins):
            place += 1
            rows = np.flatnonzero(counted.index.codes[:, i] == code)
            if len(rows):
                x, known = torch.zeros(1, width), torch.zeros(1, width, dtype=torch.bool)
                x[0, i], known[0, i] = counted.rows[rows[0], i], True
                yield place, (x, known)


@final
class PairRecount:
    """Some rows in front of counts of pairs."""

    def __init__(self, model: PairCounted, x: Values, given: Mask) -> None:
        self.model, self.x, self.given = model, x.cpu(), given.cpu()
        self.binning = model.index

    @cached_property
    def evidence(self) -> Int[Tensor, " batch"]:
        """Which row of the counts belongs to every row; -1 where more than one variable is known."""
        first = torch.tensor(np.cumsum([0, *self.binning.bins[:-1]]))
        codes = torch.from_numpy(self.binning.codes_of(self.x, self.given)).long()
        place = torch.where(self.given, codes + first + 1, 0).sum(-1)
        return torch.where(self.given.sum(-1) <= 1, place, -1)

    def ratio(
        self, row: NDArray[np.int64], variable: int, mass: BinMasses
    ) -> tuple[NDArray[np.int64], Float[Tensor, "cell bin"]]:
        """Which of these rows are corrected, and the factors of the bins of a variable in them."""
        first = sum(self.binning.bins[:variable])
        columns = slice(first, first + self.binning.bins[variable])
        place = self.evidence[torch.from_numpy(row)]
        seen, expected = self.model.seen.cpu()[place, columns], self.model.expected.cpu()[place, columns]
        chosen = ((place >= 0) & (seen.sum(-1) >= FEWEST_RECURRING)).nonzero().squeeze(-1)
        seen, expected = seen[chosen], expected[chosen]
        alone = expected[:, 0] < 0
        if alone.any():
            expected[alone] = mass(chosen[alone].numpy()).float()
        expected = expected.clamp(min=LEAST_MASS)
        return chosen.numpy(), posterior(seen, expected, self.model.worth[variable].cpu()) / expected
