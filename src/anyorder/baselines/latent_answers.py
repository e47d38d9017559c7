"""What a latent-variable model answers: the same questions as an any-order model, by weighted draws of z ~ q(z | x_G)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..distributions.distribution import draw_code
from ..errors import InputError
from ..schema import Values
from ..subsets import Question, check_question
from .latent import LatentModel, Latents, PerDraw, Terms, total

LATENT_CELLS_PER_CALL = 2**20  # of rows times draws times variables in one call of the decoder


class Weighted(NamedTuple):
    """Draws of z, their log weights (which sum to one in every row), and log p(x_i | z) of all variables."""

    z: Latents
    log_weight: PerDraw
    terms: Terms


@torch.no_grad()
def log_prob(model: LatentModel, x: Values, question: Question, rng: Generator, draws: int = 1000) -> Float[Tensor, " batch"]:
    r"""How likely the targets are together, given what is known, in nats per row.

    .. math:: \log p(x_T \mid x_G) \approx \log \sum_k w_k \, p(x_T \mid z_k), \quad z_k \sim q(z \mid x_G)

    The draws and their weights know nothing of the targets, so that the answer is a normalised distribution for any
    number of them.
    """
    check(model, x, question, draws, scored=True)

    def together(rows: Tensor) -> Tensor:
        found = weighted(model, x[rows], question[rows], rng, draws)
        return (found.log_weight + total(found.terms, question.target[rows])).logsumexp(0)

    return by_rows(together, x, draws)


@torch.no_grad()
def each_log_prob(model: LatentModel, x: Values, question: Question, rng: Generator, draws: int = 1000) -> Values:
    """How likely each target is alone, given what is known; 0 for what is no target."""
    check(model, x, question, draws, scored=True)

    def alone(rows: Tensor) -> Tensor:
        found = weighted(model, x[rows], question[rows], rng, draws)
        each = (found.log_weight.unsqueeze(-1) + found.terms).logsumexp(0)
        return torch.where(question.target[rows], each, 0.0)

    return by_rows(alone, x, draws)


@torch.no_grad()
def sample(model: LatentModel, x: Values, question: Question, rng: Generator, draws: int = 1000) -> Values:
    """The rows of x with their targets drawn from p(target | given): one z of many by its weight, then the decoder."""
    check(model, x, question, draws, scored=False)

    def drawn(rows: Tensor) -> Tensor:
        found = weighted(model, x[rows], blind(question[rows]), rng, draws)
        chosen = draw_code(found.log_weight.T, rng)
        z = found.z[chosen, torch.arange(len(rows), device=x.device)]
        return torch.where(question.target[rows], model.decode(z).sample(rng), x[rows])

    return by_rows(drawn, x, draws)


@torch.no_grad()
def mean(model: LatentModel, x: Values, question: Question, rng: Generator, draws: int = 1000) -> Values:
    """The rows of x with each target replaced by its mean given what is known: imputation of numbers."""
    check(model, x, question, draws, scored=False)

    def expected(rows: Tensor) -> Tensor:
        found = weighted(model, x[rows], blind(question[rows]), rng, draws)
        means = model.decode(found.z.flatten(0, 1)).mean().unflatten(0, found.z.shape[:2])
        filled = (found.log_weight.exp().unsqueeze(-1) * means).sum(0)
        return torch.where(question.target[rows], filled, x[rows])

    return by_rows(expected, x, draws)


def weighted(model: LatentModel, x: Values, question: Question, rng: Generator, draws: int) -> Weighted:
    """Draws of z that have seen `given` only; the terms are those of `given` and `target`."""
    posterior = model.encode(x, question.given)
    z = posterior.sample(draws, rng)
    terms = model.terms(z, torch.where(question.given | question.target, x, 0.0))
    weights = model.log_weights(posterior, z, total(terms, question.given))
    return Weighted(z, weights.log_softmax(0), terms)


def blind(question: Question) -> Question:
    """The same question without targets, whose cells may hold anything."""
    return Question(question.given, torch.zeros_like(question.target))


def by_rows(answer: Callable[[Tensor], Tensor], x: Values, draws: int) -> Tensor:
    """The answers of a few rows at a time, so that memory stays bounded."""
    size = max(1, LATENT_CELLS_PER_CALL // (draws * x.shape[1]))
    return torch.cat([answer(rows) for rows in torch.arange(len(x), device=x.device).split(size)])


def check(model: LatentModel, x: Values, question: Question, draws: int, scored: bool) -> None:
    """Everything known must be a legal value; so must be everything asked for if it is scored."""
    if draws < 1:
        raise InputError(f"Got draws={draws}; expected at least 1.")
    model.schema.check(x, None)
    check_question(model.schema, x, question)
    model.schema.check(x, question.given | question.target if scored else question.given)
