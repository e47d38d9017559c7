"""Archives of images: every bit comes back, damage is found, named and confined, forgeries are refused."""

import io
import json
import tracemalloc
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.archives.archive import block_size
from anyorder.archives.blocks import MODELLED, PLAIN, Content, pack_block, squeezed, unsqueezed
from anyorder.archives.folders import checked_name
from anyorder.coding import Archive, ArchiveWriter
from anyorder.errors import AnyOrderError, FormatError, InputError
from anyorder.modalities.images.image_archives import (
    ArraySource,
    FolderSource,
    decompress_array,
    decompress_folder,
)
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
    archive = opened(archived(images, ArchiveModel(some_codec(name), inside=inside)), name)
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
    back, lost = decompress_array(opened(archived(images, ArchiveModel(some_codec("grey")))))
    assert not lost
    assert back.shape == images.shape
    assert back.dtype == images.dtype
    assert back.tobytes() == images.tobytes()


@pytest.mark.parametrize("dtype", [">i4", "<u2", ">u8"])
def test_other_byte_orders_are_known_too(dtype):
    images = some_images("grey", 3).astype(dtype)
    archive = opened(archived(images, ArchiveModel(some_codec("grey"))))
    back, _ = decompress_array(archive)
    assert back.dtype == images.dtype
    assert (back == images).all()


@pytest.mark.parametrize("images", [[[1], [1, 2]], np.zeros(3, dtype=[("a", "<i4"), ("b", "<f4")]), np.array([None]), 3])
def test_what_is_no_array_of_images_is_refused(images):
    with pytest.raises(InputError, match="compress got"):
        ArraySource(images)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint16, np.int8, bool])
def test_levels_may_be_written_in_other_units(dtype):
    images = some_images("black and white", 9).astype(dtype)
    for unit in {1, 255} if dtype in (np.uint8, np.int64, np.uint16) else {1}:
        written = (images * dtype(unit)).astype(dtype)
        archive = opened(archived(written, ArchiveModel(some_codec("black and white"))), "black and white")
        assert all(content.method == MODELLED for _, content in archive.contents())
        assert (decompress_array(archive)[0] == written).all()


def test_some_rows_are_read_without_the_others():
    images = some_images("grey", 20)
    content = archived(images, ArchiveModel(some_codec("grey")))
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
        archive = opened(archived(images, ArchiveModel(codec), 300), "few levels")
        assert all(content.method == PLAIN for _, content in archive.contents())
        assert (decompress_array(archive)[0] == images).all()


def test_no_model_is_needed():
    images = some_images("grey", 5)
    archive = OpenArchive(Archive(archived(images, ArchiveModel())))
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
        compress(ArchiveModel(codec), FolderSource(folder), file, per_block=5)
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
    save(folder / "cut.png", some_images("grey", 1)[0])
    (folder / "cut.png").write_bytes((folder / "cut.png").read_bytes()[:-60])
    images = FolderSource(folder).images()
    assert images.shape == (15, 15, 14)  # cut.png cannot be read


def test_files_are_stored_as_they_are_if_the_model_does_worse(tmp_path):
    for k, image in enumerate(np.random.default_rng(0).integers(0, 2, (30, 8, 8), dtype=np.uint8)):
        save(tmp_path / f"{k}.png", image * 255, "1")
    source = FolderSource(tmp_path)
    content = source.pack(some_codec("black and white"), range(30))
    plain = source.pack(None, range(30))
    assert plain.method == PLAIN
    assert content.method == MODELLED  # noise as PNG is longer still
    for k in range(30):
        save(tmp_path / f"{k}.png", np.zeros((8, 8), np.uint8), "1")
    content = source.pack(some_codec("black and white"), range(30))
    assert content == source.pack(None, range(30))  # black images are nothing to zstd


def test_names_of_every_kind(tmp_path):
    home, back = tmp_path / "home", tmp_path / "back"
    home.mkdir()
    for name in ("10:30.txt", "a\\b.txt", "x" * 245 + ".txt", " "):
        (home / name).write_text(name)
    file = io.BytesIO()
    compress(ArchiveModel(), FolderSource(home), file)
    assert decompress_folder(OpenArchive(Archive(file.getvalue())), back) == []
    assert {path.name: path.read_text() for path in back.iterdir()} == {path.name: path.read_text() for path in home.iterdir()}
    (home / b"\xff.txt".decode(errors="surrogateescape")).write_text("?")
    with pytest.raises(InputError, match="rename"):
        FolderSource(home)


