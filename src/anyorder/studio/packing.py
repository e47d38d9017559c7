"""Lossless compression of files that were dropped on the page, beside what everybody has."""

import io
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..archives import ArchiveModel, ClosedArchive, Codec, Lost, ModelSizeError, Source
from ..archives import compress as write_archive
from ..archives.archive import OpenArchive
from ..coding import Archive
from ..errors import AnyOrderError, InputError
from ..modalities.compression import refuse_to_find
from ..modalities.registry import modality_named, modality_reading
from .jobs import Job
from .uploads import Upload
from .wording import command
from .workspace import NotThereError, Workspace

Document = dict[str, Any]


def pack(space: Workspace, upload: str, effort: float = 1.0) -> Document:
    """Compress an upload, check that it comes back byte for byte, and compare its size with zip and xz; as a job."""
    held = upload_of(space, upload)
    if not 0.01 <= effort <= 100:
        raise InputError(f"Got effort={effort:g}; expected a number from 0.01 to 100.")
    words = command("anyorder", "compress", held.name, "--effort", f"{effort:g}")
    python = (
        f"import subprocess\n\nsubprocess.run({['anyorder', 'compress', held.name, '--effort', f'{effort:g}']!r}, check=True)"
    )

    def work(job: Job) -> Document:
        try:
            job.tell(doing="reading")
            source = modality_reading(held.path).file_source(held.path)
            content, codec = smallest(job, source, effort)
        except AnyOrderError as error:
            raise type(error)(held.tell(error)) from None
        job.tell(doing="zip and xz")
        others = [{"name": "as it is", "bytes": held.bytes}, *usual(held)]
        job.tell(doing="decompressing")
        same = comes_back(held, content)
        held.archive = content
        return {
            "upload": upload,
            "name": f"{held.name}.aoz",
            "bytes": len(content),
            "others": others,
            "columns": by_column(content, codec),
            "identical": same,
            "python": python,
            "command": words,
        }

    return space.jobs.start(f"Compress {held.name}", work).document()


def upload_of(space: Workspace, upload: str) -> Upload:
    if upload not in space.uploads:
        raise NotThereError(f"The upload {upload!r:.40} is not here any more. Drop the file again.")
    found: Upload = space.uploads[upload]
    return found


def smallest(job: Job, source: Source, effort: float) -> tuple[bytes, Codec | None]:
    """The archive without a model, or with one learned from the data inside, if that is smaller."""

    def written(model: ArchiveModel, doing: str) -> bytes:
        file = io.BytesIO()
        write_archive(model, source, file, done=lambda done, of: job.tell(doing=doing, done=done, of=of))
        return file.getvalue()

    plain = written(ArchiveModel(), "compressing")
    codec = source.own_codec(len(plain), effort, lambda done, of: job.tell(doing="learning", done=done, of=of))
    if codec is None:
        return plain, None
    try:
        own = written(ArchiveModel(codec, inside=True), "compressing")
    except ModelSizeError:
        return plain, None
    return (own, codec) if len(own) < len(plain) else (plain, None)


def usual(held: Upload) -> list[Document]:
    """What zip and xz make of the same files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in held.files():
            archive.write(file, file.relative_to(held.folder))
    whole = b"".join(file.read_bytes() for file in held.files())
    return [{"name": "zip", "bytes": packed.tell()}, {"name": "xz", "bytes": len(lzma.compress(whole, preset=9))}]


def by_column(content: bytes, codec: Codec | None) -> list[Document]:
    """What every column takes, as far as the archive tells."""
    labels = [] if codec is None else codec.labels()
    spent = np.zeros(len(labels))
    for _, one in ClosedArchive(Archive(content)).contents() if labels else ():
        bits = [] if isinstance(one, Lost) else one.notes.get("bits")
        if isinstance(bits, list) and len(bits) == len(labels):
            spent += np.array(bits, dtype=float) / 8
    return [{"name": name, "bytes": taken} for name, taken in zip(labels, spent.tolist(), strict=True)] if spent.any() else []


def comes_back(held: Upload, content: bytes) -> bool:
    """Whether the archive, read again, is what was compressed, byte for byte."""
    opened = OpenArchive(Archive(content), refuse_to_find)
    modality = modality_named(opened.what)
    assert modality is not None
    beside = held.folder.with_name(f"{held.folder.name}-back")
    beside.mkdir()
    try:
        output = beside / held.path.name
        lost = modality.unpack_to(opened, held.name, output)
        return not lost and all(same_file(file, beside / file.relative_to(held.folder)) for file in held.files())
    finally:
        import shutil

        shutil.rmtree(beside, ignore_errors=True)


def same_file(first: Path, second: Path) -> bool:
    return second.is_file() and first.read_bytes() == second.read_bytes()


def archive_of(space: Workspace, upload: str) -> tuple[str, bytes]:
    """The archive of an upload: its name and its content."""
    held = upload_of(space, upload)
    if held.archive is None:
        raise NotThereError(f"{held.name} was not compressed yet.")
    return f"{held.name}.aoz", held.archive
