"""Texts compressed without loss: ours against xz, bz2, zstd, brotli and PPMd, the same bytes in the same run.

    python bench/text_codec.py [--data english json python logs text8 "text8 primed"] [--files 8] [--priming 10000000]

English texts, JSON, Python sources and logs: files of 10 kB to 1 MB from what is installed here (chosen by a hash of their names;
our own package is left out), and logs made by a script; ours is the whole archive as `anyorder compress` writes it, with its
frame. `text8`: the last 4,000,000 of the 74M characters, by themselves; `text8 primed`: after the end of the first 66M. Bytes,
bits a character and kB/s of CPU time both ways; everything is decoded and compared. brotli and pyppmd are left out if they are
not installed.
"""

import bz2
import hashlib
import importlib.util
import io
import lzma
import os
import random
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import zstandard
from results import Results, flags

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.coding import Archive
from anyorder.modalities.text.codec.engine import is_fast
from anyorder.modalities.text.codec.text_archives import text_source, unpack_text
from anyorder.modalities.text.codec.text_codec import TextCodec

Method = tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]
TEST = 4_000_000  # characters of text8 at its end; as many before them are left to others for validation
PLACES = [sysconfig.get_path("purelib"), "/usr/share", "/usr/lib/python3"]
KINDS = {"english": (".md", ".rst", ".txt", "METADATA"), "json": (".json",), "python": (".py",)}
LEAST, MOST = 10_000, 1_000_000
LEFT_OUT = ("anyorder", "licens", "copying", "vocab", "/tests/data", "entry_points", "RECORD")


def main() -> None:
    parser = flags(__doc__, [*KINDS, "logs", "text8", "text8 primed"])
    parser.add_argument("--priming", type=int, default=10_000_000, help="characters of text8")
    parser.add_argument("--files", type=int, default=8, help="of each kind")
    args = parser.parse_args()
    title = "Texts compressed without loss (files: whole archives with a model that comes along)"
    results = Results.open("text_codec", args, title, keys=("text", "method"), protocol="fixed texts")
    if not is_fast():
        raise SystemExit('Without numba this takes hours: pip install "anyorder[fast]"')
    TextCodec().encode(b"compiled before anything is timed")
    files = chosen(args.files) if set(args.tables) & {*KINDS, "logs"} else {}
    for text in args.tables:
        if text in files:
            todo = {"anyorder": archive_methods(TextCodec.shipped())} | peers()
            parts = list(files[text].values())
            results.note(f"{text}: {', '.join(files[text])}.")
        else:
            whole = text8()
            parts = [whole[-TEST:]]
            priming = whole[: len(whole) - 2 * TEST][-args.priming :] if text == "text8 primed" else b""
            todo = {"anyorder": methods(TextCodec(priming))} | ({} if priming else peers())
        for name, method in todo.items():
            if not results.has(text=text, method=name, seed=0):
                results.add(measured(method, parts), text=text, method=name, seed=0)
    results.print()


def measured(method: Method, parts: list[bytes]) -> dict[str, float]:
    """All parts, each by itself; the first call makes a primed model ready and is not timed."""
    method[0](parts[0][:1])
    size, start = sum(map(len, parts)), time.process_time()
    packed = [method[0](part) for part in parts]
    between = time.process_time()
    assert [method[1](one) for one in packed] == parts
    there, back, taken = between - start, time.process_time() - between, sum(map(len, packed))
    rates = {"kB/s": size / 1e3 / there, "kB/s back": size / 1e3 / back}
    return {"original": size, "bytes": taken, "bits a character": 8 * taken / size, **rates}


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
