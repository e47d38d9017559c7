"""Whole archives: written block by block in constant memory and checked on the way, read whole or in parts."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

from ..coding import Archive, ArchiveWriter, Writable
from ..errors import AnyOrderError, FormatError, InputError
from ..training import Check
from .blocks import MODELLED, MOST_REST, Content, pack_block, squeezed, unpack_block, unsqueezed
from .codecs import Codec, ModelSizeError, from_bytes, to_bytes

EARLIEST = 0.25  # share of the steps before which nothing is judged
CAUTION = 2  # times the pace of late, because a falling learning rate may gain once more


class HopelessError(AnyOrderError):
    """However long it is trained, the archive would not be smaller with it."""


@final
class Goal:
    """Stops training that cannot reach its goal: `most` bytes for all items together.

    From now on it is taken to gain at twice the pace between the last two checks, which is more than it will: training gains less
    and less. Images are learned stage by stage, and those that have not begun are taken to cost nothing.
    """

    def __init__(self, most: int, items: int, progress: Callable[[Check], None] | None = None) -> None:
        self.most, self.items, self.progress = most, items, progress
        self.last = dict[int, Check]()  # of every stage

    def __call__(self, check: Check, stage: int = 0) -> None:
        if self.progress is not None:
            self.progress(check)
        before = self.last.get(stage)
        self.last[stage] = check
        if before is None or check.step < EARLIEST * check.steps:
            return
        pace = (before.best_nats - check.best_nats) / (check.step - before.step)
        gained = CAUTION * pace * (check.steps - check.step)
        nats = sum(one.best_nats for one in self.last.values()) - min(gained, check.best_nats)
        if nats * self.items / math.log(2) / 8 > self.most:
            warnings.warn("Learning a model was stopped early: the archive is smaller without one.", stacklevel=2)
            raise HopelessError


MOST_PER_BLOCK = 2**17
MOST_ITEMS = 2**48
MOST_MODEL = 2**28  # bytes
MOST_ARCHIVE_BYTES = 2**28  # of the items in a block
Done = Callable[[int, int], None]  # how many of how many are done
Find = Callable[[dict[str, Any]], Codec]  # from what an archive says of its model to the model


class Source(ABC):
    """Items that are packed block by block."""

    what: ClassVar[str]  # "images": in the description of the archive
    items: ClassVar[dict[str, str]]  # what is counted, by kind of `form`: {"folder": "files"}
    forms: ClassVar[dict[str, dict[str, str]]] = {}  # the items of every class, by what it is
    wants: ClassVar[type[Codec]]
    per_block: ClassVar[int] = 256  # items that share a stream
    form: dict[str, Any]
    count: int
    item_bytes: int  # of the largest, or of the mean one if all fit into a block

    def __init_subclass__(cls) -> None:
        if "items" in vars(cls):
            Source.forms.setdefault(cls.what, {}).update(cls.items)

    @abstractmethod
    def pack(self, codec: Codec | None, some: range) -> Content:
        """The content of a block with these items."""

    @abstractmethod
    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        """Whether these items come back from a block as they are."""

    def own_codec(self, otherwise: int, effort: float, done: Done) -> Codec | None:
        """One learned from these items alone, if it could pay to keep it with them: without it they take `otherwise` bytes."""
        return None


class Lost(NamedTuple):
    """What could not be read, and why."""

    block: int
    items: range
    why: str

    def told(self, items: str) -> str:
        first, last = self.items.start, self.items.stop - 1
        which = f"{items} {first} to {last} are" if last > first else f"{items.removesuffix('s')} {first} is"
        return f"{which} lost: {self.why}"


@final
@dataclass(frozen=True)
class ArchiveModel:
    """A codec, if there is one, and its name in archives; `inside`: archives carry it with them."""

    codec: Codec | None = None
    name: str = ""
    inside: bool = False

    def about(self) -> dict[str, Any] | None:
        if self.codec is None:
            return None
        return {"fingerprint": self.codec.fingerprint(), "name": self.name, "inside": self.inside}


# Writing


def compress(
    keeper: ArchiveModel,
    source: Source,
    file: Writable,
    per_block: int | None = None,
    verify: bool = True,
    done: Done | None = None,
) -> int:
    """Write an archive, one block after the other; how many bytes it has. Of large items fewer go into a block."""
    if keeper.codec is not None and not isinstance(keeper.codec, source.wants):
        raise InputError(f"The model was not made for what is compressed here: expected one of {source.what}.")
    per_block, reader = block_size(source, per_block, keeper.codec), keeper.codec
    with ArchiveWriter(file, describe_archive(keeper, source, per_block)) as archive:
        if keeper.inside and keeper.codec is not None:
            model = to_bytes(keeper.codec)
            reader = read_again(model, keeper.codec.fingerprint())
            archive.add(squeezed(model))
        for some in spans(source.count, per_block):
            raw = pack_block(source.pack(keeper.codec, some))
            if verify and not source.same(reader, some, unpack_block(raw)):
                raise AnyOrderError(
                    f"Items {some.start} to {some.stop - 1} did not come back as they were: nothing was written. "
                    "This is a fault of anyorder or of this machine; please report it."
                )
            archive.add(raw)
            if done is not None:
                done(some.stop, source.count)
    return archive.at


def read_again(model: bytes, wanted: str) -> Codec:
    """The codec as a reader of the archive will have it."""
    if len(model) > MOST_MODEL:
        raise ModelSizeError(f"The model has {len(model)} bytes; at most {MOST_MODEL} fit into an archive.")
    codec = from_bytes(model, "The model for the archive")
    if codec.fingerprint() != wanted:
        raise AnyOrderError("The model did not come back as it was: nothing was written. Please report this.")
    return codec


def block_size(source: Source, per_block: int | None, codec: Codec | None = None) -> int:
    """How many items go into a block: as many as are wanted, or as usual, but fewer if they are large."""
    wanted = source.per_block if per_block is None else per_block
    if not 1 <= wanted <= MOST_PER_BLOCK:
        raise InputError(f"per_block={wanted}; expected 1 to {MOST_PER_BLOCK} items in a block.")
    if source.item_bytes > MOST_REST:
        raise InputError(f"An item has {source.item_bytes} bytes; at most {MOST_REST} fit into a block.")
    most = MOST_PER_BLOCK if codec is None else codec.most_rows
    return min(wanted, most, max(1, MOST_ARCHIVE_BYTES // max(source.item_bytes, 1)))


def describe_archive(keeper: ArchiveModel, source: Source, per_block: int) -> dict[str, Any]:
    return {"what": source.what, "form": source.form, "count": source.count, "per_block": per_block, "model": keeper.about()}


def spans(count: int, per_block: int) -> Iterator[range]:
    for start in range(0, count, per_block):
        yield range(start, min(start + per_block, count))


# Reading


class ClosedArchive:
    """What can be known of an archive without its model: how many items there are, and what lies in each block."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        try:
            about = archive.about
            self.form, self.count, self.per_block = dict(about["form"]), int(about["count"]), int(about["per_block"])
            self.model = None if about["model"] is None else dict(about["model"])
            self.what = str(about["what"])
            if self.form["kind"] not in Source.forms.get(self.what, {}):
                raise FormatError(f"The archive holds {self.what!r} as {self.form['kind']!r}; this version knows no such thing.")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"The description of the archive cannot be read ({error!r}).") from error
        self.skip = 1 if self.model and self.model.get("inside") else 0
        blocks = self.skip + -(-self.count // self.per_block) if self.per_block > 0 else -1
        lost_end = bool(archive.damage) and len(archive) < blocks
        if not 0 <= self.count <= MOST_ITEMS or self.per_block > MOST_PER_BLOCK or (len(archive) != blocks and not lost_end):
            raise FormatError(f"The archive has {len(archive)} blocks, but claims {self.count} items, {self.per_block} in each.")
        inside = max(0, len(archive) - self.skip)
        self.there = min(self.count, self.per_block * inside)  # items whose blocks are there, damaged or not

    @property
    def items(self) -> str:
        """What is counted."""
        return Source.forms[self.what][self.form["kind"]]

    @cached_property
    def lost_model(self) -> str:
        """Why the model that should be inside is lost, if it is."""
        if not self.skip:
            return ""
        why = self.archive.block(0).damage if len(self.archive) else "the archive ends before it"
        return f"the model inside the archive is lost ({why})" if why else ""

    def contents(self, wanted: range | None = None) -> Iterator[tuple[range, Content | Lost]]:
        """Block by block: which items it holds, and what is in it or why that is lost; only blocks with wanted items."""
        asked = range(self.count) if wanted is None else wanted
        for number, some in enumerate(spans(self.there, self.per_block)):
            if max(some.start, asked.start) < min(some.stop, asked.stop):
                yield some, self._content(number, some)
        if max(self.there, asked.start) < min(self.count, asked.stop):
            yield range(self.there, self.count), Lost(-1, range(self.there, self.count), "the archive ends before them")

    def _content(self, number: int, some: range) -> Content | Lost:
        block = self.archive.block(number + self.skip)
        if block.content is None:
            return Lost(number, some, block.damage)
        try:
            return unpack_block(block.content)
        except FormatError as error:
            return Lost(number, some, str(error))
        except MemoryError:
            return Lost(number, some, "it does not fit into memory")


@final
class OpenArchive(ClosedArchive):
    """An archive with the model it was made with."""

    def __init__(self, archive: Archive, find: Find | None = None) -> None:
        super().__init__(archive)
        self.codec = self._codec(find)

    def _codec(self, find: Find | None) -> Codec | None:
        if self.model is None:
            return None
        name, wanted = self.model.get("name") or "of a file", self.model.get("fingerprint")
        if self.lost_model:
            return None
        if self.skip:
            codec = from_bytes(unsqueezed(self.archive.block(0).content or b"", MOST_MODEL), "The model inside the archive")
        elif find is None:
            raise InputError(f"The archive was made with the model {name!r}: name it.")
        else:
            codec = find(self.model)
        found = codec.fingerprint()
        if found != wanted and self.skip:
            raise FormatError("The model inside the archive is not the one it was made with: the archive was tampered with.")
        if found != wanted:
            raise InputError(
                f"The archive was made with the model {name!r} of fingerprint {wanted}, this one has {found}. "
                "Name the model it was made with."
            )
        return codec

    def _content(self, number: int, some: range) -> Content | Lost:
        content = super()._content(number, some)
        if self.lost_model and isinstance(content, Content) and content.method == MODELLED:
            return Lost(number, some, self.lost_model)
        return content


def check_whole(lost: list[Lost], output: Path) -> None:
    """What is damaged must not take the place of something that may be whole."""
    if lost and output.exists():
        raise InputError(f"The archive is damaged, and {str(output)!r} is there already: name another file for what is left.")
