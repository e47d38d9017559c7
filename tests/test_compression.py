"""model.compress and model.decompress."""

import numpy as np
import pandas as pd
import pytest

from anyorder.errors import FormatError, InputError
from anyorder.estimator import AnyOrder
from anyorder.io import shipped
from some_codecs import some_frame

RNG = np.random.default_rng(0)


def stripes(count=40):
    return (np.arange(8) // 2 % 2 * 255 * np.ones((count, 7, 1))).astype(np.uint8) ^ (
        RNG.random((count, 7, 8)) < 0.05
    ) * np.uint8(255)


@pytest.fixture(scope="module")
def model():
    return AnyOrder(effort=0.003, codec=True).fit(stripes())


def test_images_come_back(model):
    images = stripes(9)
    archive = model.compress(images)
    assert isinstance(archive, bytes)
    np.testing.assert_array_equal(model.decompress(archive), images)


def test_a_saved_model_reads_archives_of_the_first(model, tmp_path):
    images = stripes(9)
    model.save(tmp_path / "stripes.ao")
    again = AnyOrder.load(tmp_path / "stripes.ao")
    np.testing.assert_array_equal(again.decompress(model.compress(images)), images)
    assert again.compress(images) == model.compress(images)


def test_damaged_archives_are_refused(model):
    archive = bytearray(model.compress(stripes(9)))
    place = archive.find(b"AO\x02") + 40
    archive[place] ^= 1
    with pytest.raises(FormatError, match="images 0 to 8 are lost"):
        model.decompress(bytes(archive))


def test_a_model_without_a_codec_says_so():
    plain = AnyOrder(effort=0.003).fit(stripes())
    with pytest.raises(InputError, match="codec=True"):
        plain.compress(stripes(2))


def test_another_models_archive_is_refused(model):
    other = AnyOrder(effort=0.003, codec=True, random_state=1).fit(stripes())
    with pytest.raises(InputError, match="fingerprint"):
        other.decompress(model.compress(stripes(2)))


@pytest.mark.parametrize("name", shipped.names())
def test_models_that_come_with_the_package_compress(name):
    """Their own samples into far fewer bytes than zstd; and they find their archives' model by name."""
    ours = AnyOrder.load(name)
    images = ours.sample(30, steps=20)
    archive = ours.compress(images)
    np.testing.assert_array_equal(ours.decompress(archive), images)
    assert len(archive) < 0.7 * len(np.packbits(images) if images.max() < 2 else images.tobytes())


# Tables


@pytest.fixture(scope="module")
def model_of_a_table():
    return AnyOrder(effort=0.02, codec=True, kinds={"odd": "leave out"}).fit(some_frame(200).drop(columns="note"))


def test_tables_come_back(model_of_a_table, tmp_path):
    frame = some_frame(50, seed=1).drop(columns="note")
    archive = model_of_a_table.compress(frame)
    pd.testing.assert_frame_equal(model_of_a_table.decompress(archive), frame, check_exact=True)
    model_of_a_table.save(tmp_path / "table.ao")
    again = AnyOrder.load(tmp_path / "table.ao")
    assert again.compress(frame) == archive
    pd.testing.assert_frame_equal(again.decompress(archive), frame, check_exact=True)


def test_matrices_come_back_as_matrices(model_of_a_table):
    matrix = RNG.normal(size=(7, 5))
    np.testing.assert_array_equal(model_of_a_table.decompress(model_of_a_table.compress(matrix)), matrix)


def test_what_is_no_table_is_refused(model_of_a_table):
    for other in (stripes(2), "text", [1, 2]):
        with pytest.raises(InputError, match="expected a table of pandas, polars or pyarrow"):
            model_of_a_table.compress(other)
