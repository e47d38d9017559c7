"""Networks that give all conditionals of one order in one pass: Transformers of a fixed or of any order, and PixelCNN++."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast, final

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from ..distributions import IMPOSSIBLE, CategoricalDistribution, ColourMixture, default_head
from ..errors import InputError, UnavailableError
from ..models.conditionals import Conditionals, NetworkDistributions
from ..schema import Colour, Mask, Ordinal, Schema, Values, levels_of
from ..subsets import Question, check_question
from .baseline import Baseline

Orders = Int[Tensor, "batch variable"]  # the variables of every row in the order in which they come
Maps = Float[Tensor, "batch _ _ _"]


class InOrder(Baseline):
    """A model of the chain rule along an order: one pass gives every variable given those before it."""

    any_order: ClassVar[bool]  # whether it was trained for all orders, or for the order of the schema alone

    @abstractmethod
    def along(self, x: Values, order: Orders) -> Conditionals:
        """Of every variable, given those that come before it in this order."""

    def log_prob(
        self, x: Values, question: Question | None = None, order: Sequence[int] | None = None
    ) -> Float[Tensor, " batch"]:
        """log p(target | given) in nats; of whole rows without a question.

        What is given comes first, then the targets in this order (that of the schema, if there is none). A model of one order
        answers only questions that follow it: some first variables given, the next asked for.
        """
        question = Question.joint(torch.ones_like(x, dtype=torch.bool)) if question is None else question
        check_question(self.schema, x, question)
        self.schema.check(x, question.given | question.target)
        orders = self._orders(question, order)
        seen = torch.where(question.given | question.target, x, 0.0)
        return torch.where(question.target, self.along(seen, orders).log_prob(seen), 0.0).sum(-1)

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """log p of what is shown along the order of the schema, or along a random one, whose mean over draws is the bound."""
        if not self.any_order:
            return self.log_prob(x, Question(torch.zeros_like(shown), shown))
        keys = torch.rand(x.shape, generator=rng, device=rng.device) + 2 * ~shown
        x = torch.where(shown, x, 0.0)
        return torch.where(shown, self.along(x, keys.argsort(-1)).log_prob(x), 0.0).sum(-1)

    @torch.no_grad()
    def sample(self, n: int, rng: Generator) -> Values:
        """New rows, one pass for every variable."""
        nothing = torch.zeros(n, len(self.schema))
        return self.fill(nothing, Question.joint(torch.ones_like(nothing, dtype=torch.bool)), rng)

    @torch.no_grad()
    def fill(self, x: Values, question: Question, rng: Generator, order: Sequence[int] | None = None) -> Values:
        """The rows of x with their targets drawn, given what is known, in this order."""
        check_question(self.schema, x, question)
        self.schema.check(x, question.given)
        orders = self._orders(question, order)
        rank = orders.argsort(-1)
        out = torch.where(question.given, x, 0.0)
        for place in range(len(self.schema)):
            now = question.target & (rank == place)
            if now.any():
                out = torch.where(now, self.along(out, orders).sample(rng, at=now), out)
        return torch.where(question.target, out, x)

    def _orders(self, question: Question, order: Sequence[int] | None) -> Orders:
        """What is given, then what is asked for, then the rest, each in the order that is wanted."""
        count = len(self.schema)
        wanted = torch.arange(count) if order is None else torch.tensor(list(order))
        if sorted(wanted.tolist()) != list(range(count)):
            raise InputError(f"order={list(wanted)[:8]}; expected every number from 0 to {count - 1} once.")
        place = wanted.argsort()
        orders = torch.where(question.given, 0, torch.where(question.target, count, 2 * count)).add(place).argsort(-1)
        if not self.any_order and (orders != torch.arange(count)).any():
            raise UnavailableError(
                f"{type(self).__name__} knows one order, that of its variables: it answers when the first of them are given "
                "and the next are asked for. Use a model of any order for this question."
            )
        return orders


@final
@dataclass(frozen=True)
class TransformerSize:
    """Layers, width and heads; what is inside a layer is four times as wide."""

    depth: int
    width: int
    heads: int


TRANSFORMERS = {
    "small": TransformerSize(2, 64, 2),
    "text8": TransformerSize(12, 768, 12),  # D3PM's, ARDM's and MAC's on text8: GPT's small one, 85 million inside the layers
}


class OrderTransformer(InOrder):
    """A causal Transformer over the variables in some order. At every place it is told the code before, which variable that code
    was of, and which variable comes next, so that it can follow any order.
    """

    def __init__(self, schema: Schema, size: TransformerSize = TRANSFORMERS["small"], seed: int = 0) -> None:
        super().__init__()
        levels = [levels_of(variable.domain) for variable in schema]
        if min(levels) < 2:
            wrong = schema.names[levels.index(min(levels))]
            raise InputError(f"{type(self).__name__} is a model of codes; variable {wrong!r} is a number. Bin it first.")
        if size.width % size.heads:
            raise InputError(f"{type(self).__name__} got {size}; expected a width that its heads can share.")
        self.schema, self.levels = schema, tuple(levels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.code = nn.Embedding(max(levels) + 1, size.width)  # the last one stands before the first code
            self.last_place = nn.Embedding(len(schema) + 1, size.width)
            self.next_place = nn.Embedding(len(schema), size.width)
            self.layers = nn.ModuleList(TransformerLayer(size.width, size.heads) for _ in range(size.depth))
            self.norm = nn.LayerNorm(size.width)
            self.out = nn.Linear(size.width, max(levels))
            for table in (self.code, self.last_place, self.next_place):
                nn.init.normal_(table.weight, std=0.02)

    def along(self, x: Values, order: Orders) -> Conditionals:
        codes, start = x.gather(-1, order).long(), torch.full((len(x), 1), max(self.levels))
        before = torch.cat([start, codes[:, :-1]], dim=-1)
        last = torch.cat([torch.full_like(start, len(self.schema)), order[:, :-1]], dim=-1)
        h = self.code(before) + self.last_place(last) + self.next_place(order)
        for layer in self.layers:
            h = layer(h)
        scores = self.out(self.norm(h)).gather(1, order.argsort(-1)[..., None].expand(-1, -1, max(self.levels)))
        beyond = torch.arange(max(self.levels)) >= torch.tensor(self.levels)[:, None]
        index, sizes = torch.arange(len(self.schema)), self.levels if beyond.any() else ()
        return Conditionals([NetworkDistributions(index, CategoricalDistribution, scores.masked_fill(beyond, IMPOSSIBLE), sizes)])


@final
class ARTransformer(OrderTransformer):
    """The order of the schema alone."""

    any_order = False


@final
class OATransformer(OrderTransformer):
    """Any order: XLNet's objective, https://arxiv.org/abs/1906.08237, with one stream that is told what comes next.

    Unlike an any-order model it sees *in which order* the known variables came; one pass scores a whole order.
    """

    any_order = True


@final
class TransformerLayer(nn.Module):
    """Looks back, then thinks: h + attention(norm(h)), then h + W2 gelu(W1 norm(h))."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.ask, self.say = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h: Float[Tensor, "batch place width"]) -> Float[Tensor, "batch place width"]:
        asked = self.ask(self.norms[0](h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(asked[0], asked[1], asked[2], is_causal=True)
        h = h + self.say(seen.transpose(1, 2).flatten(2))
        return h + self.down(F.gelu(self.up(self.norms[1](h))))


@final
@dataclass(frozen=True)
class PixelCNNSize:
    """Filters, gated blocks at every resolution, resolutions, components of the mixtures."""

    filters: int
    blocks: int
    levels: int
    components: int = 5


PIXEL_CNNS = {
    "small": PixelCNNSize(24, 1, 2),
    "cifar10": PixelCNNSize(160, 5, 3, 10),  # the paper's, 53 million weights
}


@final
class PixelCNN(InOrder):
    """PixelCNN++: pixels row by row, each given all above and to the left. https://arxiv.org/abs/1701.05517

    Two streams of gated blocks with shifted convolutions, one of all rows above, one of the pixels to the left as well, down to
    coarser resolutions and up again. Pixels are our colours or shades: their density and their draws are one distribution, as in
    the paper's own code. Without weight normalisation and dropout.
    """

    any_order = False

    def __init__(
        self, schema: Schema, shape: tuple[int, int, int], size: PixelCNNSize = PIXEL_CNNS["small"], seed: int = 0
    ) -> None:
        super().__init__()
        domain = schema.variables[0].domain
        if any(variable.domain != domain for variable in schema) or not isinstance(domain, Ordinal | Colour):
            raise InputError(f"PixelCNN needs pixels that are all shades or all colours, such as Colour(256); got {domain}.")
        if shape[2] != 1 or len(schema) != shape[0] * shape[1]:
            raise InputError(f"PixelCNN got shape={shape} for {len(schema)} variables; expected (height, width, 1).")
        self.schema, self.shape, self.unit = schema, shape, 2 ** (size.levels - 1)
        self.shades = domain.shades if isinstance(domain, Colour) else domain.levels
        self.colours = isinstance(domain, Colour)
        head = default_head(domain)
        sizes = {"shades": self.shades} if isinstance(head, ColourMixture) else {"levels": self.shades}
        self.head = head if head.width == 1 else type(head)(**sizes, components=size.components)  # type: ignore[call-arg]
        width, seen = size.filters, 4 if self.colours else 2
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.above = Shifted(seen, width, (2, 3))
            self.row_above, self.left = Shifted(seen, width, (1, 3)), Shifted(seen, width, (2, 1))
            self.down = nn.ModuleList(nn.ModuleList(Pair(width, False) for _ in range(size.blocks)) for _ in range(size.levels))
            self.up = nn.ModuleList(
                nn.ModuleList(Pair(width, True) for _ in range(size.blocks + (level > 0))) for level in range(size.levels)
            )
            moves = range(size.levels - 1)
            self.shrink = nn.ModuleList(Both(Shifted(width, width, (2, 3), 2), Shifted(width, width, (2, 2), 2)) for _ in moves)
            self.grow = nn.ModuleList(Both(Grown(width, (2, 3)), Grown(width, (2, 2))) for _ in moves)
            self.out = nn.Conv2d(width, self.head.width, 1)

    def along(self, x: Values, order: Orders) -> Conditionals:
        """The order is that of the schema: `log_prob` refuses any other."""
        maps = self._inputs(x)
        u = down_shift(self.above(maps))
        ul = down_shift(self.row_above(maps)) + right_shift(self.left(maps))
        kept = [(u, ul)]
        for level, pairs in enumerate(self.down):
            for pair in cast(nn.ModuleList, pairs):
                u, ul = pair(u, ul)
                kept.append((u, ul))
            if level < len(self.shrink):
                u, ul = self.shrink[level](u, ul)
                kept.append((u, ul))
        u, ul = kept.pop()
        for level, pairs in enumerate(self.up):
            for pair in cast(nn.ModuleList, pairs):
                u, ul = pair(u, ul, kept.pop())
            if level < len(self.grow):
                u, ul = self.grow[level](u, ul)
        numbers = self.out(F.elu(ul))[:, :, : self.shape[0], : self.shape[1]].flatten(2).mT
        return Conditionals([NetworkDistributions(torch.arange(len(self.schema)), self.head, numbers)])

    def _inputs(self, x: Values) -> Maps:
        """Shades scaled to -1 .. 1, then where there is an image; sides filled up so that they can be halved."""
        maps = x.unflatten(1, self.shape[:2])[:, None]
        if self.colours:
            code = maps.long()
            maps = torch.cat([code // self.shades**2, code // self.shades % self.shades, code % self.shades], dim=1).to(x.dtype)
        maps = torch.cat([2 * maps / (self.shades - 1) - 1, torch.ones_like(maps[:, :1])], dim=1)
        return F.pad(maps, (0, -self.shape[1] % self.unit, 0, -self.shape[0] % self.unit))


@final
class Shifted(nn.Module):
    """A convolution of what is above and around (an odd width), or above and to the left: sides (rows, columns)."""

    def __init__(self, inputs: int, outputs: int, sides: tuple[int, int], stride: int = 1) -> None:
        super().__init__()
        rows, columns = sides
        around = (columns - 1) // 2 if columns % 2 else 0
        self.padding = (around or columns - 1, around, rows - 1, 0)
        self.conv = nn.Conv2d(inputs, outputs, sides, stride)

    def forward(self, h: Maps) -> Maps:
        return self.conv(F.pad(h, self.padding))


@final
class Grown(nn.Module):
    """Twice the resolution: the transposed convolution of `Shifted`."""

    def __init__(self, width: int, sides: tuple[int, int]) -> None:
        super().__init__()
        self.columns = sides[1]
        self.conv = nn.ConvTranspose2d(width, width, sides, 2)

    def forward(self, h: Maps) -> Maps:
        grown = self.conv(h)
        start = (self.columns - 1) // 2 if self.columns % 2 else 0
        return grown[:, :, : 2 * h.shape[2], start : start + 2 * h.shape[3]]


@final
class Both(nn.Module):
    """Something done to either stream alone."""

    def __init__(self, above: nn.Module, left: nn.Module) -> None:
        super().__init__()
        self.above, self.left = above, left

    def forward(self, u: Maps, ul: Maps) -> tuple[Maps, Maps]:
        return self.above(u), self.left(ul)


@final
class Pair(nn.Module):
    """A gated block of either stream; the second is told of the first, and both of the way down when they come up."""

    def __init__(self, width: int, upwards: bool) -> None:
        super().__init__()
        self.above = Gated(width, (2, 3), width if upwards else 0)
        self.left = Gated(width, (2, 2), 2 * width if upwards else width)

    def forward(self, u: Maps, ul: Maps, kept: tuple[Maps, Maps] | None = None) -> tuple[Maps, Maps]:
        u = self.above(u, None if kept is None else kept[0])
        return u, self.left(ul, u if kept is None else torch.cat([u, kept[1]], dim=1))


@final
class Gated(nn.Module):
    """h + a * sigmoid(b), where a and b come from two convolutions of what is here and told."""

    def __init__(self, width: int, sides: tuple[int, int], told: int) -> None:
        super().__init__()
        self.first, self.second = Shifted(2 * width, width, sides), Shifted(2 * width, 2 * width, sides)
        self.told = nn.Conv2d(2 * told, width, 1) if told else None

    def forward(self, h: Maps, told: Maps | None) -> Maps:
        inside = self.first(both_signs(h))
        if self.told is not None and told is not None:
            inside = inside + self.told(both_signs(told))
        a, b = self.second(both_signs(inside)).chunk(2, dim=1)
        return h + a * b.sigmoid()


def both_signs(h: Maps) -> Maps:
    return F.elu(torch.cat([h, -h], dim=1))


def down_shift(h: Maps) -> Maps:
    """What was above comes here: a row sees only rows before it."""
    return F.pad(h, (0, 0, 1, 0))[:, :, :-1]


def right_shift(h: Maps) -> Maps:
    return F.pad(h, (1, 0))[:, :, :, :-1]
