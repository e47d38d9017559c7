"""Public files, fetched once: looked for at home first, taken up where a download broke off, checked, kept."""

import gzip
import hashlib
import os
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import FormatError, InputError

DOWNLOAD_CHUNK = 2**16


@final
@dataclass(frozen=True)
class Remote:
    """A public file; without a `sha256` its reader checks what it read."""

    url: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


def folders(part: str) -> list[Path]:
    """Where the files of one data set may be: in a folder of that name in `$ANYORDER_DATA` or in the cache."""
    return [*(home / part for home in loose()), cache() / part]


def loose() -> list[Path]:
    """Where files with names of their own may lie."""
    given = os.environ.get("ANYORDER_DATA")
    return [Path(given), Path(given) / "images"] if given else []


def cache() -> Path:
    return Path(os.environ.get("ANYORDER_CACHE") or Path.home() / ".cache" / "anyorder")


def found(names: Sequence[str], places: Sequence[Path]) -> list[Path] | None:
    """All these files from the first place that has all of them."""
    for place in places:
        paths = [place / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    return None


def fetched(remote: Remote, part: str) -> Path:
    """The file in the cache, downloaded if it is not there; what is half there is gone on with."""
    path = cache() / part / remote.name
    if path.is_file():
        return path
    half = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        download(remote.url, half)
    except (urllib.error.URLError, OSError) as error:
        raise InputError(
            f"{remote.name} is not here and could not be downloaded from {remote.url} ({error}). With a connection, try again: "
            f"what has come already is kept. Without one, put the file into {path.parent} or the folder named by ANYORDER_DATA."
        ) from error
    if remote.sha256 is not None and digest(half) != remote.sha256:
        came = digest(half)
        half.unlink()
        raise FormatError(
            f"{remote.url} gave a file with the sha256 {came}; expected {remote.sha256}. It was deleted. "
            "Try again, or look for another source of the file."
        )
    half.replace(path)
    return path


def download(url: str, half: Path) -> None:
    """The rest of the file behind what is there already, with a bar on standard error."""
    done = half.stat().st_size if half.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "anyorder"} | ({"Range": f"bytes={done}-"} if done else {}))
    try:
        answer = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing lies behind: it was complete
            return
        raise
    with answer, half.open("ab" if answer.status == 206 else "wb") as file:
        done = done if answer.status == 206 else 0
        size = answer.headers.get("Content-Length")
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(url.rsplit("/", 1)[-1], total=done + int(size) if size else None, completed=done)
            while chunk := answer.read(DOWNLOAD_CHUNK):
                file.write(chunk)
                bar.advance(task, len(chunk))
        if size is not None and file.tell() < done + int(size):
            raise OSError(f"the connection ended after {file.tell()} of {done + int(size)} bytes")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Pixels = NDArray[np.uint8]
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
IDX = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


@final
@dataclass(frozen=True)
class ImageSet:
    """Images to train on and to test with, (number, height, width[, 3]) bytes, and the class of each where it is known."""

    name: str
    train: Pixels
    test: Pixels
    train_labels: Pixels | None = None
    test_labels: Pixels | None = None


def digits() -> ImageSet:
    """Handwritten digits, 8 x 8 with 17 shades, from scikit-learn: 1437 to train on and 360 to test with."""
    from sklearn.datasets import load_digits

    every = load_digits()
    images, labels = every.images.astype(np.uint8), every.target.astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[360:], order[:360]
    return ImageSet("digits", images[train], images[test], labels[train], labels[test])


def mnist() -> ImageSet:
    """MNIST in shades of grey; `images.binarised_anew` makes black and white of it, another draw at every step of training."""
    sums = (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    )
    return idx_files("mnist", "https://storage.googleapis.com/cvdf-datasets/mnist/", sums, folders("mnist"))


def static_mnist() -> ImageSet:
    """MNIST in black and white as Larochelle drew it once for all: the one that papers score. No labels.

    Test images come in an order of ours, not sorted by class as in the file, so that any first part is a fair sample.
    """
    sums = {
        "train": "43490d4d6ac9002727af4426d8748609fdb7e4094fa65ad8d681ea60082a7a5a",
        "valid": "069b4f0beb389b776478c3e872b4df71c95ac4be64d7cbe6d32e24ebac8e6d5e",
        "test": "ca0294c3b8d984c7a1dc891015a8eea6f37bae59a34e35ea0fc8c47110a8dd86",
    }
    if (kept := found(["mnist_static_binarized.npz"], everywhere("mnist"))) is not None:
        arrays = npz_arrays(kept[0], list(sums))
    else:
        names = {part: f"binarized_mnist_{part}.amat" for part in sums}
        url = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"
        paths = found(list(names.values()), everywhere("mnist")) or [fetched(Remote(url + n), "mnist") for n in names.values()]
        arrays = {part: read_amat(path) for part, path in zip(names, paths, strict=True)}
    parts = {part: np.asarray(array, dtype=np.uint8).reshape(-1, 28, 28) for part, array in arrays.items()}
    for part, array in parts.items():
        came = hashlib.sha256(array.tobytes()).hexdigest()
        if came != sums[part]:
            raise FormatError(f"The {part} images are not Larochelle's (their sha256 is {came}, expected {sums[part]}).")
    order = np.random.default_rng(0).permutation(len(parts["test"]))
    return ImageSet("static mnist", np.concatenate([parts["train"], parts["valid"]]), parts["test"][order])


