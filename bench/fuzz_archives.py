"""Hostile archives: damaged and forged ones, for as long as one likes. None may crash, hang, take much memory or lie.

    python bench/fuzz_archives.py --data images folders tables --seeds 0 --minutes 10

Half of the archives are damaged: bits flipped, bytes set, pieces cut out, doubled or moved. The other half are forged: the frame
and its checksums are right, but the description or a block is not what it was. Damaged ones must give back what was in them
except for what they say is lost; forged ones must be refused, or give something, with errors of ours only.
"""

import copy
import io
import json
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from results import Results, flags

from anyorder.archives import ArchiveModel, Codec, Lost, OpenArchive, Source, compress
from anyorder.coding import Archive, ArchiveWriter
from anyorder.errors import AnyOrderError
from anyorder.modalities.images.image_archives import ArraySource, FolderSource, decompress_array, decompress_folder
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.pyramid_codec import ImageCodec, Stage, frozen_stage, plans, untrained_stage
from anyorder.modalities.tables.codec.table_archives import FrameSource, decompress_table
from anyorder.modalities.tables.codec.table_codec import fit_table_codec
from anyorder.modalities.text.codec.text_archives import text_source, unpack_text
from anyorder.modalities.text.codec.text_codec import TextCodec

VALUES: list[Any] = [None, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, "", "x", "../x", [], {}, [10**9] * 3, True, "<f8", "|O", "folder"]


def main() -> None:
    parser = flags(__doc__, SUBJECTS)
    parser.add_argument("--minutes", type=float, default=10, help="of each kind")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = Results.open("fuzz_archives", args, "Hostile archives", ("of",), protocol="random damage")
    for seed in args.seeds:
        for name in args.tables:
            results.add(attacked(SUBJECTS[name](), 60 * args.minutes * args.effort, seed), of=name, seed=seed)
    results.print()


def attacked(subject: "Subject", seconds: float, seed: int) -> dict[str, float]:
    """How many archives there were, and what became of them."""
    rng, seen, slowest = random.Random(seed), Counter[str](), 0.0
    before, end = peak(), time.monotonic() + seconds
    while time.monotonic() < end:
        damaged = rng.random() < 0.5
        whole = rng.choice(subject.wholes)
        raw = damage(whole, rng) if damaged else forge(whole, rng)
        start = time.monotonic()
        seen[outcome(raw, subject, damaged)] += 1
        slowest = max(slowest, time.monotonic() - start)
    return {"archives": seen.total(), **dict(sorted(seen.items())), "slowest, s": slowest, "more MB": (peak() - before) / 1024}


@dataclass(frozen=True)
class Subject:
    """Archives of something, the codec they were made with, and whether what came back is right but for what is lost."""

    wholes: list[bytes]
    codec: Codec
    decode: Callable[[OpenArchive], tuple[Any, list[Lost]]]
    right: Callable[[Any, set[int]], bool]


def outcome(raw: bytes, subject: Subject, damaged: bool) -> str:
    """What happened; anything that is not one of our errors ends the run."""
    try:
        archive = OpenArchive(Archive(raw), lambda about: subject.codec)
        back, lost = subject.decode(archive)
    except AnyOrderError as error:
        return f"refused: {type(error).__name__}"
    if not damaged:
        return "forged, and something came back"
    assert subject.right(back, {k for one in lost for k in one.items}), "wrong items came back as right ones"
    assert lost or archive.archive.damage or raw in subject.wholes, "damage was not noticed"
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


def images() -> Subject:
    encoder = ImageEncoder(8, 9, 1, 17)
    codec = untrained_codec(encoder)
    pixels = np.random.default_rng(0).integers(0, 17, (30, 8, 9)).astype(np.uint8)

    def right(back: Any, lost: set[int]) -> bool:
        kept = [k for k in range(len(back)) if k not in lost]
        return len(back) + len(lost) >= len(pixels) and bool((back[kept] == pixels[kept]).all())

    return Subject(
        [archived(ArchiveModel(codec, inside=inside), ArraySource(pixels)) for inside in (False, True)],
        codec,
        decompress_array,
        right,
    )


