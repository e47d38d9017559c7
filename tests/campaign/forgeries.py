"""Forged files: the frame is right, checksums and all, and what is in it is not. Nothing but our own errors may come of them.

Every forger takes a `Random`: hypothesis's own, which shrinks, or a seeded one.
"""

import io
import json
import struct
import tempfile
import warnings
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import zstandard
from PIL import Image
from safetensors.torch import load, save

from anyorder import AnyOrder
from anyorder.archives import OpenArchive, from_bytes
from anyorder.cli.question import parse_question, write_question
from anyorder.coding import Archive, ArchiveWriter
from anyorder.coding.container import MAGIC, part
from anyorder.errors import AnyOrderError
from anyorder.io.shipped import names, shipped_file
from anyorder.modalities.images.image_archives import decompress_array, decompress_folder
from anyorder.modalities.images.modality import read_array
from anyorder.modalities.images.pixels import read_image
from anyorder.modalities.tables.codec.table_archives import csv_bytes, csv_source, decompress_table
from anyorder.modalities.tables.table_files import in_bytes, read_table
from conformance import decoder

KEPT = Path(__file__).parents[1] / "archives" / "kept"
NASTY = (None, True, -1, 0, 1, 2**31, 2**63, 10**30, -(10**30), 1e308, float("nan"), float("inf"), "", "x", "\0", "../x", [], {})
SMALL = (
    "arrow",
    "bytes",
    "checked-around",
    "checked-csv",
    "checked-folder",
    "colours",
    "frame",
    "frame-pandas-2",
    "grey",
    "plain",
)


@cache
def parts_of_kept(name):
    return tuple(decoder.parts_of((KEPT / f"{name}.aoz").read_bytes()))


@cache
def known(name):
    return AnyOrder.load(name).known_codec_


def bent_bytes(rng, raw):
    """Some of them changed, cut, repeated, or of another length."""
    raw = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at, count = rng.randint(0, len(raw)), rng.choice([1, 2, 4, 8, 60])
        how = rng.choice(["bit", "number", "cut", "again", "noise"])
        if how == "bit" and at < len(raw):
            raw[at] ^= 1 << rng.randint(0, 7)
        elif how == "number":
            raw[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 2**16, 2**31, 2**32 - 1]))
        elif how == "cut":
            del raw[at : at + count]
        elif how == "again":
            raw[at:at] = raw[at : at + count]
        else:
            raw[at : at + count] = bytes(rng.randint(0, 255) for _ in range(count))
    return bytes(raw)


def bent_json(rng, document):
    """One place of it replaced by what does not belong there, or left out, or there twice."""
    places = list(places_in(document))
    if not places:
        return rng.choice(NASTY)
    holder, key = rng.choice(places)
    how = rng.choice(["nasty", "near", "gone", "again"])
    if how == "gone":
        del holder[key]
    elif how == "near" and type(holder[key]) in (int, float):
        holder[key] += rng.choice([-1, 1])
    elif how == "again" and isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[key] = rng.choice(NASTY)
    return document


def places_in(item):
    for key in list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ():
        yield item, key
        yield from places_in(item[key])


def bent_block(rng, raw):
    """Its head, notes, stream or rest; notes and rest are unpacked and packed again."""
    try:
        block = decoder.Block(raw)
    except (ValueError, struct.error, zstandard.ZstdError):
        return bent_bytes(rng, raw)
    notes, stream, rest = json.dumps(block.notes).encode(), block.stream, block.rest
    how = rng.choice(["notes", "stream", "rest", "head"])
    if how == "notes":
        notes = json.dumps(bent_json(rng, block.notes)).encode()
    elif how == "stream":
        stream = bent_bytes(rng, stream)
    elif how == "rest":
        rest = bent_bytes(rng, rest)
    squeeze = zstandard.ZstdCompressor(level=1).compress
    notes, rest = squeeze(notes), squeeze(rest) if rest else b""
    method = rng.randint(0, 3) if how == "head" else block.method
    head = struct.pack("<BIII", method, len(notes), len(stream), len(rest))
    check = struct.pack("<I", block.check if block.check is not None else zlib.crc32(rest)) if method == 2 else b""
    return head + check + notes + stream + rest


def bent_codec(rng, raw):
    """What is said of it, or its whole numbers."""
    about, tensors = decoder.safetensors(raw)[0], load(raw)
    if rng.random() < 0.7:
        about = bent_json(rng, about)
    else:
        tensors = bent_tensors(rng, tensors)
    return save(tensors, {"anyorder": json.dumps(about)})


