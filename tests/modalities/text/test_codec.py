"""The codec of text: every byte comes back on both paths, both paths write the same, and damage is refused."""

import io
import math
from contextlib import suppress

import numpy as np
import pytest

from anyorder.archives import ArchiveModel, OpenArchive, compress, from_bytes, to_bytes
from anyorder.archives.blocks import MODELLED
from anyorder.coding import Archive
from anyorder.errors import FormatError, InputError
from anyorder.modalities.text.codec import engine as engine_module
from anyorder.modalities.text.codec import kernel, tables
from anyorder.modalities.text.codec.engine import Engine, is_fast
from anyorder.modalities.text.codec.text_archives import PART, FileSource, text_source, unpack_text, unpack_text_to
from anyorder.modalities.text.codec.text_codec import TextCodec, fit_text_codec

PATHS = [pytest.param(True, marks=pytest.mark.skipif(not is_fast(), reason="needs numba")), False]
needs_both = pytest.mark.skipif(not is_fast(), reason="needs numba")
PRIMING = b"it was the best of times, it was the worst of times"
TEXTS = {
    "empty": b"",
    "one byte": b"a",
    "last byte": b"\xff",
    "zeros": bytes(60),
    "ones": b"\xff" * 60,
    "every byte": bytes(range(0, 256, 3)),
    "random": np.random.default_rng(0).bytes(100),
    "text": b"it was the age of foolishness, it was the epoch of belief",
    "utf-8": "Zoë fährt über den Fluß, 日本語のテキスト, \N{GRINNING FACE}".encode(),
    "no utf-8": b"caf\xe9 \xc3\x28 \xed\xa0\x80 \x80\x80",
    "lines": b"".join(b'{"id": %d, "name": "user%d"}\r\n' % (k, k * k) for k in range(4)),
    "tabs": b"if x:\n\treturn y\n\n\telse:\n\t\treturn z\n\n",
}
SAME = 400_000  # bytes


@pytest.mark.parametrize("name", TEXTS)
def test_every_byte_comes_back(name):
    engine, text = Engine(PRIMING, False), TEXTS[name]
    stream = engine.encode(text)
    assert engine.decode(stream, len(text)) == text
    assert len(stream) <= 1.05 * len(text) + 4


@needs_both
@pytest.mark.parametrize("name", TEXTS)
def test_both_paths_write_and_read_the_same(name):
    compiled, portable, text = Engine(PRIMING, True), Engine(PRIMING, False), TEXTS[name]
    stream = compiled.encode(text)
    assert stream == portable.encode(text)
    assert compiled.decode(stream, len(text)) == text
    plain = Engine(b"", True)
    assert plain.decode(plain.encode(text), len(text)) == text


@needs_both
def test_both_paths_remember_the_same():
    text = TEXTS["lines"] + TEXTS["random"]
    states = [engine_module.primed(text, 12, fast) for fast in (True, False)]
    for name, one, other in zip(kernel.State._fields, *states, strict=True):
        assert (one == other).all(), name


