"""Models and tables from their files, ready for a question."""

from pathlib import Path
from typing import Any

from ..errors import InputError
from .dialect import Dialect
from .files import Frame, read_bytes, table_in


def load(model: Path, seed: int = 0, images: bool = False) -> Any:
    from ..estimator import AnyOrder

    face = AnyOrder.load(model).set_params(random_state=seed)
    if face.of_images_ != images:
        remedy = "Use inpaint, info, or sample --grid FILE." if face.of_images_ else "Fit one to a folder of images."
        kinds = ("images", "tables") if face.of_images_ else ("tables", "images")
        raise InputError(f"{model.name} is a model of {kinds[0]}; this question is about {kinds[1]}. {remedy}")
    return face


def load_both(model: Path, table: Path, seed: int = 0, dialect: Dialect = Dialect()) -> tuple[Any, Frame]:
    """The model, and the table with the types the model knows."""
    face, frame, _ = load_all(model, table, seed, dialect)
    return face, frame


def load_all(model: Path, table: Path, seed: int = 0, dialect: Dialect = Dialect()) -> tuple[Any, Frame, bytes]:
    """The model, the table with the types the model knows, and the content of its file, which may have come from a pipe."""
    from .cells import fit_to, text_columns

    face = load(model, seed)
    content = read_bytes(table)
    return face, fit_to(table_in(content, table, text_columns(face.encoder_), dialect), face.encoder_), content
