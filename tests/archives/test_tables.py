"""Tables in archives: whatever they hold comes back, with any codec or none."""

import io
import json
from itertools import pairwise
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyorder.archives import ArchiveModel, OpenArchive, compress, from_bytes, to_bytes
from anyorder.coding import Archive
from anyorder.errors import FormatError, InputError
from anyorder.modalities.images.image_archives import ArraySource
from anyorder.modalities.tables.codec import table_codec as table
from anyorder.modalities.tables.codec import table_codec as table_learning
from anyorder.modalities.tables.codec.table_archives import FrameSource, csv_source, decompress_table
from anyorder.modalities.tables.codec.table_codec import fit_own_table_codec, fit_table_codec
from anyorder.training import Fitted
from some_codecs import some_frame, some_table_codec


def archived(source, codec=None, **more):
    file = io.BytesIO()
    compress(ArchiveModel(codec, inside=codec is not None), source, file, **more)
    return file.getvalue()


def opened(archive):
    return OpenArchive(Archive(archive))


def test_a_table_comes_back_and_is_smaller():
    frame = some_frame(600, seed=1)
    archive = archived(FrameSource(frame), some_table_codec())
    back, lost = decompress_table(opened(archive))
    assert lost == []
    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    (content,) = [content for _, content in opened(archive).contents()]
    assert content.method == 1
    without = archived(FrameSource(frame))
    assert len(archive) - len(to_bytes(some_table_codec())) < len(without)


def test_the_day_costs_nothing_and_the_price_less_than_alone():
    codec, frame = some_table_codec(), some_frame(600, seed=1)
    _, spent = codec.encode(codec.read(FrameSource(frame).texts))
    bits = dict(zip((codec.names[place] for place, _ in codec.coded), spent, strict=True))
    assert codec.columns[3] is None  # notes do not repeat
    assert bits["day"] / 600 < 2  # all of it where a lane begins
    assert bits["price"] / 600 < 3.6  # log2(9), 3.2, and a little; without the town 4.1


def untrained_codec(source):
    """Training would only make it shorter."""
    with mock.patch.object(table_learning, "fit", lambda model, *_: Fitted(model, [], "finished")):
        try:
            return fit_table_codec(source.names, source.texts)
        except InputError:  # there is nothing to learn from
            return None


ELEMENTS = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "uint64": st.integers(0, 2**64 - 1),
    "int8": st.integers(-128, 127),
    "float64": st.floats() | st.integers(0, 5).map(lambda n: n / 4),
    "float32": st.floats(width=32),
    "bool": st.booleans(),
    "object": st.none() | st.text(max_size=3) | st.integers() | st.floats() | st.booleans() | st.binary(max_size=3),
    "str": st.none() | st.text(st.characters(codec="utf-8"), max_size=3),
    "datetime64[ns]": st.datetimes(pd.Timestamp("1700-01-01").to_pydatetime(), pd.Timestamp("2200-01-01").to_pydatetime()),
    "Int64": st.none() | st.integers(-(2**63), 2**63 - 1),
    "boolean": st.none() | st.booleans(),
    "category": st.none() | st.sampled_from(["a", "b", "c"]),
}


@st.composite
def frames(draw):
    rows, columns = draw(st.integers(0, 6)), draw(st.lists(st.sampled_from(sorted(ELEMENTS)), min_size=0, max_size=3))
    made = {}
    for k, dtype in enumerate(columns):
        values = draw(st.lists(ELEMENTS[dtype], min_size=rows, max_size=rows))
        made[k] = pd.Series(np.array([*values, None], dtype=object)[:-1] if dtype == "object" else values, dtype=dtype)
    frame = pd.DataFrame(made, index=range(rows))
    frame.columns = draw(st.lists(st.text(max_size=2), min_size=len(columns), max_size=len(columns)))
    if draw(st.booleans()):
        frame.index = draw(st.lists(st.integers(0, 3) | st.text(max_size=1), min_size=rows, max_size=rows))
    return frame


