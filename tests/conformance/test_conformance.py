"""A decoder that knows docs/format.md and nothing of the package gives back what the package gives back."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from anyorder.archives import OpenArchive
from anyorder.coding import Archive
from anyorder.estimator import AnyOrder
from anyorder.io.shipped import names, shipped_file
from anyorder.modalities.images.image_archives import decompress_array, decompress_folder
from anyorder.modalities.tables.codec.arrow import arrow_texts
from anyorder.modalities.tables.codec.frame_texts import frame_texts
from anyorder.modalities.tables.codec.table_archives import decompress_table
from conformance import decoder

HERE = Path(__file__).parent
KEPT = sorted((HERE.parent / "archives" / "kept").glob("*.aoz"))


def codec_of(name):
    """The codec that comes with the package under this name, as bytes; the others are inside their archives."""
    return decoder.attached_codec(shipped_file(name).read_bytes()) if name in names() else None


def ours(path):
    return OpenArchive(Archive(path), lambda about: AnyOrder.load(about["name"]).known_codec_)


def test_the_codec_of_text_is_not_in_the_second_decoder():
    """Its model, a thousand lines of context mixing, is specified by its own source alone so far."""
    with pytest.raises(ValueError, match="a codec of text"):
        decoder.decode((HERE.parent / "archives" / "kept" / "text.aoz").read_bytes(), codec_of("text"))


@pytest.mark.parametrize("path", [path for path in KEPT if path.stem != "text"], ids=lambda path: path.stem)
def test_both_decoders_agree(path, tmp_path):
    about, content = decoder.decode(path.read_bytes(), codec_of(path.stem))
    archive, kind = ours(path), about["form"]["kind"]
    if kind == "array":
        wanted, lost = decompress_array(archive)
        assert (content.dtype, content.shape, content.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    elif kind == "folder":
        lost = decompress_folder(archive, tmp_path)
        assert {name: seen(file) for name, file in content.items()} == {p.name: seen(p) for p in tmp_path.iterdir()}
    else:
        wanted, lost = decompress_table(archive)
        assert content == (wanted if isinstance(wanted, bytes) else cells(wanted, kind))
    assert not lost


def cells(table, kind):
    about, columns = frame_texts(table) if kind == "frame" else arrow_texts(table)
    assert about["kind"] == kind
    return [list(column) for column in columns]


def seen(file):
    """A file as its bytes, an image as its mode and its pixels."""
    if isinstance(file, tuple):
        return file[0], file[1].tobytes()
    if not isinstance(file, Path) or file.suffix != ".png":
        return file if isinstance(file, bytes) else file.read_bytes()
    with Image.open(file) as image:
        return image.mode, np.asarray(image.convert("L") if image.mode == "1" else image).tobytes()


def test_it_stands_on_numpy_and_zstandard_alone():
    tree = ast.parse((HERE / "decoder.py").read_text())
    found = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert found - set(sys.stdlib_module_names) == {"numpy", "zstandard"}


@pytest.mark.parametrize("name", ["checked-csv", "checked-around", "checked-folder"])
def test_a_number_of_the_model_that_is_off_by_one_is_noticed(name, monkeypatch):
    """So that the agreement above is no accident: every one of these archives tells a decoder that computes otherwise."""
    (path,) = [path for path in KEPT if path.stem == name]
    said = decoder.said
    monkeypatch.setattr(decoder, "said", lambda sums: said(sums) + (np.arange(sums.shape[-1]) == 0))
    with pytest.raises(ValueError, match=r"another number|other answers|does not give|no encoder writes|other lengths"):
        decoder.decode(path.read_bytes())
