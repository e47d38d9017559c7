"""An archive: a description and blocks of bytes, each with its own checksum, so that damage is found, named and confined.

    file   = MAGIC part(DESCRIPTION) part(BLOCK)* part(INDEX) part(DESCRIPTION)
    part   = "AO" kind:u8 number:u32 length:u64 check:u32 content check:u32      (little-endian)

The first check of a part is the CRC-32 of its head and of the place in the file where it begins (u64), the second that of the
content: an archive inside an archive is not mistaken for parts of the outer one. The description is JSON and is written
twice; the index holds the place of every block, so that one block can be read without the others. Where a part's head is
damaged, the next one is found by the index, or by looking for a head whose check is right.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

from ..errors import FormatError, InputError

MAGIC = b"\x89AOZ\r\n\x1a\x01"  # the last byte is the version; line ends that something changed are noticed
CONTAINER_HEAD = struct.Struct("<2sBIQ")
CONTAINER_CHECK = struct.Struct("<I")
OVERHEAD = CONTAINER_HEAD.size + 2 * CONTAINER_CHECK.size
DESCRIPTION, BLOCK, INDEX = 1, 2, 3
OFFSET = struct.Struct("<Q")
MOST_DESCRIPTION = 2**28
Readable = BufferedReader | BytesIO


@runtime_checkable
class Writable(Protocol):
    """What an archive is written to: a file, or bytes in memory."""

    def write(self, data: bytes, /) -> int: ...


@final
class Block(NamedTuple):
    """The content of a block, or why it is lost."""

    number: int
    content: bytes | None
    damage: str = ""


@final
class Damage(NamedTuple):
    """What is wrong with an archive."""

    where: str
    what: str


def part(kind: int, number: int, content: bytes, at: int) -> bytes:
    """A part that will begin at this place of the file."""
    head = CONTAINER_HEAD.pack(b"AO", kind, number, len(content))
    return head + CONTAINER_CHECK.pack(zlib.crc32(head + OFFSET.pack(at))) + content + CONTAINER_CHECK.pack(zlib.crc32(content))


@final
class ArchiveWriter:
    """Writes one part after the other; nothing but the places of the blocks is kept in memory."""

    def __init__(self, file: Writable, about: dict[str, Any]) -> None:
        self.file, self.places = file, list[int]()
        self.description = json.dumps(about).encode()
        if json.loads(self.description) != about:
            raise InputError("The description of the archive would not come back as it is: a label is no text that can be kept.")
        if len(self.description) > MOST_DESCRIPTION:
            raise InputError(f"The description of the archive has {len(self.description)} bytes; at most {MOST_DESCRIPTION} fit.")
        self.at = 0
        self._write(MAGIC)
        self._write(part(DESCRIPTION, 0, self.description, self.at))

    def add(self, content: bytes) -> None:
        self.places.append(self.at)
        self._write(part(BLOCK, len(self.places) - 1, content, self.at))

    def close(self) -> None:
        self._write(part(INDEX, len(self.places), b"".join(map(OFFSET.pack, self.places)), self.at))
        self._write(part(DESCRIPTION, 1, self.description, self.at))

    def _write(self, data: bytes) -> None:
        self.file.write(data)
        self.at += len(data)

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()


@dataclass(frozen=True)
class _Found:
    """A part whose head is right; its content need not be."""

    kind: int
    number: int
    at: int
    length: int

    @property
    def end(self) -> int:
        return self.at + OVERHEAD + self.length


@final
class Archive:
    """An archive in a file or in bytes. What is whole can be read, whatever else is damaged.

    `damage` lists all that was found wrong with the frame when it was opened; a block says itself whether it is whole.
    """

    def __init__(self, source: str | Path | bytes) -> None:
        self.raw = source if isinstance(source, bytes) else None
        self.path = Path("archive") if isinstance(source, bytes) else Path(source)
        if self.raw is None and not self.path.is_file():
            raise InputError(f"There is no file {str(source)!r}.")
        self.size, self.damage = self.path.stat().st_size if self.raw is None else len(self.raw), list[Damage]()
        with self._open() as file:
            start = file.read(len(MAGIC))
            if start[:-1] != MAGIC[:-1] and not self._looks_like_ours(file):
                raise FormatError(f"{self.path.name} is no archive of anyorder (it begins with {start!r}).")
            if start != MAGIC:
                self.damage.append(Damage("the first bytes", f"they are {start!r}"))
            parts = list(self._parts(file))
            self.about = self._description(file, parts)
            self._check_version(self.about.get("version", MAGIC[-1]))
            self.places, self.count = self._blocks(file, parts)

    def _check_version(self, version: Any) -> None:
        """The one in the description counts, because a checksum guards it; format 1 has none there."""
        if version != MAGIC[-1]:
            raise FormatError(f"{self.path.name} has format {version}; this version reads {MAGIC[-1]}. Upgrade anyorder.")

    def __len__(self) -> int:
        return self.count

    def block(self, number: int) -> Block:
        """One block, read without the others."""
        if not 0 <= number < self.count:
            raise InputError(f"There is no block {number}; {self.path.name} has {self.count}.")
        place = self.places.get(number)
        if place is None:
            return Block(number, None, "its head is damaged or missing")
        with self._open() as file:
            found = read_head(file, place, self.size)
            if found is None or (found.kind, found.number) != (BLOCK, number):
                return Block(number, None, "its head is damaged")
            content = read_content(file, found)
        return Block(number, content, "" if content is not None else "its checksum is wrong")

    def blocks(self) -> Iterator[Block]:
        for number in range(self.count):
            yield self.block(number)

    def _open(self) -> Readable:
        return self.path.open("rb") if self.raw is None else BytesIO(self.raw)

    def _looks_like_ours(self, file: Readable) -> bool:
        """Whether a part follows where one should, although the first bytes are damaged."""
        found = read_head(file, len(MAGIC), self.size)
        return found is not None and found.kind == DESCRIPTION

    def _parts(self, file: Readable) -> Iterator[_Found]:
        """Every part whose head is right, in the order of the file; over what is damaged to the next one."""
        at = len(MAGIC)
        while at < self.size:
            found = read_head(file, at, self.size)
            if found is None:
                after = next_head(file, at + 1, self.size)
                self.damage.append(Damage(f"byte {at}", "no part begins here" if after else "the file ends before it should"))
                if after is None:
                    return
                found = after
            yield found
            at = found.end

    def _description(self, file: Readable, parts: list[_Found]) -> dict[str, Any]:
        contents = [read_content(file, found) for found in parts if found.kind == DESCRIPTION]
        whole = [content for content in contents if content is not None]
        if len(whole) < 2:
            self.damage.append(Damage("the description", f"{len(whole)} of its 2 copies are whole"))
        for content in whole:
            try:
                about = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise FormatError(f"The description of {self.path.name} cannot be read: {error}.") from error
            if isinstance(about, dict):
                return about
        raise FormatError(
            f"{self.path.name} is damaged: no copy of its description is whole, and without one nothing can be read."
        )

    def _blocks(self, file: Readable, parts: list[_Found]) -> tuple[dict[int, int], int]:
        """Where each block begins, and how many there were."""
        blocks = [found for found in parts if found.kind == BLOCK and found.number * OVERHEAD <= found.at]  # all others lie
        places = {found.number: found.at for found in blocks}
        index = next((found for found in parts if found.kind == INDEX), None)
        content = None if index is None else read_content(file, index)
        if index is not None and content is not None and len(content) == OFFSET.size * index.number:
            told = dict(enumerate(place for (place,) in OFFSET.iter_unpack(content)))
            return told | places, index.number
        self.damage.append(Damage("the index", "it is damaged or missing: blocks after the last one found may be lost"))
        return places, max(places, default=-1) + 1


def read_head(file: Readable, at: int, size: int) -> _Found | None:
    """The part that begins here, if its head is right and it ends inside the file."""
    file.seek(at)
    raw = file.read(CONTAINER_HEAD.size + CONTAINER_CHECK.size)
    if len(raw) < CONTAINER_HEAD.size + CONTAINER_CHECK.size or CONTAINER_CHECK.unpack(raw[CONTAINER_HEAD.size :])[
        0
    ] != zlib.crc32(raw[: CONTAINER_HEAD.size] + OFFSET.pack(at)):
        return None
    mark, kind, number, length = CONTAINER_HEAD.unpack(raw[: CONTAINER_HEAD.size])
    found = _Found(kind, number, at, length)
    return found if mark == b"AO" and kind in (DESCRIPTION, BLOCK, INDEX) and found.end <= size else None


def next_head(file: Readable, at: int, size: int, window: int = 2**20) -> _Found | None:
    """The first part that begins at or after this place."""
    while at < size:
        file.seek(at)
        raw = file.read(window + 1)
        place = raw.find(b"AO")
        while place >= 0:
            found = read_head(file, at + place, size)
            if found is not None:
                return found
            place = raw.find(b"AO", place + 1)
        at += window
    return None


def read_content(file: Readable, found: _Found) -> bytes | None:
    """The content of a part if its checksum is right. No more is read than the file has."""
    file.seek(found.at + CONTAINER_HEAD.size + CONTAINER_CHECK.size)
    content, check = file.read(found.length), file.read(CONTAINER_CHECK.size)
    whole = (
        len(content) == found.length
        and len(check) == CONTAINER_CHECK.size
        and CONTAINER_CHECK.unpack(check)[0] == zlib.crc32(content)
    )
    return content if whole else None