def untrained_codec(encoder: ImageEncoder) -> ImageCodec:
    return ImageCodec(encoder, tuple(Stage(plan, frozen_stage(untrained_stage(encoder, plan, 0))) for plan in plans(encoder)))


def folders() -> Subject:
    """Images of two sizes and other files, some in a folder of their own; nothing may be written anywhere else."""
    encoder, rng = ImageEncoder(8, 9, 1, 256), np.random.default_rng(0)
    codec = untrained_codec(encoder)
    with tempfile.TemporaryDirectory() as home:
        Path(home, "more").mkdir()
        for k in range(20):
            size = (8, 9) if k % 7 else (5, 5)
            Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(Path(home, "more" if k % 3 else "", f"{k}.png"))
        Path(home, "notes.txt").write_text("as they are")
        source, files = FolderSource(Path(home)), contents(Path(home))
        wholes = [archived(ArchiveModel(codec, inside=inside), source) for inside in (False, True)]

    def decode(archive: OpenArchive) -> tuple[Any, list[Lost]]:
        with tempfile.TemporaryDirectory() as home:
            lost = decompress_folder(archive, Path(home, "out"))
            assert [path.name for path in Path(home).iterdir()] == ["out"], "something was written elsewhere"
            return contents(Path(home, "out")), lost

    def right(back: Any, lost: set[int]) -> bool:
        kept = {name for k, name in enumerate(source.names) if k not in lost}
        return kept == set(back) and all(back[name] == files[name] for name in kept)

    return Subject(wholes, codec, decode, right)


def contents(folder: Path) -> dict[str, Any]:
    """Of all files, by name: the pixels of images, the bytes of others."""
    return {path.relative_to(folder).as_posix(): content(path) for path in folder.rglob("*") if path.is_file()}


def content(path: Path) -> Any:
    if path.suffix != ".png":
        return path.read_bytes()
    try:
        with Image.open(path) as image:
            return image.mode, image.size, image.tobytes()
    except (OSError, SyntaxError, ValueError):
        return path.read_bytes()


def tables() -> Subject:
    rng = np.random.default_rng(0)
    walk = np.where(rng.random(60) < 0.1, np.nan, np.cumsum(rng.integers(-3, 4, 60)) / 4)
    town = rng.choice(np.array(["Oslo", "Bergen", None], dtype=object), 60)
    frame = pd.DataFrame({"walk": walk, "town": town, "number": rng.integers(0, 2**40, 60)})
    frame["odd"] = ["unknown" if k % 20 == 7 else str(k % 9) for k in range(60)]
    source = FrameSource(frame)
    codec = fit_table_codec(source.names, source.texts, effort=10 / 1500)

    def right(back: Any, lost: set[int]) -> bool:
        return bool(back.equals(frame.drop(index=sorted(lost))))

    return Subject(
        [archived(ArchiveModel(codec, inside=inside), source) for inside in (False, True)], codec, decompress_table, right
    )


def texts() -> Subject:
    """Short ones, by the model of text; without numba a second each."""
    codec = TextCodec(b"one thing after the other, and then ")
    listed = [f"{k} thing{'s' * (k != 1)} after the other, \N{SNOWMAN} and then {k * k} more" for k in range(20)]

    def right(back: Any, lost: set[int]) -> bool:
        return bool(back == [text for k, text in enumerate(listed) if k not in lost])

    wholes = [archived(ArchiveModel(codec, inside=inside), text_source(listed)) for inside in (False, True)]
    return Subject(wholes, codec, unpack_text, right)


SUBJECTS: dict[str, Callable[[], Subject]] = {"images": images, "folders": folders, "tables": tables, "texts": texts}


def archived(keeper: ArchiveModel, source: Source) -> bytes:
    file = io.BytesIO()
    compress(keeper, source, file, per_block=7)
    return file.getvalue()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
