"""Blocks of archives that hold texts: a list of them, the parts of a file, or the files of a folder; and all of it read again."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar, final

from ....archives import Codec, Done, Lost, OpenArchive, Source
from ....archives.archive import MOST_ARCHIVE_BYTES, check_whole
from ....archives.blocks import MODELLED, PLAIN, Content, crc, shorter
from ....archives.folders import checked_name, every_file, write_files
from ....errors import FormatError, InputError, Note
from ....io.atomic import write_bytes
from ....models.trained import BAD_CONTENT
from .engine import LONG_TEXT, MOST_EXPANSION, is_fast
from .text_codec import TextCodec

PART = 2**24  # bytes of a file that are a block of their own
GET_NUMBA = 'pip install "anyorder[fast]"'
SUFFIXES = """
txt md rst tex html htm xml srt log json yaml yml toml ini cfg conf
py pyi js ts css c h cc cpp hpp rs go java rb sh sql r jl
"""
TEXT_SUFFIXES = {f".{suffix}" for suffix in SUFFIXES.split()}
MOSTLY = 0.5  # share of the files of a folder, in bytes, that makes it one of texts


def reads_text(path: Path) -> bool:
    """Whether a file of this name holds text, or a folder mostly such files."""
    if not path.is_dir():
        return is_text(path)
    sizes = [(is_text(file), file.stat().st_size) for file in path.rglob("*") if file.is_file()]
    return bool(sizes) and sum(size for text, size in sizes if text) > MOSTLY * sum(size for _, size in sizes)


def is_text(path: Path) -> bool:
    return path.suffix.lower() in TEXT_SUFFIXES


# Blocks


def pack_texts(codec: TextCodec | None, texts: Sequence[bytes], notes: dict[str, Any]) -> Content:
    """Some texts, one after the other; as they are where the codec does not help or would take too long."""
    whole, notes = b"".join(texts), {**notes, "lengths": [len(text) for text in texts]}
    plain = Content(PLAIN, notes, b"", whole)
    if codec is None or not whole or len(whole) > LONG_TEXT:
        return plain
    stream = codec.encode(whole)
    if len(whole) > MOST_EXPANSION * len(stream):
        return plain
    return shorter(Content(MODELLED, notes, stream, b"", crc(whole)), plain)


def unpack_texts(codec: TextCodec | None, content: Content, count: int) -> list[bytes]:
    """The texts of a block, so many of them."""
    lengths = content.notes.get("lengths")
    if not isinstance(lengths, list) or len(lengths) != count or not all(type(n) is int and n >= 0 for n in lengths):
        raise FormatError("The notes of a block do not fit what is in it.")
    whole = content.rest
    if content.method == MODELLED:
        if codec is None:
            raise FormatError("A block was coded by a model, but the archive names none.")
        whole = codec.decode(content.stream, sum(lengths))
        content.checked(whole)
    if len(whole) != sum(lengths):
        raise FormatError("The notes of a block do not fit what is in it.")
    return [whole[start:stop] for start, stop in pairwise(accumulate(lengths, initial=0))]


def text_codec(codec: Codec | None) -> TextCodec | None:
    return codec if isinstance(codec, TextCodec) else None


# Sources


class TextSource(Source):
    """Items that are texts, or bytes of any kind that are coded like them."""

    what = "text"
    items: ClassVar[dict[str, str]] = {"texts": "texts", "file": "parts", "folder": "files"}
    wants = TextCodec
    per_block = 2**17

    @abstractmethod
    def texts(self, some: range) -> list[bytes]:
        """The bytes of these items."""

    def notes(self, some: range) -> dict[str, Any]:
        """What is to be said of them besides how long they are."""
        return {}

    def pack(self, codec: Codec | None, some: range) -> Content:
        return pack_texts(text_codec(codec), self.texts(some), self.notes(some))

    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        found = unpack_texts(text_codec(codec), content, len(some))
        return found == self.texts(some) and content.notes.items() >= self.notes(some).items()

    def own_codec(self, otherwise: int, effort: float, done: Done) -> Codec | None:
        """The one that comes with the package: it learns from the texts themselves while it reads them."""
        if not self.count:
            return None
        if not is_fast():
            warnings.warn(Note(f"Without numba, texts are compressed by zstd, and less: {GET_NUMBA}"), stacklevel=3)
            return None
        return TextCodec.shipped()


@final
class TextsSource(TextSource):
    """A text, or a list of them."""

    def __init__(self, X: Any) -> None:
        single = isinstance(X, str)
        listed = [X] if single else list(X)
        wrong = next((text for text in listed if not isinstance(text, str)), None)
        if wrong is not None:
            raise InputError(f"compress got {type(wrong).__name__} among texts; expected nothing but str.")
        self.listed = [text.encode("utf-8", "surrogatepass") for text in listed]
        self.form, self.count = {"kind": "texts", "single": single}, len(self.listed)
        longest, total = max(map(len, self.listed), default=0), sum(map(len, self.listed))
        self.item_bytes = longest if total > MOST_ARCHIVE_BYTES else total // max(self.count, 1) + 1

    def texts(self, some: range) -> list[bytes]:
        return self.listed[some.start : some.stop]


@final
class FileSource(TextSource):
    """A file of any bytes, in parts that are read one at a time."""

    per_block = 1

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"There is no file {str(path)!r}.")
        self.path, self.form = path, {"kind": "file"}
        size = path.stat().st_size
        self.count, self.item_bytes = -(-size // PART), min(size, PART)

    def texts(self, some: range) -> list[bytes]:
        with open(self.path, "rb") as file:
            file.seek(some.start * PART)
            return [file.read(PART) for _ in some]


@final
class FolderSource(TextSource):
    """All files of a folder and of the folders in it, those of one kind together."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"There is no folder {str(folder)!r}.")
        self.folder, self.form = folder, {"kind": "folder"}
        paths = sorted(every_file(folder), key=lambda path: (path.suffix.lower(), path.relative_to(folder).as_posix()))
        self.names, sizes = [path.relative_to(folder).as_posix() for path in paths], [path.stat().st_size for path in paths]
        self.count = len(self.names)
        self.item_bytes = max(sizes, default=0) if sum(sizes) > PART else sum(sizes) // max(self.count, 1) + 1

    def texts(self, some: range) -> list[bytes]:
        return [(self.folder / name).read_bytes() for name in self.names[some.start : some.stop]]

    def notes(self, some: range) -> dict[str, Any]:
        return {"names": self.names[some.start : some.stop]}


