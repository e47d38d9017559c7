"""Run by test_settings.py in processes of their own: one archive in every setting, byte for byte, and decoded in each.

python settings_matrix.py CODEC IMAGES ARCHIVE [compile]
"""

import io
import sys
from pathlib import Path

import numpy as np
import torch

from anyorder.codecs import ArraySource, ImageArchive, Keeper, compress, decompress_array, load_codec
from anyorder.coding import Archive
from anyorder.networks import IntegerUNet

FORWARD = IntegerUNet.forward
PLAIN = [  # batch, threads, oneDNN, int8 kernels
    (256, 1, True, True),
    (7, 2, False, False),
    (63, 2, True, False),
    (64, 1, False, True),
    (3, 2, True, True),
    (1, 1, True, False),
]
COMPILED = [(256, 1, True, False)]


def main(codec_file, images_file, archive_file, *how):
    codec, images, archive = load_codec(codec_file), np.load(images_file), Path(archive_file).read_bytes()
    usable = all(stage.model.network.int8 for stage in codec.stages)
    for batch, threads, fast, in_bytes in COMPILED if how else PLAIN:
        setting = f"{batch=} {threads=} {fast=} {in_bytes=}"
        for stage in codec.stages:
            stage.model.network.int8 = in_bytes and usable
        torch.set_num_threads(threads)
        torch.backends.mkldnn.set_flags(fast)
        IntegerUNet.forward = in_parts(batch, torch.compile(FORWARD) if how else FORWARD)
        file = io.BytesIO()
        compress(Keeper(codec), ArraySource(images), file, per_block=70, verify=False)
        assert file.getvalue() == archive, f"another archive: {setting}"
        back, lost = decompress_array(ImageArchive(Archive(archive), lambda about: codec))
        assert not lost, setting
        assert (back == images).all(), setting


def in_parts(batch, forward):
    def split(self, x, given, context=None):
        return torch.cat([forward(self, x[some], given[some]) for some in torch.arange(len(x)).split(batch)])

    return split


if __name__ == "__main__":
    main(*sys.argv[1:])
