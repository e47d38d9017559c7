"""`ask-next`: propose a measurement, read its value, look at the target again, until it is time to stop."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ..errors import InputError
from ..estimator import AnyOrder
from ..inference import Measurement, Stop
from ..measuring import WHY, Menu, check_affordable, menu_of, price_of, targets_of
from .answers import answer
from .cells import evidence, find_column, one_value, plain
from .files import Frame, read_table
from .printing import Printer, show_category, show_number
from .question import Is, Part, parse_evidence

Document = dict[str, Any]
MOST_LINES, DRAWS, BINS = 6, 64, 8


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

    def law(self) -> Document:
        return answer(self.model, find_column(self.model.encoder_, self.target), Part(self.target), self.known, BINS)

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
            self.known, self.target, costs, groups, budget=max(0.0, self.left), worth=rules.worth, ahead=rules.ahead, draws=DRAWS
        )
        return [{name: plain(None, value) for name, value in line.items() if name != "row"} for line in table.to_dict("records")]

    def reason(self, law: Document, ranking: list[Document]) -> str | None:
        """Why to stop, if it is time."""
        if self.rules.certain is not None and is_certain(law, self.rules.certain):
            return WHY[Stop.CERTAIN]
        if not self.open().names:
            return WHY[Stop.NOTHING_LEFT]
        if not ranking:
            return WHY[Stop.BUDGET]
        return None if ranking[0]["advised"] else WHY[Stop.NOT_WORTH_IT]

    def document(self) -> Document:
        law, ranking = self.law(), self.ranking()
        return {
            "target": self.target,
            "known": {name: plain(find_column(self.model.encoder_, name), value) for name, value in self.known.items()},
            "law": law,
            "measurements": ranking,
            "stop": self.reason(law, ranking),
        }


def is_certain(law: Document, wanted: float) -> bool:
    """A category as likely as wanted, a number whose 90 % interval is as narrow as wanted."""
    if law["kind"] == "category":
        return bool(law["probabilities"][0]["probability"] >= wanted)
    low, high = law["interval"]["low"], law["interval"]["high"]
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
        law, ranking = visit.law(), visit.ranking()
        show_state(out, visit, law)
        reason = visit.reason(law, ranking)
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


def measured_else(visit: Visit, part: Part) -> None:
    """Something else than what was proposed: it counts with its own price, if it has one."""
    column = find_column(visit.model.encoder_, part.name)
    if part.name == visit.target:
        raise InputError(f"{part.name!r} is the target: type the value of another column, or q to stop.")
    if not isinstance(part.wanted, Is):
        raise InputError(f"Expected one value that was measured, such as {part.name}=VALUE.")
    prices = dict(zip(visit.open().names, visit.open().costs, strict=True))
    visit.known[part.name] = one_value(column, part.wanted.text)
    visit.spent += prices.get(part.name, 0.0)


def show_state(out: Printer, visit: Visit, law: Document) -> None:
    known = {name: plain(find_column(visit.model.encoder_, name), value) for name, value in visit.known.items()}
    show_law(out, visit.target, known, law)


def show_law(out: Printer, target: str, known: Document, law: Document) -> None:
    given = f" given {', '.join(f'{name}={value}' for name, value in known.items())}" if known else ", nothing known"
    out.line(f"\n{target}{given}", "bold")
    (show_category if law["kind"] == "category" else show_number)(out, law)


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
