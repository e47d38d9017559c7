"""Data frames as columns of text and back, with their types: what cannot be kept exactly is refused."""

import json
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

from ....coding import Integers
from ....errors import FormatError, InputError
from .table_codec import Texts, objects

MISSING: dict[str, Any] = {"None": None, "nan": float("nan"), "NA": pd.NA, "NaT": pd.NaT}
NULLABLE = {"boolean", "Float32", "Float64", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))}
USUAL_NAN = struct.pack("<d", float("nan"))
Values = Any  # a numpy or pandas array


@final
class Strand(NamedTuple):
    """A column as text, and how it becomes a column again."""

    kind: dict[str, Any]
    texts: Texts


def frame_texts(frame: pd.DataFrame) -> tuple[dict[str, Any], list[Texts]]:
    """What must be known of a frame, and its columns and those of its index as text."""
    columns = [strand(frame.iloc[:, k].array, str(frame.columns[k])) for k in range(frame.shape[1])]
    index: dict[str, Any] = index_kind(frame.index)
    levels = [] if "range" in index else [strand(level.array, "the index") for level in index_levels(frame.index)]
    about = {
        "kind": "frame",
        "rows": len(frame),
        "labels": small_index(frame.columns),
        "index": index | {"kinds": [s.kind for s in levels]},
        "columns": [s.kind for s in columns],
    }
    return about | notes(frame), [s.texts for s in (*columns, *levels)]


def frame_of(about: dict[str, Any], texts: Sequence[Texts], kept: Integers | None = None) -> pd.DataFrame:
    """The frame again, or those of its rows that were kept."""
    kinds = [*about["columns"], *about["index"]["kinds"]]
    if len(kinds) != len(texts):
        raise FormatError(f"The archive claims {len(kinds)} columns and has {len(texts)}.")
    arrays = [array_of(Strand(kind, cells)) for kind, cells in zip(kinds, texts, strict=True)]
    count = len(about["columns"])
    whole = int(about["rows"]) if "range" in about["index"] or kept is None else len(kept)
    part = kept is not None and len(kept) != int(about["rows"])  # whose times may be spaced otherwise
    index = index_of({key: v for key, v in about["index"].items() if key != "freq" or not part}, arrays[count:], whole)
    index = index if kept is None or len(kept) == len(index) else index[kept]
    frame = pd.DataFrame(
        {k: pd.Series(array, index=index, dtype=array.dtype) for k, array in enumerate(arrays[:count])}, index=index
    )
    frame.columns = index_from(about["labels"])
    frame.attrs = dict(about.get("attrs", {}))
    frame.flags.allows_duplicate_labels = about.get("duplicates") is not False
    return frame


def notes(frame: pd.DataFrame) -> dict[str, Any]:
    """What was written on a frame, if anything was."""
    said = {} if frame.flags.allows_duplicate_labels else {"duplicates": False}
    try:
        same = repr(json.loads(json.dumps(frame.attrs))) == repr(frame.attrs)
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise InputError(
            "The attrs of this frame cannot be kept; expected text, numbers, lists and dictionaries with text as keys. "
            "To do without them: frame.attrs.clear()."
        )
    return said | ({"attrs": frame.attrs} if frame.attrs else {})


# Indices


def index_kind(index: pd.Index) -> dict[str, Any]:
    names = [named(name) for name in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"names": names, "range": [index.start, index.stop, index.step]}
    kind: dict[str, Any] = {"names": names, "many": isinstance(index, pd.MultiIndex)}
    return kind | ({"freq": index.freqstr} if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex) and index.freq else {})


def index_levels(index: pd.Index) -> list[pd.Index]:
    return [index.get_level_values(k) for k in range(index.nlevels)]


def index_of(kind: dict[str, Any], arrays: Sequence[Values], rows: int) -> pd.Index:
    names = [unnamed(name) for name in kind["names"]]
    if "range" in kind:
        start, stop, step = (int(n) for n in kind["range"])
        if step == 0 or len(range(start, stop, step)) != rows:
            raise FormatError("The archive claims an index of another length than its columns.")
        return pd.RangeIndex(start, stop, step, name=names[0])
    if kind["many"]:
        return pd.MultiIndex.from_arrays(list(arrays), names=names)
    index = pd.Index(arrays[0], name=names[0], dtype=arrays[0].dtype, tupleize_cols=False)
    if "freq" in kind and isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        index.freq = str(kind["freq"])
    return index


def small_index(index: pd.Index) -> dict[str, Any]:
    """A whole index, for labels and categories."""
    kind = index_kind(index)
    levels = [] if "range" in kind else [strand(level.array, "the labels") for level in index_levels(index)]
    return kind | {"rows": len(index), "kinds": [s.kind for s in levels], "texts": [list(s.texts) for s in levels]}


