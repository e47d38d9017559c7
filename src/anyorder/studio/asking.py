"""Questions about single distributions: what a column is likely to be, why, how likely an event is, what to measure next."""

import random
from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from ..inference import StopReason
from ..modalities.base import ask as checked
from ..modalities.tables.acquisition import REASONS_TO_STOP
from ..modalities.tables.answers import Answer
from ..modalities.tables.columns import Column
from .wording import column_named, command, conditions, described, evidence, jsonable, python_call, question
from .workspace import OpenModel, Workspace

Document = dict[str, Any]
STUDIO_BINS, STUDIO_INTERVAL = 24, 0.9
MOST_REMEMBERED_ANSWERS = 200
NOTHING: dict[str, Any] = {}


def columns_of(kept: OpenModel, verb: str) -> list[Column]:
    """The columns of a model that answers this question; one that does not is told so by the seam."""
    checked(kept.model.fitted_, verb, {})
    return list(kept.model.encoder_.columns)


def model_info(space: Workspace, model: str) -> Document:
    """What a model is: the questions that it answers, and what whoever builds one needs to know."""
    kept = space.model(model)
    fitted = kept.model.fitted_
    about = fitted.describe()
    document: Document = {"model": model, "name": kept.name, "data": kept.data, "verbs": fitted.verbs(), "about": about}
    if "columns" in about:
        document["columns"] = described(kept.model.encoder_.columns, about)
    history = [[check.step, check.held_out_nats] for check in fitted.history]
    return document | {"history": history, "parts": fitted.model.parts}


def ask(space: Workspace, model: str, target: list[str], given: dict[str, Any] = NOTHING) -> Document:
    """The distribution of one or several columns, each alone, given values, ranges or sets of others."""
    kept = space.model(model)
    columns = columns_of(kept, "conditional")
    known = conditions(columns, given)
    if not target:
        raise InputError("There is no target: name the column that you want to know.")
    answers = [answer(kept, column_named(columns, name), known) for name in target]
    calls = "\n".join(f"model.conditional({known!r}, {name!r})" for name in target)
    return {
        "model": model,
        "question": question(target, known, columns),
        "answers": answers,
        "python": python_call(kept.name, calls),
        "command": command("anyorder", "ask", kept.name, question(target, known, columns)),
    }


def answer(kept: OpenModel, column: Column, known: Mapping[str, Any]) -> Document:
    """The distribution of one column, that with nothing known beside it, and how many training rows match."""
    found = kept.model.conditional(known, column.name)
    beside = distribution(found, column) if not found.given else marginal(kept, column)
    exactly = found.matches is None or found.matches.exactly
    return {"target": column.name, **distribution(found, column), "marginal": beside, "rows": found.rows, "exactly": exactly}


def marginal(kept: OpenModel, column: Column) -> Document:
    """With nothing known: asked once."""
    if column.name not in kept.remembered:
        if len(kept.remembered) >= MOST_REMEMBERED_ANSWERS:
            kept.remembered.clear()
        kept.remembered[column.name] = distribution(kept.model.conditional({}, column.name), column)
    return kept.remembered[column.name]


def distribution(found: Answer, column: Column) -> Document:
    """As JSON: the probability of every category, the likeliest first; or of ranges of a number, and its summaries."""
    if found.is_category:
        pairs = sorted(found.pmf().items(), key=lambda pair: -pair[1])
        return {
            "kind": "category",
            "best": jsonable(column, pairs[0][0]),
            "probabilities": [{"value": jsonable(column, value), "probability": p} for value, p in pairs],
        }
    ends, middle = found.interval(STUDIO_INTERVAL), jsonable(column, found.quantile(0.5))
    low, high = (jsonable(column, end) for end in ends)
    bins = [{"low": jsonable(column, a), "high": jsonable(column, b), "probability": p} for a, b, p in found.bins(STUDIO_BINS)]
    interval = {"level": STUDIO_INTERVAL, "low": low, "high": high}
    mean = jsonable(column, found.mean())
    return {"kind": "number", "best": middle, "median": middle, "mean": mean, "interval": interval, "bins": bins}


def moved(space: Workspace, model: str, target: str, given: dict[str, Any]) -> Document:
    """What every condition did to an answer: how far it would be from this one without it."""
    kept = space.model(model)
    columns = columns_of(kept, "conditional")
    column, known = column_named(columns, target), conditions(columns, given)
    found = [
        {
            "condition": one.condition,
            "moved": one.moved,
            "without": jsonable(column, one.without),
            "answer": jsonable(column, one.answer),
        }
        for one in kept.model.conditional(known, target).explain()
    ]
    return {
        "target": target,
        "conditions": found,
        "python": python_call(kept.name, f"model.conditional({known!r}, {target!r}).explain()"),
        "command": command("anyorder", "ask", kept.name, question([target], known, columns)),
    }


