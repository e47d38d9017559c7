"""Texts compressed without loss: ours against xz, bz2, zstd, brotli and PPMd, the same bytes in the same run.

    python bench/text_codec.py [--of files text8 primed] [--characters 4000000] [--priming 10000000] [--files 8]

`files`: some English texts, JSON, Python sources and logs of 10 kB to 1 MB from what is installed here (chosen by a hash of
their names; our own package is left out) and logs made by a script; ours is the whole archive as `anyorder compress` writes it,
with its frame. `text8`: the last 4,000,000 of the 74M characters, by themselves. `primed`: the same after the end of the first
66M. Bytes, bits a character and kB/s of CPU time both ways; everything is decoded and compared. brotli and pyppmd are left out
if they are not installed.
"""

import argparse
import bz2
import hashlib
import importlib.util
import io
import lzma
import os
import random
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import zstandard
from results import write_results

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.coding import Archive
from anyorder.modalities.text.codec import TextCodec, text_source, unpack_text
from anyorder.modalities.text.codec.engine import is_fast

sys.path.pop(0)  # the folder of this file: numba asks for a module `coverage`, and would take bench/coverage.py
Method = tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]
OUT = Path(__file__).parent / "results" / "text_codec.json"
PLACES = [sysconfig.get_path("purelib"), "/usr/share", "/usr/lib/python3"]
KINDS = {"english": (".md", ".rst", ".txt", "METADATA"), "json": (".json",), "python": (".py",)}
LEAST, MOST = 10_000, 1_000_000
LEFT_OUT = ("anyorder", "licens", "copying", "vocab", "/tests/data", "entry_points", "RECORD")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", nargs="+", choices=("files", "text8", "primed"), default=["files", "text8", "primed"])
    parser.add_argument("--characters", type=int, default=4_000_000)
    parser.add_argument("--priming", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=8, help="of each kind")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if not is_fast():
        raise SystemExit('Without numba this takes hours: pip install "anyorder[fast]"')
    TextCodec().encode(b"compile")
    scores = dict[str, Any]()
    for name in args.of:
        scores[name] = {"files": of_files, "text8": of_text8, "primed": of_primed}[name](args)
        write_results(args.out, "text_codec", vars(args), scores)


def of_files(args: argparse.Namespace) -> dict[str, Any]:
    """Bytes of all files of each kind, and in total."""
    codec = TextCodec.shipped()
    ours = {"ours": archive_methods(codec)}
    scores = dict[str, Any]()
    for kind, files in chosen(args.files).items():
        sizes = [{name: measured(method, text)["bytes"] for name, method in (ours | peers()).items()} for text in files.values()]
        total = {name: sum(size[name] for size in sizes) for name in sizes[0]}
        scores[kind] = {"files": list(files), "original": sum(map(len, files.values())), **total}
        print(kind, {name: size for name, size in scores[kind].items() if name != "files"}, flush=True)
    scores["total"] = {name: sum(score[name] for score in scores.values()) for name in ["original", *ours, *peers()]}
    print("total", scores["total"], flush=True)
    return scores


def of_text8(args: argparse.Namespace) -> dict[str, Any]:
    text = text8()[-4_000_000:][: args.characters]
    return {name: told(name, measured(method, text)) for name, method in ({"ours": methods(TextCodec())} | peers()).items()}


def of_primed(args: argparse.Namespace) -> dict[str, Any]:
    whole = text8()
    codec = TextCodec(whole[:66_000_000][-args.priming :])
    start = time.process_time()
    codec.encode(b"")
    seconds = time.process_time() - start
    return {"ours": told("primed", measured(methods(codec), whole[-4_000_000:][: args.characters])), "priming seconds": seconds}


def told(name: str, found: dict[str, float]) -> dict[str, float]:
    print(name, {key: round(value, 4) for key, value in found.items()}, flush=True)
    return found


def measured(method: Method, text: bytes) -> dict[str, float]:
    start = time.process_time()
    packed = method[0](text)
    between = time.process_time()
    assert method[1](packed) == text
    there, back = between - start, time.process_time() - between
    rates = {"kB/s": len(text) / 1e3 / there, "kB/s back": len(text) / 1e3 / back}
    return {"bytes": len(packed), "bits a character": 8 * len(packed) / len(text), **rates}


def text8() -> bytes:
    with lzma.open(Path(os.environ["ANYORDER_DATA"]) / "text" / "text8_first74M.txt.xz") as file:
        return file.read()


# Files


