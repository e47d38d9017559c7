"""What the commands answer about single laws, as plain documents: `ask` and `anomalies`."""

from pathlib import Path
from typing import Any

from ..answers import Answer
from ..data.columns import Column, NumberColumn
from ..estimator import AnyOrder
from ..reporting import LEGEND
from .cells import evidence, find_column, plain, typed
from .question import Asked, Part, write_part, write_question

Document = dict[str, Any]
BINS, LEVEL = 16, 0.9


def ask(model: AnyOrder, asked: Asked) -> Document:
    """The law, or the probability, of every target; each one alone given the evidence."""
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


def answer(model: AnyOrder, column: Column, part: Part, known: dict[str, Any], bins: int = BINS) -> Document:
    found = model.conditional(known, part.name)
    grounds = {"rows": found.rows, "exactly": found.matches is None or found.matches.exactly, "conditions": influences(found)}
    if part.wanted is not None:
        what = typed(column, part.wanted)
        precision = {"precision": column.spacing} if isinstance(column, NumberColumn) else {}
        probability = {"probability": found.prob(what), "share": found.share(what)}
        return {"target": part.name, "wanted": write_part(part), **probability, **precision, **grounds}
    law = category_law(found, column) if found.is_category else number_law(found, column, bins)
    return {"target": part.name, **law, **grounds}


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


def category_law(found: Answer, column: Column) -> Document:
    ordered = sorted(found.pmf().items(), key=lambda item: -item[1])
    return {"kind": "category", "probabilities": [{"value": plain(column, v), "probability": p} for v, p in ordered]}


def number_law(found: Answer, column: Column, bins: int) -> Document:
    low, high = found.interval(LEVEL)
    return {
        "kind": "number",
        "median": plain(column, found.quantile(0.5)),
        "mean": plain(column, found.mean()),
        "interval": {"level": LEVEL, "low": plain(column, low), "high": plain(column, high)},
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
