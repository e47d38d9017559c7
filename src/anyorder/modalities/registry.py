"""Every kind of data there is, a line each: whoever looks for one finds it here."""

import re
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.units import is_pattern
from .base import MODALITIES, Modality, register
from .images.modality import Images
from .tables.modality import Tables
from .text.modality import Text

register(Tables())  # the last to be asked: whatever is nothing else is read as a table, whose errors say what is wrong
register(Images())
register(Text())


def modality_of(X: Any) -> Modality:
    """The kind of these data."""
    return next(one for one in MODALITIES if one.accepts(X))


def modality_named(name: str) -> Modality | None:
    """The kind that files and archives call so."""
    return next((one for one in MODALITIES if one.name == name), None)


def names_files(X: Any) -> bool:
    """Whether this is no data, but says where they are: a path, or a text that looks like one."""
    if not isinstance(X, str):
        return isinstance(X, Path)
    looks = len(X) < 1000 and "\n" not in X and (is_pattern(Path(X)) or re.fullmatch(r"\.\w{1,8}", Path(X).suffix) is not None)
    return looks or (len(X) < 1000 and "\0" not in X and Path(X).exists())


def modality_reading(path: Path) -> Modality:
    """The kind of data that a file or folder holds, by its name."""
    if str(path) != "-" and not path.exists() and not is_pattern(path):
        raise InputError(f"There is no file or folder {str(path)!r}.")
    for one in MODALITIES:
        if one.reads(path):
            return one
    raise InputError(f"{str(path)!r} holds no data of a kind that is known: expected a table, a folder of images, or text.")
