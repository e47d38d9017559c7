"""Public files, fetched once: looked for at home first, taken up where a download broke off, checked, kept."""

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import FormatError, InputError

CHUNK = 2**16


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
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                bar.advance(task, len(chunk))
        if size is not None and file.tell() < done + int(size):
            raise OSError(f"the connection ended after {file.tell()} of {done + int(size)} bytes")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