@needs_both
@pytest.mark.parametrize("kind", ["zeros", "random", "two letters", "lines"])
def test_long_texts_come_back_compiled(kind):
    rng = np.random.default_rng(1)
    text = {
        "zeros": bytes(SAME // 4),
        "random": rng.bytes(SAME // 8),
        "two letters": rng.choice([97, 98], SAME // 8, p=[0.9, 0.1]).astype(np.uint8).tobytes(),
        "lines": TEXTS["lines"] * 1000,
    }[kind]
    engine = Engine(b"", True)
    stream = engine.encode(text)
    assert engine.decode(stream, len(text)) == text
    entropy = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1)) / 8
    share = {"zeros": 0.002, "random": 1.02, "two letters": 1.06 * entropy, "lines": 0.01}[kind]
    assert len(stream) <= share * len(text)


def test_the_same_priming_gives_the_same_and_only_it():
    stream = TextCodec(PRIMING).encode(TEXTS["text"])
    assert TextCodec(bytes(PRIMING)).decode(stream, len(TEXTS["text"])) == TEXTS["text"]
    assert len(stream) < len(TextCodec().encode(TEXTS["text"]))
    assert TextCodec(PRIMING).fingerprint() != TextCodec(PRIMING[:-1]).fingerprint() != TextCodec().fingerprint()
    with suppress(FormatError):
        assert TextCodec().decode(stream, len(TEXTS["text"])) != TEXTS["text"]


def test_a_codec_changes_nothing_in_itself():
    codec = TextCodec(PRIMING)
    first = codec.encode(TEXTS["text"])
    codec.encode(TEXTS["random"])
    assert codec.encode(TEXTS["text"]) == first


@pytest.mark.parametrize("codec", [TextCodec(), TextCodec(PRIMING), TextCodec(PRIMING * 3), TextCodec.shipped()], ids=range(4))
def test_a_codec_comes_back_from_its_bytes(codec):
    again = from_bytes(to_bytes(codec))
    assert again.fingerprint() == codec.fingerprint()
    assert to_bytes(again) == to_bytes(codec)
    assert len(to_bytes(TextCodec.shipped())) < 200


def test_codecs_that_cannot_be_are_refused():
    later = to_bytes(TextCodec(PRIMING)).replace(b'"format\\":1', b'"format\\":9')
    with pytest.raises(FormatError, match="Upgrade anyorder"):
        from_bytes(later)
    unknown = to_bytes(TextCodec(b"", "everyday-9"))
    with pytest.raises(FormatError, match="needs the priming text 'everyday-9'"):
        from_bytes(unknown)
    with pytest.raises(InputError, match="no text to learn a codec from"):
        fit_text_codec(b"")


@pytest.mark.parametrize("fast", PATHS, ids=["compiled", "portable"])
def test_a_stream_that_claims_too_much_or_is_cut_is_refused(fast):
    engine, text = Engine(PRIMING, fast), TEXTS["text"]
    stream = engine.encode(text)
    with pytest.raises(FormatError, match="claims to hold a text of"):
        engine.decode(stream, 10**9)
    with pytest.raises(FormatError, match="it is damaged"):
        engine.decode(stream[: len(stream) // 2], len(text))
    with pytest.raises(FormatError, match="it is damaged"):
        engine.decode(stream + bytes(9), len(text))


# What the model rests on


def test_tables_are_the_functions_they_stand_for():
    logits = np.arange(-tables.MIXED_MOST, tables.MIXED_MOST + 1) / tables.UNIT
    assert np.abs(tables.squash() - 65536 / (1 + np.exp(-logits))).max() <= 1
    assert (np.diff(tables.squash()) >= 0).all()
    middle = (np.arange(4096) + 0.5) / 4096
    inside = np.abs(np.log(middle / (1 - middle))) < 6
    wanted = np.log(middle / (1 - middle)) * tables.UNIT
    assert np.abs(tables.stretch() - wanted)[inside].max() < 8


def test_histories_are_counted_as_they_come():
    """Whatever came, the history that is reached remembers the last bit and which of both was commoner of late."""
    order, follow = tables.histories()
    assert len(order) <= 256
    assert len(set(order)) == len(order)
    for number, history in enumerate(order):
        for bit in (0, 1):
            then = order[follow[2 * number + bit]]
            before, after = tables.counts(history), tables.counts(then)
            assert then == tables.after(history, bit)
            assert after[bit] >= min(before[bit], tables.COUNTED[-1]), (history, bit)
            assert after[1 - bit] <= before[1 - bit], (history, bit)


def test_weights_and_inputs_fit_into_their_arrays():
    """What the mixers add up stays below 2^63, whatever is read: the compiled path would wrap where Python does not."""
    assert kernel.MOST_WEIGHT * tables.LOGIT_MOST * kernel.INPUTS < 2**63
    assert (0xFFFFFFFF * 0x2C1B3C6D + 0xFFFFFFFF * 0x297A2D39 + 2**17) < 2**63
    assert tables.LOGIT_MOST * 65536 * (kernel.RATE + kernel.MORE_RATE) + kernel.MOST_WEIGHT < 2**63


# Archives


def archived(source, codec=None, per_block=None, inside=False):
    file = io.BytesIO()
    compress(ArchiveModel(codec, inside=inside), source, file, per_block)
    return file.getvalue()


def opened(archive, codec=None):
    return OpenArchive(Archive(archive), lambda about: codec)


@pytest.mark.parametrize("codec", [None, TextCodec(PRIMING)], ids=["zstd", "codec"])
@pytest.mark.parametrize("X", ["", "one text \ud800", [], [""], ["it was", "", "of times \N{SNOWMAN}"] * 5], ids=range(5))
def test_texts_come_back(X, codec):
    assert unpack_text(opened(archived(text_source(X), codec, 7), codec)) == (X, [])


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", TEXTS)
def test_files_come_back(name, inside, tmp_path):
    path, back, codec = tmp_path / "a.txt", tmp_path / "b.txt", TextCodec(PRIMING)
    path.write_bytes(TEXTS[name])
    archive = archived(text_source(path), codec, inside=inside)
    assert unpack_text_to(opened(archive, None if inside else codec), "a.aoz", back) == []
    assert back.read_bytes() == TEXTS[name]


def test_a_long_file_is_kept_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("anyorder.modalities.text.codec.text_archives.PART", 30)
    path, codec = tmp_path / "a.txt", TextCodec(PRIMING)
    path.write_bytes(TEXTS["lines"])
    archive = opened(archived(FileSource(path), codec), codec)
    assert archive.count == -(-len(TEXTS["lines"]) // 30) > 2
    assert unpack_text(archive) == (TEXTS["lines"], [])
    assert PART == 2**24


def test_folders_come_back(tmp_path):
    files = {"a.txt": "text", "b.md": "lines", "deep/er/c.py": "tabs", "deep/d.bin": "random", "empty.txt": "empty"}
    for name, text in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(TEXTS[text])
    codec = TextCodec(PRIMING)
    archive = archived(text_source(tmp_path / "in"), codec, inside=True)
    assert unpack_text_to(opened(archive), "in.aoz", tmp_path / "out") == []
    assert {p.relative_to(tmp_path / "out").as_posix(): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == {
        name: TEXTS[text] for name, text in files.items()
    }
    with pytest.raises(InputError, match="is there already"):
        unpack_text_to(opened(archive), "in.aoz", tmp_path / "out")
    with pytest.raises(InputError, match="decompress it with `anyorder decompress`"):
        unpack_text(opened(archive))


def test_it_is_never_larger_than_zstd_makes_it(tmp_path):
    codec = TextCodec(PRIMING)
    for name, text in TEXTS.items():
        (tmp_path / "a.txt").write_bytes(text)
        source = text_source(tmp_path / "a.txt")
        assert len(archived(source, codec)) <= len(archived(source)) + 160, name  # what is said of the model, and a checksum


def test_damage_is_found_named_and_confined():
    codec, texts = TextCodec(PRIMING), [TEXTS["text"].decode()] * 6
    whole = archived(text_source(texts), codec, per_block=2)
    assert all(content.method == MODELLED for _, content in opened(whole, codec).contents())
    rng = np.random.default_rng(0)
    for _ in range(60 if is_fast() else 6):
        raw = bytearray(whole)
        raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)
        try:
            found, lost = unpack_text(opened(bytes(raw), codec))
        except FormatError:
            continue
        gone = {k for one in lost for k in one.items}
        assert found == [text for k, text in enumerate(texts) if k not in gone]
    for length in range(0, len(whole), 23 if is_fast() else 150):
        try:
            found, lost = unpack_text(opened(whole[:length], codec))
        except FormatError:
            continue
        assert found == texts[: len(found)]
        assert lost or found == texts


def test_another_model_is_refused():
    whole = archived(text_source("it was the worst of times"), TextCodec(PRIMING))
    with pytest.raises(InputError, match="this one has"):
        opened(whole, TextCodec(PRIMING + b"."))


@pytest.mark.parametrize("fast", PATHS, ids=["compiled", "portable"])
def test_a_stream_longer_than_was_expected_is_whole(fast, monkeypatch):
    engine, wanted = Engine(PRIMING, fast), TEXTS["random"]
    whole = engine.encode(wanted)
    monkeypatch.setattr(engine_module, "ROOM", 64 - len(wanted))
    assert engine.encode(wanted) == whole
