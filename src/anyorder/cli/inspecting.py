"""What an archive holds, and whether it is whole: `inspect`, as a plain document."""

from pathlib import Path
from typing import Any

import numpy as np

from ..codecs import ClosedArchive, Codec, ImageCodec, Lost, TableCodec
from ..codecs.blocks import MODELLED, Content
from ..codecs.images.reading import shape_and_dtype
from ..coding import Archive

Document = dict[str, Any]
MOST_BITS = 2**40  # that a column may claim


def inspect(archive: Path, codec: Codec | None = None) -> Document:
    """What is inside, how small it is, and whether it is whole; without its model not what each column costs."""
    file = Archive(archive)
    closed = ClosedArchive(file)
    damage = [": ".join(one) for one in file.damage] + ([closed.lost_model] if closed.lost_model else [])
    modelled, whole, spent = 0, True, np.zeros(len(codec.coded) if isinstance(codec, TableCodec) else 0)
    for _, content in closed.contents():
        if isinstance(content, Lost):
            damage.append(content.told(closed.items))
            continue
        modelled += content.method == MODELLED
        whole = whole and content.method == MODELLED and "whole" not in content.notes
        spent += bytes_of(content, len(spent))
    document: Document = {
        "form": closed.form,
        closed.items: closed.count,
        "per_block": closed.per_block,
        "model": closed.model,
        "bytes": file.size,
        "model_bytes": len(file.block(0).content or b"") if closed.skip and len(file) else 0,
        "blocks": len(file) - closed.skip,
        "modelled_blocks": modelled,
        "damage": damage,
    }
    if isinstance(codec, TableCodec):
        names = [codec.names[place] for place, _ in codec.coded]
        document["columns"] = [{"name": name, "bytes": taken} for name, taken in zip(names, spent.tolist(), strict=True)]
    values = value_count(closed, codec if whole else None)
    return document | ({"bits_per_dimension": 8 * file.size / values} if values else {})


def bytes_of(content: Content, columns: int) -> Any:
    """What each column takes of the stream of a block, if the block says so."""
    bits = content.notes.get("bits")
    said = isinstance(bits, list) and len(bits) == columns and all(type(n) is int and 0 <= n < MOST_BITS for n in bits)
    return np.array(bits, dtype=float) / 8 if said else np.zeros(columns)


def value_count(archive: ClosedArchive, codec: Codec | None) -> int:
    """How many values the images have, if they are images and all of one kind."""
    if archive.form["kind"] == "array":
        shape, _ = shape_and_dtype(archive)
        return int(np.prod(shape, dtype=object)) if len(shape) in (3, 4) else 0
    return archive.count * len(codec.encoder) if isinstance(codec, ImageCodec) and archive.form["kind"] == "folder" else 0
