"""Schema, network and heads put together: any subset of the variables in, the distribution of each of the others out."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..distributions import IMPOSSIBLE, Bernoulli, Categorical, CategoricalDistribution, Head, default_head, head_from_json
from ..errors import InputError
from ..networks import NETWORKS, Network, ResMLP
from ..schema import Mask, Schema, Values, alike, levels_of
from .conditionals import Conditionals, NetworkDistributions
from .trained import Description, Trained, check_same, shapes

Context = Int[Tensor, "batch _"]


@runtime_checkable
class Model(Protocol):
    """Anything with a schema and a `forward`: all of `inference` is written against these two alone."""

    @property
    def schema(self) -> Schema: ...

    def __call__(self, x: Values, given: Mask, context: Context | None = None) -> Conditionals: ...


@final
class AnyOrderModel(Trained):
    r"""Shown any subset of the variables, the distribution of each of the others.

    .. math:: p_\theta(x_i \mid x_G) \quad \text{for every } i \notin G \text{ and every } G
    """

    kind, words, all_at_once = "network", "network", True

    def __init__(self, schema: Schema, heads: Sequence[Head], network: Network) -> None:
        super().__init__()
        check_heads(schema, heads)
        self.schema = schema
        self.heads = tuple(heads)
        self.network = network
        self.groups = nn.ModuleList(group_of(schema, self.heads, members) for members in together(schema, self.heads))

    @property
    def dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.parameters()), torch.float32)  # a network of whole numbers has none

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        check_context(self.network.sizes.get("context", []), context, len(x))
        seen = torch.where(given, x, 0.0).to(self.dtype)  # hidden values cannot leak
        params = self.network(seen, given, context)  # (batch, all heads' numbers)
        return Conditionals([group(params) for group in self.groups])

    def kernels(self) -> list[nn.Parameter]:
        return self.network.kernels()

    def describe(self) -> Description:
        network = {"kind": self.network.kind, **self.network.sizes}
        return {"schema": self.schema.to_json(), "heads": [head.to_json() for head in self.heads], "network": network}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "AnyOrderModel":
        schema = Schema.from_json(about["schema"])
        heads = [head_from_json(item) for item in about["heads"]]
        check_heads(schema, heads)
        sizes = dict(about["network"])
        with torch.device("meta"):
            network = NETWORKS[sizes.pop("kind")](schema, sum(head.width for head in heads), **sizes)
        wanted = {f"network.{one}": shape for one, shape in shapes(network.state_dict()).items()}
        check_same(name, wanted, shapes(tensors))
        with torch.random.fork_rng(devices=[]):
            network = type(network)(schema, sum(head.width for head in heads), **sizes)
        model = cls(schema, heads, network)
        model.load_state_dict(tensors)
        return model


@final
class SameHead(nn.Module):
    """Variables with equal heads: their numbers stand side by side in what the network says."""

    index: Tensor
    constants: Tensor

    def __init__(self, schema: Schema, head: Head, members: Sequence[int], start: int) -> None:
        super().__init__()
        self.head, self.start = head, start
        constants = [head.constants(schema.variables[i].domain) for i in members]
        self.register_buffer("index", torch.tensor(members), persistent=False)
        self.register_buffer("constants", torch.tensor(constants, dtype=torch.float32), persistent=False)

    def forward(self, params: Float[Tensor, "batch all"]) -> NetworkDistributions:
        count, width = len(self.index), self.head.width
        numbers = params[:, self.start : self.start + count * width].unflatten(-1, (count, width))
        if self.constants.shape[-1]:
            numbers = torch.cat([numbers, self.constants.to(numbers).expand(len(numbers), -1, -1)], dim=-1)
        return NetworkDistributions(self.index, self.head, numbers)


@final
class CodesTogether(nn.Module):
    """Categories of different sizes in one table; a code that a variable does not have is impossible."""

    index: Tensor
    place: Tensor

    def __init__(self, schema: Schema, heads: Sequence[Head], members: Sequence[int], starts: Sequence[int]) -> None:
        super().__init__()
        self.levels = tuple(levels_of(schema.variables[i].domain) for i in members)
        end = sum(head.width for head in heads)  # after all that the network says come a score of 0 and an impossible one
        place = torch.full((len(members), max(self.levels)), end + 1)
        for row, (i, levels) in enumerate(zip(members, self.levels, strict=True)):
            first = levels - heads[i].width  # 1 for a yes-or-no variable, whose one number is the score of 1, if that of 0 is 0
            place[row, :first] = end
            place[row, first:levels] = starts[i] + torch.arange(heads[i].width)
        self.register_buffer("index", torch.tensor(members), persistent=False)
        self.register_buffer("place", place, persistent=False)

    def forward(self, params: Float[Tensor, "batch all"]) -> NetworkDistributions:
        more = params.new_tensor([0.0, IMPOSSIBLE]).expand(len(params), 2)
        table = torch.cat([params, more], dim=-1).index_select(-1, self.place.flatten())
        return NetworkDistributions(self.index, CategoricalDistribution, table.unflatten(-1, self.place.shape), self.levels)


def together(schema: Schema, heads: Sequence[Head]) -> list[list[int]]:
    """The variables whose distributions are made together: those that are alike, and have the same head unless they
    are categories.
    """
    groups = []
    for members in alike(schema):
        if all(isinstance(heads[i], Categorical | Bernoulli) for i in members):
            groups.append(members)
        else:
            groups += [[i for i in members if heads[i] == head] for head in dict.fromkeys(heads[i] for i in members)]
    return sorted(groups)


def group_of(schema: Schema, heads: Sequence[Head], members: Sequence[int]) -> SameHead | CodesTogether:
    """The network says the numbers of equal heads side by side, in the order in which the heads first appear."""
    starts, end = [0] * len(heads), 0
    for head in dict.fromkeys(heads):
        for i in (i for i, other in enumerate(heads) if other == head):
            starts[i], end = end, end + head.width
    head = heads[members[0]]
    if all(heads[i] == head for i in members) and starts[members[-1]] == starts[members[0]] + (len(members) - 1) * head.width:
        return SameHead(schema, head, members, starts[members[0]])
    return CodesTogether(schema, heads, members, starts)


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
