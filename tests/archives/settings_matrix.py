"""Run by test_settings.py in processes of their own: archives in every setting, byte for byte, and decoded in each.

python settings_matrix.py FOLDER [compile]
"""

import io
import sys
from pathlib import Path

import numpy as np
import torch

from anyorder.archives import ArchiveModel, OpenArchive, compress, load_codec
from anyorder.coding import Archive
from anyorder.modalities.images.image_archives import ArraySource, decompress_array
from anyorder.modalities.tables.codec.table_archives import csv_source, decompress_table
from anyorder.networks import IntegerColumns, IntegerUNet

FORWARD, INPUTS = IntegerUNet.forward, IntegerUNet._inputs
PLAIN = [  # batch, threads, oneDNN, int8 kernels, channels last
    (256, 1, True, True, True),
    (7, 2, False, False, True),
    (63, 2, True, False, False),
    (64, 1, False, True, False),
    (3, 2, True, True, False),
    (1, 1, True, False, True),
]
COMPILED = [(10, 1, True, False, True)]  # calls of one size are compiled once


def main(folder, *how):
    home = Path(folder)
    check_table(load_codec(home / "table.codec"), *((home / name).read_bytes() for name in ("table.csv", "table.aoz")), how)
    check_images(home, "grey", COMPILED if how else PLAIN)
    check_images(home, "colours", [] if how else PLAIN[1:4])


def check_images(home, name, settings):
    codec, images = load_codec(home / f"{name}.codec"), np.load(home / f"{name}.npy")
    archive = (home / f"{name}.aoz").read_bytes()
    usable = all(stage.model.network.int8 for stage in codec.stages)
    for batch, threads, fast, in_bytes, channels_last in settings:
        setting = f"{name}: {batch=} {threads=} {fast=} {in_bytes=} {channels_last=}"
        IntegerUNet._inputs = INPUTS if channels_last else lambda *inputs: INPUTS(*inputs).contiguous()
        for stage in codec.stages:
            stage.model.network.int8 = in_bytes and usable
        torch.set_num_threads(threads)
        torch.backends.mkldnn.set_flags(fast)
        IntegerUNet.forward = in_parts(batch, torch.compile(FORWARD) if settings is COMPILED else FORWARD)
        file = io.BytesIO()
        compress(ArchiveModel(codec), ArraySource(images), file, per_block=70, verify=False)
        assert file.getvalue() == archive, f"another archive: {setting}"
        back, lost = decompress_array(OpenArchive(Archive(archive), lambda about: codec))
        assert not lost, setting
        assert (back == images).all(), setting


def check_table(codec, content, archive, how):
    forward = IntegerColumns.forward
    for batch, threads, fast, *_ in PLAIN[:1] if how else PLAIN[1:2]:
        torch.set_num_threads(threads)
        torch.backends.mkldnn.set_flags(fast)
        IntegerColumns.forward = in_parts(batch, torch.compile(forward) if how else forward)
        file = io.BytesIO()
        compress(ArchiveModel(codec), csv_source(content), file, verify=False)
        assert file.getvalue() == archive, f"another archive of a table: {batch=} {threads=} {fast=}"
        assert decompress_table(OpenArchive(Archive(archive), lambda about: codec)) == (content, [])


def in_parts(batch, forward):
    def split(self, x, given, *context):
        inputs = [x, given, *(t for t in context if t is not None)]
        return torch.cat([forward(self, *(t[some] for t in inputs)) for some in torch.arange(len(x)).split(batch)])

    return split


if __name__ == "__main__":
    main(*sys.argv[1:])
