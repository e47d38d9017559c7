"""Data sets and their downloads: read as they were written, checked, taken up where they broke off; never from the internet."""

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from numpy.typing import NDArray

from anyorder.errors import FormatError, InputError
from anyorder.io import datasets
from anyorder.io.datasets import Remote, fetched

CONTENT = np.random.default_rng(0).bytes(200_000)


class Server(BaseHTTPRequestHandler):
    """A file that can be asked for in parts; `breaks` ends the first answer in the middle."""

    breaks = 0
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        if self.path != "/file.bin":
            self.send_error(404)
            return
        first = int(self.headers.get("Range", "bytes=0-")[6:-1])
        Server.asked.append(self.headers.get("Range", ""))
        if first >= len(CONTENT):
            self.send_error(416)
            return
        rest = CONTENT[first:]
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if Server.breaks:
            Server.breaks -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    Server.breaks, Server.asked = 0, []
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ANYORDER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "DEBIAN", tmp_path / "debian")
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


def test_a_file_is_fetched_once(address: str) -> None:
    remote = Remote(f"{address}/file.bin", hashlib.sha256(CONTENT).hexdigest())
    assert fetched(remote, "some").read_bytes() == CONTENT
    assert fetched(remote, "some").read_bytes() == CONTENT
    assert len(Server.asked) == 1


def test_a_broken_download_is_taken_up_where_it_ended(address: str) -> None:
    remote = Remote(f"{address}/file.bin", hashlib.sha256(CONTENT).hexdigest())
    Server.breaks = 1
    with pytest.raises(InputError, match=r"could not be downloaded.*kept"):
        fetched(remote, "some")
    assert not (datasets.cache() / "some" / "file.bin").exists()
    assert fetched(remote, "some").read_bytes() == CONTENT
    assert Server.asked == ["", f"bytes={len(CONTENT) // 2}-"]


def test_a_complete_half_file_is_not_asked_for_again(address: str) -> None:
    half = datasets.cache() / "some" / "file.bin.part"
    half.parent.mkdir(parents=True)
    half.write_bytes(CONTENT)
    assert fetched(Remote(f"{address}/file.bin", hashlib.sha256(CONTENT).hexdigest()), "some").read_bytes() == CONTENT


def test_another_file_than_expected_is_deleted(address: str) -> None:
    with pytest.raises(FormatError, match="expected 000"):
        fetched(Remote(f"{address}/file.bin", "0" * 64), "some")
    assert not list((datasets.cache() / "some").iterdir())


def test_what_cannot_be_reached_says_what_to_do(address: str) -> None:
    for url in (f"{address}/other.bin", "http://127.0.0.1:9/file.bin"):
        with pytest.raises(InputError, match="ANYORDER_DATA"):
            fetched(Remote(url), "some")


def idx(array: NDArray[np.uint8]) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.tobytes())


def write_idx(folder: Path) -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(1)
    shapes = [(7, 28, 28), (7,), (3, 28, 28), (3,)]
    arrays = [rng.integers(0, 256 if len(shape) > 1 else 10, shape, dtype=np.uint8) for shape in shapes]
    folder.mkdir(parents=True)
    for name, array in zip(datasets.IDX, arrays, strict=True):
        (folder / name).write_bytes(idx(array))
    return arrays


def test_idx_files_are_read_as_written(tmp_path: Path) -> None:
    arrays = write_idx(tmp_path / "data" / "mnist")
    found = datasets.mnist()
    for ours, written in zip((found.train, found.train_labels, found.test, found.test_labels), arrays, strict=True):
        assert ours is not None
        np.testing.assert_array_equal(ours, written)


def test_fashion_is_found_where_debian_puts_it(tmp_path: Path) -> None:
    arrays = write_idx(tmp_path / "debian")
    np.testing.assert_array_equal(datasets.fashion_mnist().test, arrays[2])


