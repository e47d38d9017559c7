"""How good a model of a table is, column by column, on rows it has not seen; for a terminal and as one HTML file."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ...distributions import DiscreteDistribution, Distribution, LatticeDistribution, mean_place
from ...errors import InputError
from ...io.atomic import write_bytes
from ...models.any_order import Model
from ...models.counts import Counted
from ...schema import Mask, Recorded, Values, levels_of, spacing_of
from ..displays import Markup, columns, number_text, page, percent, seconds_text, shorten, sparkline, table, tag, text_grid
from .anomalies import CellChances
from .columns import Column, NumberColumn
from .encoder import TableEncoder

COVERAGE_LEVEL = 0.9
PIT_BARS = 10
FEWEST_SCORED, MOST_SCORED_ROWS = 20, 5000  # rows that a baseline is fitted on
LEAST = 1e-12  # probability


class Score(NamedTuple):
    """How well something guesses a column: nats a cell, and the share of right guesses or the root of the mean squared error."""

    nats: float
    guess: float


@final
@dataclass(frozen=True)
class ColumnReport:
    """One column given all others, on rows that were held out."""

    name: str
    kind: str  # "category" or "number"
    cells: int
    gaps: float  # the share of cells that hold nothing
    model: Score
    nothing_known: Score  # the model asked without any other column
    baseline: Score | None  # ridge or logistic regression on all other columns; None without training rows
    calibration: list[float]  # of a number: how often it falls into each tenth of its distribution; of a category, see `promised`
    promised: list[float]  # of a category: mean probabilities of its levels by tenths; `calibration`: how often they came
    coverage: float | None  # the share of numbers inside their 90 % intervals
    seconds: float

    @property
    def skill(self) -> float:
        """Nats a cell that all other columns tell of this one."""
        return self.nothing_known.nats - self.model.nats

    @property
    def miscalibration(self) -> float:
        """The mean distance of what happened from what was said, in shares: 0 is perfect."""
        if self.kind == "number":
            return float(np.abs(np.array(self.calibration) - 1 / PIT_BARS).sum() / 2)
        there = [(said, came) for said, came in zip(self.promised, self.calibration, strict=True) if np.isfinite(came)]
        return float(np.mean([abs(said - came) for said, came in there])) if there else 0.0


@final
@dataclass(frozen=True)
class Report:
    """What `model.report(rows)` found; `save(path)` writes it as one HTML file."""

    rows: int
    columns: list[ColumnReport]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, ready for JSON."""
        return {"rows": self.rows, "notes": self.notes, "columns": [column_document(column) for column in self.columns]}

    def __repr__(self) -> str:
        lines = [[shorten(one.name, 24), *texts_of_column(one), picture_of(one)] for one in self.columns]
        return "\n".join(
            [self.summary, *text_grid([*REPORT_HEADINGS, "calibration"], lines, 120), *(f"  {note}" for note in self.notes)]
        )

    @property
    def summary(self) -> str:
        better = sum(one.skill > 0 for one in self.columns)
        return (
            f"{len(self.columns)} columns on {self.rows:,} held-out rows: {better} are guessed better from the others than alone"
        )

    def _repr_html_(self) -> str:
        rows: list[list[object]] = [[one.name, *texts_of_column(one), drawn(one)] for one in self.columns]
        notes = [tag("p", note, style="opacity: .75; font-size: 90%") for note in (*self.notes, *LEGEND)]
        return tag("div", tag("p", tag("b", self.summary)), table([*REPORT_HEADINGS, "calibration"], rows), *notes)

    def save(self, path: str | Path) -> None:
        """One HTML file that needs nothing else, for light and dark screens."""
        write_bytes(Path(path), page("How good the model is", Markup(self._repr_html_())).encode())


REPORT_HEADINGS = ["column", "kind", "gaps", "nats", "alone", "baseline", "right or RMSE", "alone", "baseline", "in 90 %", "time"]
LEGEND = (
    "nats: surprise of a cell given all other columns of its row, less is better; alone: with nothing known; baseline: ridge or "
    "logistic regression on all other columns.",
    "right: share of categories guessed right, more is better; RMSE: of numbers, less is better; in 90 %: numbers inside their "
    "90 % intervals.",
    "calibration: of a number, how often it falls into each tenth of its distribution (even is right); of a category, how often "
    "levels come that were said to come with 0 to 10 %, 10 to 20 %, ... (a staircase is right).",
)


def texts_of_column(one: ColumnReport) -> list[str]:
    """A column's line in the table."""
    base = one.baseline
    return [
        one.kind,
        percent(one.gaps).strip(),
        f"{one.model.nats:.3f}",
        f"{one.nothing_known.nats:.3f}",
        f"{base.nats:.3f}" if base else "-",
        guess_text(one, one.model),
        guess_text(one, one.nothing_known),
        guess_text(one, base) if base else "-",
        "-" if one.coverage is None else percent(one.coverage).strip(),
        seconds_text(one.seconds),
    ]


def guess_text(one: ColumnReport, score: Score) -> str:
    return percent(score.guess).strip() if one.kind == "category" else number_text(float(f"{score.guess:.3g}"))


