"""Files that are written whole or not at all."""

import os
import re
import socket
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InputError, WriteError

HOST = f"{zlib.crc32(socket.gethostname().encode()):08x}"
PART = re.compile(rf"\.anyorder-{HOST}-(\d+)-\w+(\.own)?\.part")  # whose: the number of a process on this machine


def write_whole(path: Path, write: Callable[[str], None]) -> None:
    """First beside the file, then in its place: whatever happens, the old file is there or the new one, never a half of one.

    What goes wrong on a disk is a `WriteError`; what an exception, an interrupt or SIGTERM breaks off leaves nothing behind.
    """
    path = path.resolve()
    with telling(path), part_beside(path) as beside:
        write(beside)
        os.chmod(beside, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~current_umask())
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """So that a power cut does not bring the old file back; not every system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    def write(beside: str) -> None:
        Path(beside).write_bytes(data)

    write_whole(path, write)


def check_writable(path: Path) -> None:
    """Find out before any work whether a file of this name can be written here."""
    with telling(path):
        if path.is_dir():  # or an error, if the name is too long
            raise WriteError(f"Cannot write {str(path)!r}: it is a folder. Name a file.")
        with part_beside(path.resolve()) as beside:
            Path(beside).write_bytes(b"\0")


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """What the system says against it, in a sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        why = error.strerror or str(error)
        raise WriteError(f"Cannot write {str(path)!r}: {why}. What was there is untouched.") from error


@contextmanager
def part_beside(path: Path) -> Iterator[str]:
    """A file in the same folder that is gone afterwards, and so are those that killed processes left there."""
    sweep(path.parent)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".anyorder-{HOST}-{os.getpid()}-", suffix=".part")
    os.close(handle)
    try:
        yield beside
    finally:
        Path(beside).unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that are no longer there had begun to write."""
    for name in os.listdir(folder):
        if (found := PART.fullmatch(name)) and not is_running(int(found[1])):
            with suppress(OSError):  # somebody else's, in a folder for everybody: it must not keep us from writing
                (folder / name).unlink()


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def current_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def check_place(path: Path, *inputs: Path) -> None:
    """The folder is there, and neither an input nor anything that is no file would be overwritten."""
    if path.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: it is a folder. Name a file.")
    if path.exists() and not path.is_file():
        raise InputError(f"Cannot write {str(path)!r}: it is no ordinary file. Name one.")
    if not path.parent.is_dir():
        raise InputError(f"Cannot write {path.name}: its folder {str(path.parent)!r} does not exist. Make it first.")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise InputError(f"{str(path)!r} is an input as well, and would be overwritten. Name another file.")
    check_writable(path)
