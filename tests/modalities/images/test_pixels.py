"""Images in and out: arrays of every usual form, files, folders, masks, and what is refused."""

import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from anyorder.errors import FormatError, InputError
from anyorder.modalities.images.pixels import (
    ImageEncoder,
    image_grid,
    looks_like_images,
    read_folder,
    read_image,
    write_film,
    write_image,
)

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (5, 4, 3), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (5, 4, 3, 3), dtype=np.uint8)
BINARY = RNG.integers(0, 2, (5, 4, 3), dtype=np.uint8)
ALL = {
    "grey": GREY,
    "colour": COLOUR,
    "with a channel": GREY[..., None],
    "binary": BINARY,
    "bool": BINARY.astype(bool),
    "black and white": BINARY * np.uint8(255),
    "whole numbers": RNG.integers(0, 17, (5, 4, 3)),
    "floats": RNG.integers(0, 17, (5, 4, 3)).astype(np.float64),
    "one image": GREY[:1],
}
SEPARATE = ImageEncoder(4, 3, 3, 256)  # red, green and blue as three variables


@pytest.mark.parametrize("images", ALL.values(), ids=ALL)
def test_what_is_encoded_comes_back(images):
    encoder = ImageEncoder.learn(images)
    x = encoder.encode(images)
    assert x.shape == (len(images), len(encoder))
    encoder.schema.check(x, torch.ones_like(x, dtype=torch.bool))
    back = encoder.decode(x, images)
    assert back.dtype == images.dtype
    np.testing.assert_array_equal(back, images)
    assert ImageEncoder.from_json(encoder.to_json()) == encoder
    assert looks_like_images(images)


@pytest.mark.parametrize(
    ("name", "levels", "unit"),
    [("grey", 256, 1), ("colour", 256, 1), ("binary", 2, 1), ("bool", 2, 1), ("black and white", 2, 255), ("floats", 17, 1)],
)
def test_levels(name, levels, unit):
    encoder = ImageEncoder.learn(ALL[name])
    assert (encoder.levels, encoder.unit) == (levels, unit)


def test_variables_are_in_reading_order_channels_last():
    x = SEPARATE.encode(COLOUR)
    assert x[2, (1 * 3 + 2) * 3 + 1] == COLOUR[2, 1, 2, 1]


def test_a_colour_is_one_code():
    x = ImageEncoder.learn(COLOUR).encode(COLOUR)
    red, green, blue = (int(v) for v in COLOUR[2, 1, 2])
    assert x.shape == (5, 12)
    assert x[2, 1 * 3 + 2] == (red * 256 + green) * 256 + blue
    assert torch.equal(ImageEncoder(1, 1, 3, 256, colours=True).encode(np.full((1, 1, 1, 3), 255)), torch.tensor([[2.0**24 - 1]]))


def test_digits_are_the_most_significant_first():
    x = ImageEncoder(1, 2, 1, 256, base=4).encode(np.array([[[0b00_01_10_11, 255]]], dtype=np.uint8))
    assert x.tolist() == [[0, 1, 2, 3, 3, 3, 3, 3]]
    assert ImageEncoder(1, 2, 1, 256, base=4).stages == (0, 1, 2, 3, 0, 1, 2, 3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("levels", "base"), [(256, 2), (256, 4), (256, 16), (256, 3), (256, 255), (17, 4), (3, 2)])
def test_digits_of_any_base_write_every_value(channels, levels, base):
    encoder = ImageEncoder(2, levels, channels, levels, base=base)
    images = np.broadcast_to(np.arange(levels, dtype=np.uint8)[:, None], (1, 2, levels, channels))
    x = encoder.encode(images)
    assert x.shape == (1, len(encoder))
    assert int(x.max()) < base
    encoder.schema.check(x, torch.ones_like(x, dtype=torch.bool))
    np.testing.assert_array_equal(encoder.decode(x, images), images)


@pytest.mark.parametrize("wrong", [{"base": 1}, {"base": 256}, {"base": 2, "colours": True, "channels": 3}, {"colours": True}])
def test_digits_and_colours_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError, match=r"base|colours"):
        ImageEncoder(**{"height": 2, "width": 2, "channels": 1, "levels": 256} | wrong)


def test_a_mask_hides_all_of_a_colour_or_nothing():
    encoder, mask = ImageEncoder.learn(COLOUR), np.zeros((5, 4, 3, 3))
    mask[1, 2, 0] = 1
    assert encoder.mask_of(mask, 5).nonzero().tolist() == [[1, 2 * 3]]
    mask[1, 2, 0, 1] = 0
    with pytest.raises(InputError, match="whole colours"):
        encoder.mask_of(mask, 5)


