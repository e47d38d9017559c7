"""Archives of images: every bit comes back, damage is found, named and confined, forgeries are refused."""

import io
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from anyorder import FormatError, InputError
from anyorder.codecs import (
    ArraySource,
    FolderSource,
    Keeper,
    OpenArchive,
    compress,
    decompress_array,
    decompress_folder,
)
from anyorder.codecs.blocks import MODELLED, PLAIN, Content, pack, unpack
from anyorder.codecs.images.blocks import checked
from anyorder.coding import Archive, ArchiveWriter
from some_codecs import ENCODERS, some_codec, some_images


def archived(images, keeper, per_block=4):
    file = io.BytesIO()
    assert compress(keeper, ArraySource(images), file, per_block) == len(file.getvalue())
    return file.getvalue()


def opened(content, name="grey"):
    return OpenArchive(Archive(content), lambda about: some_codec(name))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("count", [0, 1, 9])
def test_arrays_come_back(name, count, inside):
    images = some_images(name, count)
    archive = opened(archived(images, Keeper(some_codec(name), inside=inside)), name)
    back, lost = decompress_array(archive)
    assert (back.dtype, back.shape, lost) == (images.dtype, images.shape, [])
    assert (back == images).all()


def anything():
    shapes = hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=15)
    kinds = st.one_of(hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(), hnp.boolean_dtypes())
    return hnp.arrays(kinds, shapes)


@settings(max_examples=150, deadline=None)
@given(anything())
def test_any_array_comes_back(images):
    """NaN with its payload, -0.0, other byte orders, shapes that are no images: whatever the model does not know."""
    back, lost = decompress_array(opened(archived(images, Keeper(some_codec("grey")))))
    assert not lost
    assert back.shape == images.shape
    assert back.dtype == images.dtype.newbyteorder("<")
    assert back.tobytes() == images.astype(back.dtype).tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint16, np.int8, bool])
def test_levels_may_be_written_in_other_units(dtype):
    images = some_images("black and white", 9).astype(dtype)
    for unit in {1, 255} if dtype in (np.uint8, np.int64, np.uint16) else {1}:
        written = (images * dtype(unit)).astype(dtype)
        archive = opened(archived(written, Keeper(some_codec("black and white"))), "black and white")
        assert all(content.method == MODELLED for _, content in archive.contents())
        assert (decompress_array(archive)[0] == written).all()


