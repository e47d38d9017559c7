"""How weights follow their gradients: AdamW, and Muon for the kernels inside a network of convolutions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

KERNEL_RATE = 2.5  # times the learning rate of all else: how far a kernel moves in a step
MOMENTUM = 0.95


@final
class Descent:
    """One step after the other. A kernel's step is its momentum made orthogonal: all its directions learn alike.

    The gradient of a convolution is nearly of low rank: a few directions take all of a plain step. Muon evens them out
    (https://kellerjordan.github.io/posts/muon), which on images saves about a third of the steps; the price is a few
    products of small matrices.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], kernels: Sequence[nn.Parameter], rate: float, decay: float) -> None:
        inside = {id(kernel) for kernel in kernels}
        rest = [p for p in parameters if id(p) not in inside]
        groups = [
            {"params": [p for p in rest if p.ndim > 1], "weight_decay": decay},
            {"params": [p for p in rest if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self.rate, self.decay = rate, decay
        self.adam = torch.optim.AdamW(groups, lr=rate, fused=True)
        self.momentum = {kernel: torch.zeros_like(kernel) for kernel in kernels}

    def zero_grad(self) -> None:
        self.adam.zero_grad(set_to_none=True)
        for kernel in self.momentum:
            kernel.grad = None

    @torch.no_grad()
    def step(self, share: float) -> None:
        """One step of `share` of the full rate."""
        for group in self.adam.param_groups:
            group["lr"] = self.rate * share
        self.adam.step()
        together = defaultdict[tuple[int, int], list[tuple[nn.Parameter, Tensor]]](list)
        for kernel, momentum in self.momentum.items():
            if kernel.grad is not None:
                momentum.lerp_(kernel.grad, 1 - MOMENTUM)
                ahead = kernel.grad.lerp(momentum, MOMENTUM).flatten(1)
                together[ahead.shape[0], ahead.shape[1]].append((kernel, ahead))
        far = KERNEL_RATE * self.rate * share
        for (rows, columns), some in together.items():
            moves = orthogonal(torch.stack([ahead for _, ahead in some])) * max(1.0, rows / columns) ** 0.5
            for (kernel, _), move in zip(some, moves, strict=True):
                kernel.mul_(1 - far * self.decay).add_(move.view(kernel.shape), alpha=-far)

    def moments(self, p: nn.Parameter) -> tuple[Tensor, Tensor]:
        """What a checkpoint keeps of a parameter; what has had no gradient yet has zeros."""
        if p in self.momentum:
            return self.momentum[p], torch.zeros_like(p)
        state = self.adam.state[p]
        return (state["exp_avg"], state["exp_avg_sq"]) if state else (torch.zeros_like(p), torch.zeros_like(p))

    def restore(self, p: nn.Parameter, step: int, first: Tensor, second: Tensor) -> None:
        if p in self.momentum:
            self.momentum[p] = first.to(p.device)
            return
        count = torch.tensor(float(step), device=p.device)
        self.adam.state[p] = {"step": count, "exp_avg": first.to(p.device), "exp_avg_sq": second.to(p.device)}


def orthogonal(matrices: Float[Tensor, "matrix row column"]) -> Float[Tensor, "matrix row column"]:
    """Nearly U V' of each matrix U S V', by five steps of an odd polynomial that takes singular values from (0, 1] to about 1."""
    x = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    for _ in range(5):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x.mT if tall else x
