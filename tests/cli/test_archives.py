"""Archives on the command line: a folder or an array in, the same out."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from anyorder.archives import archive
from anyorder.coding import Archive, ArchiveWriter
from anyorder.errors import InputError
from anyorder.modalities.images.image_archives import ArraySource
from anyorder.modalities.images.pixels import read_image, write_image
from some_codecs import some_codec, some_frame, some_images


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "images"
    path.mkdir()
    rng = np.random.default_rng(0)
    for k in range(12):
        write_image(path / f"{k:02}.png", (rng.random((6, 8)) < 0.3).astype(np.uint8) * 255)
    (path / "notes.txt").write_text("as they are")
    return path


@pytest.fixture(scope="module")
def with_codec(folder, run):
    path = folder.parent / "pictures.ao"
    only = folder.parent / "only"
    only.mkdir()
    for file in folder.glob("*.png"):
        write_image(only / file.name, read_image(file))
    result = run("fit", only, "-o", path, "--effort", "0.003", "--codec")
    assert result.exit_code == 0, result.stderr
    return path


def same(one, other):
    names = sorted(path.name for path in one.iterdir())
    assert sorted(path.name for path in other.iterdir()) == names
    for name in names:
        if name.endswith(".png"):
            np.testing.assert_array_equal(read_image(one / name), read_image(other / name))
        else:
            assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("with_model", [True, False])
def test_a_folder_comes_back(folder, with_codec, tmp_path, run, with_model):
    archive, back = tmp_path / "a.aoz", tmp_path / "back"
    result = run("compress", *([with_codec] if with_model else []), folder, "-o", archive, "--per-block", "5")
    assert result.exit_code == 0, result.stderr
    assert "13 files" in result.stdout
    result = run("decompress", archive, "-o", back, *(["--model", with_codec] if with_model else []))
    assert result.exit_code == 0, result.stderr
    same(folder, back)


def test_an_array_comes_back(with_codec, tmp_path, run):
    images = (np.random.default_rng(1).random((20, 6, 8)) < 0.3).astype(np.int32)
    np.save(tmp_path / "images.npy", images)
    assert run("compress", with_codec, tmp_path / "images.npy").exit_code == 0
    document = json.loads(run("inspect", tmp_path / "images.aoz", "--model", with_codec, "--json").stdout)
    assert document["modelled_blocks"] == document["blocks"] == 1
    assert document["damage"] == []
    assert 0 < document["bits_per_dimension"] < 8
    wrong = run("decompress", tmp_path / "images.aoz", "-o", tmp_path / "folder", "--model", with_codec)
    assert "name a .npy file" in wrong.stderr
    assert run("decompress", tmp_path / "images.aoz", "-o", tmp_path / "b.npy", "--model", with_codec).exit_code == 0
    found = np.load(tmp_path / "b.npy")
    assert found.dtype == images.dtype
    np.testing.assert_array_equal(found, images)


def test_many_images_carry_their_own_model(tmp_path, run):
    """Smooth images that a model writes shorter even with its own bytes counted."""
    rng = np.random.default_rng(0)
    images = np.cumsum(rng.integers(0, 3, (4000, 8, 8)), axis=2).astype(np.uint8) + rng.integers(
        0, 30, (4000, 1, 1), dtype=np.uint8
    )
    np.save(tmp_path / "many.npy", images)
    result = run("compress", tmp_path / "many.npy", "--effort", "0.02")
    assert result.exit_code == 0, result.stderr
    assert run("decompress", tmp_path / "many.aoz", "-o", tmp_path / "b.npy").exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), images)
    assert json.loads(run("inspect", tmp_path / "many.aoz", "--json").stdout)["damage"] == []


def test_a_model_that_is_too_large_is_left_out_and_nothing_else_is_passed_over(tmp_path, run, monkeypatch):
    images = some_images("grey", 40)
    np.save(tmp_path / "a.npy", images)
    monkeypatch.setattr(ArraySource, "own_codec", lambda source, *_: some_codec("grey"))
    monkeypatch.setattr(archive, "MOST_MODEL", 10)
    assert run("compress", tmp_path / "a.npy", "-o", tmp_path / "a.aoz").exit_code == 0
    assert json.loads(run("inspect", tmp_path / "a.aoz", "--json").stdout)["model"] is None

    def refuse(*_):
        raise InputError("another reason")

    monkeypatch.setattr(archive, "read_again", refuse)
    result = run("compress", tmp_path / "a.npy", "-o", tmp_path / "b.aoz")
    assert result.exit_code == 1
    assert "another reason" in result.stderr
    assert not (tmp_path / "b.aoz").exists()


def test_what_is_whole_is_saved(folder, with_codec, tmp_path, run):
    archive = tmp_path / "a.aoz"
    assert run("compress", with_codec, folder, "-o", archive, "--per-block", "5").exit_code == 0
    content = bytearray(archive.read_bytes())
    content[content.find(b"AO\x02") + 40] ^= 1
    archive.write_bytes(content)
    result = run("decompress", archive, "-o", tmp_path / "back", "--model", with_codec)
    assert result.exit_code == 1
    assert "files 0 to 4 are lost" in result.stderr
    assert "8 files" in result.stdout
    assert len(list((tmp_path / "back").iterdir())) == 8
    assert "damaged: files 0 to 4 are lost" in run("inspect", archive, "--model", with_codec).stdout


def test_what_cannot_be_done_is_said_before_anything_is_written(folder, with_codec, tmp_path, run):
    archive = tmp_path / "a.aoz"
    assert run("compress", with_codec, folder, "-o", archive).exit_code == 0
    for arguments, text in [
        (("compress", folder, folder, folder), "got 3 names"),
        (("compress", tmp_path / "nothing"), "There is no file or folder"),
        (("decompress", archive, "-o", tmp_path / "x"), "name it with --model"),
        (("decompress", archive, "-o", folder, "--model", with_codec), "there already"),
        (("decompress", tmp_path / "nothing", "-o", tmp_path / "x"), "no file"),
        (("decompress", folder / "00.png", "-o", tmp_path / "x"), "no archive"),
        (("inspect", folder / "00.png"), "no archive"),
        (("inspect", archive, "--model", tmp_path / "nothing.ao"), "no file"),
        (("compress", folder, "-o", folder / "x.aoz"), "lies in the folder"),
        (("compress", with_codec, folder, "--per-block", "1000000000"), "expected 1 to"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert text in result.stderr, result.stderr
    assert not (tmp_path / "x").exists()
    result = run("inspect", archive)
    assert result.exit_code == 0
    assert "files in" in result.stdout
    assert "name it with --model" in result.stdout


@pytest.mark.parametrize("content", [b"", b"PK\3\4 no zip", b"\x93NUMPY\1\0", b"nothing"])
def test_files_that_hold_no_array_are_named(content, tmp_path, run):
    (tmp_path / "x.npy").write_bytes(content)
    result = run("compress", tmp_path / "x.npy")
    assert result.exit_code == 1
    assert "x.npy cannot be read as an array" in result.stderr


def test_this_folder_is_compressed_beside_itself(tmp_path, run, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.txt").write_text("a")
    monkeypatch.chdir(tmp_path / "here")
    assert run("compress", ".").exit_code == 0
    assert run("decompress", tmp_path / "here.aoz", "-o", tmp_path / "back").exit_code == 0
    assert (tmp_path / "back" / "a.txt").read_text() == "a"


def test_names_in_archives_are_those_of_shipped_models(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("images.npy", np.zeros((3, 8, 8), np.uint8))
    (tmp_path / "digits").mkdir()  # not in the way
    assert run("compress", "digits", "images.npy").exit_code == 0
    assert run("decompress", "images.aoz", "-o", "back.npy").exit_code == 0
    archive = Archive(tmp_path / "images.aoz")
    with open("forged.aoz", "wb") as file, ArchiveWriter(file, archive.about | {"model": {"name": "images.npy"}}) as forged:
        forged.add(archive.block(0).content)
    result = run("decompress", "forged.aoz", "-o", "b.npy")
    assert result.exit_code == 1
    assert "does not come with the package: name it with --model" in result.stderr


def test_what_is_damaged_takes_nobodys_place(tmp_path, run):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(0, 256, (4, 5, 6)))
    assert run("compress", tmp_path / "images.npy", "--per-block", "1").exit_code == 0
    content = bytearray((tmp_path / "images.aoz").read_bytes())
    content[Archive(bytes(content)).places[1] + 40] ^= 1
    (tmp_path / "images.aoz").write_bytes(content)
    before = (tmp_path / "images.npy").read_bytes()
    result = run("decompress", tmp_path / "images.aoz", "-o", tmp_path / "images.npy", "--force")
    assert result.exit_code == 1
    assert "name another file for what is left" in result.stderr
    assert (tmp_path / "images.npy").read_bytes() == before
    assert "image 1 is lost" in run("decompress", tmp_path / "images.aoz", "-o", tmp_path / "left.npy").stderr
    assert len(np.load(tmp_path / "left.npy")) == 4


def test_devices_are_not_replaced(tmp_path, run):
    np.save(tmp_path / "images.npy", np.zeros((4, 5, 6)))
    os.mkfifo(tmp_path / "pipe")
    result = run("compress", tmp_path / "images.npy", "-o", tmp_path / "pipe")
    assert result.exit_code == 1
    assert "no ordinary file" in result.stderr


def test_a_model_inside_that_is_damaged_is_told(tmp_path, run):
    content = bytearray((Path(__file__).parents[1] / "archives" / "kept" / "csv.aoz").read_bytes())
    content[Archive(bytes(content)).places[0] + 60] ^= 1
    (tmp_path / "a.aoz").write_bytes(content)
    assert "damaged: the model inside the archive is lost" in run("inspect", tmp_path / "a.aoz").stdout
    result = run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "b.csv")
    assert result.exit_code == 1
    assert "0 rows" in result.stdout
    assert "rows 0 to 2999 are lost: the model inside" in result.stderr


# Tables


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "people.csv"
    some_frame(300).to_csv(path, index=False)
    return path


def test_a_table_comes_back_byte_for_byte(table, tmp_path, run):
    archive, back = tmp_path / "a.aoz", tmp_path / "back.csv"
    result = run("compress", table, "-o", archive, "--effort", "0.02")
    assert result.exit_code == 0, result.stderr
    assert "300 rows" in result.stdout
    assert run("decompress", archive, "-o", back).exit_code == 0
    assert back.read_bytes() == table.read_bytes()
    assert run("decompress", archive, "-o", tmp_path / "back.csv.gz").exit_code == 0
    assert gzip.decompress((tmp_path / "back.csv.gz").read_bytes()) == table.read_bytes()


def test_a_codec_of_a_table_says_what_columns_cost(table, tmp_path, run):
    model, archive, back = tmp_path / "people.ao", tmp_path / "a.aoz", tmp_path / "back.csv"
    result = run("fit", table, "-o", model, "--effort", "0.02", "--codec", "--kind", "note=leave out")
    assert result.exit_code == 0, result.stderr
    assert run("compress", model, table, "-o", archive, "--per-block", "100").exit_code == 0
    document = json.loads(run("inspect", archive, "--model", model, "--json").stdout)
    assert document["rows"] == 300
    cost = {column["name"]: column["bytes"] for column in document["columns"]}
    assert set(cost) == {"walk", "town", "price", "odd", "day"}
    assert cost["price"] > cost["town"] > 0
    assert "bytes  town" in run("inspect", archive, "--model", model).stdout
    assert run("decompress", archive, "-o", back, "--model", model).exit_code == 0
    assert back.read_bytes() == table.read_bytes()


def test_a_file_that_no_codec_can_be_learned_from_is_refused_before_a_model_is_learned(tmp_path, run, monkeypatch):
    monkeypatch.setattr("anyorder.estimator.AnyOrder.fit", lambda *_, **__: pytest.fail("a model was learned"))
    (tmp_path / "mixed.csv").write_text('a,b\n1,"2"\n"3",4\n')
    result = run("fit", tmp_path / "mixed.csv", "--codec")
    assert result.exit_code == 1
    assert "no codec can be learned" in result.stderr
    assert not (tmp_path / "mixed.ao").exists()


def test_a_table_with_types_comes_back(tmp_path, run):
    frame = some_frame(40).astype({"price": "Int16", "town": "category"}).set_index("day")
    frame["zero"] = -0.0
    frame["written"] = "2020-01-01"
    frame.to_parquet(tmp_path / "table.parquet")
    assert run("compress", tmp_path / "table.parquet", "-o", tmp_path / "a.aoz").exit_code == 0
    assert run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "back.parquet").exit_code == 0
    back, first = pd.read_parquet(tmp_path / "back.parquet"), pd.read_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(back, first, check_exact=True)
    assert np.signbit(back["zero"]).all()
    result = run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "back.csv")
    assert result.exit_code != 0
    assert ".parquet" in result.stderr


def test_a_parquet_file_comes_back_with_all_that_its_table_has(tmp_path, run):
    """NaN is no null, and notes are kept; the tables are compared by pyarrow, column by column and bit by bit."""
    whole = pa.field("whole", pa.int64(), nullable=False, metadata={"unit": "cm"})
    table = pa.table(
        {"f": [np.nan, -0.0, 1.0] * 10, "g": [None, np.nan, 2.0] * 10, "whole": [1, 2**53 + 1, 3] * 10, "n": [1, None, 3] * 10},
        schema=pa.schema(
            [pa.field("f", pa.float64()), pa.field("g", pa.float32()), whole, pa.field("n", pa.int8())], {"from": "us"}
        ),
    )
    parquet.write_table(table, tmp_path / "table.parquet", row_group_size=7)
    assert run("compress", tmp_path / "table.parquet", "-o", tmp_path / "a.aoz").exit_code == 0
    assert json.loads(run("inspect", tmp_path / "a.aoz", "--json").stdout)["form"]["kind"] == "arrow"
    assert run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "back.parquet").exit_code == 0
    back = parquet.read_table(tmp_path / "back.parquet")
    assert back.schema.equals(table.schema, check_metadata=True)
    assert [column.null_count for column in back.columns] == [0, 10, 0, 10]
    assert back["f"].to_numpy().tobytes() == table["f"].to_numpy().tobytes()
    assert [str(value) for value in back["g"].to_pylist()] == ["None", "nan", "2.0"] * 10
    assert back.select(["whole", "n"]).equals(table.select(["whole", "n"]))


@pytest.mark.parametrize("column", [[[1, 2], None, [3]], [{"a": 1}, {"a": 2}, None]], ids=["lists", "records"])
def test_a_parquet_file_of_what_has_no_cells_comes_back_byte_for_byte(tmp_path, run, column):
    parquet.write_table(pa.table({"x": column}), tmp_path / "table.parquet")
    assert run("compress", tmp_path / "table.parquet", "-o", tmp_path / "a.aoz").exit_code == 0
    assert run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "back.parquet").exit_code == 0
    assert (tmp_path / "back.parquet").read_bytes() == (tmp_path / "table.parquet").read_bytes()


def test_several_arrays_are_no_array(tmp_path, run):
    np.savez(tmp_path / "a.npz", a=np.zeros(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    result = run("compress", tmp_path / "a.npy")
    assert result.exit_code == 1
    assert "several arrays" in result.stderr
