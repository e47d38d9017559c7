"""Everything that writes a file, on a disk that fails: afterwards the old file or the whole new one, never less."""

import io
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from anyorder import AnyOrder, Category, Recipe, Schema, build_model, fit
from anyorder.archives import ArchiveModel, compress
from anyorder.cli.archiving import WrittenArchive, compress_path, decompress_path
from anyorder.io.atomic import write_bytes
from anyorder.modalities.images.image_archives import ArraySource
from anyorder.modalities.tables.table_files import write_table
from campaign.broken_disk import RAW, REFUSED, WELL, faults, in_child

ROWS = pd.DataFrame({"a": [f"row {k}" for k in range(400)], "b": range(400)})
IMAGES = np.arange(4000, dtype=np.uint8).reshape(40, 10, 10)


@cache
def some_model():
    return AnyOrder.load("digits")


def save(path):
    some_model().save(path)


def train(path):
    """With a file that keeps the state of the run, written several times."""
    x = (torch.arange(120).view(40, 3) * 7919 % 31 % torch.tensor([2, 3, 2])).float()
    torch.manual_seed(0)
    model = build_model(Schema.of(a=Category(2), b=Category(3), c=Category(2)), width=4, depth=1)
    fit(model, x, recipe=Recipe(steps=4, batch_size=16, check_every=2), checkpoint=path)


def compress_table(path):
    compress_path(path.parent / "in" / "rows.csv", path, None, 0.01, WrittenArchive(None, True))


def decompress_rows(path):
    decompress_path(path.parent / "in" / "rows.aoz", path, None)


def decompress_images(path):
    path.unlink(missing_ok=True)  # an archive never takes the place of a file by itself
    decompress_path(path.parent / "in" / "images.aoz", path, None)


def write_batch(path):
    write_table(ROWS, path)


WRITERS = {
    "save": (save, "out.ao"),
    "fit": (train, "run"),
    "compress": (compress_table, "out.aoz"),
    "decompress a table": (decompress_rows, "out.csv"),
    "decompress images": (decompress_images, "out.npy"),
    "batch output": (write_batch, "out.parquet"),
}


def inputs(folder):
    """What the writers read."""
    (folder / "in").mkdir()
    ROWS.to_csv(folder / "in" / "rows.csv", index=False)
    compress_path(folder / "in" / "rows.csv", folder / "in" / "rows.aoz", None, 0.01, WrittenArchive(None, True))
    file = io.BytesIO()
    compress(ArchiveModel(), ArraySource(IMAGES), file)
    (folder / "in" / "images.aoz").write_bytes(file.getvalue())


class Writer:
    """One that writes to a folder, and what it writes when nothing fails: all states a run goes through."""

    def __init__(self, name, folder):
        (self.work, file), self.folder = WRITERS[name], folder
        inputs(folder)
        self.path = folder / file
        self.work(self.path)
        self.whole = {self.path.read_bytes()}
        self.size = len(next(iter(self.whole)))
        if self.work is train:  # the states on the way there
            self.whole = None

    def faults(self):
        return faults(self.size)

    def attack(self, fault, old):
        """Raise an AssertionError unless the old file (None: there was none) or a whole new one is there."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        if old is not None:
            self.path.write_bytes(old)
        ended = in_child(lambda: self.work(self.path), fault.set_up)
        assert ended != RAW, f"{fault} ends in an error that is not ours"
        assert ended in (WELL, REFUSED) or (ended < 0 and fault.kill), f"{fault} ends with {ended}"
        found = self.path.read_bytes() if self.path.exists() else None
        gone = found is None and self.work is decompress_images
        assert gone or found == old or self.is_whole(found), f"{fault} leaves {None if found is None else len(found)} bytes"
        assert ended != WELL or self.is_whole(found), f"{fault}: it said nothing, and the file is not there"
        write_bytes(self.folder / "next", b"")  # whoever writes next sweeps what the dead left
        left = {path.name for path in self.folder.iterdir()} - {self.path.name, "in", "next"}
        assert not left, f"{fault} leaves {left}"

    def is_whole(self, found):
        if self.whole is not None or found is None:
            return found in (self.whole or ())
        Path(self.path).write_bytes(found)
        return in_child(lambda: self.work(self.path)) == WELL  # a run that it goes on from
