"""Archives that were made once: every later version must give back the same bits.

`python tests/codecs/test_kept.py NAME` makes one, for a new kind of archive. One that is there must never be made anew.
"""

import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder import AnyOrder, FormatError
from anyorder.codecs import (
    ArraySource,
    FrameSource,
    ImageCodec,
    Keeper,
    OpenArchive,
    Stage,
    compress,
    csv_source,
    decompress_array,
    decompress_table,
    fit_table_codec,
)
from anyorder.codecs.blocks import MODELLED
from anyorder.codecs.images.learning import frozen
from anyorder.codecs.images.pyramid import plans
from anyorder.coding import Archive
from anyorder.data import ImageEncoder
from anyorder.heads import default_head
from anyorder.model import AnyOrderModel
from anyorder.networks import IntegerUNet
from anyorder.schema import Schema
from some_codecs import some_frame

HERE = Path(__file__).parent / "kept"
SHIPPED = ("digits", "mnist", "fashion-mnist")
KEPT = {
    "digits": "994da9ddcdf8466c",
    "mnist": "fe81efeaff907dc9",
    "fashion-mnist": "c20e6df2b2636779",
    "grey": "1001a7628ebda514",
    "colours": "650878753fac6ce0",
    "csv": "cec2d75bd5da9739",
    "frame": "2269cefe0540fe91",
    "plain": "1eae5f212eaf66af",
}


def digest(archive):
    return sha256(content_of(archive)).hexdigest()[:16]


def content_of(archive):
    """What is in it, as bytes; it must not be there by zstd alone."""
    opened = OpenArchive(Archive(archive), lambda about: AnyOrder.load(about["name"]).known_codec_)
    found, lost = decompress_table(opened) if opened.what == "table" else decompress_array(opened)
    assert not lost
    assert all(content.method == MODELLED for _, content in opened.contents()) or opened.codec is None
    if isinstance(found, pd.DataFrame):
        return (repr([str(dtype) for dtype in [*found.dtypes, found.index.dtype]]) + found.to_csv()).encode()
    return found if isinstance(found, bytes) else repr((found.shape, found.dtype.str)).encode() + found.tobytes()


@pytest.mark.parametrize("name", KEPT)
def test_what_was_kept_comes_back(name):
    assert digest(HERE / f"{name}.aoz") == KEPT[name]


def test_nothing_that_was_kept_is_forgotten():
    assert {path.stem for path in HERE.glob("*.aoz")} == set(KEPT)


# How they were made


def making():
    """For every name its keeper and its source."""
    rng = np.random.default_rng(0)
    shipped = {name: (AnyOrder.load(name).known_codec_, name) for name in SHIPPED}
    small = {"grey": ImageEncoder(9, 8, 1, 256), "colours": ImageEncoder(8, 8, 3, 256, colours=True)}
    for name, (codec, known) in {**shipped, **{name: (small_codec(encoder), "") for name, encoder in small.items()}}.items():
        yield name, Keeper(codec, known, inside=not known), ArraySource(expected(codec, rng))
    table = csv_source(some_frame(3000).drop(columns="note").to_csv(index=False).encode())
    yield "csv", Keeper(fit_table_codec(table.names, table.texts, effort=0.1), inside=True), table
    frame = some_frame(1000).astype({"town": "category", "price": "Int16"}).set_index("day")[["walk", "town", "price"]]
    source = FrameSource(frame)
    yield "frame", Keeper(fit_table_codec(source.names, source.texts, effort=0.1), inside=True), source
    yield "plain", Keeper(), ArraySource(rng.integers(0, 256, (4, 5, 6)).astype(np.uint8))


def expected(codec, rng):
    """Images that a codec expects: noise is their code, if it is any."""
    while True:
        try:
            return codec.encoder.decode(codec.decode(rng.bytes(20_000), 5))
        except FormatError:
            continue


def small_codec(encoder):
    stages = []
    for plan in plans(encoder):
        schema = Schema.repeat(encoder.schema.variables[0].domain, len(plan.order))
        head = default_head(schema.variables[0].domain)
        network = IntegerUNet(schema, head.width * len(schema), plan.shape, (8,), 1)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 0.1 * torch.randn(parameter.shape)
        stages.append(Stage(plan, frozen(AnyOrderModel(schema, [head] * len(schema), network))))
    return ImageCodec(encoder, tuple(stages))


if __name__ == "__main__":
    for name, keeper, source in making():
        if name in sys.argv[1:]:
            with open(HERE / f"{name}.aoz", "xb") as file:
                compress(keeper, source, file)
            print(f'    "{name}": "{digest(HERE / f"{name}.aoz")}",')
