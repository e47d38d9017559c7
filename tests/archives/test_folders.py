"""Files of images that say more than pixels, names that are in the way, folders that cannot be kept: nothing is lost unsaid."""

import io
import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.archives.blocks import PLAIN, Content, pack_block
from anyorder.coding import Archive, ArchiveWriter
from anyorder.errors import InputError
from anyorder.modalities.images.image_archives import PIXEL_FORMATS, FolderSource, decompress_folder
from some_codecs import some_codec, some_images


def written(image, kind="PNG", **how):
    out = io.BytesIO()
    image.save(out, format=kind, **how)
    return out.getvalue()


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def with_chunk(png, kind, content, before_pixels=True):
    at = png.index(b"IDAT") - 4 if before_pixels else len(png) - 12
    return png[:at] + chunk(kind, content) + png[at:]


def deep_png(height=14, width=14):
    """16 bits a colour, which Pillow cuts to 8."""
    rows = np.random.default_rng(0).integers(0, 2**16, (height, width, 3)).astype(">u2")
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def text_after_pixels(png):
    return with_chunk(png, b"tEXt", b"Comment\0kept", before_pixels=False)


ODD = {
    "16 bits.png": lambda image: deep_png(),
    "text behind.png": lambda image: text_after_pixels(written(image)),
    "private.png": lambda image: with_chunk(written(image), b"prVt", b"mine"),
    "time.png": lambda image: with_chunk(written(image), b"tIME", bytes(7)),
    "more behind.png": lambda image: written(image) + b"behind",
    "text.png": lambda image: written(image, pnginfo=info()),
    "cut.png": lambda image: written(image)[:-4],
    "four bytes.bmp": lambda image: written(image.convert("RGBA"), "BMP"),
    "more behind.bmp": lambda image: written(image, "BMP") + b"behind",
    "short.bmp": lambda image: written(image, "BMP")[:30],
}


def info():
    text = PngImagePlugin.PngInfo()
    text.add_text("who", "me")
    return text


def archive_of(folder, codec=None):
    file = io.BytesIO()
    compress(ArchiveModel(codec), FolderSource(folder), file)
    return file.getvalue()


@pytest.fixture(scope="module")
def images():
    return [Image.fromarray(pixels) for pixels in some_images("colours", 4)]


@pytest.mark.parametrize("name", ODD)
def test_files_that_hold_more_than_pixels_come_back_byte_for_byte(name, images, tmp_path):
    content = ODD[name](images[0])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(content)
    for k, image in enumerate(images):
        image.save(tmp_path / "in" / f"{k}.png")
    archive = archive_of(tmp_path / "in", some_codec("colours"))
    assert decompress_folder(OpenArchive(Archive(archive), lambda about: some_codec("colours")), tmp_path / "out") == []
    assert (tmp_path / "out" / name).read_bytes() == content


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
@pytest.mark.parametrize("kind", PIXEL_FORMATS.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [(5, 3), (8, 8), (33, 2)])
def test_plain_images_are_plain(kind, mode, size):
    image = Image.new(mode, size, 1)
    assert kind.only_pixels(written(image, kind.name))
    assert kind.only_pixels(written(image, kind.name, dpi=(300, 300)))


# Names


def forged_folder(names, folder):
    content = Content(PLAIN, {"names": names, "whole": {str(k): 1 for k in range(len(names))}}, b"", b"x" * len(names))
    with io.BytesIO() as file:
        about = {"what": "images", "form": {"kind": "folder"}, "count": 2, "per_block": 2, "model": None}
        with ArchiveWriter(file, about) as archive:
            archive.add(pack_block(content))
        return decompress_folder(OpenArchive(Archive(file.getvalue())), folder)


def test_no_file_takes_the_place_of_another(tmp_path):
    lost = forged_folder(["a.txt", "a.txt"], tmp_path)
    assert [one.items for one in lost] == [range(1, 2)]
    assert "'a.txt' cannot be written (it is there already)" in lost[0].why


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_blocks_with_other_names_are_lost(names, tmp_path):
    assert [one.items for one in forged_folder(names, tmp_path)] == [range(2)]


# Folders


def test_links_are_named(tmp_path):
    folder = tmp_path / "in"
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "a").write_text("a")
    os.symlink(folder / "deeper" / "a", folder / "to a file")
    assert FolderSource(folder).names == ["deeper/a", "to a file"]
    os.symlink(folder / "deeper", folder / "to a folder")
    with pytest.raises(InputError, match="link to a folder"):
        FolderSource(folder)
    (folder / "to a folder").unlink()
    os.symlink(folder / "nowhere", folder / "to nothing")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        FolderSource(folder)


def test_pipes_and_closed_folders_are_named(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        FolderSource(tmp_path)
    (tmp_path / "pipe").unlink()

    def refuse(place):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        FolderSource(tmp_path)