def picture_of(one: ColumnReport) -> str:
    return sparkline([0.0 if np.isnan(share) else share for share in one.calibration])


def drawn(one: ColumnReport) -> Markup:
    heights = [0.0 if np.isnan(share) else share for share in one.calibration]
    return columns(heights, level=1 / PIT_BARS if one.kind == "number" else None)


def column_document(one: ColumnReport) -> dict[str, Any]:
    scores = {"model": one.model, "nothing_known": one.nothing_known, "baseline": one.baseline}
    measure = "accuracy" if one.kind == "category" else "rmse"
    return {
        "name": one.name,
        "kind": one.kind,
        "cells": one.cells,
        "gaps": one.gaps,
        **{name: None if score is None else {"nats": score.nats, measure: score.guess} for name, score in scores.items()},
        "skill": one.skill,
        "calibration": one.calibration,
        "miscalibration": one.miscalibration,
        "coverage": one.coverage,
        "seconds": one.seconds,
    }


def report_of(model: Model, encoder: TableEncoder, x: Values, present: Mask) -> Report:
    """Every column given all others, against nothing known and against a baseline that is fitted on the training rows."""
    if not present.any():
        raise InputError(
            "There is no value in these rows that the model could be tested on: pass rows that were held out of fit."
        )
    nobody = torch.full((len(x),), -1)
    cells, blind = CellChances(model, x, present, nobody), CellChances(model, x, torch.zeros_like(present), nobody)
    found = []
    for place, column in enumerate(encoder.columns):
        rows = present[:, place].nonzero().squeeze(-1)
        if len(rows):
            found.append(column_report(model, column, place, rows, cells, blind))
    empty = [c.name for i, c in enumerate(encoder.columns) if not present[:, i].any()]
    notes = [f"These rows hold nothing of {', '.join(empty)}."] if empty else []
    if not isinstance(model, Counted):
        notes.append("There is no baseline: it is fitted on the training rows, and the model keeps none.")
    elif same := share_seen(model, x, present):
        notes.append(
            f"{percent(same).strip()} of these rows were trained on: what is found is too good. Pass rows held out of fit."
        )
    return Report(len(x), found, notes)


def share_seen(model: Counted, x: Values, present: Mask) -> float:
    from .anomalies import places_among_training

    return float((places_among_training(model, x, present) >= 0).float().mean())


def column_report(model: Model, column: Column, place: int, rows: Tensor, cells: CellChances, blind: CellChances) -> ColumnReport:
    started, own = time.perf_counter(), cells.x[rows, place].double()
    domain = model.schema.variables[place].domain
    judge: Callable[[Distribution, Tensor], Judged] = (
        partial(judge_number, domain=domain) if isinstance(domain, Recorded) else judge_category
    )
    judged = joined_scores([judge(distribution, cells.x[some, place]) for some, distribution in cells.distributions(place, rows)])
    seconds = time.perf_counter() - started
    distribution = next(iter(blind.distributions(place, rows[:1])))[1].map_tensors(lambda t: t.expand(len(rows), *t.shape[1:]))
    alone = judge(distribution, cells.x[rows, place])
    numbers = isinstance(column, NumberColumn)
    score = lambda nats, guess: Score(float(nats.mean()), score_columns(column, guess, own))  # noqa: E731
    base = baseline(model, place, cells, rows) if isinstance(model, Counted) else None
    promised, calibration = reliability(judged) if not numbers else ([], pit_histogram(judged))
    inside = (judged.upto >= (1 - COVERAGE_LEVEL) / 2) & (judged.below < (1 + COVERAGE_LEVEL) / 2)
    return ColumnReport(
        name=column.name,
        kind="number" if numbers else "category",
        cells=len(rows),
        gaps=1 - len(rows) / len(cells.x),
        model=score(judged.nats, judged.guess),
        nothing_known=score(alone.nats, alone.guess),
        baseline=None if base is None else score(*base),
        calibration=calibration,
        promised=promised,
        coverage=float(inside.double().mean()) if numbers else None,
        seconds=seconds,
    )


class Judged(NamedTuple):
    """Cells against their distributions: nats, the best guess, and the probability up to and below the value, or of
    every level.
    """

    nats: Float[Tensor, " cell"]
    guess: Float[Tensor, " cell"]
    upto: Float[Tensor, " cell"]
    below: Float[Tensor, " cell"]
    levels: Float[Tensor, "cell level"]
    came: Float[Tensor, "cell level"]


def joined_scores(parts: list[Judged]) -> Judged:
    return Judged(*(torch.cat(each) for each in zip(*parts, strict=True)))


def judge_number(distribution: Distribution, x: Float[Tensor, " cell"], domain: Recorded) -> Judged:
    assert isinstance(distribution, LatticeDistribution)
    upto, below = distribution.cdf(x).double(), distribution.cdf(x - distribution.spacing).double()
    none = x.new_zeros(len(x), 0)
    return Judged(-distribution.log_prob(x).double(), mean_place(distribution, domain).double(), upto, below, none, none)


