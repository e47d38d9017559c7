"""What the commands answer about single laws, as plain documents: `ask` and `anomalies`."""

import math
from typing import Any

from ..answers import Answer
from ..data.columns import CategoryColumn, Column, NumberColumn
from ..estimator import AnyOrder
from .cells import evidence, find_column, plain, typed
from .files import pandas
from .question import Asked, Part, write_part, write_question

Document = dict[str, Any]
BINS, LEVEL, RARE = 16, 0.9, 0.05


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


def anomalies(model: AnyOrder, frame: Any, top: int) -> Document:
    """The most surprising rows, and in each the cells that are surprising given the rest of the row."""
    found = model.anomalies(frame)
    worst = sorted(range(len(frame)), key=lambda row: -found.rows[row])[:top]
    rows = []
    for row in worst:
        values = row_values(frame, row, model.encoder_.columns)
        rows.append({"row": row + 1, "nats": float(found.rows[row]), "cells": surprising_cells(model, values, found.cells[row])})
    return {"rows": len(frame), "mean_nats": float(found.rows.mean()), "top": rows}


def row_values(frame: Any, row: int, columns: tuple[Column, ...]) -> dict[str, Any]:
    """The cells of one row that are no gaps."""
    cells = {column.name: frame[column.name].iloc[row] for column in columns if column.name in frame}
    return {name: value.item() if hasattr(value, "item") else value for name, value in cells.items() if pandas().notna(value)}


def surprising_cells(model: AnyOrder, values: dict[str, Any], nats: Any) -> list[Document]:
    """The cells of a row that are out of the ordinary, the strangest first."""
    columns = {column.name: column for column in model.encoder_.columns if column.name in values}
    unseen = [c for c in columns.values() if isinstance(c, CategoryColumn) and values[c.name] not in c.levels]
    cells: list[Document] = [{"column": c.name, "value": plain(c, values[c.name]), "unseen": True} for c in unseen]
    known = {name: value for name, value in values.items() if columns[name] not in unseen}
    strange = []
    for column, cell_nats in zip(model.encoder_.columns, nats, strict=True):
        if math.isfinite(cell_nats) and column.name in known:
            rest = {name: value for name, value in known.items() if name != column.name}
            cell = surprising_cell(model.conditional(rest, column.name), column, known[column.name])
            strange += [{**cell, "nats": float(cell_nats)}] if cell["chance"] < RARE else []
    return cells + sorted(strange, key=lambda cell: cell["chance"])


def surprising_cell(found: Answer, column: Column, value: Any) -> Document:
    """The cell, what was expected in its place, and the chance of anything so far out."""
    cell: Document = {"column": column.name, "value": plain(column, value)}
    if found.is_category:
        probabilities = found.pmf()
        seen, likeliest = probabilities[value], found.mode()
        chance = sum(p for p in probabilities.values() if p <= seen)
        return {**cell, "chance": chance, "likeliest": plain(column, likeliest), "probability": probabilities[likeliest]}
    low, high = found.interval(LEVEL)
    at_most = float(found.cdf(value))
    chance = min(1.0, 2 * min(at_most, 1 - at_most + float(found.prob(value))))
    return {**cell, "chance": max(0.0, chance), "level": LEVEL, "low": plain(column, low), "high": plain(column, high)}
