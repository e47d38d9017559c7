"""Places, pipes and names that nobody vouches for: refused or shown in a sentence, and no training lost."""

import gzip
import io
import json
import os
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from anyorder.cli.models import keep
from anyorder.cli.printing import print_cells
from anyorder.errors import FormatError, InputError, WriteError
from anyorder.estimator import AnyOrder
from anyorder.modalities.displays import visible
from anyorder.modalities.images.pixels import read_image, read_labelled, write_image
from anyorder.modalities.tables import table_files


def test_impossible_places_are_found_out_before_training(people, tmp_path, run, monkeypatch):
    monkeypatch.setattr(AnyOrder, "fit", lambda *_: pytest.fail("a model was learned"))
    (tmp_path / "folder.ao").mkdir()
    for place, why in [
        (tmp_path / "folder.ao", "it is a folder"),
        (tmp_path / "no" / "x.ao", "does not exist"),
        ("/proc/x.ao", "Cannot"),
    ]:
        result = run("fit", people, "-o", place)
        assert result.exit_code == 1
        assert why in result.stderr


class Trained(AnyOrder):
    """Where it is saved, but for the places that are full."""

    def __init__(self, *full):
        self.full = full

    def save(self, path):
        if path.parent in self.full:
            raise WriteError(f"Cannot write {str(path)!r}: No space left on device.")
        path.write_bytes(b"model")


def test_a_trained_model_is_kept_elsewhere_if_the_disk_is_full(tmp_path, monkeypatch):
    for name in ("full", "tmp", "home"):
        (tmp_path / name).mkdir()
    full, temporary, home = (tmp_path / name for name in ("full", "tmp", "home"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    monkeypatch.setattr(Path, "home", lambda: home)
    for also_full, folder in (((), temporary), ((temporary,), home)):
        with pytest.warns(UserWarning, match=r"No space left on device\. The model was saved as '.*/m-\d+\.ao' instead: move it"):
            place = keep(Trained(full, *also_full), full / "m.ao")
        assert place.parent == folder
        assert place.read_bytes() == b"model"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(WriteError, match=r"Nor is there room .*: the model is lost"):
        keep(Trained(full, temporary, home), full / "m.ao")


def test_on_a_terminal_there_is_time_to_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    model = Trained(tmp_path)
    answers = iter(["", str(tmp_path / "other.ao")])

    def answer(asked):
        assert "The model is still here. Make room and press Enter" in asked
        text = next(answers)
        model.full = () if text else model.full
        return text

    monkeypatch.setattr("builtins.input", answer)
    assert keep(model, tmp_path / "m.ao") == tmp_path / "other.ao"


def changed(path, **more):
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    about = json.loads(json.loads(path.read_bytes()[8 : 8 + length])["__metadata__"]["anyorder"])
    for key, value in more.items():
        if key == "centre":
            next(column for column in about["table"]["columns"] if column["kind"] == "number")["centre"] = value
        else:
            about[key] = value
    return about


@pytest.mark.parametrize(
    "change",
    [
        {"orders": 10**30},
        {"orders": float("-inf")},
        {"orders": "4"},
        {"fit": {"rows": "many"}},
        {"history": [["a", 1, 2, 3, 4, 5]]},
        {"history": [[]]},
        {"centre": "0"},
        {"centre": float("nan")},
    ],
    ids=str,
)
def test_descriptions_that_no_training_leads_to_are_refused(model, tmp_path, change):
    save_file(load_file(model), tmp_path / "m.ao", {"anyorder": json.dumps(changed(model, **change))})
    with pytest.raises(FormatError, match="cannot be read"):
        AnyOrder.load(tmp_path / "m.ao")


def test_what_could_not_be_read_back_is_not_saved(model, tmp_path):
    with pytest.raises(InputError, match=r"Got orders=1000000; expected a whole number from 1 to 100000\."):
        AnyOrder.load(model).set_params(orders=10**6).save(tmp_path / "m.ao")


def test_devices_and_pipes_without_an_end_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="'/dev/zero' is a device, not a regular file"):
        table_files.read_bytes(Path("/dev/zero"))
    monkeypatch.setattr(table_files, "LONGEST_LINE", 2**21)
    monkeypatch.setattr(table_files, "MOST_FLOWING", 2**22)
    with pytest.raises(InputError, match="has a line of more than 2 MB; expected rows of a table"):
        table_files.flowing(io.BytesIO(bytes(2**23)), "Standard input")
    with pytest.raises(InputError, match=r"does not end after 0 GB\. Save it to a file, and name that"):
        table_files.flowing(io.BytesIO(b"a,b\n" * 2**21), "Standard input")
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" * 2**21))
    with pytest.raises(InputError, match=r"bomb\.csv\.gz does not end after 0 GB"):
        table_files.read_bytes(tmp_path / "bomb.csv.gz")
    os.mkfifo(tmp_path / "t.csv")
    threading.Thread(target=lambda: (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n")).start()
    assert table_files.read_bytes(tmp_path / "t.csv") == b"a,b\n1,2\n"


def test_what_a_terminal_would_obey_is_shown(tmp_path, run):
    name = "\x1b[31mred\u202e\x9b"
    (tmp_path / "t.csv").write_text(f"{name},b\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(50)))
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.ao", "--effort", "0.01", "--codec").exit_code == 0
    assert run("compress", tmp_path / "m.ao", tmp_path / "t.csv", "-o", tmp_path / "a.aoz").exit_code == 0
    for arguments in (
        ("info", tmp_path / "m.ao"),
        ("inspect", tmp_path / "a.aoz", "--model", tmp_path / "m.ao"),
        ("ask", tmp_path / "m.ao", name + "x"),
    ):
        for more in ((), ("--json",)):
            result = run(*arguments, *more)
            assert not set(result.stdout + result.stderr) & set("\x1b\u202e\x9b"), arguments
    assert visible("a\x1b\nb\u00a0") == "a\\x1b\nb\u00a0"


def test_cells_reach_a_pipe_as_they_are_and_a_terminal_without_what_it_would_obey(monkeypatch, capsys):
    text = "a\tb\n\x1b]0;title\x07\t\x9b2J\n"
    print_cells(text)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_cells(text)
    assert capsys.readouterr().out == text + "a\tb\n\\x1b]0;title\\x07\t\\x9b2J\n"


def test_a_file_that_is_there_is_replaced_only_if_asked(tmp_path, run):
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 4), np.uint8))
    assert run("compress", tmp_path / "a.npy").exit_code == 0
    (tmp_path / "b.npy").write_bytes(b"mine")
    result = run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "b.npy")
    assert result.exit_code == 1
    assert "is there already: name another file, or replace it with --force." in result.stderr
    assert (tmp_path / "b.npy").read_bytes() == b"mine"
    assert run("decompress", tmp_path / "a.aoz", "-o", tmp_path / "b.npy", "--force").exit_code == 0
    assert np.load(tmp_path / "b.npy").shape == (3, 4, 4)