def test_some_rows_are_read_without_the_others():
    images = some_images("grey", 20)
    content = archived(images, Keeper(some_codec("grey")))
    archive = opened(content)
    read = []
    archive.archive.block = lambda number, block=archive.archive.block: read.append(number) or block(number)
    for rows in (range(20), range(5, 6), range(3, 9), range(19, 20), range(0)):
        read.clear()
        found, lost = decompress_array(archive, rows)
        assert not lost
        assert (found == images[rows.start : rows.stop]).all()
        assert len(read) == len({row // 4 for row in rows})


def test_what_the_model_does_not_know_is_stored_all_the_same():
    """Another size, other values, and noise that zstd writes shorter."""
    codec = some_codec("few levels")
    for images in (np.zeros((3, 5, 5), np.uint8), np.full((3, 8, 9), 200, np.uint8), np.zeros((300, 8, 9), np.uint8)):
        archive = opened(archived(images, Keeper(codec), 300), "few levels")
        assert all(content.method == PLAIN for _, content in archive.contents())
        assert (decompress_array(archive)[0] == images).all()


def test_no_model_is_needed():
    images = some_images("grey", 5)
    archive = OpenArchive(Archive(archived(images, Keeper())))
    assert (decompress_array(archive)[0] == images).all()


# Folders


def save(path, pixels, mode=None, **how):
    path.parent.mkdir(exist_ok=True, parents=True)
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path, **how)


@pytest.fixture
def folder(tmp_path):
    """All that may lie in a folder of images."""
    home, images = tmp_path / "images", some_images("grey", 12)
    for k, image in enumerate(images):
        save(home / f"{k:03d}.png", image)
    save(home / "bitmap.bmp", images[0])
    save(home / "deeper" / "ü 1.PNG", images[1], format="PNG")
    save(home / "black.png", images[2], "1")
    save(home / "palette.png", images[2], "P")
    save(home / "clear.png", images[2], "RGBA")
    save(home / "colours.png", images[3], "RGB")
    save(home / "small.png", images[4][:5])
    save(home / "lossy.jpg", images[5])
    save(home / "dpi.png", images[6], dpi=(72, 72))
    (home / "wrong.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (home / "empty.png").write_bytes(b"")
    (home / "notes.txt").write_text("not an image")
    return home


@pytest.mark.parametrize("name", ["grey", "black and white", "colours", None])
def test_folders_come_back(folder, tmp_path, name):
    codec = None if name is None else some_codec(name)
    with open(tmp_path / "a.aoz", "wb") as file:
        compress(Keeper(codec), FolderSource(folder), file, per_block=5)
    back = tmp_path / "back"
    assert decompress_folder(OpenArchive(Archive(tmp_path / "a.aoz"), lambda about: codec), back) == []
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert sorted(path.relative_to(back) for path in back.rglob("*") if path.is_file()) == names
    for path in names:
        if (folder / path).read_bytes() == (back / path).read_bytes():
            continue
        with Image.open(folder / path) as one, Image.open(back / path) as other:
            assert (one.mode, one.size, one.format) == (other.mode, other.size, other.format)
            assert np.array_equal(np.asarray(one), np.asarray(other))


def test_images_of_the_models_kind_are_coded_by_it(folder):
    source = FolderSource(folder)
    content = source.pack(some_codec("grey"), range(source.count))
    assert content.method == MODELLED
    assert len(content.notes["whole"]) == 9  # 26 files, and 15 of them grey images of the right size without secrets
    images = source.images()
    assert images.shape[1:] == (15, 14)


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.png", "a/../../b", "", "c:\\x", "a\\b", "a\0b", ".."])
def test_names_stay_inside_their_folder(name):
    with pytest.raises(FormatError, match="outside"):
        checked(name)


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        FolderSource(tmp_path / "nothing")


# Damage


def test_flipped_bits_cost_at_most_their_block():
    images = some_images("grey", 20)
    content, rng = archived(images, Keeper(some_codec("grey"))), np.random.default_rng(0)
    for place in rng.integers(0, len(content), 500):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        archive = opened(bytes(damaged))
        back, lost = decompress_array(archive)
        assert lost or archive.archive.damage
        assert len(lost) <= 1
        right = [row for row in range(20) if not any(row in one.items for one in lost)]
        assert (back[right] == images[right]).all()
        assert all(one.why for one in lost)


def test_truncation_costs_what_is_cut_off():
    images = some_images("grey", 20)
    content = archived(images, Keeper(some_codec("grey")))
    blocks = Archive(content).places
    for place in np.random.default_rng(0).integers(0, len(content), 100):
        try:
            archive = opened(content[:place])
        except (FormatError, InputError):
            assert place < blocks[1]
            continue
        back, lost = decompress_array(archive)
        assert lost or archive.archive.damage
        whole = [row for row in range(20) if place >= blocks.get(row // 4 + 1, len(content))]
        assert not any(row in one.items for row in whole for one in lost)
        assert (back[whole] == images[whole]).all()


def test_a_lost_model_is_named():
    content = bytearray(archived(some_images("grey", 5), Keeper(some_codec("grey"), inside=True)))
    content[Archive(bytes(content)).places[0] + 100] ^= 1
    with pytest.raises(FormatError, match="model inside the archive is lost"):
        opened(bytes(content))


def test_another_model_is_refused():
    content = archived(some_images("grey", 5), Keeper(some_codec("grey"), name="mine"))
    with pytest.raises(InputError, match="'mine' of fingerprint"):
        opened(content, "few levels")
    with pytest.raises(InputError, match="name it"):
        OpenArchive(Archive(content))


# Forgeries


def forged(change, blocks=None):
    """An archive with a right frame around wrong content."""
    whole = Archive(archived(some_images("grey", 5), Keeper(some_codec("grey"))))
    about = json.loads(json.dumps(whole.about))
    change(about)
    file = io.BytesIO()
    with ArchiveWriter(file, about) as archive:
        for content in blocks or [block.content for block in whole.blocks()]:
            archive.add(content)
    return file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(count=10**12),
        lambda about: about.update(count=-1),
        lambda about: about.update(count=10**12, per_block=10**12),
        lambda about: about.update(per_block=0),
        lambda about: about.update(what="tables"),
        lambda about: about.update(form={}),
        lambda about: about.update(form=[1]),
        lambda about: about["form"].update(shape=[5, 10**6, 10**6]),
        lambda about: about["form"].update(shape=[6, 15, 14]),
        lambda about: about["form"].update(shape="ab"),
        lambda about: about["form"].update(dtype="O"),
        lambda about: about["form"].update(dtype="nonsense"),
        lambda about: about["form"].update(dtype="<f8"),
        lambda about: about.pop("model"),
        lambda about: about.update(model={"inside": True}),
        lambda about: about.update(model=3),
    ],
)
def test_forged_descriptions_are_refused(change):
    """Quickly, and without taking memory for what they claim."""
    content = forged(change)
    tracemalloc.start()
    try:
        back, lost = decompress_array(opened(content))
        assert lost or back.dtype != np.uint8
    except (FormatError, InputError):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\1" * 12,
        b"\1" * 13,
        pack(Content(MODELLED, {}, b"", b"")),
        pack(Content(MODELLED, {}, b"abc", b"")),
        pack(Content(MODELLED, {"unit": 10**9}, b"abcd", b"")),
        pack(Content(MODELLED, {"unit": "x"}, b"abcd", b"")),
        pack(Content(PLAIN, {}, b"", b"too short")),
        pack(Content(PLAIN, {}, b"", bytes(10**7))),
    ],
)
def test_forged_blocks_are_lost_not_wrong(content):
    whole = forged(lambda about: None)
    kept = Archive(whole).block(1).content
    back, lost = decompress_array(opened(forged(lambda about: None, [content, kept])))
    assert (back[4:] == some_images("grey", 5)[4:]).all()
    assert [one.block for one in lost] in ([0], [])  # an empty stream is some images, if not those


def test_a_bomb_is_not_unpacked():
    """A few bytes that claim to be a gigabyte."""
    bomb = pack(Content(PLAIN, {}, b"", bytes(2**26)))
    with pytest.raises(FormatError, match="at most"):
        unpack(bomb, most=2**20)


def test_models_in_archives_are_not_named_by_path():
    about = json.loads(json.dumps(Archive(archived(some_images("grey", 1), Keeper(some_codec("grey")))).about))
    assert about["model"]["name"] == ""