def index_from(item: dict[str, Any]) -> pd.Index:
    strands = [Strand(k, objects(t)) for k, t in zip(item["kinds"], item["texts"], strict=True)]
    return index_of(item, [array_of(s) for s in strands], int(item["rows"]))


# Columns


def strand(array: Values, name: str) -> Strand:
    """One column as text."""
    array = array.to_numpy() if type(array) is pd.arrays.NumpyExtensionArray else array
    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        kind = {"as": "category", "categories": small_index(dtype.categories), "ordered": bool(dtype.ordered)}
        return Strand(kind, texts(np.asarray(array.codes), np.asarray(array.codes) < 0, str))
    if isinstance(dtype, pd.DatetimeTZDtype | pd.PeriodDtype) or (isinstance(dtype, np.dtype) and dtype.kind in "mM"):
        return Strand(
            {"as": "time", "dtype": str(dtype)},
            texts(array.view("i8") if hasattr(array, "view") else array.asi8, np.asarray(pd.isna(array)), str),
        )
    if isinstance(dtype, pd.StringDtype) or dtype == np.dtype(object):
        return text_strand(array, name)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 8:
        values = np.asarray(array).astype(dtype.newbyteorder("="))
        usual = np.zeros(len(values), dtype=bool) if dtype.kind != "f" else is_usual_nan(values)
        return Strand({"as": "number", "dtype": dtype.str}, texts(values, usual, exact_number_text))
    if isinstance(dtype, np.dtype) and not dtype.hasobject:
        values = np.asarray(array)
        return Strand(
            {"as": "bytes", "dtype": dtype.str}, texts(values, np.zeros(len(values), dtype=bool), lambda v: v.tobytes().hex())
        )
    if str(dtype) in NULLABLE:
        gaps = np.asarray(array._mask)  # NaN is no gap here
        return Strand({"as": "nullable", "dtype": str(dtype)}, texts(np.asarray(array._data), gaps, exact_number_text))
    raise InputError(f"Column {name!r} is {dtype}, which cannot be kept. Turn it into numbers, text, dates or categories first.")


def array_of(strand: Strand) -> Values:
    """The column again."""
    kind, cells = strand
    match kind["as"]:
        case "category":
            codes = parsed(cells, np.dtype(np.int64), -1)
            categories = index_from(kind["categories"])
            return pd.Categorical.from_codes(codes, categories=categories, ordered=kind["ordered"] is True)
        case "time":
            return time_strand(parsed(cells, np.dtype(np.int64), np.iinfo(np.int64).min), str(kind["dtype"]))
        case "text":
            return text_array(kind, cells)
        case "number":
            dtype = allowed(kind["dtype"], "biuf", 8)
            return parsed(cells, dtype.newbyteorder("="), np.nan if dtype.kind == "f" else 0).astype(dtype)
        case "bytes":
            raw = b"".join(bytes.fromhex(text) for text in cells)
            return np.frombuffer(raw, allowed(kind["dtype"], "fcSUV", 2**20)).copy()
        case "nullable":
            if kind["dtype"] not in NULLABLE:
                raise FormatError(f"A column claims to be of type {kind['dtype']!r}.")
            dtype = pd.api.types.pandas_dtype(kind["dtype"])
            gaps = np.array([text is None for text in cells], dtype=bool)
            return dtype.construct_array_type()(parsed(cells, dtype.numpy_dtype, 0), gaps)
    raise FormatError(f"A column is kept in a way unknown here: {kind['as']!r}.")


def allowed(dtype: Any, kinds: str, most: int) -> np.dtype[Any]:
    """A type of numpy's that a column may have."""
    found = np.dtype(str(dtype))
    if found.kind not in kinds or found.itemsize > most or found.hasobject:
        raise FormatError(f"A column claims to be of type {found}.")
    return found


def texts(values: Values, gaps: Values, write: Callable[[Any], str]) -> Texts:
    """Every value written out, None where there is a gap; what repeats is written once."""
    raw = np.ascontiguousarray(values)
    bits = raw.view(f"u{raw.itemsize}") if raw.dtype.kind == "f" and raw.itemsize <= 8 else raw
    if bits.dtype.kind not in "biu":
        out = objects(map(write, raw))
    else:
        _, first, code = np.unique(bits, return_index=True, return_inverse=True)
        out = objects(map(write, raw[first]))[code]
    out[gaps] = None
    return out


def exact_number_text(value: Any) -> str:
    """The shortest text that gives the same bits back."""
    if isinstance(value, np.floating):
        if np.isnan(value):
            return "nan:" + value.astype(value.dtype.newbyteorder("<")).tobytes().hex()
        return repr(float(value)) if value.itemsize == 8 else str(value)
    return str(value)


def parsed(cells: Texts, dtype: np.dtype[Any], gap: Any) -> Values:
    code, different = pd.factorize(cells)
    values = np.array([parsed_one(text, dtype) for text in different] + [np.array(gap).astype(dtype)], dtype=dtype)
    return values[code]