def test_a_damaged_idx_file_is_named(tmp_path: Path) -> None:
    write_idx(tmp_path / "data" / "mnist")
    path = tmp_path / "data" / "mnist" / datasets.IDX[2]
    good = path.read_bytes()
    for bad in (b"", b"no gzip", good[: len(good) // 2], gzip.compress(b"\0\0\x09"), gzip.compress(gzip.decompress(good)[:-1])):
        path.write_bytes(bad)
        with pytest.raises(FormatError, match="t10k-images"):
            datasets.mnist()


def test_an_npz_file_will_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    (tmp_path / "data" / "images").mkdir(parents=True)
    path = tmp_path / "data" / "images" / "cifar10.npz"
    np.savez(path, x_train=images, x_test=images[:2], y_train=np.arange(5), y_test=np.arange(2)[:, None])
    found = datasets.cifar10()
    np.testing.assert_array_equal(found.test, images[:2])
    assert found.test_labels is not None
    assert found.test_labels.tolist() == [0, 1]
    np.savez(path, x_train=images)
    with pytest.raises(FormatError, match=r"cifar10\.npz"):
        datasets.cifar10()


def test_cifar_is_read_from_its_archive(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 256, (6, 2, 3073), dtype=np.uint8)
    (tmp_path / "data").mkdir()
    with tarfile.open(tmp_path / "data" / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for batch, stem in zip(rows, [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], strict=True):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{stem}.bin")
            member.size = batch.nbytes
            archive.addfile(member, io.BytesIO(batch.tobytes()))
    found = datasets.cifar10()
    assert found.train.shape == (10, 32, 32, 3)
    assert found.test[1, 4, 7, 2] == rows[5, 1, 1 + 2 * 1024 + 4 * 32 + 7]
    np.testing.assert_array_equal(found.train_labels, rows[:5, :, 0].reshape(-1))


def test_imagenet_is_read_from_its_archives(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 256, (3, 3072), dtype=np.uint8)
    (tmp_path / "data" / "imagenet32").mkdir(parents=True)
    for part, some in (("train", rows[:2]), ("val", rows[2:])):
        inside = io.BytesIO()
        np.savez(inside, data=some)
        with zipfile.ZipFile(tmp_path / "data" / "imagenet32" / f"Imagenet32_{part}_npz.zip", "w") as archive:
            archive.writestr("batch_1.npz", inside.getvalue())
    found = datasets.imagenet(32)
    assert found.train.shape == (2, 32, 32, 3)
    assert found.test[0, 1, 2, 1] == rows[2, 1024 + 32 + 2]
    with pytest.raises(InputError, match="64"):
        datasets.imagenet(48)


def test_what_a_person_must_bring_is_named() -> None:
    with pytest.raises(InputError, match=r"Imagenet64_train_part1_npz\.zip"):
        datasets.imagenet(64)
    with pytest.raises(InputError, match=r"celeba_hq64\.npz"):
        datasets.celeba_hq64()


def test_faces_are_split(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "celeba_hq64.npz", images=np.zeros((3002, 4, 4, 3), np.uint8))
    assert [len(datasets.celeba_hq64().train), len(datasets.celeba_hq64().test)] == [2, 3000]


def test_other_black_and_white_digits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for part in ("train", "valid", "test"):
        (tmp_path / "data" / f"binarized_mnist_{part}.amat").write_text(" ".join("01" * 392) + "\n")
    with pytest.raises(FormatError, match="Larochelle"):
        datasets.static_mnist()


def test_amat_files_hold_digits(tmp_path: Path) -> None:
    path = tmp_path / "some.amat"
    path.write_text("0 1 1 \n1 0 0\n")
    assert datasets.read_amat(path).tolist() == [0, 1, 1, 1, 0, 0]


def test_digits_come_with_scikit_learn() -> None:
    found = datasets.digits()
    assert found.train.shape == (1437, 8, 8)
    assert found.test.shape == (360, 8, 8)
    assert int(found.train.max()) == 16