def test_masks_are_for_pixels_one_for_all_or_one_each():
    encoder = SEPARATE
    one = np.zeros((4, 3), dtype=np.uint8)
    one[1, 2] = 9
    wanted = np.zeros((5, 4, 3, 3), dtype=bool)
    wanted[:, 1, 2] = True
    for mask in (one, one.astype(bool), np.repeat(one[None], 5, axis=0), np.repeat(one[..., None], 3, axis=-1)):
        np.testing.assert_array_equal(encoder.mask_of(mask, 5).numpy().reshape(5, 4, 3, 3), wanted)
    for wrong in (np.zeros((3, 4)), np.zeros((2, 4, 3))):
        with pytest.raises(InputError, match=r"expected \(4, 3\), or \(5, 4, 3\)"):
            encoder.mask_of(wrong, 5)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((4, 4)), "A single image is images"),
        (np.zeros((2, 4, 4, 2)), "1 or 3 channels"),
        (np.full((2, 4, 4), 0.5), "For numbers from 0 to 1"),
        (np.full((2, 4, 4), 300), "values from 300 to 300"),
        (np.full((2, 4, 4), -1), "values from -1"),
        (np.full((2, 4, 4), np.nan), "whole numbers 0 to 255"),
        (np.full((2, 4, 4), "a"), "best uint8"),
        (np.zeros((0, 4, 4)), "nothing to learn from"),
        (np.zeros((1, 400, 400), dtype=np.uint8), "cannot be modelled"),
    ],
)
def test_what_is_no_array_of_images_is_refused(images, message):
    with pytest.raises(InputError, match=message):
        ImageEncoder.learn(images)


def test_other_shapes_and_levels_are_refused():
    encoder = ImageEncoder.learn(BINARY)
    with pytest.raises(InputError, match=r"this model knows \(4, 3, 1\)"):
        encoder.encode(BINARY[:, :3])
    with pytest.raises(InputError, match="this model knows 0 and 1"):
        encoder.encode(GREY)
    with pytest.raises(FormatError, match="cannot be read"):
        ImageEncoder.from_json({"height": 3})


def test_files_and_folders(tmp_path):
    for k, image in enumerate(COLOUR):
        write_image(tmp_path / f"{k}.png", image)
    images, names = read_folder(tmp_path)
    np.testing.assert_array_equal(images, COLOUR)
    assert names == [f"{k}.png" for k in range(5)]
    Image.fromarray(BINARY[0] * np.uint8(255)).convert("1").save(tmp_path / "bits.bmp")
    np.testing.assert_array_equal(read_image(tmp_path / "bits.bmp"), BINARY[0] * 255)
    with pytest.raises(InputError, match=r"bits.bmp has shape \(4, 3\), 0.png has \(4, 3, 3\)"):
        read_folder(tmp_path)


def test_files_that_are_no_images(tmp_path):
    (tmp_path / "text.png").write_text("no image")
    Image.fromarray(np.zeros((2, 2, 4), dtype=np.uint8), "RGBA").save(tmp_path / "clear.png")
    for name, message in (
        ("text.png", "cannot be read as an image"),
        ("clear.png", "transparent"),
        ("none.png", "There is no file"),
    ):
        with pytest.raises(InputError, match=message):
            read_image(tmp_path / name)
    with pytest.raises(InputError, match="no folder with images"):
        read_folder(tmp_path / "nowhere")


def test_a_grid_holds_every_image(tmp_path):
    sheet = image_grid(GREY, columns=3, gap=1)
    assert sheet.shape == (2 * 5 + 1, 3 * 4 + 1)
    np.testing.assert_array_equal(sheet[6:10, 1:4], GREY[3])
    assert (sheet[6:10, 9:12] == 128).all()  # there are five images only
    write_image(tmp_path / "grid.png", sheet, enlarge=2)
    np.testing.assert_array_equal(read_image(tmp_path / "grid.png")[::2, ::2], sheet)
    write_film(tmp_path / "film.gif", [sheet, sheet // 2])
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 2


@pytest.mark.parametrize("side", [9000, 11000, 60000])
def test_an_image_that_claims_to_be_giant_is_refused_before_it_is_unpacked(tmp_path, side):
    """Three sizes: beyond ours, where Pillow warns, and where it refuses."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    parts = [b"\x89PNG\r\n\x1a\n", head, chunk(b"IDAT", zlib.compress(bytes(100))), chunk(b"IEND", b"")]
    (tmp_path / "a.png").write_bytes(b"".join(parts))
    with pytest.raises(InputError, match=r"a\.png (claims 9000 x 9000 pixels; at most|cannot be read as an image: Image size)"):
        read_image(tmp_path / "a.png")
