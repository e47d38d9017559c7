"""What training may end with, and what it is made of."""

from .any_order import AnyOrderModel
from .blend import Blend, Member
from .counts import Counted
from .memory import Memory
from .pair_counts import PairCounted
from .trees import Boosted

Trained = Member | Blend | Counted | PairCounted  # what a file may hold
WORDS: dict[type, str] = {
    AnyOrderModel: "network",
    Memory: "memory",
    Boosted: "boosted trees",
    Counted: "counts",
    PairCounted: "counts of pairs",
}


def members_of(model: Trained) -> list[Member]:
    """The models that are blended, or the one that there is."""
    if isinstance(model, Counted | PairCounted):
        return members_of(model.model)
    return model.members() if isinstance(model, Blend) else [model]


def parts_of(model: Trained) -> list[str]:
    """What it is made of, in words."""
    words = [WORDS[type(member)] for member in members_of(model)]
    return [*words, WORDS[type(model)]] if isinstance(model, Counted | PairCounted) else words


def rows_in(model: Trained) -> int:
    """How many training rows it holds."""
    memories = [len(member.rows) for member in members_of(model) if isinstance(member, Memory)]
    return max([len(model.rows) if isinstance(model, Counted) else 0, *memories])