def text_source(X: Any) -> TextSource:
    """A text or a list of texts in memory; a file or a folder if it is a path."""
    if isinstance(X, Path):
        return FolderSource(X) if X.is_dir() else FileSource(X)
    return TextsSource(X)


# Reading

BROKEN = (*BAD_CONTENT, ArithmeticError, MemoryError)  # whatever a forged block may lead to


Found = tuple[range, list[bytes], dict[str, Any]] | Lost


def blocks_of(archive: OpenArchive, done: Done | None = None) -> Iterator[Found]:
    """The texts of every block and its notes, or why they are lost."""
    for some, content in archive.contents():
        found: Found
        try:
            codec = text_codec(archive.codec)
            found = content if isinstance(content, Lost) else (some, unpack_texts(codec, content, len(some)), content.notes)
        except BROKEN as error:
            found = Lost(some.start // archive.per_block, some, str(error))
        yield found
        if done is not None:
            done(some.stop, archive.count)


def unpack_text(archive: OpenArchive, done: Done | None = None) -> tuple[Any, list[Lost]]:
    """The texts, or the bytes of a file; and what is lost, which is left out."""
    kind = archive.form["kind"]
    if archive.what != TextSource.what or kind == "folder":
        raise InputError(f"The archive holds a {kind} of {archive.what}: decompress it with `anyorder decompress`.")
    texts, lost = list[bytes](), list[Lost]()
    for block in blocks_of(archive, done):
        if isinstance(block, Lost):
            lost.append(block)
        else:
            texts += block[1]
    if kind == "file":
        return b"".join(texts), lost
    try:
        found = [text.decode("utf-8", "surrogatepass") for text in texts]
    except UnicodeDecodeError as error:
        raise FormatError(f"The archive holds bytes that are no text ({error}).") from error
    return (found[0] if archive.form.get("single") and found else found), lost


def unpack_text_to(archive: OpenArchive, name: str, output: Path, done: Done | None = None) -> list[Lost]:
    """The file, or all files into a new folder; what is lost is left out and told."""
    kind = archive.form["kind"]
    if kind == "texts":
        raise InputError(f"{name} holds a list of texts, which no file is: in Python `decompress` gives them back.")
    if kind == "file":
        content, lost = unpack_text(archive, done)
        check_whole(lost, output)
        write_bytes(output, content)
        return lost
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{str(output)!r} is there already: name a new or an empty folder.")
    output.mkdir(parents=True, exist_ok=True)
    lost = list[Lost]()
    for block in blocks_of(archive, done):
        if isinstance(block, Lost):
            lost.append(block)
            continue
        some, texts, notes = block
        try:
            files = list(zip([checked_name(str(file)) for file in notes["names"]], texts, strict=True))
        except BROKEN as error:
            lost.append(Lost(some.start // archive.per_block, some, f"its names cannot be read ({error})"))
            continue
        lost.extend(write_files(output, files, some, archive.per_block))
    return lost
