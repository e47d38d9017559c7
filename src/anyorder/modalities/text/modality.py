"""Text: how it is found, fitted and kept."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from ...archives import Codec, Done, Lost, OpenArchive, Source
from ...errors import FormatError, InputError
from ...models.text_counts import StringCounts
from ...models.text_memory import TextMemory
from ...models.trained import Trained
from ...training import Check
from ...training.checkpoint import checked_number
from ..base import DataFile, Modality, Training
from .alphabet import END, Alphabet, Codes
from .codec.text_archives import reads_text, text_source, unpack_text, unpack_text_to
from .codec.text_codec import TextCodec, fit_text_codec
from .corpus import corpus_of, is_texts, read_corpus, reads_texts, texts_of
from .fitted_text import FittedText

MOST_STRINGS = 12_000_000  # that are counted, at an effort of 1
MUCH_TEXT = 1_000_000  # characters from which a context must occur 4 times, not twice
SHORTEST = 20  # characters that something can be learned from


@final
class Text(Modality):
    """A text, lists and columns of texts; .txt, folders of them, .jsonl."""

    name, what, plural = "text", "text", "texts"
    counted, codec = "texts", TextCodec
    fitted = FittedText

    def accepts(self, X: Any) -> bool:
        return is_texts(X)

    def fit(self, X: Any, y: Any, training: Training) -> FittedText:
        """Count strings of characters; an effort of 2 keeps twice as many of them where there are more."""
        if y is not None:
            raise InputError("Text is learned without a y. Leave it out.")
        corpus = corpus_of(X)
        alphabet = Alphabet.of(piece for piece, _ in corpus.pieces())
        counts = StringCounts(alphabet.levels, max(10_000, round(MOST_STRINGS * training.effort)))
        read = 0
        for codes in coded(corpus.pieces(), alphabet):
            counts.add(codes)
            read += int((codes != END).sum())
        if read < SHORTEST:
            raise InputError(f"The text has {read} characters; expected at least {SHORTEST} to learn from.")
        fewest = 4 if read >= MUCH_TEXT else 2
        memory = TextMemory(counts.finish(fewest), alphabet.levels, fewest=fewest, end=END)
        return FittedText(alphabet, memory, len(corpus), read)

    def rebuild(self, model: Trained, about: Mapping[str, Any], history: list[Check]) -> FittedText:
        said = about["text"]
        alphabet = Alphabet.from_json(said)
        if not isinstance(model, TextMemory) or model.levels != alphabet.levels:
            raise FormatError("The file contradicts itself: its model is not one of the characters it describes.")
        documents, read = (checked_number(said[one], int) for one in ("documents", "read"))
        return FittedText(alphabet, model, documents, read, history)

    def reads(self, path: Path) -> bool:
        return reads_texts(path) or reads_text(path)

    def read(self, path: Path) -> DataFile:
        return DataFile(read_corpus(path))

    def source(self, X: Any, verify: bool = True) -> Source:
        return text_source(X)

    def fit_codec(self, X: Any, training: Training) -> Codec:
        return fit_text_codec("\n".join(texts_of(X)).encode(errors="surrogateescape"))

    def unpack(self, archive: OpenArchive) -> tuple[Any, list[Lost]]:
        return unpack_text(archive)

    def file_source(self, path: Path) -> Source:
        return text_source(path)

    def unpack_to(self, archive: OpenArchive, name: str, output: Path, done: Done | None = None) -> list[Lost]:
        return unpack_text_to(archive, name, output, done)


def coded(pieces: Iterator[tuple[str, bool]], alphabet: Alphabet) -> Iterator[Codes]:
    """The codes of all pieces, with an end before the first document and behind each."""
    end = np.array([END], np.uint8)
    yield end
    for piece, last in pieces:
        yield alphabet.encode(piece)
        if last:
            yield end
