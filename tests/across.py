"""Archives made with some versions of all libraries, read with others: `across.py make FOLDER`, then `across.py read FOLDER`."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.coding import Archive
from anyorder.modalities.tables.codec.table_archives import FrameSource, decompress_table
from anyorder.modalities.tables.codec.table_sources import frame_like_source, table_source


def texts_and_types():
    """Every kind of column that versions of pandas treat otherwise: text, text with gaps, labels, times, categories."""
    frame = pd.DataFrame(
        {
            "text": ["a", "b", "c"],
            "gaps": ["a", None, "c"],
            "string": pd.array(["a", None, "c"], dtype="string[python]"),
            "whole": pd.array([1, None, 2**62], dtype="Int64"),
            "number": [0.1, np.nan, -0.0],
            "day": pd.to_datetime(["2020-01-01", None, "2024-07-01"]),
            "zoned": pd.to_datetime(["2020-01-01", None, "2024-07-01"]).tz_localize("Europe/Oslo"),
            "category": pd.Categorical(["b", None, "a"], categories=["a", "b", "never"], ordered=True),
            "mixed": np.array(["a", 1, None], dtype=object),
        },
        index=pd.Index(["x", "y", "z"], name="key"),
    )
    frame.attrs = {"source": "here"}
    return frame


def some_table():
    """A table of pyarrow's with NaN beside null, and notes."""
    number = pa.field("number", pa.float64(), metadata={"unit": "m"})
    whole = pa.field("whole", pa.int64(), nullable=False)
    schema = pa.schema([number, whole, pa.field("word", pa.dictionary(pa.int32(), pa.string()))], {"from": "us"})
    words = pa.array(["a", None, "b"]).dictionary_encode()
    return pa.table([pa.array([np.nan, None, -0.0], from_pandas=False), pa.array([1, 2**53 + 1, 3]), words], schema)


def tables():
    return {
        "pandas": texts_and_types(),
        "labels": texts_and_types().T.astype(str),
        "dates": pd.DataFrame({"x": [1, 2, 3]}, index=pd.date_range("2024-01-01", periods=3, freq="h")),
        "pyarrow": some_table(),
        "polars": pl.DataFrame({"x": pl.Series(["a", None, "b"], dtype=pl.Categorical), "f": [0.5, None, -0.0]}),
    }


def archived(table):
    file = io.BytesIO()
    compress(ArchiveModel(), table_source(table), file)
    return file.getvalue()


def read(content):
    archive = OpenArchive(Archive(content))
    found, lost = decompress_table(archive)
    assert not lost
    return frame_like_source(found, archive.form)


def told(table):
    """Every cell, type and label as text."""
    if isinstance(table, pd.DataFrame):
        about, texts = FrameSource(table).form, FrameSource(table).texts
        return json.dumps([about, [list(column) for column in texts]])
    if isinstance(table, pl.DataFrame):
        return repr(([(name, dtype.base_type().__name__) for name, dtype in table.schema.items()], table.rows()))
    return table.schema.to_string(show_schema_metadata=True) + repr(table.to_pydict())


def main(verb, folder):
    for name, table in tables().items():
        archive, text = folder / f"{name}.aoz", folder / f"{name}.txt"
        if verb == "make":
            archive.write_bytes(archived(table))
            text.write_text(told(table))
        elif told(read(archive.read_bytes())) != text.read_text():
            sys.exit(
                f"{archive} comes back otherwise with pandas {pd.__version__}, pyarrow {pa.__version__}, polars {pl.__version__}"
            )
    print(f"{len(tables())} archives {'made' if verb == 'make' else 'read'}: pandas {pd.__version__}, pyarrow {pa.__version__}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