def bent_tensors(rng, tensors):
    name = rng.choice(sorted(tensors))
    how = rng.choice(["value", "shape", "gone", "type"])
    found = tensors.pop(name)
    if how == "value" and found.numel():
        found = found.clone()
        found.view(-1)[rng.randint(0, found.numel() - 1)] = rng.choice([127, -127, 0, 1])
    elif how == "shape" and found.dim():
        found = found[: rng.randint(0, len(found))].contiguous()
    elif how == "type":
        found = found.float()
    return tensors if how == "gone" else tensors | {name: found}


def forged_archive(rng):
    """(its name, the bytes): one that was kept, with something in it changed and every checksum right again."""
    name = rng.choice(SMALL)
    parts = list(parts_of_kept(name))
    about = json.loads(parts[0][2])
    how = rng.choice(["about", "block", "block", "block", "model", "order"])
    inside = bool(about["model"] and about["model"]["inside"])
    if how == "about":
        said = json.dumps(bent_json(rng, about)).encode()
        parts[0], parts[-1] = (1, 0, said), (1, 1, said)
    elif how == "order":
        at = rng.randint(0, len(parts) - 1)
        kind, number, content = parts[at]
        parts[at] = rng.choice([(rng.randint(0, 4), number, content), (kind, rng.choice([0, 1, 2**32 - 1]), content)])
        parts = rng.choice([parts, parts[:at] + parts[at + 1 :], [*parts, parts[at]], parts[::-1]])
    else:
        at = 1 if how == "model" or not inside else rng.randint(2, len(parts) - 3)
        _, number, content = parts[at]
        if inside and at == 1:
            bent = zstandard.ZstdCompressor(level=1).compress(bent_codec(rng, decoder.unzipped(content)))
        else:
            bent = bent_block(rng, content)
        parts[at] = (2, number, bent)
    return name, framed(parts, rng)


def framed(parts, rng):
    raw, places = MAGIC, []
    for kind, number, content in parts:
        if kind == 3 and rng.random() < 0.9:
            content = struct.pack(f"<{len(places)}Q", *places)
        if kind == 2:
            places.append(len(raw))
        raw += part(kind, number % 2**32, content, len(raw))
    return raw


def attack_archive(rng):
    """Opened and unpacked, it gives something or one of our errors; True if it was refused or something was lost."""
    _, raw = forged_archive(rng)
    return unpacked(raw)


def unpacked(raw):
    """True if one of our errors came of it, or if something was lost."""
    try:
        archive = OpenArchive(Archive(raw), lambda about: known(about["name"]) if about.get("name") in names() else refuse())
        if archive.what == "table":
            return bool(decompress_table(archive)[1])
        if archive.form["kind"] == "array":
            return bool(decompress_array(archive)[1])
        with tempfile.TemporaryDirectory() as folder:
            lost = decompress_folder(archive, Path(folder) / "inside")
            assert {path.name for path in Path(folder).iterdir()} == {"inside"}, "a file outside of its folder"
            return bool(lost)
    except AnyOrderError:
        return True


def refuse():
    raise AnyOrderError("no such model")


def attack_codec(rng):
    """A codec of which something was changed is refused, or is a codec."""
    name = rng.choice(["checked-csv", "checked-around", "grey"])
    try:
        from_bytes(bent_codec(rng, decoder.unzipped(parts_of_kept(name)[1][2])))
    except AnyOrderError:
        return True
    return False


@cache
def model_bytes(place):
    raw = Path(place).read_bytes()
    return json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]["anyorder"], load(raw)


