"""Tables compressed without loss: ours against gzip, zstd, xz, brotli, Parquet and pcodec, the same files in the same run.

    python bench/table_compression.py --tables adult california power energy nltcs --seeds 0

Bytes of the whole table. Ours is the archive of `anyorder compress FILE` (every byte of the file comes back): a model is learned
from the table itself and lies in the archive, or zstd does the work if that is smaller; the column "without the model" is what
more rows of the kind would cost. gzip, zstd, xz and brotli see the file; Parquet (zstd, level 19) and pcodec (level 12; columns
of text under zstd) see the columns. pcodec needs `pcodec`, brotli `brotli`; what is not installed is left out. Every archive
of ours is decoded and compared. Rows a second on one thread; training is counted apart.
"""

import argparse
import gzip
import importlib.util
import io
import lzma
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import zstandard
from results import Results, flags

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.coding import Archive
from anyorder.modalities.tables.codec.table_archives import TableSource, csv_source, decompress_table
from anyorder.modalities.tables.codec.table_codec import fit_own_table_codec

FILES = {
    "adult": "tabular/adult_train.csv.gz",
    "california": "tabular/california_housing.csv.gz",
    "power": "tabular/household_power_200k.csv.gz",
    "energy": "uci/energy.csv",
    "yacht": "uci/yacht.csv",
    "concrete": "uci/concrete.csv",
    "wine": "uci/wine_red.csv",
    **{name: f"debd/{name}.npz" for name in ("nltcs", "plants", "jester", "bnetflix", "accidents")},
}


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("table_compression", args, "Tables compressed", ("table", "rows", "coder"), protocol="whole files")
    for seed in args.seeds:
        for name in args.tables:
            content = content_of(name)
            frame = pd.read_csv(io.BytesIO(content))
            key: dict[str, Any] = {"table": name, "rows": f"{len(frame)} x {frame.shape[1]}", "seed": seed}
            if results.has(coder="anyorder", **key):
                continue
            size, without, (training, into, out) = ours(content, args.effort, seed)
            for coder, encode in peers().items():
                start = time.perf_counter()
                found = encode(content, frame)
                rate = len(frame) / (time.perf_counter() - start)
                results.add({"bytes": found, "anyorder / it": size / found, "rows/s in": rate}, coder=coder, **key)
            rates = {"rows/s in": len(frame) / into, "rows/s out": len(frame) / out, "trained, s": training}
            results.add({"bytes": size, "without the model": without, **rates}, coder="anyorder", **key)
    results.print()


def arguments() -> argparse.Namespace:
    args: argparse.Namespace = flags(__doc__, FILES).parse_args()
    return args


def content_of(name: str) -> bytes:
    """The table as a file of comma-separated values."""
    path = Path(os.environ.get("ANYORDER_DATA", "../shared/data")) / FILES[name]
    if path.suffix == ".npz":
        with np.load(path) as parts:
            rows = np.concatenate([parts[part] for part in ("train", "valid", "test")]).astype(int)
        return pd.DataFrame(rows, columns=[f"v{k}" for k in range(rows.shape[1])]).to_csv(index=False).encode()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def ours(content: bytes, effort: float, seed: int) -> tuple[int, int | str, tuple[float, float, float]]:
    """Bytes with the model, bytes without it, and the seconds of training, of encoding and of decoding."""
    source = csv_source(content)
    assert isinstance(source, TableSource)
    plain, plain_seconds = timed(lambda: archived(ArchiveModel(), source))
    codec, training = timed(lambda: fit_own_table_codec(source.names, source.texts, len(plain), effort, seed))
    archive, encoding = plain, plain_seconds
    if codec is not None:
        archive, encoding = timed(lambda: archived(ArchiveModel(codec, inside=True), source))
    if len(plain) <= len(archive):
        archive, encoding, codec = plain, plain_seconds, None
    (back, lost), decoding = timed(lambda: decompress_table(OpenArchive(Archive(archive))))
    assert back == content and not lost  # noqa: PT018
    without = "(zstd)" if codec is None else len(archive) - len(Archive(archive).block(0).content or b"")
    return len(archive), without, (training, encoding, decoding)


def timed(do: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return do(), time.perf_counter() - start


def archived(keeper: ArchiveModel, source: object) -> bytes:
    file = io.BytesIO()
    compress(keeper, source, file, verify=False)  # type: ignore[arg-type]
    return file.getvalue()


def peers() -> dict[str, Callable[[bytes, pd.DataFrame], int]]:
    found: dict[str, Callable[[bytes, pd.DataFrame], int]] = {
        "gzip -9": lambda content, _: len(gzip.compress(content, 9)),
        "zstd -19": lambda content, _: len(zstandard.ZstdCompressor(level=19).compress(content)),
        "xz -9e": lambda content, _: len(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)),
        "Parquet, zstd": lambda _, frame: parquet(frame),
    }
    if importlib.util.find_spec("brotli"):
        import brotli

        found["brotli 11"] = lambda content, _: len(brotli.compress(content, quality=11))
    if importlib.util.find_spec("pcodec"):
        found["pcodec, zstd"] = pcodec
    return found


def parquet(frame: pd.DataFrame) -> int:
    out = io.BytesIO()
    frame.to_parquet(out, compression="zstd", compression_level=19)
    return len(out.getvalue())


def pcodec(_: bytes, frame: pd.DataFrame) -> int:
    from pcodec import ChunkConfig, standalone

    total = 0
    for _, column in frame.items():
        if column.dtype.kind in "if":
            total += len(standalone.simple_compress(column.to_numpy(), ChunkConfig(compression_level=12)))
        else:
            total += len(zstandard.ZstdCompressor(level=19).compress("\n".join(map(str, column)).encode()))
    return total


if __name__ == "__main__":
    main()
