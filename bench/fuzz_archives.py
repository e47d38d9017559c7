"""Hostile archives: damaged and forged ones, for as long as one likes. None may crash, hang, take much memory or lie.

    python bench/fuzz_archives.py [--minutes 10] [--seed 0]

Half of the archives are damaged: bits flipped, bytes set, pieces cut out, doubled or moved. The other half are forged: the frame
and its checksums are right, but the description or a block is not what it was. Damaged ones must give back what was in them
except for what they say is lost; forged ones must be refused, or give something, with errors of ours only.
"""

import argparse
import copy
import io
import json
import random
import resource
import time
from collections import Counter
from typing import Any

import numpy as np
import torch

from anyorder.codecs import ArraySource, ImageCodec, Keeper, OpenArchive, Stage, compress, decompress_array
from anyorder.codecs.learning import frozen, untrained
from anyorder.codecs.pyramid import plans
from anyorder.coding import Archive, ArchiveWriter
from anyorder.data import ImageEncoder
from anyorder.errors import AnyOrderError

VALUES: list[Any] = [None, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, "", "x", "../x", [], {}, [10**9] * 3, True, "<f8", "|O", "folder"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng, seen, slowest = random.Random(args.seed), Counter[str](), 0.0
    codec, images = small_codec(), np.random.default_rng(0).integers(0, 17, (30, 8, 9)).astype(np.uint8)
    wholes = [archived(Keeper(codec, inside=inside), images) for inside in (False, True)]
    before, end = peak(), time.monotonic() + 60 * args.minutes
    while time.monotonic() < end:
        whole, damaged = rng.choice(wholes), rng.random() < 0.5
        raw = damage(whole, rng) if damaged else forge(whole, rng)
        start = time.monotonic()
        seen[outcome(raw, codec, images, damaged)] += 1
        slowest = max(slowest, time.monotonic() - start)
    print(f"{sum(seen.values())} archives, seed {args.seed}: {dict(seen)}")
    print(f"the slowest took {slowest:.2f} s; the largest memory grew by {(peak() - before) / 1024:.0f} MB")


def outcome(raw: bytes, codec: ImageCodec, images: np.ndarray[Any, Any], damaged: bool) -> str:
    """What happened; anything that is not one of our errors ends the run."""
    try:
        archive = OpenArchive(Archive(raw), lambda about: codec)
        back, lost = decompress_array(archive)
    except AnyOrderError as error:
        return f"refused: {type(error).__name__}"
    if not damaged:
        return "forged, and something came back"
    right = [k for k in range(len(back)) if not any(k in one.items for one in lost)]
    assert (back[right] == images[right]).all(), "wrong images came back as right ones"
    assert lost or archive.archive.damage or np.array_equal(back, images), "damage was not noticed"
    return "damaged, the rest saved" if lost else "damaged, nothing lost"


def damage(whole: bytes, rng: random.Random) -> bytes:
    raw = bytearray(whole)
    for _ in range(rng.choice([1, 1, 1, 2, 10])):
        if not raw:
            break
        place, other, length = rng.randrange(len(raw)), rng.randrange(len(raw)), rng.choice([1, 4, 50, 5000])
        match rng.randrange(6):
            case 0 | 1:
                raw[place] ^= 1 << rng.randrange(8)
            case 2:
                raw[place : place + length] = rng.randbytes(length)
            case 3:
                del raw[place : place + length]
            case 4:
                raw[other:other] = raw[place : place + length]
            case _:
                del raw[place:]
    return bytes(raw)


def forge(whole: bytes, rng: random.Random) -> bytes:
    archive = Archive(whole)
    about, blocks = json.loads(json.dumps(archive.about)), [block.content or b"" for block in archive.blocks()]
    for _ in range(rng.choice([1, 1, 2, 5])):
        if rng.random() < 0.5:
            change(about, rng)
        else:
            blocks[rng.randrange(len(blocks))] = damage(rng.choice(blocks), rng)
    file = io.BytesIO()
    with ArchiveWriter(file, about) as out:
        for block in blocks:
            out.add(block)
    return file.getvalue()


def change(about: dict[str, Any], rng: random.Random) -> None:
    """One value of the description, somewhere."""
    place: Any = about
    while True:
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        place[key] = copy.deepcopy(rng.choice(VALUES))
        return


def small_codec() -> ImageCodec:
    encoder = ImageEncoder(8, 9, 1, 17)
    return ImageCodec(encoder, tuple(Stage(plan, frozen(untrained(encoder, plan, 0))) for plan in plans(encoder)))


def archived(keeper: Keeper, images: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    compress(keeper, ArraySource(images), file, per_block=7)
    return file.getvalue()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
