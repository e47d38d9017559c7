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
PLAIN = [(256, 1, True), (7, 2, False), (63, 2, True), (64, 1, False), (3, 2, True), (1, 1, True)]  # batch, threads, oneDNN
COMPILED = [(256, 1, True)]


def main(codec_file, images_file, archive_file, *how):
    codec, images, archive = load_codec(codec_file), np.load(images_file), Path(archive_file).read_bytes()
    for batch, threads, fast in COMPILED if how else PLAIN:
        torch.set_num_threads(threads)
        torch.backends.mkldnn.set_flags(fast)
        IntegerUNet.forward = in_parts(batch, torch.compile(FORWARD) if how else FORWARD)
        file = io.BytesIO()
        compress(Keeper(codec), ArraySource(images), file, per_block=70, verify=False)
        assert file.getvalue() == archive, f"another archive: {batch=} {threads=} {fast=}"
        back, lost = decompress_array(ImageArchive(Archive(archive), lambda about: codec))
        assert not lost, f"{batch=} {threads=} {fast=}"
        assert (back == images).all(), f"{batch=} {threads=} {fast=}"


def in_parts(batch, forward):
    def split(self, x, given, context=None):
        return torch.cat([forward(self, x[some], given[some]) for some in torch.arange(len(x)).split(batch)])

    return split


if __name__ == "__main__":
    main(*sys.argv[1:])
