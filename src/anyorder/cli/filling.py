"""What the commands do with rows of a table: gaps filled, new rows, scores."""

import math
import warnings
from typing import Any

from ..errors import InputError
from ..estimator import AnyOrder
from ..modalities.tables.as_written import as_written, separator
from ..modalities.tables.columns import NumberColumn, plain
from ..modalities.tables.dataframes import as_frame
from ..modalities.tables.table_files import Frame, pandas
from .cells import evidence, find_column
from .question import QuestionPart, write_part

__all__ = ["as_written", "impute", "records", "sample", "score", "separator", "with_intervals"]

Document = dict[str, Any]
LOWEST = 5


def impute(model: AnyOrder, frame: Frame, draws: int | None) -> tuple[Frame, Document]:
    """The gaps filled with the best guess, or `draws` tables one below the other."""
    gaps = {c.name: int(gaps_of(model, frame, c.name).sum()) for c in model.encoder_.columns if c.name in frame}
    lacking = [column.name for column in model.encoder_.columns if column.name not in frame]
    if lacking:
        warnings.warn(f"The table lacks {', '.join(lacking)}; add a column as empty cells to have it filled.", stacklevel=2)
    about = {"rows": len(frame), "gaps": sum(gaps.values()), "columns": {name: count for name, count in gaps.items() if count}}
    if draws is None:
        return model.transform(frame), about
    if "draw" in frame:
        raise InputError('The table has a column "draw" already, which is what the number of the draw is called. Rename it.')
    drawn = [one.assign(draw=number) for number, one in enumerate(model.impute(frame, draws))]
    stacked = pandas().concat(drawn, ignore_index=True)
    return stacked[["draw", *frame.columns]], {**about, "draws": draws}


def gaps_of(model: AnyOrder, frame: Frame, name: str) -> Any:
    """Which cells of a column are empty or stand for gaps."""
    column = next((column for column in model.encoder_.columns if column.name == name), None)
    return frame[name].isna() if column is None else model.encoder_.gaps(column, as_frame(frame)[name])


def with_intervals(model: AnyOrder, frame: Frame, filled: Frame, level: float) -> Frame:
    """Behind every number column with gaps the two bounds of each gap."""
    lower, upper = model.intervals(frame, level)
    numbers = {c.name for c in model.encoder_.columns if isinstance(c, NumberColumn)}
    for name in frame.columns:
        gaps = gaps_of(model, frame, name)
        if name not in numbers or not gaps.any():
            continue
        for end, bounds in (("low", lower), ("high", upper)):
            if f"{name}_{end}" in filled:
                raise InputError(f'The table has a column "{name}_{end}" already. Rename it, or leave out --intervals.')
            place = filled.columns.get_loc(name) + (1 if end == "low" else 2)
            filled.insert(place, f"{name}_{end}", bounds[name].where(gaps))
    return filled


def sample(model: AnyOrder, n: int, parts: tuple[QuestionPart, ...], **how: Any) -> tuple[Frame, Document]:
    """New rows given what is known."""
    drawn = model.sample(n, given=evidence(model.encoder_, parts), **how)
    return drawn, {"rows": len(drawn), "given": [write_part(part) for part in parts]}


def score(model: AnyOrder, frame: Frame, target: list[str], given: list[str], **how: Any) -> tuple[Frame, Document]:
    """log p(target | given) of every row, and a summary."""
    for name in (*target, *given):
        find_column(model.encoder_, name)
    asked = target or [c.name for c in model.encoder_.columns if c.name not in given]
    nats = model.score_samples(frame, target or None, given, **how)
    there = [name for name in asked if name in frame]
    order = nats.argsort(kind="stable")
    about = {
        "target": target or None,
        "given": given,
        "rows": len(frame),
        "rows_with_gaps": int(frame[there].isna().any(axis=1).sum()) if len(there) == len(asked) else len(frame),
        "mean": float(nats.mean()),
        "standard_error": float(nats.std() / math.sqrt(len(nats))),
        "spread": float(nats.std()),
        "lowest": [{"row": int(row) + 1, "log_prob": float(nats[row])} for row in order[:LOWEST]],
    }
    return pandas().DataFrame({"row": range(1, len(nats) + 1), "log_prob": nats}), about


def records(model: AnyOrder, frame: Frame) -> list[Document]:
    """The rows of a table as JSON can hold them, gaps as null."""
    columns: dict[str, Any] = {}
    for column in model.encoder_.columns:
        columns |= dict.fromkeys([column.name, f"{column.name}_low", f"{column.name}_high"], column)
    cells = [
        [None if gap else plain(columns.get(name), value) for value, gap in zip(found.astype(object), found.isna(), strict=True)]
        for name, found in frame.items()
    ]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*cells, strict=True)]
