"""Frames as text and back: every type, label and bit."""

import datetime
import decimal
import io
import typing
import zoneinfo

import numpy as np
import pandas as pd
import pytest

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.coding import Archive
from anyorder.errors import FormatError, InputError
from anyorder.modalities.tables.codec.frame_texts import frame_of, frame_texts, tagged, untagged
from anyorder.modalities.tables.codec.table_archives import (
    BytesSource,
    FrameSource,
    TableSource,
    csv_bytes,
    csv_source,
    decompress_table,
)

ODD_NAN = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
COLUMNS = {
    "bool": np.array([True, False, True]),
    "int8": np.array([-128, 0, 127], dtype=np.int8),
    "int64": np.array([-(2**63), 2**53 + 1, 2**63 - 1]),
    "uint64": np.array([0, 2**64 - 1, 7], dtype=np.uint64),
    "float64": np.array([0.1, -0.0, np.nan]),
    "payload": np.array([ODD_NAN, np.inf, 5e-324]),
    "float32": np.array([0.1, -0.0, np.nan], dtype=np.float32),
    "float16": np.array([0.1, np.inf, np.nan], dtype=np.float16),
    "complex": np.array([1j, np.nan, -0.0]),
    "complex64": np.array([0j, complex(-0.0, 0.0), complex(0.0, -0.0)], dtype=np.complex64),
    "big-endian": np.array([1.5, np.nan, -0.0], dtype=">f8"),
    "nan beside NA": pd.arrays.FloatingArray(np.array([np.nan, 1.0, 2.0]), np.array([False, False, True])),
    "nan with payload": np.array([ODD_NAN.item(), "a", -0.0], dtype=object),
    "datetime": np.array(["2020-01-01", "NaT", "1677-10-01"], dtype="M8[ns]"),
    "seconds": np.array(["2020-01-01", "NaT", "0001-10-01"], dtype="M8[s]"),
    "timedelta": np.array([1, -5, 10**15], dtype="m8[us]"),
    "zoned": pd.to_datetime(["2020-01-01", None, "2024-07-01"]).tz_localize("Europe/Oslo"),
    "period": pd.PeriodIndex(["2020-01", "NaT", "2021-05"], freq="M"),
    "category": pd.Categorical(["b", None, "a"], categories=["a", "b", "never"], ordered=True),
    "category of numbers": pd.Categorical([1.5, None, 2.5]),
    "Int64": pd.array([1, None, 2**62], dtype="Int64"),
    "UInt8": pd.array([1, None, 255], dtype="UInt8"),
    "Float32": pd.array([0.1, None, 2.5], dtype="Float32"),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "text": np.array(["a", "", "\udcff\0\n"], dtype=object),
    "text with gaps": np.array(["a", None, ""], dtype=object),
    "text with nan": np.array(["a", np.nan, ""], dtype=object),
    "str": pd.array(["a", None, "ü"], dtype="str"),
    "string": pd.array(["a", None, "ü"], dtype="string[python]"),
    "anything": np.array(["a", None, 1.5], dtype=object),
    "more": np.array([decimal.Decimal("1.50"), datetime.date(2020, 1, 2), b"\xff"], dtype=object),
    "and more": np.array([datetime.datetime(2020, 1, 2, 3), (1, "a"), np.nan], dtype=object),
    "integers": np.array([10**30, True, -1], dtype=object),
}
INDICES = {
    "range": pd.RangeIndex(5, 11, 2, name="n"),
    "numbers": pd.Index([3, 1, 2]),
    "words": pd.Index(["a", "b", "a"], name=("a", 1)),
    "dates": pd.date_range("2020-01-01", periods=3, freq="D"),
    "many": pd.MultiIndex.from_tuples([(1, "a"), (2, "b"), (1, "c")], names=["x", None]),
}


def round_trip(frame):
    about, texts = frame_texts(frame)
    return frame_of(about, texts)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_comes_back(name):
    frame = pd.DataFrame({name: pd.Series(COLUMNS[name], dtype=COLUMNS[name].dtype)})
    back = round_trip(frame)
    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    if frame[name].dtype.kind in "fc":
        assert back[name].to_numpy().tobytes() == frame[name].to_numpy().tobytes()
    if frame[name].dtype == object:
        assert [struct_of(v) for v in back[name]] == [struct_of(v) for v in frame[name]]
        assert [type(v) for v in back[name]] == [type(v) for v in frame[name]]


def struct_of(value):
    return np.float64(value).tobytes() if type(value) is float else None


@pytest.mark.parametrize("name", INDICES)
def test_every_index_comes_back(name):
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=INDICES[name])
    back = round_trip(frame)
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_freq=True)
    assert isinstance(back.index, type(frame.index))
    pd.testing.assert_frame_equal(round_trip(frame.T.copy()), frame.T, check_exact=True)  # as labels of columns, too


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"x": []}),
        pd.DataFrame(index=[1, 2]),
        pd.DataFrame([[1, "a"], [2, "b"]], columns=["same", "same"]),
        pd.DataFrame([[1, 2]], columns=pd.Index([0, "x"], name="labels")),
    ],
)
def test_strange_frames_come_back(frame):
    pd.testing.assert_frame_equal(round_trip(frame), frame, check_exact=True)