@given(frames(), frames(), st.sampled_from(["no codec", "its own", "another's"]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_table_comes_back(frame, other, which):
    """With no codec, with one that knows its columns, or with one that was learned from something else."""
    codec = None if which == "no codec" else untrained_codec(FrameSource(frame if which == "its own" else other))
    back, lost = decompress_table(opened(archived(FrameSource(frame), codec, verify=False)))
    assert lost == []
    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    for name in range(frame.shape[1]):
        if frame.iloc[:, name].dtype.kind == "f":
            assert back.iloc[:, name].to_numpy().tobytes() == frame.iloc[:, name].to_numpy().tobytes()


def test_cells_come_back_through_the_stream(monkeypatch):
    """Also when zstd would be shorter; lanes of another length give another stream, and the same cells."""
    codec, source = some_table_codec(), FrameSource(some_frame(300, seed=2))
    cells = codec.read(source.texts)
    assert (cells.kind == 2).any()
    streams = set()
    for lane in (16, 100, 256):
        monkeypatch.setattr(table, "LANE", lane)
        stream, _ = codec.encode(cells)
        back = codec.decode(stream, 300)
        np.testing.assert_array_equal(back.kind, cells.kind)
        np.testing.assert_array_equal(back.number, np.where(cells.kind == 0, cells.number, 0))
        streams.add(stream)
    assert len(streams) > 1


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 700])
@pytest.mark.parametrize("uses_previous_row", [False, True])
def test_every_row_has_its_turn(rows, uses_previous_row):
    turns = list(table.turns(rows, uses_previous_row))
    assert sorted(np.concatenate(turns)) == list(range(rows))
    assert all(len(later) <= len(turn) for turn, later in pairwise(turns))
    assert len(turns[0]) <= table.lanes(rows, uses_previous_row)


def test_codecs_come_back_from_bytes():
    codec = some_table_codec()
    again = from_bytes(to_bytes(codec))
    assert to_bytes(again) == to_bytes(codec)
    source = FrameSource(some_frame(50, seed=3))
    assert archived(source, again) == archived(source, codec)


@pytest.mark.parametrize("rows", [0, 1, 50, 300])
def test_the_number_of_calls_is_known_before(rows):
    codec, made = some_table_codec(), []
    hook = codec.model.register_forward_hook(lambda *_: made.append(1))
    source = FrameSource(some_frame(rows, seed=3))
    codec.encode(codec.read(source.texts))
    hook.remove()
    assert len(made) == codec.calls(rows)


def test_some_rows_are_read_without_the_others():
    frame = some_frame(90, seed=4)
    archive = opened(archived(FrameSource(frame), some_table_codec(), per_block=20))
    back, _ = decompress_table(archive, range(30, 50))
    pd.testing.assert_frame_equal(back, frame.iloc[30:50], check_freq=False)


@pytest.fixture(scope="module")
def damageable():
    """A table, its archive in three blocks, and how to open such an archive with the model it was made with.

    Its rows have nothing to do with each other, so they are decoded together.
    """
    frame, file = some_frame(60, seed=5)[["odd", "note"]], io.BytesIO()
    source = FrameSource(frame)
    codec = fit_table_codec(source.names, source.texts, effort=0.03)
    assert not codec.told
    compress(ArchiveModel(codec), source, file, per_block=20)
    return frame, file.getvalue(), lambda content: OpenArchive(Archive(content), lambda about: codec)


@pytest.mark.slow
def test_flipped_bits_cost_at_most_the_rows_of_their_block(damageable):
    frame, whole, open_again = damageable
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 500):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        archive = open_again(bytes(damaged))
        back, lost = decompress_table(archive)
        assert lost or archive.archive.damage
        rows = [row for one in lost for row in one.items]
        assert rows in ([], list(range(20)), list(range(20, 40)), list(range(40, 60)))
        pd.testing.assert_frame_equal(back, frame.drop(index=rows), check_freq=False)


