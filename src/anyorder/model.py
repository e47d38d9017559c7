"""Schema, network and heads put together: any subset of the variables in, the law of each of the others out."""

from collections.abc import Sequence
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor, nn

from .conditionals import Conditionals, Part
from .errors import InputError
from .heads import Head, default_head
from .networks import Network, ResMLP
from .schema import Mask, Schema, Values

Context = Int[Tensor, "batch _"]


@runtime_checkable
class Model(Protocol):
    """Anything with a schema and a `forward`: all of `inference` is written against these two alone."""

    @property
    def schema(self) -> Schema: ...

    def __call__(self, x: Values, given: Mask, context: Context | None = None) -> Conditionals: ...


@final
class AnyOrderModel(nn.Module):
    r"""Shown any subset of the variables, the law of each of the others.

    .. math:: p_\theta(x_i \mid x_G) \quad \text{for every } i \notin G \text{ and every } G
    """

    def __init__(self, schema: Schema, heads: Sequence[Head], network: Network) -> None:
        super().__init__()
        check_heads(schema, heads)
        self.schema = schema
        self.heads = tuple(heads)
        self.network = network
        self.kinds = tuple(dict.fromkeys(self.heads))  # the different heads, in order of appearance
        for k, kind in enumerate(self.kinds):
            index = torch.tensor([i for i, head in enumerate(self.heads) if head == kind])
            constants = [kind.constants(v.domain) for v, head in zip(schema, self.heads, strict=True) if head == kind]
            self.register_buffer(f"index_{k}", index, persistent=False)
            self.register_buffer(f"constants_{k}", torch.tensor(constants, dtype=torch.float32), persistent=False)

    @property
    def dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.parameters()), torch.float32)  # a network of whole numbers has none

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        check_context(self.network.sizes.get("context", []), context, len(x))
        seen = torch.where(given, x, 0.0).to(self.dtype)  # hidden values cannot leak
        params = self.network(seen, given, context)  # (batch, all heads' numbers)
        indices = [self.get_buffer(f"index_{k}") for k in range(len(self.kinds))]
        shares = params.split([len(i) * kind.width for i, kind in zip(indices, self.kinds, strict=True)], dim=-1)
        return Conditionals([self._part(k, index, share) for k, (index, share) in enumerate(zip(indices, shares, strict=True))])

    def _part(self, k: int, index: Tensor, share: Tensor) -> Part:
        numbers = share.unflatten(-1, (len(index), self.kinds[k].width))
        constants = self.get_buffer(f"constants_{k}")
        if constants.shape[-1]:
            numbers = torch.cat([numbers, constants.to(numbers).expand(len(share), -1, -1)], dim=-1)
        return Part(index, self.kinds[k], numbers)


def build_model(
    schema: Schema,
    heads: Sequence[Head] | None = None,
    width: int = 128,
    depth: int = 3,
    context: Sequence[int] = (),
    seed: int = 0,
) -> AnyOrderModel:
    """An untrained model with a ResMLP; `context` holds the number of codes of every context column."""
    heads = [default_head(v.domain) for v in schema] if heads is None else list(heads)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ResMLP(schema, sum(head.width for head in heads), width, depth, context)
    return AnyOrderModel(schema, heads, network)


def check_heads(schema: Schema, heads: Sequence[Head]) -> None:
    """One head per variable, each for the values its variable has."""
    if len(heads) != len(schema):
        raise InputError(f"Got {len(heads)} heads for {len(schema)} variables; expected one head per variable.")
    for variable, head in zip(schema, heads, strict=True):
        wanted = getattr(variable.domain, "levels", None)
        offered = getattr(head, "levels", 2 if head.kind == "bernoulli" else None)
        if wanted != offered:
            raise InputError(
                f"Variable {variable.name!r} is {variable.domain}, but its head is {head}. "
                f"Choose a head for {'real numbers' if wanted is None else f'{wanted} levels'}."
            )


def check_context(sizes: Sequence[int], context: Tensor | None, rows: int) -> None:
    """None, or for every row one code per context column, -1 for unknown."""
    if context is None:
        return
    if context.ndim != 2 or context.shape != (rows, len(sizes)) or context.is_floating_point():
        remedy = "" if sizes else " The model was built without one: build_model(..., context=(codes, ...))."
        raise InputError(
            f"The context is {context.dtype} of shape {tuple(context.shape)}; expected whole numbers of shape "
            f"({rows}, {len(sizes)}), one column for each of {list(sizes)} codes.{remedy}"
        )
    if ((context < -1) | (context >= torch.tensor(sizes, device=context.device))).any():
        raise InputError(f"A context code is out of range: expected -1 (unknown) or 0 .. size-1, for sizes {list(sizes)}.")