def probability(space: Workspace, model: str, event: dict[str, Any], given: dict[str, Any] = NOTHING) -> Document:
    """How likely it is that all of several columns have these values, or lie in these ranges or sets."""
    kept = space.model(model)
    columns = columns_of(kept, "probability")
    if not event:
        raise InputError("The event is empty: name a column, and a value, a range or a set.")
    wanted, known = conditions(columns, event), conditions(columns, given)
    asked = evidence(wanted, columns) + (f" | {evidence(known, columns)}" if known else "")
    return {
        "event": evidence(wanted, columns),
        "given": evidence(known, columns),
        "probability": kept.model.probability(wanted, known),
        "python": python_call(kept.name, f"model.probability({wanted!r}, {known!r})"),
        "command": command("anyorder", "ask", kept.name, asked),
    }


def next_question(
    space: Workspace,
    model: str,
    target: str,
    known: dict[str, Any] = NOTHING,
    costs: dict[str, Any] | None = None,
    groups: dict[str, Any] | None = None,
    budget: float | None = None,
    worth: float | None = None,
) -> Document:
    """What to measure next to learn most about the target, what is known of it so far, and whether to stop."""
    kept = space.model(model)
    columns = columns_of(kept, "next_best")
    column, values = column_named(columns, target), conditions(columns, known)
    if target in values:
        raise InputError(f"The target {target!r} is known already: there is nothing to measure for.")
    options = {"costs": costs, "groups": groups, "budget": budget, "worth": worth}
    made = {name: value for name, value in options.items() if value is not None}
    lines = ranking(kept, target, values, made, {one.name for one in columns})
    call = "".join(f", {name}={value!r}" for name, value in made.items())
    words = ["anyorder", "ask-next", kept.name, "--target", target]
    words += ["--known", evidence(values, columns)] if values else []
    words += ["--costs", "costs.csv"] if costs else []
    words += [word for name in ("budget", "worth") if made.get(name) is not None for word in (f"--{name}", str(made[name]))]
    return {
        "target": target,
        "distribution": answer(kept, column, values),
        "measurements": lines or [],
        "stop": reason_to_stop(lines),
        "python": python_call(kept.name, f"model.next_best({values!r}, {target!r}{call})"),
        "command": command(*words),
    }


def ranking(
    kept: OpenModel, target: str, known: Mapping[str, Any], options: Mapping[str, Any], names: set[str]
) -> list[Document] | None:
    """The measurements that are left, the advised one first; None if there is no money for any."""
    groups, costs = options.get("groups", {}), options.get("costs")
    check_groups(groups)
    priced = set(costs) if isinstance(costs, dict) else names | set(groups)
    inside = {name for members in groups.values() for name in members}
    open_ = {name for name in priced - {target} if any(one not in known for one in groups.get(name, [name]))} - (
        inside if costs is None else set()
    )
    if not open_:
        return []
    if "budget" in options and "costs" not in options and options["budget"] < 1:
        return None
    if isinstance(costs, dict) and all(is_price(one) for one in costs.values()):
        cheapest = min(costs[name] for name in open_)
        if cheapest > options.get("budget", cheapest):
            return None
    table = kept.model.next_best(known, target, **options)
    rows: list[Document] = table.to_dict("records")
    return [{name: jsonable(None, value) for name, value in row.items() if name != "row"} for row in rows]


def is_price(price: Any) -> bool:
    return isinstance(price, int | float) and not isinstance(price, bool)


def check_groups(groups: Mapping[str, Any]) -> None:
    for name, members in groups.items():
        if not isinstance(members, list) or not all(isinstance(one, str) for one in members):
            raise InputError(f"The group {name!r:.60} is not understood; expected a list of names of columns.")


def reason_to_stop(lines: list[Document] | None) -> str | None:
    """Why to stop, if it is time."""
    if lines is None:
        return REASONS_TO_STOP[StopReason.BUDGET]
    if not lines:
        return REASONS_TO_STOP[StopReason.NOTHING_LEFT]
    return None if lines[0]["advised"] else REASONS_TO_STOP[StopReason.NOT_WORTH_IT]


def draw_from(found: Answer) -> Any:
    """A value as likely as the distribution says."""
    share = random.uniform(1e-6, 1 - 1e-6)
    if not found.is_category:
        return found.quantile(share)
    values = list(found.pmf().items())
    return random.choices([value for value, _ in values], [p for _, p in values])[0]
