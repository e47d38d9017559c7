"""Which measurement is worth making next, in the words of the table: names, prices and groups in, tables out."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import narwhals as nw
import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Generator, Tensor

from ...errors import InputError
from ...inference import (
    Choice,
    GainMinusCost,
    GainPerCost,
    Measurement,
    Path,
    Policy,
    StopReason,
    TargetBins,
    acquire,
    choose,
    seeded,
)
from ...inference.measuring import Oracle, affordable_with, still_open
from ...models.any_order import Model
from ...schema import Schema
from ...validation import RandomState, seed_of, whole_number
from ..displays import Bar, number_text, plot_bars, plot_course, tag, text_grid
from ..displays import table as html_table
from .dataframes import Frame, as_frame
from .encoder import TableEncoder, encode_value

# A function that is told the number of a row and the names of columns, and returns their values; None: could not be measured.
Asked = Callable[[int, tuple[str, ...]], Mapping[str, Any]]
REASONS_TO_STOP = {
    StopReason.CERTAIN: "the target is as certain as was asked for",
    StopReason.NOTHING_LEFT: "nothing is left to measure",
    StopReason.BUDGET: "what is left costs more than the rest of the budget",
    StopReason.NOT_WORTH_IT: "nothing left is expected to tell as much as it costs",
    StopReason.STEPS: "as many measurements as were allowed",
}


class Menu(NamedTuple):
    """What may be measured: names of columns or of groups, and what each is."""

    names: tuple[str, ...]
    measurements: tuple[Measurement, ...]

    @property
    def costs(self) -> list[float]:
        return [measurement.cost for measurement in self.measurements]

    def affordable(self, budget: float) -> Bool[Tensor, " measurement"]:
        return affordable_with(torch.tensor(budget).double(), torch.tensor(self.costs).double())


def targets_of(schema: Schema, target: str | Sequence[str]) -> list[int]:
    """The places of the targets."""
    names = [target] if isinstance(target, str) else list(target)
    if not names:
        raise InputError("There is no target: name the column, or the columns, that you finally want to know.")
    return [schema.index(name) for name in names]


def menu_of(
    schema: Schema,
    targets: Sequence[int],
    costs: Mapping[str, Any] | None,
    groups: Mapping[str, Sequence[str]] | None,
) -> Menu:
    """All columns that are no targets, for 1 each; or only what `costs` names: columns, and groups that are measured together."""
    together = {name: tuple(schema.index(one) for one in members) for name, members in (groups or {}).items()}
    for name, members in together.items():
        if not members:
            raise InputError(f"The group {name!r} is empty. Name the columns that are measured together.")
        if name in schema.names:
            raise InputError(f"{name!r} is a group and a column. Give the group a name of its own.")
    inside = {place for members in together.values() for place in members}
    if costs is None:
        alone = [i for i in range(len(schema)) if i not in inside and i not in targets]
        costs = dict.fromkeys([*(schema.names[i] for i in alone), *together], 1.0)
    if not costs:
        raise InputError("There is nothing to choose from: `costs` is empty. Name what can be measured, and its price.")
    places = [together[name] if name in together else (schema.index(name),) for name in costs]
    for name, members in zip(costs, places, strict=True):
        both = [schema.names[i] for i in members if i in targets]
        if both:
            raise InputError(f"{name!r} has a price, but {both[0]!r} is the target, which cannot be measured. Leave it out.")
    return Menu(tuple(costs), tuple(Measurement(m, price_of(name, costs[name])) for name, m in zip(costs, places, strict=True)))


def price_of(name: str, price: Any) -> float:
    price = price.item() if isinstance(price, np.generic) else price
    if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < math.inf:
        raise InputError(f"{name!r} costs {price!r}; expected a number, 0 or more.")
    return float(price)


def policy_of(worth: float, ahead: int, draws: int, certain: float = -math.inf, steps: int | None = None) -> Policy:
    """With a price on a nat the gain is weighed against the cost; without, the most nats for the money go first."""
    ahead, draws = whole_number("ahead", ahead, 1), whole_number("draws", draws, 2)
    steps = None if steps is None else whole_number("steps", steps, 0)
    preference = GainPerCost() if worth == math.inf else GainMinusCost(worth)
    return Policy(preference, ahead, TargetBins(draws), certain, steps)


def check_affordable(menu: Menu, budget: float) -> None:
    """One price above the budget is a fact of life, all of them a mistake."""
    if math.isnan(budget) or budget < 0:
        raise InputError(f"The budget is {budget}; expected 0 or more.")
    if not menu.affordable(budget).any():
        cheapest = min(menu.costs)
        name = menu.names[menu.costs.index(cheapest)]
        raise InputError(f"The budget of {budget:g} is below every cost: the cheapest is {name!r} for {cheapest:g}.")


class Request(NamedTuple):
    """What somebody finally wants to know, what may be measured for it, and how to choose."""

    targets: list[int]
    menu: Menu
    budget: float
    policy: Policy

    @classmethod
    def of(
        cls,
        schema: Schema,
        target: str | Sequence[str],
        costs: Mapping[str, Any] | None,
        groups: Mapping[str, Sequence[str]] | None,
        budget: float,
        policy: Policy,
    ) -> "Request":
        targets = targets_of(schema, target)
        menu = menu_of(schema, targets, costs, groups)
        check_affordable(menu, budget)
        return cls(targets, menu, budget, policy)

    def choice(self, model: Model, x: Tensor, known: Tensor, rng: Generator) -> Choice:
        return choose(model, x, known, self.targets, self.menu.measurements, rng, policy=self.policy, budget=self.budget)

    def path(self, model: Model, x: Tensor, known: Tensor, oracle: Oracle, rng: Generator) -> Path:
        menu = self.menu.measurements
        return acquire(model, x, known, self.targets, menu, oracle, rng, policy=self.policy, budget=self.budget)


def next_best(model: Model, x: Tensor, known: Tensor, request: Request, rng: Generator) -> dict[str, list[Any]]:
    """The measurements of every row that tell something new, the advised one first; as columns of a table."""
    choice, menu = request.choice(model, x, known, rng), request.menu
    cost = torch.tensor(menu.costs, dtype=torch.float64)
    gain, error = (part.double().cpu() for part in choice.singles)
    affordable = menu.affordable(request.budget)
    score = request.policy.preference.score(gain, cost).masked_fill(~affordable, -1e9)
    score = torch.where(choice.candidate[:, None] == torch.arange(len(cost)), math.inf, score)
    open_ = still_open(known, menu.measurements)
    order = score.argsort(dim=-1, descending=True, stable=True).tolist()
    lines = [(row, place) for row, places in enumerate(order) for place in places if open_[row, place]]
    return {
        "row": [row for row, _ in lines],
        "measurement": [menu.names[place] for _, place in lines],
        "gain": [gain[line].item() for line in lines],
        "standard_error": [error[line].item() for line in lines],
        "cost": [menu.costs[place] for _, place in lines],
        "affordable": [bool(affordable[place]) for _, place in lines],
        "advised": [int(choice.candidate[row]) == place for row, place in lines],
    }


@final
@dataclass(frozen=True)
class Acquired:
    """A whole sequence of measurements, every row on its own path.

    A path has points: before the first measurement, and after each. Where a row has stopped, its last point is repeated.
    """

    table: Frame | dict[str, Any]  # what was given, with all that was measured
    steps: Frame  # one line a measurement: row, step, measurement, gain (expected, in nats), cost, spent
    stop: list[str]  # why no more was measured, row by row
    cost: NDArray[np.float64]  # spent so far: (row, point)
    log_prob: NDArray[np.float64]  # of the true targets, in nats: (row, point); NaN where the oracle does not tell them
    guess: dict[str, NDArray[Any]]  # the best guess of every target: (row, point)

    @property
    def summary(self) -> str:
        rows, made = len(self.cost), as_frame(self.steps)
        return f"{len(made)} measurements in {rows} rows, {number_text(round(float(self.cost[:, -1].mean()), 4))} spent a row"

    def lines(self, most: int = 12) -> list[list[str]]:
        """The first measurements as texts: row, step, measurement, expected nats, spent."""
        columns = as_frame(self.steps).head(most).to_dict(as_series=False)
        cells = zip(*(columns[name] for name in ("row", "step", "measurement", "gain", "spent")), strict=True)
        return [[str(row), str(step), name, f"{gain:.3f}", number_text(float(spent))] for row, step, name, gain, spent in cells]

    def __repr__(self) -> str:
        reasons = [f"  {self.stop.count(reason)} rows stopped: {reason}" for reason in dict.fromkeys(self.stop)]
        return "\n".join([self.summary, *(text_grid(STEP_HEADINGS, self.lines()) if len(as_frame(self.steps)) else []), *reasons])

    def _repr_html_(self) -> str:
        reasons = [tag("p", f"{self.stop.count(reason)} rows stopped: {reason}") for reason in dict.fromkeys(self.stop)]
        return tag("div", tag("p", tag("b", self.summary)), html_table(STEP_HEADINGS, self.lines()), *reasons)

    def plot(self, ax: Any = None) -> Any:
        """How well the target is known for what was spent: log p of its true value, or, where it is not told, expected nats."""
        told = self.log_prob[np.isfinite(self.log_prob).all(axis=1)]
        if len(told):
            return plot_course(self.cost[np.isfinite(self.log_prob).all(axis=1)], told, "log p of the target, nats", ax)
        return plot_course(self.cost, self._expected(), "nats expected to be told", ax)

    def _expected(self) -> NDArray[np.float64]:
        """The gains so far: (row, point)."""
        gains = np.zeros(self.cost.shape)
        columns = as_frame(self.steps).to_dict(as_series=False)
        for row, step, gain in zip(columns["row"], columns["step"], columns["gain"], strict=True):
            gains[row, step] = gain
        return gains.cumsum(axis=1)


STEP_HEADINGS = ["row", "step", "measurement", "gain", "spent"]


def plot_next_best(ranking: Frame, row: int | None = None, ax: Any = None) -> Any:
    """The table of `next_best` as ranked bars with their standard errors, of one row (the first, if none is named)."""
    columns = as_frame(ranking).to_dict(as_series=False)
    rows = columns["row"]
    chosen = [place for place, one in enumerate(rows) if one == (rows[0] if row is None else row)] if rows else []
    if not chosen:
        raise InputError(f"The ranking has no row {row}; it has the rows {', '.join(map(str, dict.fromkeys(rows))) or '(none)'}.")
    bars = [Bar(f"{columns['measurement'][k]} ({columns['cost'][k]:g})", columns["gain"][k]) for k in chosen]
    errors = [columns["standard_error"][k] for k in chosen]
    return plot_bars(bars, "gain, nats", ax, errors=errors)


def acquired(
    model: Model, path: Path, request: Request, X: Frame | Mapping[str, Any], encoder: TableEncoder, like: Frame
) -> Acquired:
    """A path in the words of the table it began with."""
    return Acquired(
        table=with_measured(X, path, encoder),
        steps=frame_like(steps_of(path, request.menu), like, encoder.names),
        stop=[REASONS_TO_STOP[StopReason(reason)] for reason in path.stop.tolist()],
        cost=path.cost.numpy(),
        log_prob=path.log_prob.double().numpy(),
        guess=guesses(model, path, request.targets, encoder),
    )


def steps_of(path: Path, menu: Menu) -> dict[str, list[Any]]:
    """The path as columns of a table."""
    row, step = (path.chosen >= 0).nonzero().unbind(-1)
    return {
        "row": row.tolist(),
        "step": (step + 1).tolist(),
        "measurement": [menu.names[place] for place in path.chosen[row, step].tolist()],
        "gain": path.gain[row, step].tolist(),
        "cost": (path.cost[row, step + 1] - path.cost[row, step]).tolist(),
        "spent": path.cost[row, step + 1].tolist(),
    }


def guesses(model: Model, path: Path, targets: list[int], encoder: TableEncoder) -> dict[str, NDArray[Any]]:
    """The mean of a number, the likeliest category, at every point."""
    asked = torch.zeros(path.x.shape, dtype=torch.bool)
    asked[:, targets] = True
    with torch.no_grad():
        points = [model(path.x, known).best(at=asked) for known in path.given.unbind(1)]
    best = torch.stack(points, dim=1).double().numpy()
    columns = {encoder.columns[place]: best[:, :, place] for place in targets}
    return {column.name: column.best_guess(guess.ravel()).reshape(guess.shape) for column, guess in columns.items()}


def told_by(asked: Asked, encoder: TableEncoder) -> Callable[[Tensor, Tensor], Tensor]:
    """An oracle of model space from one that speaks names and values."""

    def tell(rows: Tensor, wanted: Tensor) -> Tensor:
        out = torch.full(wanted.shape, torch.nan)
        for k, row in enumerate(rows.tolist()):
            columns = [encoder.columns[i] for i in wanted[k].nonzero().squeeze(-1).tolist()]
            values = asked(row, tuple(column.name for column in columns))
            if not isinstance(values, Mapping):
                raise InputError(f"The oracle returned {values!r} for row {row}; expected a mapping from names to values.")
            for i, column in enumerate(encoder.columns):
                if wanted[k, i] and values.get(column.name) is not None:
                    out[k, i] = encode_value(column, values[column.name])
        return out

    return tell


def frame_like(columns: dict[str, list[Any]], like: Frame, names: tuple[str, ...]) -> Frame:
    """A table in the dataframe library of another one, or in whatever is there."""
    backend: Any = as_frame(like, names).implementation
    return nw.from_dict(columns, backend=backend).to_native()


def with_measured(X: Frame | Mapping[str, Any], path: Path, encoder: TableEncoder) -> Frame | dict[str, Any]:
    """What was given, and what was measured in its gaps."""
    measured = path.given[:, -1] & ~path.given[:, 0]
    if not isinstance(X, Mapping):
        return encoder.fill(X, path.x, measured)
    new = measured[0].nonzero().squeeze(-1).tolist()
    return dict(X) | {encoder.columns[i].name: encoder.columns[i].decode(path.x[:, i].double().numpy())[0] for i in new}


class MeasuringVerbs:
    """What the face of all models can say about measurements."""

    schema_: Schema
    encoder_: TableEncoder
    model_: Any
    template_: Frame
    random_state: RandomState

    def _encode(self, X: Frame) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def _records(self, X: Frame | Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def next_best(
        self,
        X: Frame | Mapping[str, Any],
        target: str | Sequence[str],
        costs: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        budget: float = math.inf,
        worth: float = math.inf,
        ahead: int = 1,
        draws: int = 32,
    ) -> Frame:
        """What to measure next in every row to learn most about the target: a table, the advised measurement of a row first.

        `gain` is how many nats the measurement is expected to tell about the target, with its standard error. `costs` names
        what can be measured and its price (without it, every other column costs 1); `groups` = {"panel": [columns]} are
        measured together and have a price of their own. `worth` is what a nat is worth, in the unit of the prices: where no
        gain is worth its cost, or the `budget` is too small, nothing is advised. With `ahead`=2, pairs are weighed too: two
        columns may tell much together and nothing alone. X is a table with gaps, or one record as a mapping.
        """
        records = self._records(X)
        request = Request.of(self.schema_, target, costs, groups, budget, policy_of(worth, ahead, draws))
        columns = next_best(self.model_, *records, request, seeded(seed_of(self.random_state)))
        return frame_like(columns, self.template_, self.encoder_.names)

    def acquire(
        self,
        X: Frame | Mapping[str, Any],
        target: str | Sequence[str],
        oracle: Frame | Asked,
        costs: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        budget: float = math.inf,
        worth: float = math.inf,
        certain: float = -math.inf,
        steps: int | None = None,
        ahead: int = 1,
        draws: int = 8,
    ) -> Acquired:
        """Measure, look, choose again, every row on its own path until it stops: see `next_best` for the arguments.

        `oracle` knows the values: a table of the true rows, in which a gap cannot be measured, or a function of the number of
        a row and the names of columns that returns {name: value}. A row stops when its target has at most `certain` nats of
        entropy, after `steps` measurements, or when nothing affordable is worth its cost.
        """
        records = self._records(X)
        request = Request.of(self.schema_, target, costs, groups, budget, policy_of(worth, ahead, draws, certain, steps))
        truth = told_by(oracle, self.encoder_) if callable(oracle) else self._encode(oracle)[0]
        path = request.path(self.model_, *records, truth, seeded(seed_of(self.random_state)))
        return acquired(self.model_, path, request, X, self.encoder_, self.template_)