def attack_model(rng, place=shipped_file("digits"), questions=lambda model: None):
    """The file of a model, bent: refused with a FormatError, or it answers questions."""
    about, tensors = model_bytes(str(place))
    about, tensors = json.loads(about), dict(tensors)
    if rng.random() < 0.7:
        about = bent_json(rng, about)
    else:
        tensors = bent_tensors(rng, tensors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.ao"
        path.write_bytes(save(tensors, {"anyorder": json.dumps(about)}))
        try:
            questions(AnyOrder.load(path))
        except AnyOrderError:
            return True
    return False


WORDS = [
    "age",
    "income",
    "city",
    "a b",
    "=",
    "..",
    "|",
    ",",
    "(",
    ")",
    "in",
    "'",
    '"',
    '""',
    "<",
    ">",
    "!=",
    "≥",
    " ",
    "3",
    "é",
    "\n",
]


def attack_question(rng):
    """A text is understood or refused; what was understood is written and understood alike."""
    text = "".join(rng.choice(WORDS) + rng.choice(["", " "]) for _ in range(rng.randint(0, 14)))
    try:
        asked = parse_question(text)
    except AnyOrderError:
        return True
    again = write_question(asked)
    assert parse_question(again) == asked, (text, again)
    return False


CELLS = [
    "",
    "1",
    "-1",
    "0.10",
    "1e5",
    "007",
    "NA",
    "nan",
    "inf",
    "1,5",
    "2020-01-01",
    "2020-13-01",
    "a",
    '"',
    "'",
    " ",
    "\r",
    "\0",
]
MARKS = [",", ";", "\t", "|", "\n", "\r\n", '"', "\ufeff"]


def attack_csv(rng):
    """Text that looks like a table, or nearly: read or refused; and its bytes come back from an archive's cells."""
    width = rng.randint(1, 4)
    lines = [rng.choice(MARKS[:4]).join(rng.choice(CELLS) for _ in range(width)) for _ in range(rng.randint(0, 6))]
    text = ",".join("abcd"[:width]) + "\n" + rng.choice(["\n", "\r\n"]).join(lines)
    for _ in range(rng.randint(0, 3)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(MARKS + CELLS) + text[at:]
    content = text.encode(rng.choice(["utf-8", "utf-16", "latin-1"]), "replace")
    source = csv_source(content)
    if source.form["kind"] == "csv":
        assert csv_bytes(source.form, source.texts) == content
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / rng.choice(["t.csv", "t.tsv"])
        path.write_bytes(content)
        try:
            assert len(read_table(path))
        except AnyOrderError:
            return True
    return False


@cache
def whole_files():
    """Small files of every kind that is read, as other programs write them."""
    table = pd.DataFrame({"a": [1, 2, None], "b": ["x", "é", None], "day": pd.to_datetime(["2020-01-01"] * 3)})
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    images = {"png": Image.fromarray(pixels), "bmp": Image.fromarray(pixels), "gif": Image.fromarray(pixels)}
    found = {f"i.{kind}": saved(lambda out, kind=kind: images[kind].save(out, kind)) for kind in images}
    found["i.npy"] = saved(lambda out: np.save(out, pixels))
    return found | {f"t.{kind}": in_bytes(table, Path(f"t.{kind}")) for kind in ("parquet", "xlsx", "jsonl")}


def saved(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def attack_file(rng):
    """A file of another program's format, bent: read or refused."""
    name = rng.choice(sorted(whole_files()))
    readers = {"t": read_table, "i": read_array if name.endswith("npy") else read_image}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        path.write_bytes(bent_bytes(rng, whole_files()[name]))
        try:
            readers[name[0]](path)
        except AnyOrderError:
            return True
    return False


FORGERS = {
    "other files": attack_file,
    "archives": attack_archive,
    "codecs": attack_codec,
    "model files": attack_model,
    "questions": attack_question,
    "csv files": attack_csv,
}


# Claims: small files that speak of giants


def claims():
    """(name, bytes) of archives of a few hundred bytes that claim gigabytes."""
    table = {
        "kind": "csv",
        "header": ["a"] * 100,
        "delimiter": ",",
        "newline": "\n",
        "quoting": 0,
        "encoding": "utf-8",
        "end": True,
    }
    array = {"kind": "array", "shape": [1, 2**15, 2**15], "dtype": "|u1"}
    frame = b"\x28\xb5\x2f\xfd\xc0\x58" + (2**31 - 1).to_bytes(8, "little") + b"\x09\x00\x00x"
    block = struct.pack("<BIII", 0, 0, 0, len(frame)) + frame
    notes = struct.pack("<BIII", 0, len(frame), 0, 0) + frame
    for what, form in (("table", table), ("images", array), ("images", {"kind": "folder"}), ("table", {"kind": "bytes"})):
        for content in (block, notes):
            for count in (1, 2**17):
                about = {"what": what, "form": form, "count": count, "per_block": count, "model": None}
                yield f"{form['kind']} {count}", whole_archive(about, [content])
    giant = {"what": "table", "form": table, "count": 2**48, "per_block": 2**17, "model": None}
    yield "count", whole_archive(giant, [block])
    inside = {
        "what": "table",
        "form": table,
        "count": 1,
        "per_block": 1,
        "model": {"inside": True, "name": "", "fingerprint": ""},
    }
    yield "model", whole_archive(inside, [frame, block])


def whole_archive(about, blocks):
    file = io.BytesIO()
    with ArchiveWriter(file, about) as archive:
        for block in blocks:
            archive.add(block)
    return file.getvalue()