def chosen(count: int) -> dict[str, dict[str, bytes]]:
    """For every kind so many files."""
    everything = sorted({str(path) for place in PLACES for path in Path(place).rglob("*")}, key=shuffled)
    found = {kind: dict[str, bytes]() for kind in KINDS}
    for path in everything:
        kind = next((kind for kind, ends in KINDS.items() if path.endswith(ends)), None)
        if kind is None or len(found[kind]) == count or any(word in path for word in LEFT_OUT) or not Path(path).is_file():
            continue
        if LEAST <= Path(path).stat().st_size <= MOST:
            found[kind][Path(path).name] = Path(path).read_bytes()
    return found | {"logs": dict(logs(count))}


def shuffled(path: str) -> str:
    return hashlib.sha256(Path(path).name.encode()).hexdigest()


def logs(count: int) -> Iterator[tuple[str, bytes]]:
    """This system's own, and others of a made-up shop, as many in all."""
    own = [path for path in sorted(Path("/var/log").rglob("*.log")) if LEAST <= path.stat().st_size <= MOST][: count // 2]
    yield from ((path.name, path.read_bytes()) for path in own)
    for k in range(count - len(own)):
        yield f"shop-{k}.log", made_log(random.Random(k), 100 * 2**k % 6000 + 200)


def made_log(rng: random.Random, lines: int) -> bytes:
    """Orders, sessions and failures, with times that go on."""
    now, out = 1_700_000_000, list[str]()
    for _ in range(lines):
        now += rng.randrange(20)
        stamp = time.strftime("%d.%m.%Y %H:%M:%S", time.gmtime(now))
        what = [
            f"order {rng.randrange(10**6)} of customer {rng.randrange(5000)}: {rng.random() * 300:.2f} EUR",
            f"session {rng.getrandbits(64):016x} opened from 10.{rng.randrange(4)}.{rng.randrange(256)}.{rng.randrange(256)}",
            f"stock of article A-{rng.randrange(900):04} is down to {rng.randrange(30)}",
            f"payment gateway answered {rng.choice([200, 200, 200, 402, 503])} after {rng.expovariate(1 / 80):.1f} ms",
        ]
        out.append(f"{stamp} shop[{rng.choice([812, 813])}] {rng.choice(what)}")
    return "\n".join(out).encode()


# Methods


def archive_methods(codec: TextCodec) -> Method:
    """The whole archive, as `anyorder compress` writes it."""

    def there(text: bytes) -> bytes:
        with TemporaryDirectory() as folder:
            (path := Path(folder) / "file.txt").write_bytes(text)
            found = []
            for model in (ArchiveModel(), ArchiveModel(codec, inside=True)):
                compress(model, text_source(path), file := io.BytesIO(), verify=False)
                found.append(file.getvalue())
            return min(found, key=len)

    return there, lambda packed: unpack_text(OpenArchive(Archive(packed)))[0]


def methods(codec: TextCodec) -> Method:
    """The stream, with four bytes for its length."""
    return (
        lambda text: len(text).to_bytes(4, "big") + codec.encode(text),
        lambda packed: codec.decode(packed[4:], int.from_bytes(packed[:4], "big")),
    )


def peers() -> dict[str, Method]:
    found: dict[str, Method] = {
        "xz -9e": (lambda text: lzma.compress(text, preset=9 | lzma.PRESET_EXTREME), lzma.decompress),
        "bz2 -9": (bz2.compress, bz2.decompress),
        "zstd -19": (zstandard.ZstdCompressor(level=19).compress, zstandard.ZstdDecompressor().decompress),
    }
    if importlib.util.find_spec("brotli"):
        import brotli

        found["brotli -11"] = lambda text: brotli.compress(text, quality=11, lgwin=24), brotli.decompress
    if importlib.util.find_spec("pyppmd"):
        import pyppmd

        found["PPMd -o6"] = lambda text: ppmd(pyppmd, text), lambda packed: unppmd(pyppmd, packed)
    return found


def ppmd(pyppmd: Any, text: bytes) -> bytes:
    """Variant H, as in 7z, with four bytes for the length."""
    encoder = pyppmd.Ppmd7Encoder(6, 2**28)
    return len(text).to_bytes(4, "big") + encoder.encode(text) + encoder.flush()


def unppmd(pyppmd: Any, packed: bytes) -> bytes:
    return pyppmd.Ppmd7Decoder(6, 2**28).decode(packed[4:], int.from_bytes(packed[:4], "big"))


if __name__ == "__main__":
    main()
