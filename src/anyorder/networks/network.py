"""What every network offers beside its forward pass: a name and its sizes, so that a file can describe it."""

from typing import Any, ClassVar

from torch import nn


class Network(nn.Module):
    """(x, given, context) -> the numbers of all heads. `kind` and `sizes` are enough to build it again."""

    kind: ClassVar[str]
    sizes: dict[str, Any]

    def kernels(self) -> list[nn.Parameter]:
        """Weights whose steps are made orthogonal in training: the matrices inside, not the first nor the last."""
        return []
