"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[str], None]) -> None:
    """First beside the file, then in its place: a crash leaves the old file or the new one, never a half of one."""
    path = path.resolve()
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    os.close(handle)
    try:
        write(beside)
        os.chmod(beside, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~current_umask())
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        Path(beside).unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    def write(beside: str) -> None:
        Path(beside).write_bytes(data)

    write_whole(path, write)


def current_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
