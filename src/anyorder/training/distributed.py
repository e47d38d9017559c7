"""One training run on several processes or machines, as `torchrun` starts them: equal work for all, one of them writes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import final

import torch
import torch.distributed as dist
from torch import Tensor

from ..errors import TrainingError

SECONDS_OF_SILENCE = "ANYORDER_SECONDS_OF_SILENCE"  # after which a process that says nothing is taken for dead


@final
@dataclass(frozen=True)
class World:
    """The processes of one training run, and which of them this is. Every rank has all rows and trains on its own batches.

    >>> World().is_writer, World().mean(3.0)
    (True, 3.0)
    """

    rank: int = 0
    size: int = 1
    checkpoint: Path | None = None  # where the run is kept, to be taken up by as many processes

    @property
    def is_writer(self) -> bool:
        """The first rank reports, writes, and does what only one need do."""
        return self.rank == 0

    def average(self, tensors: list[Tensor]) -> None:
        """Every tensor becomes the mean over all ranks, in one message."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with told_of_the_dead(self):
            dist.all_reduce(flat)
        flat /= self.size
        for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def mean(self, number: float, weight: float | int = 1) -> float:
        """The mean of a number over all ranks, weighted; the same to the bit on all of them."""
        if self.size == 1:
            return number
        both = torch.tensor([number * weight, weight], dtype=torch.float64)
        with told_of_the_dead(self):
            dist.all_reduce(both)
        return float(both[0] / both[1])


ALONE = World()
_world = ALONE


def this_world() -> World:
    """The processes this one trains with: itself alone, unless within `joined`."""
    return _world


@contextmanager
def joined(checkpoint: Path | None = None) -> Iterator[World]:
    """Train with the other processes that `torchrun` started, if it did; `checkpoint` is where the run is kept.

    The environment says which process this is, as `torchrun` sets it: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
    """
    global _world
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        yield ALONE
        return
    silence = timedelta(seconds=float(os.environ.get(SECONDS_OF_SILENCE, "600")))
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with told_of_the_dead(ALONE):
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=silence)
    _world = World(dist.get_rank(), dist.get_world_size(), checkpoint)
    try:
        yield _world
    finally:
        _world = ALONE
        dist.destroy_process_group()


@contextmanager
def told_of_the_dead(world: World) -> Iterator[None]:
    """A message that does not come means that a process is dead: one sentence, whatever torch says."""
    try:
        yield
    except RuntimeError as error:
        kept = f" The last checkpoint is {str(world.checkpoint)!r}: run the same command again." if world.checkpoint else ""
        raise TrainingError(
            f"Rank {world.rank} of {world.size} lost another process of this training: it was killed or cannot be reached.{kept}"
        ) from error