def test_folders_of_classes_are_labels(tmp_path, run):
    for name, value in (("cat", 0), ("dog", 255)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for k in range(6):
            image = np.full((6, 8), value, dtype=np.uint8)
            image[k, k] = 255 - value
            write_image(tmp_path / "pets" / name / f"{k}.png", image)
    images, labels = read_labelled(tmp_path / "pets")
    assert labels == ["cat"] * 6 + ["dog"] * 6
    assert [image.mean() > 100 for image in images] == [label == "dog" for label in labels]
    assert run("fit", tmp_path / "pets", "-o", tmp_path / "p.ao", "--effort", "0.003").exit_code == 0
    assert AnyOrder.load(tmp_path / "p.ao").fitted_.classes == ("cat", "dog")
    drawn = ("sample", tmp_path / "p.ao", "-n", "1", "--steps", "2", "--grid", tmp_path / "g.png", "--label")
    assert run(*drawn, "dog").exit_code == 0
    assert "label=cow; this model knows the labels cat, dog." in run(*drawn, "cow").stderr
    write_image(tmp_path / "pets" / "loose.png", np.zeros((6, 8), dtype=np.uint8))
    assert "images beside folders of images" in run("fit", tmp_path / "pets", "-o", tmp_path / "q.ao").stderr


def test_black_and_white_files_go_with_models_of_two_levels(tmp_path, run):
    image = np.zeros((28, 28), dtype=np.uint8)
    image[8:20, 14] = 255
    write_image(tmp_path / "one.png", image)
    arguments = ("--box", "0,0,3,3", "-n", "1", "--steps", "2", "-o", tmp_path / "out.png")
    result = run("inpaint", "mnist", tmp_path / "one.png", *arguments)
    assert result.exit_code == 0, result.stderr
    filled = read_image(tmp_path / "out-1.png")
    assert set(np.unique(filled)) <= {0, 255}
    assert (filled[3:] == image[3:]).all()
