"""What an archive holds, and whether it is whole: `inspect`, as a plain document."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ..archives import ArchiveModel, ClosedArchive, Codec, Done, Lost, ModelSizeError, OpenArchive, Source, compress
from ..archives.archive import block_size
from ..archives.blocks import MODELLED, Content
from ..coding import Archive
from ..errors import AnyOrderError, InputError
from ..estimator import AnyOrder
from ..io.atomic import write_whole
from ..io.shipped import model_file, names, shipped_file
from ..modalities.images.image_archives import ArraySource, FolderSource, decompress_array, decompress_folder, shape_and_dtype
from ..modalities.images.pyramid_codec import ImageCodec
from ..modalities.tables.codec.arrow import parquet_bytes
from ..modalities.tables.codec.table_archives import csv_source, decompress_table, parquet_source
from ..modalities.tables.codec.table_codec import TableCodec
from .printing import calls_shown, progress_of_steps
from .table_files import check_place, in_bytes, read_bytes, suffix_of, unread_parquet, write_content

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


class WrittenArchive(NamedTuple):
    """How an archive is written."""

    per_block: int | None
    verify: bool


def compress_path(path: Path, output: Path, model: Path | None, effort: float, written: WrittenArchive) -> Document:
    """A table, a folder of images, or an array of them in a .npy file; without a model one is learned if it pays."""
    source = source_of(path)
    original = sum(file.stat().st_size for file in files_of(path))
    keeper = ArchiveModel() if model is None else archive_model_of(model)

    def into(beside: str) -> None:
        write_archive(keeper, source, Path(beside), written)
        if model is None:
            write_with_own_model(source, Path(beside), effort, written)

    write_whole(output, into)
    return {"archive": str(output), "original_bytes": original, **inspect(output, keeper.codec)}


def archive_model_of(model: Path) -> ArchiveModel:
    loaded = AnyOrder.load(model)
    return ArchiveModel(codec_of(loaded, model), loaded.name_)


def codec_of(loaded: AnyOrder, model: Path) -> Codec:
    if loaded.codec_ is None:
        raise InputError(f"The model {model.name} was fitted without a codec: anyorder fit ... --codec -o {model.name}.")
    return loaded.known_codec_


def write_archive(keeper: ArchiveModel, source: Source, output: Path, written: WrittenArchive) -> None:
    with open(output, "wb") as file, compressing(keeper, source, written) as done:
        compress(keeper, source, file, written.per_block, written.verify, done)


def compressing(keeper: ArchiveModel, source: Source, written: WrittenArchive) -> AbstractContextManager[Done | None]:
    """A bar for blocks, or for what goes on in them if they are large."""
    per_block = block_size(source, written.per_block, keeper.codec)
    if not isinstance(keeper.codec, TableCodec):
        return progress_of_steps("compressing", source.count)
    return coding("compressing", keeper.codec, source.count, per_block, 2 if written.verify and not keeper.inside else 1)


def write_with_own_model(source: Source, output: Path, effort: float, written: WrittenArchive) -> None:
    """In the place of the archive, if it is smaller with a model of what is in it inside."""
    with progress_of_steps("learning", 1) as done:
        codec = source.own_codec(output.stat().st_size, effort, done)
    if codec is None:
        return
    beside = output.with_suffix(".own.part")
    try:
        write_archive(ArchiveModel(codec, inside=True), source, beside, written)
        if beside.stat().st_size < output.stat().st_size:
            beside.replace(output)
    except ModelSizeError:  # the archive without it is there
        return
    finally:
        beside.unlink(missing_ok=True)


def source_of(path: Path) -> Source:
    if path.is_dir():
        return FolderSource(path)
    if is_table(path):
        content = read_bytes(path)
        if suffix_of(path) != ".parquet":
            return csv_source(content)
        with unread_parquet(path.name):
            return parquet_source(content)
    if path.suffix.lower() != ".npy" or not path.is_file():
        raise InputError(f"{str(path)!r} is no table (.csv, .tsv, .parquet), no folder and no array of images (.npy).")
    try:
        with open(path, "rb") as file:
            array = np.load(file)
    except (ValueError, EOFError, OSError, MemoryError, BadZipFile) as error:
        raise InputError(f"{path.name} cannot be read as an array: {error}.") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path.name} holds several arrays (.npz), not one. Save each as .npy.")
    return ArraySource(array)


def is_table(path: Path) -> bool:
    try:
        return bool(suffix_of(path))
    except InputError:
        return False


def files_of(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]


def opened(archive: Path, model: Path | None) -> OpenArchive:
    """With the model that was named, the one inside, or the one of that name that comes with the package."""

    def find(about: dict[str, Any]) -> Codec:
        name = str(about.get("name") or "")
        if model is None and name not in names():
            which = f"the model {name!r}, which does not come with the package" if name else "a model of a file"
            raise InputError(f"{archive.name} was made with {which}: name it with --model.")
        file = model or shipped_file(name)
        return codec_of(AnyOrder.load(file), Path(file))

    return OpenArchive(Archive(archive), find)


def inspect_path(archive: Path, model: Path | None) -> Document:
    """With its model if it can be found; if not, what can be told without."""
    if model is not None and not model_file(model).is_file():
        raise InputError(f"There is no file {str(model)!r}.")
    try:
        return inspect(archive, opened(archive, model).codec)
    except (AnyOrderError, OSError) as error:
        return inspect(archive) | {"model_missing": str(error)}


def decompress_path(archive: Path, output: Path, model: Path | None) -> Document:
    """A table, a folder with all files, or a .npy file; what is lost is told."""
    found = opened(archive, model)
    if found.what == "table":
        lost = write_table_of(found, archive, output)
    elif found.form["kind"] == "folder":
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise InputError(f"{str(output)!r} is there already: name a new or an empty folder.")
        with progress_of_steps("decompressing", found.count) as done:
            lost = decompress_folder(found, output, done)
    else:
        if output.suffix.lower() != ".npy":
            raise InputError(f"{archive.name} holds an array: name a .npy file, not {str(output)!r}.")
        check_place(output, archive)
        with progress_of_steps("decompressing", found.count) as done:
            array, lost = decompress_array(found, done=done)
        check_whole(lost, output)
        write_array(array, output)
    saved = found.count - sum(len(one.items) for one in lost)
    return {"output": str(output), found.items: saved, "lost": [one.told(found.items) for one in lost]}


def check_whole(lost: list[Lost], output: Path) -> None:
    """What is damaged must not take the place of something that may be whole."""
    if lost and output.exists():
        raise InputError(f"The archive is damaged, and {str(output)!r} is there already: name another file for what is left.")


def write_table_of(found: OpenArchive, archive: Path, output: Path) -> list[Lost]:
    """The file as it was, or under .gz; a table with types in a .parquet file."""
    check_place(output, archive)
    kind, typed = found.form["kind"], found.form["kind"] in ("frame", "arrow")
    if kind != "bytes" and typed != (suffix_of(output) == ".parquet"):
        wanted = "a table with types: name a .parquet file" if typed else "a file of values: name a .csv or .tsv file"
        raise InputError(f"{archive.name} holds {wanted}, not {str(output)!r}.")
    with coding("decompressing", found.codec, found.count, found.per_block):
        table, lost = decompress_table(found)
    check_whole(lost, output)
    if kind == "arrow":
        table = parquet_bytes(table)
    elif kind == "frame":
        table = in_bytes(table, output, index=True, otherwise="In Python `decompress` gives it back")
    write_content(table, output)
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
