"""Model files: what is saved comes back, and nothing else is accepted."""

import json
import os
import resource
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from anyorder.distributions import Gaussian
from anyorder.errors import FormatError, InputError, WriteError
from anyorder.inference import log_prob
from anyorder.models.any_order import build_model
from anyorder.models.trained import described
from anyorder.schema import Category, Ordinal, Real, Schema
from anyorder.subsets import Question
from anyorder.training import load_model, save_model

SCHEMA = Schema.of(a=Real(), b=Category(3), c=Ordinal(9), d=Category(2), ünï=Real())


def rows():
    return torch.tensor([[0.3, 2.0, 8.0, 1.0, -2.0], [-1.0, 0.0, 0.0, 0.0, 0.1]])


@pytest.fixture
def model():
    return build_model(SCHEMA, width=16, depth=2, context=(3,), seed=4)


@pytest.fixture
def path(model, tmp_path):
    save_model(model, tmp_path / "model.ao")
    return tmp_path / "model.ao"


def test_save_load_gives_equal_densities(model, path):
    loaded = load_model(path)
    question = Question.joint(torch.ones(2, 5, dtype=torch.bool))
    context = torch.tensor([[0], [2]])
    assert loaded.schema == model.schema
    assert loaded.heads == model.heads
    assert torch.equal(log_prob(loaded, rows(), question, context=context), log_prob(model, rows(), question, context=context))


def test_chosen_heads_come_back(tmp_path):
    model = build_model(Schema.of(a=Real()), [Gaussian(min_scale=0.25)], width=4, depth=0)
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").heads == (Gaussian(min_scale=0.25),)


def test_loading_leaves_the_global_random_numbers_alone(path):
    before = torch.random.get_rng_state()
    load_model(path)
    assert torch.equal(before, torch.random.get_rng_state())


def test_every_truncation_is_refused(path):
    whole = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 20, 200, *range(400, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"truncated|not an anyorder file"):
            load_model(path)


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"PK\x03\x04 this is a zip file, not a model")
    with pytest.raises(FormatError, match=r"notes.txt is not an anyorder file \(it begins with b'PK"):
        load_model(tmp_path / "notes.txt")
    save_file({"w": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(FormatError, match="a safetensors file, but not one of anyorder's"):
        load_model(tmp_path / "other.safetensors")
    with pytest.raises(InputError, match=r"There is no file .*missing.ao"):
        load_model(tmp_path / "missing.ao")


def rewrite(path, change=None, tensors=None):
    """The same file with another description or other tensors."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    about = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"]["anyorder"])
    held = load_file(path)
    if change:
        change(about)
    if tensors:
        tensors(held)
    save_file(held, path, {"anyorder": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(format=99), "has format 99; this version reads up to 1. Upgrade anyorder"),
        (lambda a: a.update(kind="run"), "holds a run, expected a model"),
        (lambda a: a["model"].pop("schema"), "describes no network this version can build"),
        (lambda a: a["model"].update(schema=[]), "schema cannot be read"),
        (lambda a: a["model"]["schema"][0].update(kind="colour"), "schema cannot be read"),
        (lambda a: a["model"]["schema"].pop(), "describes no network|contradicts itself|Got 5 heads"),
        (lambda a: a["model"]["heads"][0].update(kind="spline"), "Unknown head 'spline'"),
        (lambda a: a["model"]["heads"][0].update(components=3), "contradicts itself"),
        (lambda a: a["model"]["network"].update(kind="transformer"), "describes no network this version can build"),
        (lambda a: a["model"]["network"].update(width=17), "contradicts itself: .* expected shape"),
        (lambda a: a["model"]["network"].update(width=60000), "contradicts itself"),
        (lambda a: a["model"]["network"].update(depth=10**9), "describes no network"),
        (lambda a: a["model"]["network"].update(width="wide"), "describes no network"),
        (lambda a: a.update(format="new"), "not one of anyorder's"),
    ],
)
def test_an_inconsistent_description_is_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(FormatError, match=message):
        load_model(path)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (lambda t: t.pop("network.last.bias"), "contradicts itself: 1 tensor.*network.last.bias.*found none"),
        (lambda t: t.update(extra=torch.zeros(1)), "contradicts itself.*'extra': expected shape none"),
        (lambda t: t.update({"network.norm.weight": torch.full((16,), torch.nan)}), "something else than finite float32"),
        (lambda t: t.update({"network.norm.weight": torch.ones(16, dtype=torch.float64)}), "something else than finite float32"),
    ],
)
def test_inconsistent_tensors_are_refused(path, tensors, message):
    rewrite(path, tensors=tensors)
    with pytest.raises(FormatError, match=message):
        load_model(path)


def test_any_flipped_byte_of_the_header_is_an_error_of_ours_or_harmless(path):
    whole = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", whole[:8])
    for place in range(0, 8 + length, 3):
        broken = bytearray(whole)
        broken[place] ^= 0x15
        path.write_bytes(broken)
        try:
            load_model(path)
        except FormatError:
            continue


def test_a_failed_write_leaves_the_old_file_and_no_litter(model, path, monkeypatch):
    before = path.read_bytes()

    def no_space(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(OSError, match="No space"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model.ao"]


def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(model, path):
    before, limit = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(WriteError, match=r"^Cannot write '.*model\.ao': File too large\. What was there is untouched\.$"):
            save_model(model, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model.ao"]


@pytest.mark.parametrize("value", [1e38, -1e7])
def test_weights_that_no_training_leads_to_are_refused(path, value):
    rewrite(path, tensors=lambda t: t["network.last.bias"].fill_(value))
    with pytest.raises(FormatError, match=r"model\.ao is damaged: 'network\.last\.bias' holds a weight of 1e\+\d+, which no tra"):
        load_model(path)


def test_a_model_that_answers_with_no_probabilities_is_refused(path, monkeypatch):
    monkeypatch.setattr("anyorder.models.any_order.AnyOrderModel.forward", lambda self, x, given: Silent())
    with pytest.raises(FormatError, match=r"the model in it answers with no probabilities\. Restore it"):
        load_model(path)


class Silent:
    def log_prob(self, x):
        return x + torch.nan


def test_a_missing_folder_is_explained(model, tmp_path):
    with pytest.raises(InputError, match=r"Cannot write model.ao: its folder .* does not exist"):
        save_model(model, tmp_path / "nowhere" / "model.ao")


def test_the_description_is_plain_json(model):
    assert json.loads(json.dumps(described(model))) == described(model)


def test_files_are_readable_by_others_as_the_umask_says_and_keep_their_mode(model, tmp_path):
    path = tmp_path / "model.ao"
    umask = os.umask(0o022)
    try:
        save_model(model, path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)
    save_model(model, path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="it is a folder"):
        save_model(model, tmp_path)


def test_what_could_not_be_read_back_is_not_written(model, tmp_path):
    with pytest.raises(InputError, match="something else than finite float32"):
        save_model(model.double(), tmp_path / "model.ao")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["model"].update(heads=["x"]),
        lambda a: a["model"]["heads"][0].update(min_scale=-5),
        lambda a: a["model"]["heads"][0].update(components=10**18),
        lambda a: a["model"]["network"].update(context=[-5]),
        lambda a: a["model"]["network"].update(context=[1] * 10**5),
        lambda a: a["model"]["schema"][1].update(levels=float("inf")),
        lambda a: a.update(format=float("inf")),
    ],
)
def test_nonsense_in_the_description_is_our_error(path, change):
    rewrite(path, change)
    with pytest.raises(FormatError):
        load_model(path)
