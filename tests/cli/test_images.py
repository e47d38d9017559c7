"""Images on the command line: a folder in, a model, completions and new images out."""

import json

import numpy as np
import pytest
from PIL import Image

from anyorder.modalities.images.pixels import read_image, write_image


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve small images, left half dark, right half light."""
    path = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for k in range(12):
        image = np.zeros((6, 8), dtype=np.uint8)
        image[:, 4:] = 255
        image[rng.integers(6), rng.integers(8)] = 255
        write_image(path / f"{k:02}.png", image)
    return path


@pytest.fixture(scope="module")
def picture_model(folder, run):
    path = folder.parent / "pictures.ao"
    result = run("fit", folder, "-o", path, "--effort", "0.003")
    assert result.exit_code == 0, result.stderr
    assert "6 x 8 pixels, black and white, 2 levels" in result.stdout
    assert "12 images" in result.stdout
    return path


@pytest.mark.parametrize("said", [("--half", "left"), ("--box", "2,1,3,4"), ("--mask", "MASK")])
def test_what_is_known_stays(picture_model, folder, tmp_path, run, said):
    mask = np.zeros((6, 8), dtype=np.uint8)
    mask[1:5, 2:5] = 9
    write_image(tmp_path / "mask.png", mask)
    arguments = [tmp_path / "mask.png" if part == "MASK" else part for part in said]
    out = tmp_path / "out.png"
    result = run("inpaint", picture_model, folder / "00.png", *arguments, "-n", "2", "--steps", "3", "-o", out, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    image, missing = read_image(folder / "00.png"), np.indices((6, 8))[1] < 4 if said[0] == "--half" else mask != 0
    assert document["missing_pixels"] == missing.sum()
    for path in document["files"]:
        assert (read_image(path)[~missing] == image[~missing]).all()
    assert read_image(out).shape[1] > 4 * 8


def test_new_images_in_a_grid(picture_model, tmp_path, run):
    result = run("sample", picture_model, "-n", "5", "--steps", "2", "--grid", tmp_path / "new.png")
    assert result.exit_code == 0, result.stderr
    assert set(np.unique(read_image(tmp_path / "new.png"))) <= {0, 128, 255}


def test_a_film_shows_every_step(picture_model, tmp_path, run):
    result = run("sample", picture_model, "-n", "4", "--steps", "3", "--grid", tmp_path / "g.png", "--film", tmp_path / "f.gif")
    assert result.exit_code == 0, result.stderr
    with Image.open(tmp_path / "f.gif") as film:
        assert film.n_frames == 3
        film.seek(2)
        last = np.asarray(film.convert("L"))
    np.testing.assert_array_equal(last, np.asarray(Image.open(tmp_path / "g.png")))


def test_a_shipped_model_is_named(tmp_path, run):
    result = run("sample", "mnist", "-n", "1", "--steps", "2", "--temperature", "0.5", "--grid", tmp_path / "g.png")
    assert result.exit_code == 0, result.stderr
    result = run("info", "mnist")
    assert "28 x 28 pixels, black and white" in result.stdout


def test_info(picture_model, run):
    document = json.loads(run("info", picture_model, "--json").stdout)
    assert document["what"] == "6 x 8 pixels, black and white, 2 levels"
    assert "U-Net" in run("info", picture_model).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inpaint", "PICTURES", "IMAGE"), "Say once what is missing"),
        (("inpaint", "PICTURES", "IMAGE", "--half", "left", "--box", "1,1,1,1"), "2 were given"),
        (("inpaint", "PICTURES", "IMAGE", "--half", "middle"), "expected left, right, top, bottom"),
        (("inpaint", "PICTURES", "IMAGE", "--box", "1,1"), "expected whole numbers x,y,width,height"),
        (("inpaint", "PICTURES", "IMAGE", "--box", "1,1,9,9"), "does not lie in the image"),
        (("inpaint", "PICTURES", "nothing.png", "--half", "left"), "There is no file"),
        (("inpaint", "TABLE", "IMAGE", "--half", "left"), "This is a model of a table, and inpaint is a question about images"),
        (("ask", "PICTURES", "x"), "This is a model of images, and conditional is a question about tables"),
        (("sample", "TABLE", "--grid", "new.png"), "--grid and --film are for pictures; people.ao is a model of a table"),
        (("sample", "PICTURES"), "say into which picture to draw them, --grid new.png"),
        (("sample", "PICTURES", "--grid", "new.png", "--given", "age=3"), "has no option 'given', which is for texts and tables"),
        (("sample", "TABLE", "--label", "3"), "has no option 'label', which is for images"),
        (("sample", "PICTURES", "--grid", "new.jpg"), "name it *.png"),
        (("sample", "PICTURES", "--grid", "new.png", "--film", "new.mp4", "--steps", "3"), "name it *.gif"),
        (("sample", "PICTURES", "--grid", "new.png", "--film", "new.gif"), "--steps 20"),
        (("sample", "mnits", "--grid", "new.png"), "comes with the package: "),
        (("fit", "EMPTY", "-o", "x.ao", "--size", "huge"), "no folder with images"),
        (("inpaint", "PICTURES", "IMAGE", "--half", "left", "-o", "new.jpg"), "name it *.png"),
        (("fit", "EMPTY", "-o", "x.ao", "--without-rows"), "--without-rows is for tables; this is an array of images"),
        (("fit", "EMPTY", "-o", "x.ao"), "no folder with images"),
    ],
)
def test_bad_input_is_one_line(picture_model, model, folder, tmp_path, run, arguments, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"PICTURES": picture_model, "TABLE": model, "IMAGE": folder / "00.png", "EMPTY": tmp_path}
    result = run(*[places.get(part, part) for part in arguments])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