def judge_category(distribution: Distribution, x: Float[Tensor, " cell"]) -> Judged:
    assert isinstance(distribution, DiscreteDistribution)
    levels = distribution.pmf().double()
    came = torch.nn.functional.one_hot(x.long(), levels.shape[-1]).double()
    nothing = torch.zeros(len(x)).double()
    return Judged(-distribution.log_prob(x).double(), levels.argmax(-1).double(), nothing, nothing, levels, came)


def score_columns(column: Column, guess: Tensor, own: Tensor) -> float:
    """The root of the mean squared error in the column's unit, days of instants; or the share of right guesses."""
    if not isinstance(column, NumberColumn):
        return float((guess.double() == own).double().mean())
    off = column.number(guess.double().numpy()) - column.number(own.double().numpy())
    return float(np.sqrt((off**2).mean())) / (1000 * 86400 if column.unit == "instant" else 1)


def pit_histogram(judged: Judged) -> list[float]:
    """The share of cells in every tenth of their distributions; a value that covers several tenths is spread over them."""
    ends = torch.linspace(0, 1, PIT_BARS + 1, dtype=torch.float64)
    below, width = judged.below[:, None], (judged.upto - judged.below).clamp(min=1e-12)[:, None]
    upto = ((ends - below) / width).clamp(0.0, 1.0)
    return torch.diff(upto).mean(0).tolist()


def reliability(judged: Judged) -> tuple[list[float], list[float]]:
    """What was promised to come with 0 to 10 %, 10 to 20 %, ..., and how often it came; NaN where nothing was."""
    said, came = judged.levels.flatten(), judged.came.flatten()
    tenth = (said * PIT_BARS).long().clamp(max=PIT_BARS - 1)
    count = torch.bincount(tenth, minlength=PIT_BARS).double()
    both = (torch.bincount(tenth, weights=each, minlength=PIT_BARS) / count for each in (said, came))
    promised, happened = (each.tolist() for each in both)
    return promised, happened


def baseline(model: Counted, place: int, cells: CellChances, rows: Tensor) -> tuple[Tensor, Tensor] | None:
    """(nats, guess) of ridge or logistic regression, fitted on some training rows that have a value."""
    held = model.held.bool()
    train = held[:, place].nonzero().squeeze(-1)
    if len(train) > MOST_SCORED_ROWS:
        train = train[torch.linspace(0, len(train) - 1, MOST_SCORED_ROWS).long()]
    domain = model.schema.variables[place].domain
    target = model.rows[train, place].double().numpy()
    if len(train) < FEWEST_SCORED or len(np.unique(target)) < 2:
        return None
    some = (model.rows[train], held[train]), (cells.x[rows], cells.known[rows])
    train_on, test_on = (design(model, values, there, place) for values, there in some)
    own = cells.x[rows, place].double().numpy()
    if isinstance(domain, Recorded):
        return ridge(train_on, test_on, target, own, spacing_of(domain))
    return logistic(train_on, test_on, target, own)


def design(model: Counted, x: Values, present: Mask, leave_out: int) -> NDArray[np.float64]:
    """All other columns as numbers: gaps are the middle and marked, codes one column each."""
    parts = []
    for i, variable in enumerate(model.schema):
        if i == leave_out:
            continue
        there, values = present[:, i].numpy(), torch.where(present[:, i], x[:, i], 0.0).double().numpy()
        if levels := levels_of(variable.domain):
            parts.append((values[:, None] == np.arange(levels)) & there[:, None])
        else:
            parts += [np.clip(values, -20, 20)[:, None], ~there[:, None]]
    return np.hstack([np.asarray(part, dtype=float) for part in parts]) if parts else np.zeros((len(x), 1))


def logistic(train: NDArray[Any], test: NDArray[Any], target: NDArray[Any], own: NDArray[Any]) -> tuple[Tensor, Tensor]:
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a search that ends early
        fitted = LogisticRegression(max_iter=100).fit(train, target)
    shares = fitted.predict_proba(test)
    place = {code: k for k, code in enumerate(fitted.classes_)}
    likely = np.array([shares[row, place[code]] if code in place else LEAST for row, code in enumerate(own)])
    return torch.from_numpy(-np.log(likely.clip(LEAST))), torch.from_numpy(fitted.classes_[shares.argmax(-1)])


def ridge(
    train: NDArray[Any], test: NDArray[Any], target: NDArray[Any], own: NDArray[Any], spacing: float
) -> tuple[Tensor, Tensor]:
    """Its distribution is a normal one with the spread of its errors in training; the mass is that of the recorded value."""
    from scipy.stats import norm
    from sklearn.linear_model import Ridge

    fitted = Ridge(alpha=1.0).fit(train, target)
    width = max(float((target - fitted.predict(train)).std()), spacing / 4)
    guess = fitted.predict(test)
    low, high = ((own - guess + side * spacing / 2) / width for side in (-1, 1))
    mass = norm.cdf(-np.abs(low + high) / 2 + (high - low) / 2) - norm.cdf(-np.abs(low + high) / 2 - (high - low) / 2)
    return torch.from_numpy(-np.log(mass.clip(LEAST))), torch.from_numpy(guess)
