"""Images compressed without loss: ours against PNG, WebP, JPEG XL, zstd, xz and brotli, the same images in the same run.

    python bench/compression.py --data mnist fashion-mnist digits --images 1000

Test images, which no model has seen. Bits a value: with every image in a file of its own, and with all in one archive. For
picture formats that archive is one square sheet of all images, for the others all bytes one after the other; black and white
images are given to them with one bit a pixel. Ours: one archive with blocks of a single image, each of which can be read
alone, and one with blocks of 256; the last column counts the model, too. Images a second on one thread, of the archive. JPEG
XL needs `pillow-jxl-plugin`, brotli `brotli`; what is not installed is left out. Every method's images are decoded and compared.
"""

import argparse
import importlib.util
import io
import lzma
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import zstandard
from numpy.typing import NDArray
from PIL import Image
from results import Results, flags
from summary import Score

from anyorder.archives import ArchiveModel, Codec, OpenArchive, compress, load_codec, to_bytes
from anyorder.coding import Archive
from anyorder.estimator import AnyOrder
from anyorder.io import datasets
from anyorder.modalities.images.image_archives import ArraySource, decompress_array

Pixels = NDArray[Any]
SETS = {
    "mnist": datasets.static_mnist,
    "fashion-mnist": datasets.fashion_mnist,
    "digits": datasets.digits,
    "cifar10": datasets.cifar10,
}
PAPERS = "CIFAR-10, papers' bits a value: PNG 5.87, JPEG2000 5.20, FLIF 4.19, Bit-Swap 3.82, HiLLoC 3.56, IDF 3.32, IDF++ 3.26"


@dataclass(frozen=True)
class Coder:
    """Bytes from images and back, all of them at once."""

    encode: Callable[[Pixels], bytes]
    decode: Callable[[bytes, Pixels], Pixels]  # the images are for their shape only
    alone: Callable[[Pixels], bytes] | None = None  # an archive in which every image stands by itself


def picture(**how: Any) -> Coder:
    """A picture format; several images become one square sheet of them."""

    def encode(images: Pixels) -> bytes:
        whole, out = sheet(images), io.BytesIO()
        image = Image.fromarray(whole * np.uint8(255)).convert("1") if images.max() <= 1 else Image.fromarray(whole)
        (image.convert("L") if how["format"] in ("WEBP", "JXL") and image.mode == "1" else image).save(out, **how)
        return out.getvalue()

    def decode(content: bytes, images: Pixels) -> Pixels:
        with Image.open(io.BytesIO(content)) as image:
            grey = np.asarray(image.convert("L" if images.ndim == 3 else "RGB"))
        return cut(grey // (255 if images.max() <= 1 else 1), images).astype(images.dtype)

    return Coder(encode, decode)


def sheet(images: Pixels) -> Pixels:
    side = math.isqrt(len(images) - 1) + 1
    full = np.concatenate([images, np.zeros((side**2 - len(images), *images.shape[1:]), images.dtype)])
    height, width, *more = images.shape[1:]
    return full.reshape(side, side, *images.shape[1:]).swapaxes(1, 2).reshape(side * height, side * width, *more)


def cut(whole: Pixels, images: Pixels) -> Pixels:
    """What `sheet` put together."""
    side = math.isqrt(len(images) - 1) + 1
    height, width, *more = images.shape[1:]
    parts = whole.reshape(side, height, side, width, *more).swapaxes(1, 2).reshape(side**2, height, width, *more)
    return parts[: len(images)]


def plain(squeeze: Callable[[bytes], bytes], expand: Callable[[bytes], bytes]) -> Coder:
    """A coder of bytes."""

    def encode(images: Pixels) -> bytes:
        return squeeze((np.packbits(images) if images.max() <= 1 else images).tobytes())

    def decode(content: bytes, images: Pixels) -> Pixels:
        raw = np.frombuffer(expand(content), np.uint8)
        return (np.unpackbits(raw)[: images.size] if images.max() <= 1 else raw).reshape(images.shape)

    return Coder(encode, decode)


def peers() -> dict[str, Coder]:
    zstd = zstandard.ZstdCompressor(level=19)
    found = {
        "PNG": picture(format="PNG", optimize=True),
        "WebP": picture(format="WEBP", lossless=True, quality=100, method=6),
        "zstd -19": plain(zstd.compress, zstandard.ZstdDecompressor().decompress),
        "xz": plain(lambda data: lzma.compress(data, preset=9 | lzma.PRESET_EXTREME), lzma.decompress),
    }
    if importlib.util.find_spec("brotli"):
        import brotli

        found["brotli"] = plain(brotli.compress, brotli.decompress)
    if importlib.util.find_spec("pillow_jxl"):
        import pillow_jxl  # noqa: F401

        found |= {f"JPEG XL, effort {e}": picture(format="JXL", lossless=True, effort=e) for e in (7, 9)}
    return found


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open(
        "compression", args, "Images compressed", ("images", "method"), protocol="test images that no model has seen"
    )
    results.note(PAPERS)
    for seed in args.seeds:
        for name in args.tables:
            images = SETS[name]().test
            images = images[np.random.default_rng(seed).permutation(len(images))[: round(args.images * args.effort)]]
            codec = load_codec(args.model) if args.model else AnyOrder.load(name).known_codec_
            for method, (coder, model) in {
                "anyorder": ours(codec),
                **{name: (coder, 0) for name, coder in peers().items()},
            }.items():
                if not results.has(images=name, method=method, seed=seed):
                    results.add(measured(images, coder, model), images=name, method=method, seed=seed)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, SETS, ["mnist", "fashion-mnist", "digits"])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--model", help="a file with a codec, in place of the one that is shipped")
    args: argparse.Namespace = parser.parse_args()
    return args


def measured(images: Pixels, coder: Coder, model: int) -> dict[str, Score]:
    start = time.perf_counter()
    together = coder.encode(images)
    between = time.perf_counter()
    same = np.array_equal(coder.decode(together, images), images)
    end = time.perf_counter()
    if not same:
        raise SystemExit("what came back is not what went in")
    alone = len(coder.alone(images)) if coder.alone else sum(len(coder.encode(images[k : k + 1])) for k in range(len(images)))
    sizes = {"bits, a file each": alone, "bits, one archive": len(together), "bits, with the model": len(together) + model}
    rates = {"encoded/s": len(images) / (between - start), "decoded/s": len(images) / (end - between)}
    return {**{name: 8 * size / images.size for name, size in sizes.items()}, **rates}


def ours(codec: Codec) -> tuple[Coder, int]:
    keeper = ArchiveModel(codec)

    def encode(images: Pixels, per_block: int = 256) -> bytes:
        file = io.BytesIO()
        compress(keeper, ArraySource(images), file, per_block, verify=False)
        return file.getvalue()

    def decode(content: bytes, images: Pixels) -> Pixels:
        found, lost = decompress_array(OpenArchive(Archive(content), lambda about: codec))
        assert not lost
        return found

    return Coder(encode, decode, lambda images: encode(images, 1)), len(to_bytes(codec))


if __name__ == "__main__":
    main()
