"""Files of folders in archives: all of them are found, and no name leads out of its folder."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from ..errors import FormatError, InputError, WriteError
from ..io.atomic import write_bytes
from .archive import Lost


def every_file(folder: Path) -> Iterator[Path]:
    """All files below a folder; what cannot be kept, or not be read, is named."""
    for place, folders, files in os.walk(folder, onerror=refused):
        for path in (Path(place) / name for name in (*folders, *files)):
            if not is_text_chunk(path.name):
                raise InputError(f"The name {path.name!r} is no UTF-8 text, and could not be kept: rename it.")
            if path.is_dir() and path.is_symlink():
                raise InputError(
                    f"{str(path)!r} is a link to a folder, which is not kept: compress that folder, or remove the link."
                )
            if not path.is_dir() and not path.is_file():
                raise InputError(
                    f"{str(path)!r} is neither a file nor a folder (or a link to nothing), and cannot be kept: remove it."
                )
        yield from (Path(place) / name for name in files)


def refused(error: OSError) -> None:
    raise InputError(f"The folder {error.filename!r} cannot be read ({error.strerror}).") from error


def checked_name(name: str, kind: type[PurePath] = PurePath) -> str:
    """A name that stays inside its folder, on a system with such paths."""
    path = kind(name)
    if path.anchor or not path.parts or ".." in path.parts or "\0" in name or not is_text_chunk(name):
        raise FormatError(f"The archive holds a file called {name!r}, which would lie outside of its folder.")
    return name


def is_text_chunk(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_files(folder: Path, files: Iterable[tuple[str, bytes]], some: range, per_block: int) -> Iterator[Lost]:
    """All files of a block, which are these items of the archive; those that cannot be written are told."""
    for number, (name, content) in enumerate(files, some.start):
        path = folder / name
        try:
            if os.path.lexists(path):  # also a name that differs by case only, where that makes no difference
                raise FileExistsError(0, "it is there already")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content)
        except OSError as error:
            why = str(error) if isinstance(error, WriteError) else f"{name!r} cannot be written ({error.strerror})"
            yield Lost(some.start // per_block, range(number, number + 1), why)
