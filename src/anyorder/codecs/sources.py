"""What archives are made from: items of which each source knows how to pack some, and to check them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from .blocks import Content
from .images.pyramid import ImageCodec
from .tables.codec import TableCodec

Codec = ImageCodec | TableCodec
Done = Callable[[int, int], None]  # how many of how many are done


class Source(ABC):
    """Items that are packed block by block."""

    what: ClassVar[str] = "images"
    wants: ClassVar[type[ImageCodec] | type[TableCodec]] = ImageCodec
    per_block: ClassVar[int] = 256  # items that share a stream
    form: dict[str, Any]
    count: int
    item_bytes: int  # of the largest, or of the mean one if all fit into a block

    @abstractmethod
    def pack(self, codec: Codec | None, some: range) -> Content:
        """The content of a block with these items."""

    @abstractmethod
    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        """Whether these items come back from a block as they are."""

    def own_codec(self, otherwise: int, effort: float, done: Done) -> Codec | None:
        """One learned from these items alone, if it could pay to keep it with them: without it they take `otherwise` bytes."""
        return None