def fashion_mnist() -> ImageSet:
    """Fashion-MNIST; Debian's package `dataset-fashion-mnist` has it too."""
    sums = (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    )
    url = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    return idx_files("fashion-mnist", url, sums, [*folders("fashion-mnist"), DEBIAN])


def cifar10() -> ImageSet:
    """CIFAR-10, 32 x 32 in colour."""
    if (kept := found(["cifar10.npz"], everywhere("cifar10"))) is not None:
        return from_npz("cifar10", kept[0])
    remote = Remote(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    )
    path = (found([remote.name], everywhere("cifar10")) or [fetched(remote, "cifar10")])[0]
    names = [f"cifar-10-batches-bin/{stem}.bin" for stem in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")]
    with tarfile.open(path) as archive:
        members = [archive.extractfile(name) for name in names]
        batches = [np.frombuffer(member.read(), np.uint8).reshape(-1, 3073) for member in members if member is not None]
    train, test = np.concatenate(batches[:-1]), batches[-1]
    return ImageSet("cifar10", colour_planes(train[:, 1:], 32), colour_planes(test[:, 1:], 32), train[:, 0], test[:, 0])


def imagenet(size: int = 32) -> ImageSet:
    """Downsampled ImageNet, 32 x 32 or 64 x 64 in colour. It needs an account, so the files must be brought."""
    if size not in (32, 64):
        raise InputError(f"imagenet got size={size}; expected 32 or 64.")
    parts = ["train"] if size == 32 else ["train_part1", "train_part2"]
    names = [f"Imagenet{size}_{part}_npz.zip" for part in (*parts, "val")]
    paths = brought(f"imagenet{size}", names, "https://image-net.org/download-images (an account is needed)")
    *train, test = [colour_planes(read_batches(path), size) for path in paths]
    return ImageSet(f"imagenet{size}", np.concatenate(train), test)


def celeba_hq64() -> ImageSet:
    """CelebA-HQ, 64 x 64 in colour: 30,000 faces, of which the last 3000 are the test. The file must be brought."""
    where = "the CelebA-HQ project's instructions, 64 x 64, as one array `images` of shape (30000, 64, 64, 3)"
    images = npz_arrays(brought("celeba", ["celeba_hq64.npz"], where)[0], ["images"])["images"]
    return ImageSet("celeba-hq 64", images[:-3000], images[-3000:])


# Readers of single files


def idx_files(name: str, url: str, sums: Sequence[str], places: Sequence[Path]) -> ImageSet:
    """A set in MNIST's four files, or in one .npz file."""
    if (kept := found([f"{name.replace('-', '_')}.npz"], everywhere(name))) is not None:
        return from_npz(name, kept[0])
    remotes = [Remote(url + file, sha) for file, sha in zip(IDX, sums, strict=True)]
    return from_idx(name, found(IDX, places) or [fetched(remote, name) for remote in remotes])


def everywhere(part: str) -> list[Path]:
    return [*loose(), *folders(part)]


def brought(part: str, names: list[str], where: str) -> list[Path]:
    """Files that cannot be downloaded without a person."""
    paths = found(names, everywhere(part))
    if paths is None:
        raise InputError(
            f"{part} needs {' and '.join(names)}, which only a person can get: {where}. "
            f"Put them into {folders(part)[-1]} or into a folder named in ANYORDER_DATA."
        )
    return paths


def npz_arrays(path: Path, names: list[str]) -> dict[str, Pixels]:
    try:
        with np.load(path) as file:
            return {name: file[name] for name in names}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path.name} cannot be read: {error}. Expected the arrays {', '.join(names)}.") from error


def from_npz(name: str, path: Path) -> ImageSet:
    arrays = npz_arrays(path, ["x_train", "x_test", "y_train", "y_test"])
    labels = [arrays[key].reshape(-1).astype(np.uint8) for key in ("y_train", "y_test")]
    return ImageSet(name, arrays["x_train"], arrays["x_test"], *labels)


def from_idx(name: str, paths: list[Path]) -> ImageSet:
    train, train_labels, test, test_labels = [read_idx(path) for path in paths]
    return ImageSet(name, train, test, train_labels, test_labels)


def read_idx(path: Path) -> Pixels:
    """LeCun's format: two zeros, the kind (8 for bytes), the number of dimensions, their sizes, the bytes."""
    try:
        raw = gzip.decompress(path.read_bytes())
        if raw[:3] != b"\0\0\x08":
            raise ValueError(f"its first bytes are {raw[:3]!r}")
        head = 4 + 4 * raw[3]
        shape = [int(n) for n in np.frombuffer(raw[4:head], dtype=">u4")]
        return np.frombuffer(raw, np.uint8, offset=head).reshape(shape)
    except (OSError, EOFError, ValueError, IndexError, zlib.error) as error:
        raise FormatError(f"{path.name} is no idx file of bytes: {error}. Delete it, and it is fetched again.") from error


def read_amat(path: Path) -> Pixels:
    """Digits 0 and 1 with spaces between, a line an image."""
    raw = np.frombuffer(path.read_bytes(), np.uint8)
    return raw[(raw == ord("0")) | (raw == ord("1"))] - ord("0")


def read_batches(path: Path) -> Pixels:
    """All arrays called `data` of the npz files in a zip file, one below the other."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".npz"))
            return np.concatenate([np.load(archive.open(name))["data"] for name in names])
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path.name} cannot be read: {error}.") from error


def colour_planes(rows: NDArray[Any], size: int) -> Pixels:
    """Rows of one colour after the other to (number, height, width, 3)."""
    return rows.reshape(-1, 3, size, size).transpose(0, 2, 3, 1).astype(np.uint8)
