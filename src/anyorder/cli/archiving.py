"""What an archive holds, and whether it is whole; archives written and read with bars that show how far they are."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..archives import ArchiveModel, ClosedArchive, Codec, Done, Lost, ModelSizeError, OpenArchive, Source, compress
from ..archives.archive import block_size
from ..archives.blocks import MODELLED, Content
from ..coding import Archive
from ..errors import AnyOrderError, InputError
from ..estimator import AnyOrder
from ..io.atomic import check_place, write_whole
from ..io.shipped import model_file, names, shipped_file
from ..modalities.registry import modality_named, modality_reading
from .printing import calls_shown, progress_of_steps

Document = dict[str, Any]
MOST_BITS = 2**40  # that a column may claim


def inspect(archive: Path, codec: Codec | None = None) -> Document:
    """What is inside, how small it is, and whether it is whole; without its model not what each column costs."""
    file = Archive(archive)
    closed = ClosedArchive(file)
    labels = [] if codec is None else codec.labels()
    damage = [": ".join(one) for one in file.damage] + ([closed.lost_model] if closed.lost_model else [])
    modelled, whole, spent = 0, True, np.zeros(len(labels))
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
    if labels:
        document["columns"] = [{"name": name, "bytes": taken} for name, taken in zip(labels, spent.tolist(), strict=True)]
    modality = modality_named(closed.what)
    values = modality.values_in(closed, codec if whole else None) if modality else 0
    return document | ({"bits_per_dimension": 8 * file.size / values} if values else {})


def bytes_of(content: Content, labels: int) -> Any:
    """What each column takes of the stream of a block, if the block says so."""
    bits = content.notes.get("bits")
    said = isinstance(bits, list) and len(bits) == labels and all(type(n) is int and 0 <= n < MOST_BITS for n in bits)
    return np.array(bits, dtype=float) / 8 if said else np.zeros(labels)


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


def compressing(keeper: ArchiveModel, source: Source, written: WrittenArchive) -> AbstractContextManager[Done]:
    """A bar for blocks, or for what goes on in them if they are large."""
    per_block = block_size(source, written.per_block, keeper.codec)
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
    """A file or folder as items of an archive."""
    return modality_reading(path).file_source(path)


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
    modality = modality_named(found.what)
    assert modality is not None, "an archive of an unknown kind is not opened"
    if not output.is_dir():
        check_place(output, archive)
    with coding("decompressing", found.codec, found.count, found.per_block) as done:
        lost = modality.unpack_to(found, archive.name, output, done)
    saved = found.count - sum(len(one.items) for one in lost)
    return {"output": str(output), found.items: saved, "lost": [one.told(found.items) for one in lost]}


def coding(doing: str, codec: Codec | None, items: int, per_block: int, passes: int = 1) -> AbstractContextManager[Done]:
    """A bar for items, or one that goes on with every call of the codec's model, where a block takes many."""
    whole, rest = divmod(items, per_block)
    if codec is None or codec.network is None:
        return progress_of_steps(doing, items)
    return calls_shown(doing, codec.network, passes * (whole * codec.calls(per_block) + codec.calls(rest)))
