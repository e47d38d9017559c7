"""How likely the targets of a question are. Each function says what kind of likelihood it returns.

All of them score paths through the lattice. The steps of a path whose values are known do not depend on each other, so
`path_terms` runs many steps of many rows and orders in one network call.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from ..errors import InputError
from ..models.any_order import Model
from ..schema import Mask, Values
from ..subsets import CanonicalOrder, OneByOne, Order, Question, RandomOrder, Schedule, StagedOrder, check_question
from .walk import ContextLike, context_of, seeded, walk

Nats = Float[Tensor, " batch"]

# What goes into one network call: enough to keep the cores busy, little enough to stay in the caches.
MOST_SCORED_ROWS, MOST_SCORED_CELLS = 4096, 2**18


def log_prob(
    model: Model,
    x: Values,
    question: Question,
    *,
    order: Order = CanonicalOrder(),
    schedule: Schedule = OneByOne(),
    rng: Generator | None = None,
    context: ContextLike = None,
) -> Nats:
    r"""How likely the targets are, given what is known, along one order: nats per row, an exactly normalised distribution.

    .. math:: \log p(x_T \mid x_G) = \sum_j \log p(x_{\sigma_j} \mid x_G, x_{\sigma_1}, \dots, x_{\sigma_{j-1}})

    Variables in neither set are marginalised by never being visited. With blocks, the targets of one block are
    scored independently of each other.
    """
    return path_terms(model, x, question, [order], schedule=schedule, rng=rng, context=context)[0].sum(-1)


def mixture_log_prob(
    model: Model,
    x: Values,
    question: Question,
    orders: Sequence[Order],
    *,
    schedule: Schedule = OneByOne(),
    rng: Generator | None = None,
    context: ContextLike = None,
) -> Nats:
    r"""How likely the targets are under the equal mixture of several orders: :math:`\log \frac1K \sum_k p_{\sigma_k}`.

    With orders fixed in advance (`fixed_orders`) it is exactly normalised, and never below `elbo` of the same orders.
    """
    terms = path_terms(model, x, question, orders, schedule=schedule, rng=rng, context=context)
    return terms.sum(-1).logsumexp(0) - math.log(len(orders))


def elbo(
    model: Model,
    x: Values,
    question: Question,
    orders: Sequence[Order],
    *,
    schedule: Schedule = OneByOne(),
    rng: Generator | None = None,
    context: ContextLike = None,
) -> Nats:
    """The mean log-likelihood over orders: the number the papers print, a lower bound of the mixture's."""
    return path_terms(model, x, question, orders, schedule=schedule, rng=rng, context=context).sum(-1).mean(0)


def ratio_log_prob(
    model: Model,
    x: Values,
    question: Question,
    *,
    order: Order = CanonicalOrder(),
    rng: Generator | None = None,
    context: ContextLike = None,
) -> Nats:
    """log p(target, given) - log p(given), both along one order (MAC's first method).

    Not normalised: where the two paths disagree it may exceed 0 even for codes. `log_prob` is the safe choice.
    """
    check_scoring(model, x, question)
    rng = rng or seeded(device=x.device)
    state = rng.get_state()  # both paths take the same random order
    nothing = torch.zeros_like(question.given)
    both = Question(nothing, question.given | question.target)
    joint = log_prob(model, x, both, order=order, rng=rng, context=context)
    rng.set_state(state)
    return joint - log_prob(model, x, Question(nothing, question.given), order=order, rng=rng, context=context)


def fixed_orders(variables: int, count: int, seed: int = 0, within: Order = RandomOrder()) -> list[CanonicalOrder]:
    """`count` orders fixed in advance, in pairs of an order and its reverse, the same for every row and every call.

    If they are to be drawn from a distribution with stages, `within`, both keep its stages.
    """
    rng = seeded(seed)
    stages = within.stages(variables) if isinstance(within, StagedOrder) else torch.zeros(variables, dtype=torch.long)
    orders: list[CanonicalOrder] = []
    while len(orders) < count:
        order = CanonicalOrder.shuffled(variables, rng)
        orders += [order, order.reversed(variables)]
    return [staged(order, stages) for order in orders[:count]]


