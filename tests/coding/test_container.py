"""Archives: every bit that flips is noticed, and costs at most the block it lies in."""

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.coding import Archive, ArchiveWriter, container
from anyorder.coding.container import MAGIC, part
from anyorder.errors import FormatError, InputError

ABOUT = {"what": "a test", "names": ["ä", "b"]}
INNER = io.BytesIO()
with ArchiveWriter(INNER, ABOUT) as archive:
    archive.add(b"a block")
    archive.add(b"inside a block")
INNER = INNER.getvalue()
CONTENTS = [b"", b"one", bytes(range(256)), b"AO" * 50, INNER]


def written(contents=CONTENTS, about=ABOUT):
    file = io.BytesIO()
    with ArchiveWriter(file, about) as archive:
        for content in contents:
            archive.add(content)
    return file.getvalue()


def framed(*parts):
    raw = MAGIC
    for kind, number, content in parts:
        raw += part(kind, number, content, len(raw))
    return raw


def opened(tmp_path, raw):
    path = tmp_path / "some.aoz"
    path.write_bytes(raw)
    return Archive(path)


def test_what_was_written_is_read(tmp_path):
    archive = opened(tmp_path, written())
    assert archive.about == ABOUT
    assert not archive.damage
    assert [block.content for block in archive.blocks()] == CONTENTS
    assert archive.block(3).content == CONTENTS[3]


@given(contents=st.lists(st.binary(max_size=300), max_size=6))
def test_any_bytes_are_read_as_written(tmp_path_factory, contents):
    archive = opened(tmp_path_factory.mktemp("a"), written(contents))
    assert [block.content for block in archive.blocks()] == contents
    assert not archive.damage


def test_every_single_flipped_bit_is_noticed_and_costs_one_block_at_most(tmp_path):
    raw = written()
    for place in range(len(raw)):
        broken = bytearray(raw)
        broken[place] ^= 1 << (place % 8)
        archive = opened(tmp_path, bytes(broken))
        blocks = list(archive.blocks())
        lost = [block.number for block in blocks if block.content is None]
        assert archive.damage or lost, place
        assert len(lost) <= 1, place
        assert archive.about == ABOUT
        assert [b.content for b in blocks if b.number not in lost] == [c for k, c in enumerate(CONTENTS) if k not in lost]
        assert all(block.damage for block in blocks if block.content is None)


def test_a_truncated_archive_keeps_the_blocks_before(tmp_path):
    raw = written()
    for length in range(len(raw)):
        try:
            archive = opened(tmp_path, raw[:length])
        except FormatError:
            assert length < len(MAGIC) + len(part(1, 0, json.dumps(ABOUT).encode(), 0))
            continue
        assert archive.damage
        whole = [block.content for block in archive.blocks() if block.content is not None]
        assert whole == CONTENTS[: len(whole)]
    assert len(whole) == len(CONTENTS)


@given(data=st.data())
def test_damage_of_any_kind_never_gives_wrong_content(tmp_path_factory, data):
    raw = bytearray(written())
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["cut", "repeat", "noise"]))
        last = min(len(raw), first + data.draw(st.integers(1, 60)))
        noise = data.draw(st.binary(min_size=last - first, max_size=last - first))
        raw[first:last] = {"cut": b"", "repeat": bytes(raw[first:last]) * 2, "noise": noise}[kind]
        if not raw:
            return
    try:
        archive = opened(tmp_path_factory.mktemp("a"), bytes(raw))
    except FormatError:
        return
    for block in archive.blocks():
        assert block.content is None or block.content in CONTENTS


def test_forged_lengths_are_refused_without_reading_them(tmp_path):
    raw = written([b"x"])
    forged = framed((1, 0, b"{}"), (3, 2**31, b""), (1, 1, b"{}"))
    assert len(opened(tmp_path, forged)) == 0
    giant = bytearray(raw)
    giant[len(MAGIC) + 7 : len(MAGIC) + 15] = (2**62).to_bytes(8, "little")
    assert [block.content for block in opened(tmp_path, bytes(giant)).blocks()] == [b"x"]


def test_foreign_files_are_refused(tmp_path):
    for raw in (b"", b"PK\x03\x04 something", np.random.default_rng(0).bytes(5000)):
        with pytest.raises(FormatError, match="no archive of anyorder"):
            opened(tmp_path, raw)
    with pytest.raises(InputError, match="no file"):
        Archive(tmp_path / "nothing.aoz")
    with pytest.raises(FormatError, match="format 9"):
        opened(tmp_path, MAGIC[:-1] + b"\x09" + written(about=ABOUT | {"version": 9})[len(MAGIC) :])
    with pytest.raises(FormatError, match="cannot be read"):
        opened(tmp_path, framed((1, 0, b"{"), (1, 1, b"{")))


def test_blocks_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match="no block 5"):
        opened(tmp_path, written()).block(5)


def test_a_giant_description_is_refused(monkeypatch):
    monkeypatch.setattr(container, "MOST_DESCRIPTION", 50)
    with pytest.raises(InputError, match="at most 50 fit"):
        ArchiveWriter(io.BytesIO(), {"x": "a" * 50})
