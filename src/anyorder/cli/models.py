"""What the commands do with whole models: `fit`, `kinds` and `info`, as plain documents."""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, WriteError
from ..estimator import AnyOrder
from ..io.shipped import model_file
from ..modalities.tables.codec.table_archives import TableSource
from ..modalities.tables.codec.table_codec import fit_table_codec
from ..modalities.tables.columns import CategoryColumn, Column, NumberColumn
from ..modalities.tables.encoder import TableEncoder
from ..modalities.tables.log_columns import LogNumberColumn
from ..modalities.tables.preview import COMMAND_LINE, Preview
from ..validation import seed_of
from .archiving import source_of
from .cells import kind_of_column, near, plain, some
from .printing import say
from .table_files import Frame

Document = dict[str, Any]


def fit(
    frame: Frame,
    path: Path,
    progress: Callable[[Any], None],
    coded: TableSource | None = None,
    weight: str | None = None,
    **settings: Any,
) -> Document:
    """Train, save, and say what was found; with a codec for what is `coded`, and rows that count as a column says, if wanted."""
    start = time.monotonic()
    frame, weights = without_weights(frame, weight)
    model = AnyOrder(callback=progress, **settings).fit(frame, sample_weight=weights)
    if coded is not None:
        model.codec_ = fit_table_codec(coded.names, coded.texts, model.effort, seed_of(model.random_state), progress)
    seconds = time.monotonic() - start
    path = keep(model, path)
    held_out = min((check.held_out_nats for check in model.history_), default=None)
    return {
        "rows": len(frame),
        **describe_table(model.encoder_),
        "held_out_nats": held_out,
        "seconds": seconds,
        **describe_file(model, path),
    }


def look(frame: Frame, kinds: dict[str, str], na: Any) -> Document:
    """What every column would be taken for."""
    found = Preview.of(frame, kinds, na)
    return {"rows": found.rows, "columns": [asdict(one) for one in found.columns], "text": found.text(COMMAND_LINE)}


def keep(model: AnyOrder, path: Path) -> Path:
    """Save what was trained, and say where; if the disk is full, elsewhere: hours of training are not lost for a file."""
    try:
        model.save(path)
        return path
    except WriteError as error:
        for folder in (Path(tempfile.gettempdir()), Path.home()):
            place = folder / f"{path.stem}-{os.getpid()}.ao"
            try:
                model.save(place)
            except (WriteError, InputError):
                continue
            warnings.warn(f"{error} The model was saved as {str(place)!r} instead: move it when there is room.", stacklevel=2)
            return place
        return keep_when_asked(model, path, error)


def keep_when_asked(model: AnyOrder, path: Path, error: WriteError) -> Path:
    """On a terminal somebody may make room, or name another disk."""
    if not sys.stdin.isatty():
        raise WriteError(f"{error} Nor is there room in the folder for temporary files or at home: the model is lost.") from error
    say(str(error))
    other = input("The model is still here. Make room and press Enter, or type the name of another file: ").strip()
    return keep(model, Path(other) if other else path)


def without_weights(frame: Frame, name: str | None) -> tuple[Frame, Any]:
    """The table without the column of weights, and the weights; NaN where there is none."""
    if name is None:
        return frame, None
    names = list(frame)
    if name not in names:
        raise InputError(f"--weight: the table has no column {name!r}. {near(name, names)}Its columns: {some(names)}.")
    try:
        return frame.drop(columns=name), frame[name].to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"--weight {name}: the column holds what is no number ({error}). Name a column of numbers.") from error


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
        "rows": model.fit_info_.get("rows"),
        "effort": model.fit_info_.get("effort"),
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
    about: Document = {"name": column.name, "kind": kind_of_column(column)}
    if isinstance(column, CategoryColumn):
        return {**about, "levels": [plain(column, level) for level in column.levels]}
    return {**about, **precision(column)} if isinstance(column, NumberColumn) else about


def precision(column: NumberColumn) -> Document:
    """How finely the column was written down; a spacing of instants is in seconds."""
    spacing = column.spacing / 1000 if column.unit == "instant" else column.spacing
    about: Document = {"precision": spacing, "values_that_stand_out": len(column.atoms)}
    if isinstance(column, LogNumberColumn):
        about["scale"] = "logarithmic"
    if not column.knots:
        return about
    ends = np.array([column.place(end) for end in (column.knots[0], column.knots[-1])])
    low, high = (plain(column, value) for value in column.decode(ends))
    return {**about, "low": low, "high": high}