def test_files_that_cannot_be_written_are_told(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / name).write_text(name)
    file = io.BytesIO()
    compress(ArchiveModel(), FolderSource(tmp_path), file)
    (tmp_path / "back" / "b").mkdir(parents=True)
    lost = decompress_folder(OpenArchive(Archive(file.getvalue())), tmp_path / "back")
    assert [one.items for one in lost] == [range(1, 2)]
    assert "'b' cannot be written" in lost[0].told("files")
    assert (tmp_path / "back" / "c").read_text() == "c"


@pytest.mark.parametrize("kind", [PurePosixPath, PureWindowsPath])
@pytest.mark.parametrize("name", ["/etc/passwd", "../up.png", "a/../../b", "", "a\0b", "..", "\ud800"])
def test_names_stay_inside_their_folder(name, kind):
    with pytest.raises(FormatError, match="outside"):
        checked_name(name, kind)


@pytest.mark.parametrize("name", ["c:\\x", "c:x", "..\\x", "\\x", "\\\\host\\share\\x"])
def test_names_stay_inside_their_folder_where_they_have_drives(name):
    with pytest.raises(FormatError, match="outside"):
        checked_name(name, PureWindowsPath)
    assert checked_name(name, PurePosixPath) == name


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        FolderSource(tmp_path / "nothing")


# Damage


@pytest.fixture(scope="module")
def damageable():
    """200 tiny images in five blocks, all coded by the model."""
    images = some_images("one pixel", 200)
    content = archived(images, ArchiveModel(some_codec("one pixel")), 40)
    assert all(block.method == MODELLED for _, block in opened(content, "one pixel").contents())
    return images, content


@pytest.mark.slow
def test_flipped_bits_cost_at_most_their_block(damageable):
    (images, content), rng = damageable, np.random.default_rng(0)
    for place in rng.integers(0, len(content), 500):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        archive = opened(bytes(damaged), "one pixel")
        back, lost = decompress_array(archive)
        assert lost or archive.archive.damage
        assert len(lost) <= 1
        right = [row for row in range(200) if not any(row in one.items for one in lost)]
        assert (back[right] == images[right]).all()
        assert all(one.why for one in lost)