def parsed_one(text: str, dtype: np.dtype[Any]) -> Any:
    if text.startswith("nan:"):
        return np.frombuffer(bytes.fromhex(text[4:]), dtype.newbyteorder("<"))[0]
    if dtype.kind == "b":
        return {"True": True, "False": False}[text]
    return dtype.type(float(text)) if dtype.kind == "f" else dtype.type(int(text))


def is_usual_nan(values: Values) -> Values:
    usual = values.dtype.type("nan")
    return np.ascontiguousarray(values).view(f"u{values.itemsize}") == np.array([usual]).view(f"u{values.itemsize}")[0]


def time_strand(values: Values, dtype: str) -> Values:
    if dtype.startswith("period"):
        kind = pd.PeriodDtype(dtype.removeprefix("period[").removesuffix("]"))
        return pd.arrays.PeriodArray(values, dtype=kind)
    if "," in dtype:  # with a time zone
        zoned = pd.api.types.pandas_dtype(dtype)
        return pd.DatetimeIndex(values.view(f"M8[{zoned.unit}]")).tz_localize("UTC").tz_convert(zoned.tz).array
    return values.view(np.dtype(dtype))


# Text and other objects


def text_strand(array: Values, name: str) -> Strand:
    """Text as it is if there is nothing else; otherwise every cell says what it is."""
    gaps, others = set(), False
    for value in array:
        if type(value) is not str:
            found = missing(value)
            gaps.add(found)
            others = others or found is None
    kind: dict[str, Any] = {"as": "text"}
    if isinstance(array.dtype, pd.StringDtype):
        kind |= {"storage": array.dtype.storage, "missing": "NA" if array.dtype.na_value is pd.NA else "nan"}
    elif len(gaps) <= 1 and not others:
        kind["missing"] = next(iter(gaps), "None")
    else:
        return Strand(kind | {"tagged": True}, objects(tagged(v, name) for v in array))
    return Strand(kind, objects(v if isinstance(v, str) else None for v in array))


def text_array(kind: dict[str, Any], cells: Texts) -> Values:
    if kind.get("tagged"):
        return objects(untagged(str(text)) for text in cells)
    gap = MISSING[kind["missing"]]
    if "storage" in kind:
        try:
            dtype = pd.StringDtype(kind["storage"], na_value=pd.NA if kind["missing"] == "NA" else np.nan)
        except ImportError as error:
            raise InputError("This table keeps its text as pyarrow does, which is not installed: pip install pyarrow.") from error
        return pd.array([gap if text is None else text for text in cells], dtype=dtype)
    return objects(gap if text is None else text for text in cells)


def missing(value: Any) -> str | None:
    """Which sign for nothing this is, if it is one."""
    if value is None:
        return "None"
    if value is pd.NA:
        return "NA"
    if value is pd.NaT:
        return "NaT"
    return "nan" if type(value) is float and struct.pack("<d", value) == USUAL_NAN else None


TAGGED_WRITERS: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    str: ("s", str, str),
    bool: ("b", lambda v: str(int(v)), lambda t: bool(int(t))),
    int: ("i", str, int),
    float: ("f", lambda v: struct.pack("<d", v).hex(), lambda t: struct.unpack("<d", bytes.fromhex(t))[0]),
    bytes: ("y", bytes.hex, bytes.fromhex),
    Decimal: ("d", str, Decimal),
    datetime: ("t", datetime.isoformat, datetime.fromisoformat),
    date: ("a", date.isoformat, date.fromisoformat),
}
TAGGED_READERS = {tag: read for tag, _, read in TAGGED_WRITERS.values()}


def tagged(value: Any, name: str) -> str:
    """Any plain object as text that says what it is."""
    gap = missing(value)
    if gap is not None:
        return "-" + gap
    if type(value) is tuple:
        return "(" + json.dumps([tagged(part, name) for part in value], ensure_ascii=False)
    if type(value) not in TAGGED_WRITERS or (type(value) is datetime and not plain_moment(value)):
        raise InputError(
            f"Column {name!r} holds {type(value).__name__} objects, which cannot be kept; expected text, numbers, dates or bytes."
        )
    tag, write, _ = TAGGED_WRITERS[type(value)]
    return tag + write(value)


def plain_moment(value: datetime) -> bool:
    """Whether its text says all: no name of a time zone, and not the second of two equal hours."""
    return not value.fold and (
        value.tzinfo is None or repr(value.tzinfo) == repr(datetime.fromisoformat(value.isoformat()).tzinfo)
    )


def untagged(text: str) -> Any:
    tag, rest = text[:1], text[1:]
    if tag == "-":
        return MISSING[rest]
    return tuple(untagged(part) for part in json.loads(rest)) if tag == "(" else TAGGED_READERS[tag](rest)


def named(name: Any) -> str:
    return tagged(name, "the names of columns")


def unnamed(text: Any) -> Any:
    return untagged(str(text))
