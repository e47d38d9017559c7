"""Archives that were made once: every later version must give back the same bits.

`PYTHONPATH=tests python tests/codecs/test_kept.py NAME` makes one, for a new kind of archive. One that is there must never be
made anew.
"""

import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from across import some_table, texts_and_types
from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.archives.blocks import MODELLED
from anyorder.coding import Archive
from anyorder.distributions import default_head
from anyorder.estimator import AnyOrder
from anyorder.modalities.images.image_archives import ArraySource, FolderSource, decompress_array, decompress_folder
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.pyramid_codec import ImageCodec, Stage, frozen_stage, plans
from anyorder.modalities.tables.codec.table_archives import ArrowSource, BytesSource, FrameSource, csv_source, decompress_table
from anyorder.modalities.tables.codec.table_codec import fit_table_codec
from anyorder.modalities.text.codec.text_archives import text_source, unpack_text
from anyorder.modalities.text.codec.text_codec import TextCodec
from anyorder.models.any_order import AnyOrderModel
from anyorder.networks import IntegerUNet
from anyorder.schema import Schema
from some_codecs import expected, some_frame

HERE = Path(__file__).parent / "kept"
SHIPPED = ("digits", "mnist", "fashion-mnist")
KEPT = {
    "arrow": "dad8e52b04906c51",
    "frame-pandas-2": "713e63e815f6274a",
    "frame-pandas-3": "d357d415ea0519dc",
    "digits": "994da9ddcdf8466c",
    "mnist": "fe81efeaff907dc9",
    "fashion-mnist": "c20e6df2b2636779",
    "grey": "1001a7628ebda514",
    "colours": "650878753fac6ce0",
    "csv": "cec2d75bd5da9739",
    "frame": "2269cefe0540fe91",
    "bytes": "d92136669606ad3a",
    "folder": "4875982a2233792f",
    "plain": "1eae5f212eaf66af",
    "checked-csv": "cec2d75bd5da9739",
    "checked-around": "22d5bc19c98d352d",
    "checked-folder": "699ae09ead0ca377",
    "text": "bb59e03edee735bb",
}


def digest(archive):
    return sha256(content_of(archive)).hexdigest()[:16]


def content_of(archive):
    """What is in it, as bytes; it must not be there by zstd alone."""
    opened = OpenArchive(Archive(archive), lambda about: AnyOrder.load(about["name"]).known_codec_)
    if opened.form["kind"] == "folder":
        return folder_content(opened)
    unpack = {"table": decompress_table, "text": unpack_text}.get(opened.what, decompress_array)
    found, lost = unpack(opened)
    assert not lost
    assert all(content.method == MODELLED for _, content in opened.contents()) or opened.codec is None
    if opened.form["kind"] == "arrow":
        return (found.schema.to_string(show_schema_metadata=True) + repr(found.to_pydict())).encode()
    if isinstance(found, pd.DataFrame):
        return (repr([str(dtype) for dtype in [*found.dtypes, found.index.dtype]]) + found.to_csv()).encode()
    return found if isinstance(found, bytes) else repr((found.shape, found.dtype.str)).encode() + found.tobytes()


def folder_content(opened):
    with TemporaryDirectory() as folder:
        assert decompress_folder(opened, Path(folder)) == []
        files = sorted(path for path in Path(folder).iterdir())
        pixels = [np.asarray(Image.open(path)).tobytes() if path.suffix == ".png" else path.read_bytes() for path in files]
        return repr([path.name for path in files]).encode() + b"".join(pixels)


@pytest.mark.parametrize("name", KEPT)
def test_what_was_kept_comes_back(name):
    assert digest(HERE / f"{name}.aoz") == KEPT[name]


def test_nothing_that_was_kept_is_forgotten():
    assert {path.stem for path in HERE.glob("*.aoz")} == set(KEPT)


# How they were made


def making():
    """For every name its keeper and its source; all whose names begin with "checked" hold checksums of what comes back."""
    rng = np.random.default_rng(0)
    shipped = {name: (AnyOrder.load(name).known_codec_, name) for name in SHIPPED}
    small = {"grey": ImageEncoder(9, 8, 1, 256), "colours": ImageEncoder(8, 8, 3, 256, colours=True)}
    for name, (codec, known) in {**shipped, **{name: (small_codec(encoder), "") for name, encoder in small.items()}}.items():
        yield name, ArchiveModel(codec, known, inside=not known), ArraySource(expected(codec, 5, 0))
    table = csv_source(some_frame(3000).drop(columns="note").to_csv(index=False).encode())
    for name in ("csv", "checked-csv"):
        yield name, ArchiveModel(fit_table_codec(table.names, table.texts, effort=0.1), inside=True), table
    around = small_codec(ImageEncoder(8, 8, 3, 256, colours=True), around=(3,))
    yield "checked-around", ArchiveModel(around, inside=True), ArraySource(expected(around, 5, 0))
    frame = some_frame(1000).astype({"town": "category", "price": "Int16"}).set_index("day")[["walk", "town", "price"]]
    source = FrameSource(frame)
    yield "frame", ArchiveModel(fit_table_codec(source.names, source.texts, effort=0.1), inside=True), source
    yield "arrow", ArchiveModel(), ArrowSource(some_table())
    for version in ("2", "3"):  # the types of text differ
        if pd.__version__.startswith(version):
            yield f"frame-pandas-{version}", ArchiveModel(), FrameSource(texts_and_types())
    yield "bytes", ArchiveModel(), BytesSource(b"no table")
    with TemporaryDirectory() as folder:
        codec = small_codec(ImageEncoder(9, 8, 1, 256))
        for k, image in enumerate(expected(codec, 5, 0)):
            Image.fromarray(image).save(Path(folder) / f"{k} \u00fc.png")
        (Path(folder) / "notes.txt").write_text("not an image")
        for name in ("folder", "checked-folder"):
            yield name, ArchiveModel(codec, inside=True), FolderSource(Path(folder))
        path, primed = Path(folder) / "text.txt", TextCodec(b"It is a far, far better thing that I do")
        path.write_bytes(b"It was the best of times, it was the worst of times. \xff\n" * 2)
        yield "text", ArchiveModel(primed, inside=True), text_source(path)
    yield "plain", ArchiveModel(), ArraySource(rng.integers(0, 256, (4, 5, 6)).astype(np.uint8))


def small_codec(encoder, around=()):
    stages = []
    for plan in plans(encoder):
        schema = Schema.repeat(encoder.schema.variables[0].domain, len(plan.order))
        head = default_head(schema.variables[0].domain)
        network = IntegerUNet(schema, head.width * len(schema), plan.shape, (8,), 1, around=around)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 0.1 * torch.randn(parameter.shape)
        stages.append(Stage(plan, frozen_stage(AnyOrderModel(schema, [head] * len(schema), network))))
    return ImageCodec(encoder, tuple(stages))


if __name__ == "__main__":
    for name, keeper, source in making():
        if name in sys.argv[1:]:
            with open(HERE / f"{name}.aoz", "xb") as file:
                compress(keeper, source, file)
            print(f'    "{name}": "{digest(HERE / f"{name}.aoz")}",')
