"""A policy whose action dimensions may be taken over by an operator, any of them at any moment: p(the others | state, these).

    policy = Policy.fit(states, actions, episodes, seed=0)
    policy.fill(state, {0: 0.3, 1: -0.1})        # the mean of the other dimensions, given what the operator does
    policy.fill(state, {0: 0.3}, draws=5)        # or drawn together

A row is a state and an action side by side. The state is always given; every subset of the action is practised as what is known
besides, or, with `operator`, one subset as often as all others together. Nothing here is of robots: the parts are the library's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder import AnyOrderModel, Question, Real, Recipe, Schema, build_model, fit, log_prob, sample, seeded
from anyorder.distributions import GaussianMixture
from anyorder.errors import InputError
from anyorder.subsets import CanonicalOrder, Even, Observed, QuestionDistribution, RandomOrder
from anyorder.training import Objective, ardm, mixture, sfarm

Numbers = NDArray[np.float32]
Known = Mapping[int, Numbers] | Sequence[int]  # dimensions of the action
WIDTH, DEPTH, COMPONENTS = 256, 2, 5
STATE_NOISE = 0.03  # in standard deviations: a policy meets states a little beside those of its demonstrations
NEVER_MOVES = 1e-4  # standard deviation of an action that is a constant


@dataclass(frozen=True)
class Policy:
    """A model of states and actions in units of their standard deviations, and the actions that never move."""

    model: AnyOrderModel
    centre: torch.Tensor
    spread: torch.Tensor
    states: int
    moving: tuple[int, ...]
    resting: Numbers

    @classmethod
    def fit(
        cls,
        states: Numbers,
        actions: Numbers,
        episodes: NDArray[np.int32],
        operator: Sequence[int] = (),
        share: float = 0.5,
        at_once: bool = False,
        steps: int = 4000,
        seed: int = 0,
    ) -> "Policy":
        """From demonstrations; a tenth of the episodes says when to stop.

        `share` of the practice is for what `operator` moves being known, the rest for any subset; 1 is for that alone.
        `at_once` practises the first answer only, as if the dimensions did not know each other: behaviour cloning.
        """
        moving = tuple(np.flatnonzero(actions.std(0) > NEVER_MOVES).tolist())
        rows = torch.from_numpy(np.concatenate([states, actions[:, moving]], axis=1)).float()
        centre, spread = rows.mean(0), rows.std(0).clamp(min=1e-3)
        schema, count = Schema.repeat(Real(), rows.shape[1]), states.shape[1]
        model = build_model(schema, [GaussianMixture(COMPONENTS)] * len(schema), WIDTH, DEPTH, seed=seed)
        known = torch.arange(len(schema)) < count
        with_operator = known.clone()
        with_operator[[count + moving.index(dim) for dim in operator if dim in moving]] = True
        asked, any_subset = (practice(Observed(mask[None]), at_once) for mask in (with_operator, known))
        objective = asked if share == 1 else mixture(asked, any_subset, weights=(share, 1 - share))
        recipe = Recipe(
            objective, steps, batch_size=256, learning_rate=1e-3, check_every=max(1, steps // 40), patience=20, seed=seed
        )
        last = episodes >= np.quantile(np.unique(episodes), 0.9)
        parts = (torch.from_numpy(np.flatnonzero(~last)), torch.from_numpy(np.flatnonzero(last)))

        def beside(x: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
            noise = STATE_NOISE * torch.randn(x.shape, generator=rng, device=x.device)
            return torch.where(known.to(x.device), x + noise, x)

        fit(model, (rows - centre) / spread, recipe=recipe, resample=beside, parts=parts)
        return cls(model.requires_grad_(False), centre, spread, count, moving, actions[0].copy())

    def fill(self, state: Numbers, known: Mapping[int, float], draws: int = 0, seed: int = 0) -> Numbers:
        """The action, with what the operator does as it is: the mean of the others, or several draws of them together."""
        many = self.fill_all(state[None], {dim: np.array([value]) for dim, value in known.items()}, draws, seed)
        return many[:, 0] if draws else many[0]

    @torch.no_grad()
    def fill_all(self, states: Numbers, known: Mapping[int, Numbers], draws: int = 0, seed: int = 0) -> Numbers:
        """The same for many states: (row, dimension), or (draw, row, dimension)."""
        for dim in known:
            if not 0 <= dim < len(self.resting):
                raise InputError(f"There is no action dimension {dim}; expected 0 to {len(self.resting) - 1}.")
        actions = np.tile(self.resting, (len(states), 1))
        for dim, values in known.items():
            actions[:, dim] = values
        x, question = self._rows(states, actions, known)
        if not draws:
            return self._actions(self.model(x, question.given).mean().float(), actions, known)
        several = Question(question.given.repeat(draws, 1), question.target.repeat(draws, 1))
        filled = sample(self.model, x.repeat(draws, 1), several, seeded(seed))
        return self._actions(filled, np.tile(actions, (draws, 1)), known).reshape(draws, *actions.shape)

    @torch.no_grad()
    def log_p(
        self, states: Numbers, actions: Numbers, known: Sequence[int], target: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """log p(these dimensions | state, those that are known), in nats per row; all others, if none are named."""
        x, question = self._rows(states, actions, known)
        if target is not None:
            asked = torch.tensor([False] * self.states + [dim in target for dim in self.moving])
            question = Question(question.given, question.target & asked)
        nats = log_prob(self.model, x, question, order=CanonicalOrder()).double()
        units = (self.spread.double().log() * question.target).sum(-1)
        return (nats - units).numpy()

    def _rows(self, states: Numbers, actions: Numbers, known: Known) -> tuple[torch.Tensor, Question]:
        """Rows in units of the model, and what is asked about them."""
        rows = torch.from_numpy(np.concatenate([states, actions[:, self.moving]], axis=1)).float()
        given = torch.arange(rows.shape[1]) < self.states
        given[[self.states + place for place, dim in enumerate(self.moving) if dim in known]] = True
        given = given.expand(len(rows), -1)
        return (rows - self.centre) / self.spread, Question(given, ~given)

    def _actions(self, x: torch.Tensor, actions: Numbers, known: Known) -> Numbers:
        """What rows in units of the model mean; what is known and what never moves is as it was."""
        found, filled = actions.copy(), (x * self.spread + self.centre)[:, self.states :].numpy()
        for place, dim in enumerate(self.moving):
            if dim not in known:
                found[:, dim] = filled[:, place]
        return found


def practice(questions: QuestionDistribution, at_once: bool) -> Objective:
    """One dimension after the other in any order, or all at once."""
    return sfarm([RandomOrder()], questions, Even(1)).untold() if at_once else ardm(questions)


def d4rl(path: str) -> tuple[Numbers, Numbers, NDArray[np.int32]]:
    """States, actions and episodes of a file of D4RL (needs h5py): `Policy.fit(*d4rl("kitchen_mixed-v0.hdf5"))`."""
    import h5py

    with h5py.File(path) as file:
        ends = [np.asarray(file[name], dtype=bool) for name in ("terminals", "timeouts") if name in file]
        if not ends:
            raise InputError(f"{path} holds neither terminals nor timeouts: it cannot be told where episodes end.")
        episodes = np.concatenate([[0], np.cumsum(np.any(ends, axis=0))[:-1]]).astype(np.int32)
        return np.asarray(file["observations"], np.float32), np.asarray(file["actions"], np.float32), episodes
