"""Tables of any dataframe library: how they are found, fitted, kept and compressed."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from ...archives import Codec, Done, Lost, OpenArchive, Source
from ...archives.archive import check_whole
from ...errors import FormatError, InputError
from ...models.trained import Trained
from ...training import Check, Objective
from ...training.checkpoint import checked_number
from ...validation import by_name
from ..base import DataFile, Modality, Training
from .codec.arrow import parquet_bytes
from .codec.table_archives import TableSource, csv_source, decompress_table, parquet_source
from .codec.table_codec import TableCodec, fit_table_codec
from .codec.table_sources import frame_like_source, table_source
from .dataframes import Frame, Sentinels, as_frame, given_back, rows_of
from .encoder import TableEncoder, look_at
from .fitted_table import FittedTable, tell_of_y
from .preview import Preview
from .streams import StreamedTable, holds_tables, is_streamed, read_stream
from .table_files import (
    Dialect,
    in_bytes,
    is_table,
    read_bytes,
    read_table,
    suffix_of,
    unread_parquet,
    without_weights,
    write_content,
)
from .table_model import copies_of, fit_table


@final
class Tables(Modality):
    """Tables: rows of columns of pandas, polars, pyarrow or numpy, with gaps."""

    name, what, plural = "table", "a table", "tables"
    codec = TableCodec
    fitted = FittedTable

    def accepts(self, X: Any) -> bool:
        return True  # what is no table is told so by `as_frame`

    def fit(
        self,
        X: Frame,
        y: Any,
        training: Training,
        kinds: Mapping[Any, str] | None = None,
        na: Any = None,
        keep_rows: bool = True,
        objective: Objective | None = None,
        sample_weight: Any = None,
    ) -> FittedTable:
        tell_of_y(y)
        streamed = X if isinstance(X, StreamedTable) else None
        if streamed is not None:
            encoder, X = self._look_at(streamed.for_encoder(), streamed.kinds(by_name("kinds", kinds)), na), streamed.sample
        copies = None if sample_weight is None else copies_of(sample_weight, len(as_frame(X)), training.seed)
        if copies is not None:
            X, copies = rows_of(X, copies > 0), copies[copies > 0]
        if streamed is None:
            encoder = self._look_at(X, by_name("kinds", kinds), na)
        x, present = encoder.encode(X)
        effort, seed, device, progress = training
        objective = None if objective is None else objective.named({}).untold()
        trained = fit_table(encoder.schema, x, present, effort, keep_rows, seed, device, progress, copies, objective)
        template = X[:0] if isinstance(X, np.ndarray) else given_back(as_frame(X).head(0), X)
        info = {"rows": len(x) if streamed is None else len(streamed), "effort": effort}
        if streamed is not None and not streamed.is_whole:
            info["sampled"] = len(x)
        return FittedTable(encoder, trained.model.cpu(), trained.history, template, info)

    def rebuild(self, model: Trained, about: Mapping[str, Any], history: list[Check]) -> FittedTable:
        encoder = TableEncoder.from_json(about["table"])
        if model.schema != encoder.schema:
            raise FormatError("The file contradicts itself: its model is not one of the table it describes.")
        info = {str(name): checked_number(value, type(value)) for name, value in about.get("fit", {}).items()}
        return FittedTable(encoder, model, history, as_frame(np.zeros((0, 0))).to_native(), info)

    def preview(self, X: Frame, kinds: Mapping[Any, str] | None = None, na: Any = None) -> Preview:
        return Preview.of(X, by_name("kinds", kinds), na)

    def source(self, X: Any, verify: bool = True) -> Source:
        return table_source(X, verify)

    def fit_codec(self, X: Any, training: Training) -> Codec:
        source = table_source(X)
        return fit_table_codec(source.names, source.texts, training.effort, training.seed, training.progress)

    def unpack(self, archive: OpenArchive) -> tuple[Any, list[Lost]]:
        found, lost = decompress_table(archive)
        return frame_like_source(found, archive.form), lost

    def reads(self, path: Path) -> bool:
        """A file of rows, a pattern of such files, or a folder of nothing else."""
        return str(path) == "-" or is_table(path) or (path.is_dir() and holds_tables(path))

    def read(
        self,
        path: Path,
        sep: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        weight: str | None = None,
        stream: bool | None = None,
    ) -> DataFile:
        """The table in a file; `weight` is a column that says how often every row counts, and is not learned.

        Large files, folders and patterns are read in parts (`stream`): what does not fit in memory is sampled.
        """
        if is_streamed(path, stream):
            if weight is not None:
                raise InputError("--weight is for a table that is read as a whole: --no-stream, and one file. Leave it out.")
            return DataFile(read_stream(path, Dialect(sep, decimal, encoding), stream))
        frame, weights = without_weights(read_table(path, dialect=Dialect(sep, decimal, encoding)), weight)
        return DataFile(frame, None, weights)

    def file_source(self, path: Path) -> Source:
        content = read_bytes(path)
        if suffix_of(path) != ".parquet":
            return csv_source(content)
        with unread_parquet(path.name):
            return parquet_source(content)

    def file_codec(self, path: Path, training: Training) -> Codec:
        source = self.file_source(path)
        if not isinstance(source, TableSource):
            raise InputError(
                f"{path.name} is not written like a table of comma-separated values: no codec can be learned from it."
            )
        return fit_table_codec(source.names, source.texts, training.effort, training.seed, training.progress)

    def unpack_to(self, archive: OpenArchive, name: str, output: Path, done: Done | None = None) -> list[Lost]:
        """The file as it was, or under .gz; a table with types in a .parquet file."""
        kind, typed = archive.form["kind"], archive.form["kind"] in ("frame", "arrow")
        if kind != "bytes" and typed != (suffix_of(output) == ".parquet"):
            wanted = "a table with types: name a .parquet file" if typed else "a file of values: name a .csv or .tsv file"
            raise InputError(f"{name} holds {wanted}, not {str(output)!r}.")
        table, lost = decompress_table(archive)
        check_whole(lost, output)
        if kind == "arrow":
            table = parquet_bytes(table)
        elif kind == "frame":
            table = in_bytes(table, output, index=True, otherwise="In Python `decompress` gives it back")
        write_content(table, output)
        return lost

    def _look_at(self, X: Frame, kinds: Mapping[str, str], na: Any) -> TableEncoder:
        """The encoder of a table; what it does not model is said."""
        found, sentinels = look_at(X, kinds, na), Sentinels.of(na)
        for note in filter(None, (one.note() for one in found)):
            warnings.warn(note, stacklevel=4)
        return TableEncoder.of(found, len(as_frame(X)), sentinels)
