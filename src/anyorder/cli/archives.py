"""What the commands do with archives: compress, decompress, inspect; as files and plain documents."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..codecs import (
    ArraySource,
    ClosedArchive,
    Codec,
    Done,
    FolderSource,
    FrameSource,
    ImageCodec,
    Keeper,
    Lost,
    OpenArchive,
    Source,
    TableCodec,
    compress,
    csv_source,
    decompress_array,
    decompress_folder,
    decompress_table,
)
from ..codecs.blocks import MODELLED, Content
from ..coding import Archive
from ..errors import AnyOrderError, InputError
from ..estimator import AnyOrder
from ..files import write_whole
from .files import check_place, read_bytes, suffix_of, untouched_parquet, write_content, write_table
from .progress import bar, calls_shown

Document = dict[str, Any]


class Written(NamedTuple):
    """How an archive is written."""

    per_block: int | None
    verify: bool


def compress_path(path: Path, output: Path, model: Path | None, effort: float, written: Written) -> Document:
    """A table, a folder of images, or an array of them in a .npy file; without a model one is learned if it pays."""
    source = source_of(path)
    if model is not None:
        write(Keeper(codec_of(model), str(model) if not model.exists() else ""), source, output, written)
    else:
        write(Keeper(), source, output, written)
        write_with_own_model(source, output, effort, written)
    original = sum(file.stat().st_size for file in files_of(path))
    return {"archive": str(output), "original_bytes": original, **inspect(output, model)}


def write(keeper: Keeper, source: Source, output: Path, written: Written) -> None:
    def into(beside: str) -> None:
        with open(beside, "wb") as file, compressing(keeper, source, written) as done:
            compress(keeper, source, file, written.per_block, written.verify, done)

    write_whole(output, into)


def compressing(keeper: Keeper, source: Source, written: Written) -> AbstractContextManager[Done | None]:
    """A bar for blocks, or for what goes on in them if they are large."""
    if not isinstance(keeper.codec, TableCodec):
        return bar("compressing", source.count)
    return coding("compressing", keeper.codec, source.count, written.per_block or source.per_block, 2 if written.verify else 1)


def write_with_own_model(source: Source, output: Path, effort: float, written: Written) -> None:
    """In the place of the archive, if it is smaller with a model of what is in it inside."""
    with bar("learning", 1) as done:
        codec = source.own_codec(output.stat().st_size, effort, done)
    if codec is None:
        return
    beside = output.with_name(f".{output.name}.with-model")
    try:
        write(Keeper(codec, inside=True), source, beside, written)
        if beside.stat().st_size < output.stat().st_size:
            beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)


def source_of(path: Path) -> Source:
    if path.is_dir():
        return FolderSource(path)
    if is_table(path):
        content = read_bytes(path)
        return FrameSource(untouched_parquet(path.name, content)) if suffix_of(path) == ".parquet" else csv_source(content)
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise InputError(f"{str(path)!r} is no table (.csv, .tsv, .parquet), no folder and no array of images (.npy).")
    try:
        return ArraySource(np.load(path))
    except ValueError as error:
        raise InputError(f"{path.name} cannot be read as an array: {error}.") from error


def is_table(path: Path) -> bool:
    try:
        return bool(suffix_of(path))
    except InputError:
        return False


def files_of(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]


def codec_of(model: Path) -> Codec:
    return AnyOrder.load(model).known_codec_


def opened(archive: Path, model: Path | None) -> OpenArchive:
    """With the model that was named, the one inside, or the one of that name that comes with the package."""

    def find(about: dict[str, Any]) -> Codec:
        if model is None and not about.get("name"):
            raise InputError(f"{archive.name} was made with a model of a file: name it with --model.")
        return codec_of(model or Path(str(about["name"])))

    return OpenArchive(Archive(archive), find)


def decompress_path(archive: Path, output: Path, model: Path | None) -> Document:
    """A table, a folder with all files, or a .npy file; what is lost is told."""
    images = opened(archive, model)
    if images.what == "table":
        lost = write_table_of(images, archive, output)
    elif images.form["kind"] == "folder":
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise InputError(f"{str(output)!r} is there already: name a new or an empty folder.")
        with bar("decompressing", images.count) as done:
            lost = decompress_folder(images, output, done)
    else:
        if output.suffix.lower() != ".npy":
            raise InputError(f"{archive.name} holds an array: name a .npy file, not {str(output)!r}.")
        check_place(output, archive)
        with bar("decompressing", images.count) as done:
            array, lost = decompress_array(images, done=done)
        write_array(array, output)
    return {"output": str(output), images.items: images.count, "lost": [described(images, one) for one in lost]}


def write_table_of(opened: OpenArchive, archive: Path, output: Path) -> list[Lost]:
    """The file as it was, or under .gz; a table with types in a .parquet file."""
    check_place(output, archive)
    frame = opened.form["kind"] == "frame"
    if frame != (suffix_of(output) == ".parquet"):
        wanted = "a table with types: name a .parquet file" if frame else "a file of values: name a .csv or .tsv file"
        raise InputError(f"{archive.name} holds {wanted}, not {str(output)!r}.")
    with coding("decompressing", opened.codec, opened.count, opened.per_block):
        found, lost = decompress_table(opened)
    if isinstance(found, bytes):
        write_content(found, output)
    else:
        write_table(found, output, index=True)
    return lost


def coding(doing: str, codec: Codec | None, rows: int, per_block: int, passes: int = 1) -> AbstractContextManager[None]:
    """A bar for rows of a table, which goes on with every call of the network; zstd needs none."""
    if not isinstance(codec, TableCodec):
        return nullcontext()
    whole, rest = divmod(rows, per_block)
    return calls_shown(doing, codec.model, passes * (whole * codec.calls(per_block) + codec.calls(rest)))


def write_array(array: NDArray[Any], output: Path) -> None:
    def into(beside: str) -> None:
        with open(beside, "wb") as file:
            np.save(file, array)

    write_whole(output, into)


def inspect(archive: Path, model: Path | None = None) -> Document:
    """What is inside, how small it is, and whether it is whole; without its model not what each column costs."""
    file = Archive(archive)
    images, codec, missing = ClosedArchive(file), None, ""
    try:
        codec = opened(archive, model).codec
    except (AnyOrderError, OSError) as error:
        missing = str(error)
    blocks = [content for _, content in images.contents()]
    whole = [content for content in blocks if not isinstance(content, Lost)]
    document: Document = {
        "form": images.form,
        images.items: images.count,
        "per_block": images.per_block,
        "model": images.model,
        "bytes": file.size,
        "model_bytes": len(file.block(0).content or b"") if images.skip else 0,
        "blocks": len(blocks),
        "modelled_blocks": sum(content.method == MODELLED for content in whole),
        "damage": [list(one) for one in file.damage] + [described(images, one) for one in blocks if isinstance(one, Lost)],
        **({"model_missing": missing} if missing else {}),
    }
    if isinstance(codec, TableCodec):
        document["columns"] = column_bytes(codec, whole)
    if isinstance(codec, ImageCodec) and images.count:
        pixels = codec.encoder
        document["bits_per_dimension"] = 8 * file.size / images.count / (pixels.height * pixels.width * pixels.channels)
    return document


def column_bytes(codec: TableCodec, blocks: list[Content]) -> dict[str, float]:
    """What each column takes of the streams, in bytes."""
    names = [codec.names[place] for place, _ in codec.coded]
    spent = np.zeros(len(names))
    for content in blocks:
        bits = content.notes.get("bits", [])
        if isinstance(bits, list) and len(bits) == len(names) and all(isinstance(n, int) for n in bits):
            spent += np.array(bits) / 8
    return dict(zip(names, spent.tolist(), strict=True))


def described(archive: ClosedArchive, lost: Lost) -> str:
    return f"{archive.items} {lost.items.start} to {lost.items.stop - 1} are lost: {lost.why}"
