"""Files that come through the browser: each under a name of our own in a folder that is removed, read by the safe loaders."""

import gzip
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, final

from ..errors import AnyOrderError, FormatError, InputError
from ..estimator import AnyOrder
from ..modalities.registry import modality_reading
from .asking import model_info
from .learning import data_info
from .workspace import Workspace, tidy_name

Document = dict[str, Any]
PART_BYTES = 2**20
MOST_SWELLING = 40  # times: a .gz file that grows more than that is refused
CLASS_NAME = re.compile(r"[\w][\w +-]{0,59}")
SUFFIX = re.compile(r"(\.[a-z0-9]{1,8}){1,2}")


class Part(NamedTuple):
    """A file of an upload: the name that the browser tells, and its content."""

    name: str
    content: BinaryIO


@final
class Upload:
    """Files in a folder of their own. `path` is the file, or the folder if there are several."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self.archive: bytes | None = None  # what it was compressed to
        self.folder = Path(tempfile.mkdtemp(prefix="anyorder-studio-"))
        try:
            parts = list(parts)
            if not parts:
                raise InputError("No file came. Choose one, or drop it on the page.")
            self.name = tidy_name(parts[0].name if len(parts) == 1 else parts[0].name.replace("\\", "/").split("/")[0])
            self.path = self._one(parts[0]) if len(parts) == 1 else self._several(parts)
            self.bytes = sum(file.stat().st_size for file in self.files())
        except BaseException:
            self.remove()
            raise

    def files(self) -> list[Path]:
        return sorted(file for file in self.folder.rglob("*") if file.is_file())

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def tell(self, error: AnyOrderError) -> str:
        """What a loader says, with the file's own name and no folder of this machine in it."""
        text = str(error).replace(str(self.path), self.name).replace(self.path.name, self.name)
        return text.replace(f"{self.folder}/", "").replace(str(self.folder), "the upload")

    def _one(self, part: Part) -> Path:
        """The suffix of a name says how to read a file; the rest of the name is ours."""
        path = self.folder / f"the-file{suffix_of(self.name)}"
        written(part.content, path)
        return path

    def _several(self, parts: list[Part]) -> Path:
        """Pictures of a folder, or of one folder for each class."""
        place = self.folder / "images"
        for number, part in enumerate(parts):
            *above, name = part.name.replace("\\", "/").split("/")
            kind = above[-1] if len(above) > 1 else ""
            if kind and not CLASS_NAME.fullmatch(kind):
                raise InputError(f"The folder {kind!r:.60} cannot name a class; expected letters, numbers and blanks.")
            inside = place / kind if kind else place
            inside.mkdir(parents=True, exist_ok=True)
            written(part.content, inside / f"{number:06}{suffix_of(name)}")
        return place


def suffix_of(name: str) -> str:
    """.csv, or .csv.gz; nothing if it is strange."""
    suffixes = "".join(Path(name.lower()).suffixes[-2:])
    last = Path(name.lower()).suffix
    whole = suffixes if last == ".gz" else last
    return whole if SUFFIX.fullmatch(whole) else ""


def written(content: BinaryIO, path: Path) -> None:
    with open(path, "wb") as file:
        shutil.copyfileobj(content, file, PART_BYTES)
    if path.suffix == ".gz":
        check_swelling(path)


def check_swelling(path: Path) -> None:
    """A small file that unpacks to gigabytes is refused before anybody reads it whole."""
    most = max(MOST_SWELLING * path.stat().st_size, 2**24)
    size = 0
    try:
        with gzip.open(path) as file:
            while part := file.read(PART_BYTES):
                size += len(part)
                if size > most:
                    raise InputError(
                        f"{path.name} unpacks to more than {MOST_SWELLING} times its size. Unpack it yourself first."
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError("This is no whole gzip file. Copy it again, or name it without .gz.") from error


def open_upload(space: Workspace, parts: Iterable[Part]) -> Document:
    """A model, or data of any kind that a modality reads, from files of the browser."""
    upload = Upload(parts)
    try:
        if upload.path.suffix == ".ao":
            return model_info(space, space.add_model(upload.name, AnyOrder.load(upload.path)).id)
        modality = modality_reading(upload.path)
        X, y, _ = modality.read(upload.path)
        return data_info(space, space.add_data(upload.name, modality, X, y).id)
    except AnyOrderError as error:
        raise type(error)(upload.tell(error)) from None
    finally:
        upload.remove()


def keep_upload(space: Workspace, parts: Iterable[Part]) -> Document:
    """Files that are to be compressed; the last few are kept."""
    upload = Upload(parts)
    id = f"u{id_of(upload)}"
    space.uploads[id] = upload
    while len(space.uploads) > 4:
        space.uploads.pop(next(iter(space.uploads))).remove()
    return {"upload": id, "name": upload.name, "bytes": upload.bytes, "files": len(upload.files())}


def id_of(upload: Upload) -> str:
    return upload.folder.name.rsplit("-", 1)[-1]