def test_what_is_written_on_a_frame_comes_back():
    frame = pd.DataFrame({"x": [1, 2]})
    frame.attrs = {"source": "here", "numbers": [1, 2.5, None, {"deep": True}]}
    back = round_trip(frame.set_flags(allows_duplicate_labels=False))
    assert back.attrs == frame.attrs
    assert not back.flags.allows_duplicate_labels
    assert round_trip(frame).flags.allows_duplicate_labels


@pytest.mark.parametrize(
    "attrs", [{"a": (1, 2)}, {1: "a"}, {"a": object()}, {"a": np.float64(1)}], ids=["tuple", "number as name", "object", "numpy"]
)
def test_notes_that_would_come_back_otherwise_are_refused(attrs):
    frame = pd.DataFrame({"x": [1, 2]})
    frame.attrs = attrs
    with pytest.raises(InputError, match=r"The attrs of this frame cannot be kept.*frame\.attrs\.clear\(\)"):
        FrameSource(frame)


class Point(typing.NamedTuple):
    x: int


@pytest.mark.parametrize(
    "column",
    [
        np.array([{}, None], dtype=object),
        pd.array([pd.Interval(0, 1)] * 2),
        np.array([1, object()]),
        np.array([np.str_("a"), "b"], dtype=object),
        np.array([None, datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Oslo"))], dtype=object),
        np.array([None, datetime.datetime(2020, 1, 1, fold=1)], dtype=object),
        np.array([None, decimal.Decimal("sNaN")], dtype=object),
        np.array([None, 10**5000], dtype=object),
        pd.Series([Point(1), None], dtype=object).to_numpy(),
    ],
)
def test_what_cannot_be_kept_is_refused(column):
    with pytest.raises(InputError, match="cannot be kept"):
        FrameSource(pd.DataFrame({"odd one": pd.Series(column, dtype=column.dtype)}))


@pytest.mark.parametrize("label", ["\ud800\udfff", ("\ud800\udfff", "a")])
def test_labels_that_would_not_come_back_are_refused(label):
    """Two halves of a character: JSON would make one of them."""
    frame = pd.DataFrame({"a": [1, 2]}).set_axis(pd.Index([label], dtype=object, tupleize_cols=False), axis=1)
    with pytest.raises(InputError, match="no text that can be kept"):
        compress(ArchiveModel(), FrameSource(frame), io.BytesIO())


@pytest.mark.parametrize(
    "kind",
    [
        {"as": "number", "dtype": "S2000000000"},
        {"as": "number", "dtype": "O"},
        {"as": "bytes", "dtype": "V1000000000"},
        {"as": "nullable", "dtype": "category"},
        {"as": "time", "dtype": "O"},
        {"as": "text", "tagged": True},
        {"as": "other"},
        {},
    ],
)
def test_forged_kinds_are_refused(kind):
    about, texts = frame_texts(pd.DataFrame({"x": [1.0, 2.0]}))
    archive = OpenArchive(Archive(made(about | {"columns": [kind]}, texts)))
    with pytest.raises(FormatError):
        decompress_table(archive)


def made(form, texts):
    file = io.BytesIO()
    compress(ArchiveModel(), TableSource(form, ["x"], texts, len(texts[0])), file, verify=False)
    return file.getvalue()


def test_objects_say_what_they_are():
    assert tagged(True, "x") != tagged(1, "x") != tagged(1.0, "x") != tagged("1", "x")
    assert untagged(tagged(("a", (1, None)), "x")) == ("a", (1, None))


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,x\n2,y\n",
        b"a,b\r\n1,x\r\n2,y\r\n",
        b"a,b\n1,x\n2,y",
        b'"a","b"\n"1","x"\n"2","y"\n',
        b'a;b\n1;"x;y"\n2;"say ""so"""\n',
        b"a\tb\n1\t\n\t2\n",
        b'a,b\n1,"two\nlines"\n',
        "\ufeffa,b\n1,ü\n".encode(),
        b"a,b\n1,\xff\n",
    ],
)
def test_files_of_values_are_understood_and_come_back(content):
    source = csv_source(content)
    assert not isinstance(source, BytesSource)
    assert csv_bytes(source.form, source.texts) == content


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n", b"a,b\n1\n2,3\n", b'a,b\n1,"x\n', b"a, b\n'1',  \"x\"\n", b'a,b\n"1",x\n', b"\0\1"]
)
def test_other_files_are_kept_as_bytes(content):
    source = csv_source(content)
    assert isinstance(source, BytesSource)
    assert source.same(None, range(1), source.pack(None, range(1)))
