"""Where texts come from: lists of them, columns, .txt files, folders of those, lines of .jsonl. Files are read piece by piece."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, final

import numpy as np

from ...errors import InputError

PIECE = 2**22  # characters that are read at once
BINARY_SHARE = 0.1  # of bytes that are no UTF-8, from which a file is no text
LOOKED_AT = 1000  # files of a folder whose names decide what it holds


@final
@dataclass(frozen=True)
class Corpus:
    """Documents that can be read again and again; `pieces` gives each as parts, and says which part is its last."""

    documents: Sequence[str | Path]

    def __len__(self) -> int:
        return len(self.documents)

    def pieces(self) -> Iterator[tuple[str, bool]]:
        for document in self.documents:
            if isinstance(document, Path):
                yield from file_pieces(document)
            else:
                yield document, True

    def texts(self) -> list[str]:
        """All documents, whole."""
        whole, parts = [], []
        for part, last in self.pieces():
            parts.append(part)
            if last:
                whole.append("".join(parts))
                parts = []
        return whole


def file_pieces(path: Path) -> Iterator[tuple[str, bool]]:
    """A file exactly as it is: ends of lines stay, bytes that are no UTF-8 become halves of surrogates."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            piece = file.read(PIECE)
            check_text(piece, path)
            while piece:
                following = file.read(PIECE)
                yield piece, not following
                piece = following
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}.") from error


def check_text(piece: str, path: Path) -> None:
    """Refuse what is no text."""
    wrong = sum("\udc80" <= c <= "\udcff" for c in piece[:65536])
    if "\0" in piece or wrong > BINARY_SHARE * len(piece[:65536]):
        raise InputError(f"{path.name} is no text: it holds bytes that no text has. Expected text as UTF-8.")


def is_texts(X: Any) -> bool:
    """Whether these are texts, or say where texts are."""
    if isinstance(X, Corpus | str | Path):
        return True
    if isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype.kind not in "OTU"):
        return False  # numbers, which may be many, are not looked at one by one
    if isinstance(X, np.ndarray) or (hasattr(X, "to_list") and not hasattr(X, "columns")):
        X = X.tolist() if hasattr(X, "tolist") else X.to_list()  # a column of numpy, pandas or polars
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(one, str) for one in X)


def corpus_of(X: Any) -> Corpus:
    """What was given, as documents: a path is read, other text is one document."""
    if isinstance(X, Corpus):
        return X
    if isinstance(X, Path) or (isinstance(X, str) and looks_like_path(X)):
        return read_corpus(Path(X))
    return Corpus(list(texts_of(X)))


def texts_of(X: Any) -> list[str]:
    """One text as a list of one; others as a list."""
    if isinstance(X, str):
        return [X]
    if not is_texts(X):
        kinds = sorted({type(one).__name__ for one in X}) if isinstance(X, list | tuple) else [type(X).__name__]
        raise InputError(f"Expected a text or a list of texts; got {', '.join(kinds) or 'an empty list'}.")
    if isinstance(X, Corpus | Path):
        return corpus_of(X).texts()
    return [str(one) for one in X]


def looks_like_path(text: str) -> bool:
    """A name on one line with a suffix of ours, or of a folder that is there."""
    if "\n" in text or len(text) > 1000:
        return False
    return Path(text).suffix.lower() in (".txt", ".jsonl") or ("/" in text and Path(text).is_dir())


def reads_texts(path: Path) -> bool:
    """Whether a file or a folder of this name holds texts."""
    suffix = path.suffix.lower()
    if path.is_dir():
        files = [one for one in islice(path.rglob("*"), LOOKED_AT) if one.is_file() and not one.name.startswith(".")]
        return sum(one.suffix.lower() == ".txt" for one in files) * 2 > len(files)
    return suffix == ".txt" or (suffix == ".jsonl" and path.is_file() and holds_lines_of_text(path))


def holds_lines_of_text(path: Path) -> bool:
    """Whether the first line is a text, or an object with a text and nothing else: other objects are rows of a table."""
    with open(path, encoding="utf-8", errors="replace") as file:
        line = next((line for line in file if line.strip()), "")
    try:
        item = json.loads(line)
    except ValueError:
        return False
    return isinstance(item, str) or (isinstance(item, dict) and list(item) == ["text"] and isinstance(item["text"], str))


def read_corpus(path: Path) -> Corpus:
    """The documents of a .txt, a folder of them, or a .jsonl."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*.txt") if one.is_file())
        if not files:
            raise InputError(f"The folder {str(path)!r} holds no .txt files.")
        return Corpus(files)
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}.")
    if path.suffix.lower() == ".jsonl":
        return Corpus(list(lines_of(path)))
    return Corpus([path])


def lines_of(path: Path) -> Iterator[str]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except ValueError as error:
                raise InputError(f"Line {number} of {path.name} is no JSON ({error}).") from error
            text = item.get("text") if isinstance(item, dict) else item
            if not isinstance(text, str):
                raise InputError(f'Line {number} of {path.name} holds no text: expected "..." or {{"text": "..."}}.')
            yield text
