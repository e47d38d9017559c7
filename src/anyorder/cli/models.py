"""What the commands do with whole models: `fit`, `kinds` and `info`, as plain documents."""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import InputError, WriteError
from ..estimator import AnyOrder
from ..io.shipped import model_file
from ..modalities.base import Modality, Training
from ..modalities.tables.preview import COMMAND_LINE, Preview
from ..modalities.tables.table_files import Frame
from ..training.distributed import ALONE, World
from ..validation import check_positive, seed_of
from .printing import say

Document = dict[str, Any]


def fit(
    modality: Modality,
    data: Path,
    path: Path,
    written: Mapping[str, Any],
    progress: Callable[[Any], None],
    codec: bool,
    world: World = ALONE,
    **settings: Any,
) -> Document:
    """Learn what a file or folder holds, save the model, and say what was found; with a codec if wanted.

    `written` says how the file is written, for those kinds of data that ask. Of a `world` of several processes one writes.
    """
    start = time.monotonic()
    X, y, weights = modality.read(data, **written)
    model = AnyOrder(callback=progress, **settings)
    check_positive("effort", model.effort)
    training = Training(model.effort, seed_of(model.random_state), model.device, progress)
    found = modality.file_codec(data, training) if codec else None
    model.fit(X, y, sample_weight=weights).codec_ = found
    seconds = time.monotonic() - start
    if not world.is_writer:
        return {}
    path = keep(model, path)
    if world.checkpoint is not None:
        world.checkpoint.unlink(missing_ok=True)
    return {modality.counted: len(X), **describe(model, path), "seconds": seconds}


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


def info(path: Path) -> Document:
    """What a model file holds."""
    path = model_file(path)
    return describe(AnyOrder.load(path), path)


def describe(model: AnyOrder, path: Path) -> Document:
    return {**model.fitted_.describe(), "file": str(path), "bytes": path.stat().st_size}