def test_truncation_costs_what_is_cut_off(damageable):
    images, content = damageable
    blocks = Archive(content).places
    for place in np.random.default_rng(0).integers(0, len(content), 100):
        try:
            archive = opened(content[:place], "one pixel")
        except (FormatError, InputError):
            assert place < blocks[1]
            continue
        back, lost = decompress_array(archive)
        assert lost or archive.archive.damage
        whole = [row for row in range(200) if place >= blocks.get(row // 40 + 1, len(content))]
        assert not any(row in one.items for row in whole for one in lost)
        assert (back[whole] == images[whole]).all()


def test_a_lost_model_is_named():
    content = bytearray(archived(some_images("grey", 5), ArchiveModel(some_codec("grey"), inside=True)))
    content[Archive(bytes(content)).places[0] + 100] ^= 1
    _, lost = decompress_array(opened(bytes(content)))
    assert [one.items for one in lost] == [range(4), range(4, 5)]
    assert all("model inside the archive is lost" in one.why for one in lost)


def test_what_needs_no_model_is_saved_without_it():
    noise = np.random.default_rng(0).integers(0, 2**15, (6, 15, 14), dtype=np.int16)
    content = bytearray(archived(noise, ArchiveModel(some_codec("grey"), inside=True)))
    content[Archive(bytes(content)).places[0] + 100] ^= 1
    back, lost = decompress_array(opened(bytes(content)))
    assert lost == []
    assert (back == noise).all()


def test_an_archive_that_ends_before_its_model():
    content = archived(some_images("grey", 5), ArchiveModel(some_codec("grey"), inside=True))
    _, lost = decompress_array(opened(content[: Archive(content).places[0]]))
    assert [one.items for one in lost] == [range(5)]


@pytest.mark.parametrize("name", ENCODERS)
def test_a_machine_that_computes_otherwise_is_found_out(name, monkeypatch):
    """One number of one call of a network is off by the least there is, and what was coded says so."""
    images = some_images(name, 3)
    content = archived(images, ArchiveModel(some_codec(name)))
    network, wrong = type(some_codec(name).stages[0].model.network), 0
    forward = network.forward
    for call in range(3):
        calls = iter(range(10**6))

        def off(self, x, given, context=None, calls=calls, call=call):
            said = forward(self, x, given, context)
            said[0] += (next(calls) == call) / 1024
            return said

        monkeypatch.setattr(network, "forward", off)
        back, lost = decompress_array(opened(content, name))
        assert lost or (back == images).all()
        wrong += bool(lost)
    assert wrong


def test_models_are_read_again_before_they_are_trusted(monkeypatch):
    from anyorder.archives import archive as archives

    monkeypatch.setattr(archives, "from_bytes", lambda content, name: some_codec("few levels"))
    with pytest.raises(AnyOrderError, match="did not come back"):
        archived(some_images("grey", 2), ArchiveModel(some_codec("grey"), inside=True))
    monkeypatch.setattr(archives, "MOST_MODEL", 10)
    with pytest.raises(InputError, match="at most 10 fit"):
        archived(some_images("grey", 2), ArchiveModel(some_codec("grey"), inside=True))


def test_blocks_are_no_larger_than_memory_allows():
    codec = some_codec("grey")
    assert block_size(ArraySource(some_images("grey", 2)), 2**17, codec) == codec.most_rows == 2**23 // (15 * 14)


def test_another_model_is_refused():
    content = archived(some_images("grey", 5), ArchiveModel(some_codec("grey"), name="mine"))
    with pytest.raises(InputError, match="'mine' of fingerprint"):
        opened(content, "few levels")
    with pytest.raises(InputError, match="name it"):
        OpenArchive(Archive(content))


# Forgeries


def forged(change, blocks=None):
    """An archive with a right frame around wrong content."""
    whole = Archive(archived(some_images("grey", 5), ArchiveModel(some_codec("grey"))))
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
        lambda about: about["form"].update(dtype="(1,"),
        lambda about: about.update(count=10**30),
        lambda about: about["form"].update(dtype="|V0"),
        lambda about: about["form"].update(shape=[5, float("inf")]),
        lambda about: about["form"].update(shape=[5, 0, 10**30]),
        lambda about: about["form"].update(shape=[5] + [1] * 80),
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
        pack_block(Content(MODELLED, {}, b"", b"")),
        pack_block(Content(MODELLED, {}, b"abc", b"")),
        pack_block(Content(MODELLED, {"unit": 10**9}, b"abcd", b"")),
        pack_block(Content(MODELLED, {"unit": "x"}, b"abcd", b"")),
        pack_block(Content(MODELLED, {"unit": float("inf")}, b"abcd", b"")),
        pack_block(Content(PLAIN, {}, b"", b"too short")),
        pack_block(Content(PLAIN, {}, b"", bytes(10**7))),
    ],
)
def test_forged_blocks_are_lost_not_wrong(content):
    whole = forged(lambda about: None)
    kept = Archive(whole).block(1).content
    back, lost = decompress_array(opened(forged(lambda about: None, [content, kept])))
    assert (back[4:] == some_images("grey", 5)[4:]).all()
    empty = content == pack_block(Content(MODELLED, {}, b"", b""))  # which is some images, if not those
    assert [one.block for one in lost] == ([] if empty else [0])


def test_a_bomb_is_not_unpacked():
    """A few bytes that claim to be a gigabyte."""
    with pytest.raises(FormatError, match="at most"):
        unsqueezed(squeezed(bytes(2**26)), most=2**20)


@pytest.mark.parametrize("claim", [0, 2, 2**30])
def test_a_claim_takes_no_memory(claim):
    """A zstd frame whose head tells of another size than its only byte has."""
    frame = b"\x28\xb5\x2f\xfd\xc0\x58" + claim.to_bytes(8, "little") + (1 << 3 | 1).to_bytes(3, "little") + b"x"
    tracemalloc.start()
    with pytest.raises(FormatError, match="cannot be unpacked"):
        unsqueezed(frame, most=2**31)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()