def test_truncation_costs_the_rows_that_are_cut_off(damageable):
    frame, whole, open_again = damageable
    blocks = [*Archive(whole).places.values(), len(whole)]
    for place in np.random.default_rng(0).integers(0, len(whole), 100):
        try:
            archive = open_again(whole[:place])
        except (FormatError, InputError):
            assert place < blocks[1]
            continue
        back, lost = decompress_table(archive)
        assert lost or archive.archive.damage
        cut = [row for one in lost for row in one.items]
        assert all(place < blocks[row // 20 + 1] for row in cut)
        pd.testing.assert_frame_equal(back, frame.drop(index=cut), check_freq=False)


def test_damage_of_a_frame_with_evenly_spaced_times():
    frame = pd.DataFrame({"x": range(30)}, index=pd.date_range("2020-01-01", periods=30, freq="D"))
    whole = bytearray(archived(FrameSource(frame), per_block=10))
    whole[Archive(bytes(whole)).places[1] + 40] ^= 1
    back, lost = decompress_table(opened(bytes(whole)))
    assert len(lost) == 1
    pd.testing.assert_frame_equal(back, frame.drop(index=frame.index[10:20]), check_freq=False)


def test_large_numbers_can_be_learned():
    texts = [np.array([str(2**60 - 1 - k % 60) for k in range(100)], dtype=object)]
    codec = untrained_codec(csv_source(b"x\n" + b"\n".join(text.encode() for text in texts[0])))
    assert codec is not None
    np.testing.assert_array_equal(codec.read(texts).kind, 0)


@pytest.mark.parametrize(
    "content", [b"a,b\n1,x\n1,y\n" * 1, b"x\n" + b"\n".join(b"%d" % (k * k) for k in range(50)), b"no table\n", b""]
)
def test_files_come_back(content):
    back, lost = decompress_table(opened(archived(csv_source(content))))
    assert (back, lost) == (content, [])


def test_a_codec_of_images_is_refused(tmp_path):
    with pytest.raises(InputError, match="not made for"):
        archived(ArraySource(np.zeros((2, 3, 3), np.uint8)), some_table_codec())


def test_small_tables_are_not_worth_a_model():
    source = FrameSource(some_frame(20))
    assert fit_own_table_codec(source.names, source.texts, otherwise=500) is None


# Strangers' codecs


def forged(change):
    raw = to_bytes(some_table_codec())
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    about = json.loads(header["__metadata__"]["anyorder"])
    change(about)
    header["__metadata__"]["anyorder"] = json.dumps(about)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(told=[99]),
        lambda about: about.update(told=[0] * 300),
        lambda about: about.update(answers=1),
        lambda about: about.update(format=2),
        lambda about: about.update(names=[]),
        lambda about: about["columns"].pop(),
        lambda about: about["columns"][0].update(edges=[0] * 5),
        lambda about: about["columns"][0].update(edges=[2**70]),
        lambda about: about["columns"][0].update(edges=[1] * 10**5),
        lambda about: about["network"].update(width=10**6),
        lambda about: about["network"].update(kind="resmlp"),
        lambda about: about["network"].update(frozen=False),
    ],
)
def test_forged_codecs_are_refused(change):
    with pytest.raises(FormatError):
        from_bytes(forged(change))


def test_a_network_that_could_leave_exact_numbers_is_refused():
    codec = some_table_codec()
    raw = to_bytes(codec)
    offset = codec.model.network.first.offset
    kept = offset.clone()
    offset.fill_(2**24)
    try:
        with pytest.raises(FormatError, match="exact"):
            from_bytes(to_bytes(codec))
    finally:
        offset.copy_(kept)
        codec.model.network.ready = None
    assert to_bytes(codec) == raw
