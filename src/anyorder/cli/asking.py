"""What the commands answer about single distributions, as plain documents: `ask` and `anomalies`."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ..errors import InputError
from ..estimator import AnyOrder
from ..inference import Measurement, StopReason
from ..modalities.tables.acquisition import REASONS_TO_STOP, Menu, check_affordable, menu_of, price_of, targets_of
from ..modalities.tables.answers import Answer
from ..modalities.tables.columns import Column, NumberColumn, plain
from ..modalities.tables.report import LEGEND
from ..modalities.tables.table_files import Frame, read_table
from .cells import evidence, find_column, one_value, typed
from .printing import Printer, show_category, show_number
from .question import Asked, Is, QuestionPart, parse_evidence, write_part, write_question

Document = dict[str, Any]
ANSWER_BINS, INTERVAL_LEVEL = 16, 0.9


def ask(model: AnyOrder, asked: Asked) -> Document:
    """The distribution, or the probability, of every target; each one alone given the evidence."""
    columns = [find_column(model.encoder_, part.name) for part in asked.targets]
    known = evidence(model.encoder_, asked.given)
    answers = [answer(model, column, part, known) for column, part in zip(columns, asked.targets, strict=True)]
    document: Document = {
        "question": write_question(asked),
        "given": [write_part(part) for part in asked.given],
        "answers": answers,
    }
    events = {part.name: typed(column, part.wanted) for column, part in zip(columns, asked.targets, strict=True) if part.wanted}
    if 1 < len(events) == len(asked.targets):
        document["joint"] = {
            "wanted": ", ".join(map(write_part, asked.targets)),
            "probability": model.probability(events, known),
            **joint_share(model, events, known),
        }
    return document


def answer(model: AnyOrder, column: Column, part: QuestionPart, known: dict[str, Any], bins: int = ANSWER_BINS) -> Document:
    found = model.conditional(known, part.name)
    grounds = {"rows": found.rows, "exactly": found.matches is None or found.matches.exactly, "conditions": influences(found)}
    if part.wanted is not None:
        what = typed(column, part.wanted)
        precision = {"precision": column.spacing} if isinstance(column, NumberColumn) else {}
        probability = {"probability": found.prob(what), "share": found.share(what)}
        return {"target": part.name, "wanted": write_part(part), **probability, **precision, **grounds}
    distribution = category_distribution(found, column) if found.is_category else number_distribution(found, column, bins)
    return {"target": part.name, **distribution, **grounds}


def influences(found: Answer) -> list[Document]:
    """What every condition did, if there are several."""
    if len(found.given) < 2:
        return []
    return [{"condition": one.condition, "moved": one.moved} for one in found.explain()]


def joint_share(model: AnyOrder, events: dict[str, Any], known: dict[str, Any]) -> Document:
    """How many training rows match what is given, and in which share of them all events hold."""
    share, rows, given = 1.0, None, dict(known)
    for name, what in events.items():
        found = model.conditional(given, name)
        rows = found.rows if rows is None else rows
        if (part := found.share(what)) is None:
            return {"rows": rows, "share": 0.0 if share == 0 else None}
        share, given[name] = share * part, what
    return {"rows": rows, "share": share}


def category_distribution(found: Answer, column: Column) -> Document:
    ordered = sorted(found.pmf().items(), key=lambda item: -item[1])
    return {"kind": "category", "probabilities": [{"value": plain(column, v), "probability": p} for v, p in ordered]}


def number_distribution(found: Answer, column: Column, bins: int) -> Document:
    low, high = found.interval(INTERVAL_LEVEL)
    return {
        "kind": "number",
        "median": plain(column, found.quantile(0.5)),
        "mean": plain(column, found.mean()),
        "interval": {"level": INTERVAL_LEVEL, "low": plain(column, low), "high": plain(column, high)},
        "bins": [{"low": plain(column, a), "high": plain(column, b), "probability": p} for a, b, p in found.bins(bins)],
    }


def anomalies(model: AnyOrder, frame: Any, top: int, threshold: float) -> Document:
    """The cells that do not fit the rest of their rows, the oddest first; rows are counted from 1."""
    found = model.anomalies(frame)
    columns = {column.name: column for column in model.encoder_.columns}
    lines = [
        {name: plain(columns[line["column"]], value) for name, value in line.items()} | {"row": line["row"] + 1}
        for line in found.lines(threshold, top)
    ]
    return {
        "rows": len(frame),
        "mean_nats": float(found.rows.mean()),
        "cells": found.checked,
        "threshold": threshold,
        "odd": len(found.ranked(threshold)),
        "odd_by_chance": threshold * found.checked,
        "top": lines,
    }


def report(model: AnyOrder, frame: Any, output: Path | None) -> Document:
    """How good the model is on these rows, and as a file if one is wanted."""
    found = model.report(frame)
    document = {**found.to_dict(), "text": repr(found), "legend": list(LEGEND)}
    if output is None:
        return document
    found.save(output)
    return {**document, "written": str(output)}


MOST_LINES, DIALOGUE_DRAWS, DIALOGUE_BINS = 6, 64, 8


@final
@dataclass(frozen=True)
class Prices:
    """What can be measured: the price of every column or group, and the columns of the groups."""

    costs: dict[str, float] | None = None
    groups: dict[str, list[str]] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Rules:
    """When to stop."""

    budget: float = math.inf
    worth: float = math.inf
    certain: float | None = None
    ahead: int = 1


def read_prices(path: Path) -> Prices:
    """From a table with the columns name and cost, and perhaps group: what shares a group is measured together, for the sum."""
    table: Frame = read_table(path, texts=())
    missing = [name for name in ("name", "cost") if name not in table]
    if missing:
        raise InputError(f"{path.name} has no column {missing[0]!r}; expected name and cost, and group where some go together.")
    costs: dict[str, float] = {}
    groups: dict[str, list[str]] = {}
    for line, row in enumerate(table.to_dict("records"), start=1):
        name, cost = str(row["name"]), row["cost"]
        try:
            cost = price_of(name, cost)
        except InputError as error:
            raise InputError(f"{path.name}, row {line}: {error}") from None
        group = row.get("group")
        if isinstance(group, str) and group:
            groups.setdefault(group, []).append(name)
            costs[group] = costs.get(group, 0.0) + cost
        elif name in costs:
            raise InputError(f"{path.name}, row {line}: {name!r} has a price already. Name it once.")
        else:
            costs[name] = cost
    return Prices(costs, groups)


@final
@dataclass
class Visit:
    """One record on its way: what is known, what is spent, what could not be measured."""

    model: AnyOrder
    target: str
    menu: Menu
    rules: Rules
    known: dict[str, Any]
    spent: float = 0.0
    given_up: set[str] = field(default_factory=set)

    def distribution(self) -> Document:
        return answer(
            self.model, find_column(self.model.encoder_, self.target), QuestionPart(self.target), self.known, DIALOGUE_BINS
        )

    @property
    def left(self) -> float:
        return self.rules.budget - self.spent

    def open(self) -> Menu:
        """What can still be measured."""
        lines = [
            (name, measurement)
            for name, measurement in zip(self.menu.names, self.menu.measurements, strict=True)
            if name not in self.given_up and self.columns(measurement)
        ]
        return Menu(tuple(name for name, _ in lines), tuple(measurement for _, measurement in lines))

    def columns(self, measurement: Measurement) -> list[str]:
        """What of a measurement is not known yet."""
        names = [self.model.schema_.names[variable] for variable in measurement.variables]
        return [name for name in names if name not in self.known]

    def ranking(self) -> list[Document]:
        """The measurements that are left, the advised one first; what each is expected to tell."""
        menu, rules = self.open(), self.rules
        if not menu.names or not menu.affordable(self.left).any():
            return []
        names = self.model.schema_.names
        places = zip(menu.names, menu.measurements, strict=True)
        groups = {name: [names[variable] for variable in one.variables] for name, one in places if name not in names}
        costs = dict(zip(menu.names, menu.costs, strict=True))
        table = self.model.next_best(
            self.known,
            self.target,
            costs,
            groups,
            budget=max(0.0, self.left),
            worth=rules.worth,
            ahead=rules.ahead,
            draws=DIALOGUE_DRAWS,
        )
        return [{name: plain(None, value) for name, value in line.items() if name != "row"} for line in table.to_dict("records")]

    def reason(self, distribution: Document, ranking: list[Document]) -> str | None:
        """Why to stop, if it is time."""
        if self.rules.certain is not None and is_certain(distribution, self.rules.certain):
            return REASONS_TO_STOP[StopReason.CERTAIN]
        if not self.open().names:
            return REASONS_TO_STOP[StopReason.NOTHING_LEFT]
        if not ranking:
            return REASONS_TO_STOP[StopReason.BUDGET]
        return None if ranking[0]["advised"] else REASONS_TO_STOP[StopReason.NOT_WORTH_IT]

    def document(self) -> Document:
        distribution, ranking = self.distribution(), self.ranking()
        return {
            "target": self.target,
            "known": {name: plain(find_column(self.model.encoder_, name), value) for name, value in self.known.items()},
            "distribution": distribution,
            "measurements": ranking,
            "stop": self.reason(distribution, ranking),
        }


def is_certain(distribution: Document, wanted: float) -> bool:
    """A category as likely as wanted, a number whose 90 % interval is as narrow as wanted."""
    if distribution["kind"] == "category":
        return bool(distribution["probabilities"][0]["probability"] >= wanted)
    low, high = distribution["interval"]["low"], distribution["interval"]["high"]
    return not isinstance(low, str) and high - low <= wanted


def start(model: AnyOrder, target: str, known: list[str], prices: Prices, rules: Rules) -> Visit:
    """Everything that was typed, checked against the model before anything is asked."""
    find_column(model.encoder_, target)
    parts = parse_evidence(known)
    for part in parts:
        if part.name == target:
            raise InputError(f"The target {target!r} is already known: there is nothing to measure for.")
        if not isinstance(part.wanted, Is):
            raise InputError(f"What is known of {part.name!r} is a range or a set; `ask-next` needs a value. Leave it out.")
    menu = menu_of(model.schema_, targets_of(model.schema_, target), prices.costs, prices.groups)
    visit = Visit(model, target, menu, rules, evidence(model.encoder_, parts))
    if visit.open().names:
        check_affordable(visit.open(), rules.budget)
    return visit


def converse(visit: Visit, read: Callable[[str], str]) -> None:
    """Propose, read a value, show the target again; ends when it is time, at the end of input, or with q."""
    out = Printer()
    out.line("Type the value that was measured. Enter alone: it cannot be measured;", "dim")
    out.line("NAME=VALUE: something else was; q: stop.", "dim")
    while True:
        distribution, ranking = visit.distribution(), visit.ranking()
        show_state(out, visit, distribution)
        reason = visit.reason(distribution, ranking)
        if reason:
            out.line(f"\nStop: {reason}.", "bold")
            out.line(total_text(visit))
            return
        show_ranking(out, ranking)
        try:
            if not measure(visit, ranking[0]["measurement"], read, out):
                break
        except EOFError:
            break
    out.line("\nStopped.", "bold")
    out.line(total_text(visit))


def measure(visit: Visit, name: str, read: Callable[[str], str], out: Printer) -> bool:
    """Read what was found; False if the person wants to stop. The first value of a group pays for all of it."""
    measurement = visit.menu.measurements[visit.menu.names.index(name)]
    paid = False
    for column in visit.columns(measurement):
        while column not in visit.known:
            text = read(f"{column if column == name else f'{name}: {column}'} = ").strip()
            if not text:
                break
            if text == "q":
                return False
            try:
                if "=" in text:
                    measured_else(visit, parse_evidence([text])[0])
                    if not paid:  # not in the middle of a group: look again
                        return True
                    continue
                visit.known[column] = one_value(find_column(visit.model.encoder_, column), text)
                visit.spent, paid = visit.spent + (0.0 if paid else measurement.cost), True
            except InputError as error:
                out.line(str(error), "red")
    visit.given_up.add(name)
    return True


def measured_else(visit: Visit, part: QuestionPart) -> None:
    """Something else than what was proposed: it counts with its own price, if it has one."""
    column = find_column(visit.model.encoder_, part.name)
    if part.name == visit.target:
        raise InputError(f"{part.name!r} is the target: type the value of another column, or q to stop.")
    if not isinstance(part.wanted, Is):
        raise InputError(f"Expected one value that was measured, such as {part.name}=VALUE.")
    prices = dict(zip(visit.open().names, visit.open().costs, strict=True))
    visit.known[part.name] = one_value(column, part.wanted.text)
    visit.spent += prices.get(part.name, 0.0)


def show_state(out: Printer, visit: Visit, distribution: Document) -> None:
    known = {name: plain(find_column(visit.model.encoder_, name), value) for name, value in visit.known.items()}
    show_distribution(out, visit.target, known, distribution)


def show_distribution(out: Printer, target: str, known: Document, distribution: Document) -> None:
    given = f" given {', '.join(f'{name}={value}' for name, value in known.items())}" if known else ", nothing known"
    out.line(f"\n{target}{given}", "bold")
    (show_category if distribution["kind"] == "category" else show_number)(out, distribution)


def show_ranking(out: Printer, ranking: list[Document]) -> None:
    rows = [
        [line["measurement"], f"{line['gain']:.3f} ± {line['standard_error']:.3f}", f"{line['cost']:g}"]
        for line in ranking[:MOST_LINES]
    ]
    out.line()
    out.table(["measure next", "expected nats", "cost"], rows)
    if len(ranking) > MOST_LINES:
        out.line(f"  and {len(ranking) - MOST_LINES} more", "dim")


def total_text(visit: Visit) -> str:
    return f"{len(visit.known)} values known, {visit.spent:g} spent."
