"""How a codec proves that it is the one an archive was made with, and that it says here what it said there."""

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import FormatError
from ..model import AnyOrderModel
from ..networks import exactly
from ..schema import levels_of


def answers(model: AnyOrderModel) -> int:
    """The checksum of what the network says about three made-up rows."""
    row, place = torch.arange(3)[:, None], torch.arange(len(model.schema))
    x = ((7919 * place + 104729 * row) % torch.tensor([levels_of(v.domain) for v in model.schema])).float()
    sizes = torch.tensor(model.network.sizes.get("context", []), dtype=torch.long)
    context = (7919 * torch.arange(len(sizes)) + 104729 * row) % sizes if len(sizes) else None
    with exactly():
        said = model.network(x, (31 * place + 17 * row) % 3 == 0, context)
    return zlib.crc32((said * 1024).to(torch.int32).numpy().tobytes())


def check_answers(name: str, model: AnyOrderModel, wanted: int) -> None:
    if answers(model) != wanted:
        raise FormatError(
            f"{name} gives other answers here than where it was made: it is damaged, or this machine's arithmetic is not exact."
        )


def digest_of(first: Sequence[Any], models: Sequence[tuple[AnyOrderModel, Sequence[Any]]]) -> str:
    """Of all whole numbers of models, and of what is said first and about each of them.

    Written down in a way that no later version changes: archives keep it for ever.
    """
    digest, told = hashlib.sha256(), list(first)
    for model, about in models:
        told.extend(about)
        for name, tensor in sorted(model.state_dict().items()):
            told.append([name, str(tensor.dtype), tensor.shape])
            digest.update(tensor.contiguous().numpy().tobytes())
    digest.update(json.dumps(told).encode())
    return digest.hexdigest()[:32]
