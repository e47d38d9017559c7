"""Images: how they are found, fitted, kept and compressed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from ...archives import ClosedArchive, Codec, Done, Lost, OpenArchive, Source
from ...archives.archive import check_whole
from ...errors import FormatError, InputError
from ...io.atomic import write_whole
from ...models.any_order import AnyOrderModel
from ...models.trained import Trained
from ...networks import UNet, size_named
from ...training import Check, Objective
from ..base import DataFile, Modality, Training
from .image_archives import ArraySource, FolderSource, decompress_array, decompress_folder, shape_and_dtype
from .image_model import FittedImages, fit_image_array
from .pixels import ImageEncoder, looks_like_images, read_labelled
from .pyramid_codec import ImageCodec, codec_steps, fit_image_codec
from .regions import MODES


@final
class Images(Modality):
    """Arrays of images, (number, height, width) or with colours at the end; folders of files."""

    name, what, plural = "images", "an array of images", "images"
    counted, codec = "images", ImageCodec
    fitted = FittedImages

    def accepts(self, X: Any) -> bool:
        return looks_like_images(X)

    def fit(
        self,
        X: Any,
        y: Any,
        training: Training,
        size: str = "small",
        base: int = 0,
        objective: Objective | None = None,
    ) -> FittedImages:
        return fit_image_array(X, y, training, size_named(size), base, objective)

    def rebuild(self, model: Trained, about: Mapping[str, Any], history: list[Check]) -> FittedImages:
        encoder, classes = ImageEncoder.from_json(about["images"]), about.get("classes", ())
        if not isinstance(model, AnyOrderModel) or not isinstance(model.network, UNet) or model.network.shape != encoder.shape:
            raise FormatError("The file contradicts itself: its model is not one of the images it describes.")
        if (
            not isinstance(classes, list | tuple)
            or not all(isinstance(name, str) for name in classes)
            or (classes and model.network.sizes["context"][-1:] != [len(classes)])
        ):
            raise FormatError("The file contradicts itself: its classes are not those of its model.")
        modes = tuple(str(name) for name in about.get("modes", ()))
        if modes and (set(modes) - set(MODES) or model.network.sizes["context"][:2] != [len(modes), len(encoder) + 1]):
            raise FormatError("The file contradicts itself: its modes are not those of its model.")
        return FittedImages(encoder, model, history, tuple(classes), modes)

    def reads(self, path: Path) -> bool:
        return (path.is_dir() and not any(path.rglob("*.parquet"))) or path.suffix.lower() == ".npy"

    def read(self, path: Path) -> DataFile:
        return DataFile(*read_labelled(path)) if path.is_dir() else DataFile(read_array(path))

    def source(self, X: Any, verify: bool = True) -> Source:
        return ArraySource(X)

    def fit_codec(self, X: Any, training: Training) -> Codec:
        encoder = ImageEncoder.learn(X)
        watch = training.progress
        told = None if watch is None else lambda stage, check: watch(check)
        return fit_image_codec(encoder, encoder.encode(X), codec_steps(training.effort), training.seed, told)

    def unpack(self, archive: OpenArchive) -> tuple[Any, list[Lost]]:
        return decompress_array(archive)

    def file_source(self, path: Path) -> Source:
        return FolderSource(path) if path.is_dir() else ArraySource(read_array(path))

    def unpack_to(self, archive: OpenArchive, name: str, output: Path, done: Done | None = None) -> list[Lost]:
        if archive.form["kind"] == "folder":
            if output.exists() and (not output.is_dir() or any(output.iterdir())):
                raise InputError(f"{str(output)!r} is there already: name a new or an empty folder.")
            return decompress_folder(archive, output, done)
        if output.suffix.lower() != ".npy":
            raise InputError(f"{name} holds an array: name a .npy file, not {str(output)!r}.")
        array, lost = decompress_array(archive, done=done)
        check_whole(lost, output)
        write_array(array, output)
        return lost

    def values_in(self, archive: ClosedArchive, codec: Codec | None) -> int:
        if archive.form["kind"] == "array":
            shape, _ = shape_and_dtype(archive)
            return int(np.prod(shape, dtype=object)) if len(shape) in (3, 4) else 0
        return archive.count * len(codec.encoder) if isinstance(codec, ImageCodec) and archive.form["kind"] == "folder" else 0


def read_array(path: Path) -> NDArray[Any]:
    """The array in a .npy file."""
    try:
        with open(path, "rb") as file:
            array = np.load(file)
    except Exception as error:  # what a damaged file leads to in numpy is for it to choose
        raise InputError(f"{path.name} cannot be read as an array: {error}.") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path.name} holds several arrays (.npz), not one. Save each as .npy.")
    return array


def write_array(array: NDArray[Any], output: Path) -> None:
    def into(beside: str) -> None:
        with open(beside, "wb") as file:
            np.save(OnlyWrites(file), array)

    write_whole(output, into)


class OnlyWrites:
    """A file as numpy must not know it: into one that it knows it writes by itself, and misses that a small disk is full."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write
