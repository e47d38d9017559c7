"""What the commands do with whole models: `fit` and `info`, as plain documents."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import seed_of
from ..codecs import TableSource, fit_table_codec
from ..data import TableEncoder
from ..data.columns import CategoryColumn, Column, NumberColumn
from ..errors import InputError
from ..estimator import AnyOrder
from ..shipped import model_file
from .archives import source_of
from .cells import kind_of, plain
from .files import Frame

Document = dict[str, Any]


def fit(frame: Frame, path: Path, progress: Callable[[Any], None], coded: TableSource | None = None, **settings: Any) -> Document:
    """Train, save, and say what was found; with a codec for what is `coded`, if that is wanted."""
    start = time.monotonic()
    model = AnyOrder(callback=progress, **settings).fit(frame)
    if coded is not None:
        model.codec_ = fit_table_codec(coded.names, coded.texts, model.effort, seed_of(model.random_state), progress)
    seconds = time.monotonic() - start
    model.save(path)
    held_out = min((check.held_out_nats for check in model.history_), default=None)
    return {
        "rows": len(frame),
        **describe_table(model.encoder_),
        "held_out_nats": held_out,
        "seconds": seconds,
        **describe_file(model, path),
    }


def cells_of_file(path: Path) -> TableSource:
    """As they are written in the file."""
    source = source_of(path)
    if not isinstance(source, TableSource):
        raise InputError(f"{path.name} is not written like a table of comma-separated values: no codec can be learned from it.")
    return source


def info(path: Path) -> Document:
    """What a model file holds."""
    path = model_file(path)
    model = AnyOrder.load(path)
    if model.of_images_:
        return describe_images(model, path)
    return {
        **describe_table(model.encoder_),
        "rows": model.about_.get("rows"),
        "effort": model.about_.get("effort"),
        "held_out_nats": min((check.held_out_nats for check in model.history_), default=None),
        "models": model.parts_,
        "parameters": sum(weights.numel() for weights in model.model_.parameters()),
        **describe_file(model, path),
    }


def describe_images(model: AnyOrder, path: Path) -> Document:
    inner = model.image_model_
    nats = min((check.held_out_nats for check in inner.history), default=None)
    return {
        "what": inner.encoder.says(),
        "held_out_bits_per_dimension": None if nats is None else nats / len(inner.encoder) / np.log(2),
        "parameters": sum(weights.numel() for weights in inner.model.parameters()),
        "file": str(path),
        "bytes": path.stat().st_size,
    }


def describe_file(model: AnyOrder, path: Path) -> Document:
    return {"file": str(path), "bytes": path.stat().st_size, "keeps_rows": int(model.keeps_rows_)}


def describe_table(encoder: TableEncoder) -> Document:
    return {"columns": [describe_column(column) for column in encoder.columns], "left_out": dict(encoder.left_out)}


def describe_column(column: Column) -> Document:
    about: Document = {"name": column.name, "kind": kind_of(column)}
    if isinstance(column, CategoryColumn):
        return {**about, "levels": [plain(column, level) for level in column.levels]}
    return {**about, **precision(column)} if isinstance(column, NumberColumn) else about


def precision(column: NumberColumn) -> Document:
    """How finely the column was written down; a spacing of instants is in seconds."""
    spacing = column.spacing / 1000 if column.unit == "instant" else column.spacing
    about: Document = {"precision": spacing, "values_that_stand_out": len(column.atoms)}
    if not column.knots:
        return about
    ends = (np.array([column.knots[0], column.knots[-1]]) - column.centre) / column.scale
    low, high = (plain(column, value) for value in column.decode(ends))
    return {**about, "low": low, "high": high}