def staged(order: CanonicalOrder, stages: Int[Tensor, " variable"]) -> CanonicalOrder:
    """The same order inside every stage, and one stage after the other."""
    if not stages.any():
        return order
    places = torch.tensor(order.order)
    return CanonicalOrder(tuple(places[stages[places].argsort(stable=True)].tolist()))


@torch.no_grad()
def path_terms(
    model: Model,
    x: Values,
    question: Question,
    orders: Sequence[Order],
    *,
    schedule: Schedule = OneByOne(),
    rng: Generator | None = None,
    context: ContextLike = None,
    rows_per_call: int | None = None,
) -> Float[Tensor, "order batch variable"]:
    """What every target adds to the log-likelihood of every row along every order, in nats; 0 for what is no target.

    At most `rows_per_call` (row, step) pairs are in one network call, so memory stays bounded.
    """
    check_scoring(model, x, question)
    if not isinstance(orders, Sequence) or not orders:
        raise InputError(f"`orders` is {orders!r}; expected at least one order, such as fixed_orders(variables, 4).")
    rows_per_call = rows_per_call or max(1, min(MOST_SCORED_ROWS, MOST_SCORED_CELLS // x.shape[1]))
    rng = rng or seeded(device=x.device)
    terms = x.new_zeros(len(orders), *x.shape)
    bounds = schedule.bounds(question.count)  # (batch, step + 1)
    for k, order in enumerate(orders):
        if order.adaptive:
            terms[k] = _walked_terms(model, x, question, order, schedule, rng, context)
    fixed = [k for k, order in enumerate(orders) if not order.adaptive]
    ranks = {k: orders[k].rank(question, rng) for k in fixed}
    for k, rows, steps in _calls(bounds, fixed, rows_per_call):
        start, stop = bounds[rows, steps].unsqueeze(-1), bounds[rows, steps + 1].unsqueeze(-1)
        rank, target = ranks[k][rows], question.target[rows]
        given = question.given[rows] | (target & (rank < start))
        now = target & (rank >= start) & (rank < stop)
        conditionals = model(x[rows], given, context_of(context, given, rows))
        terms[k].index_add_(0, rows, conditionals.log_prob(x[rows], at=now).to(x.dtype))
    return terms


def leave_one_out(model: Model, x: Values, present: Mask) -> Values:
    """How likely each value is given all others of its row, in nats; NaN where there is none."""
    out = torch.full_like(x, torch.nan)
    for i in range(x.shape[1]):
        alone = torch.zeros_like(present)
        alone[:, i] = present[:, i]
        if alone.any():
            terms = path_terms(model, x, Question(present & ~alone, alone), [CanonicalOrder()])[0]
            out[:, i] = torch.where(alone, terms, torch.nan)[:, i]
    return out


def _calls(bounds: Int[Tensor, "batch step"], orders: Sequence[int], size: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Which (order, rows, steps) go into which network call: the same step of many rows, which often asks for one variable."""
    steps, rows = (bounds.diff(dim=-1) > 0).T.nonzero(as_tuple=True)
    for k in orders:
        yield from ((k, r, s) for r, s in zip(rows.split(size), steps.split(size), strict=True) if len(r))


def _walked_terms(
    model: Model, x: Values, question: Question, order: Order, schedule: Schedule, rng: Generator, context: ContextLike
) -> Values:
    """One step after the other: the only way for orders that look at the model, and the twin of the batched way."""
    terms = torch.zeros_like(x)
    for step in walk(model, x, question, order=order, schedule=schedule, rng=rng, context=context):
        terms += step.conditionals.log_prob(x, at=step.now)
    return terms


def check_scoring(model: Model, x: Values, question: Question) -> None:
    """Everything known or asked for must be a legal value."""
    model.schema.check(x, None)
    check_question(model.schema, x, question)
    model.schema.check(x, question.given | question.target)
