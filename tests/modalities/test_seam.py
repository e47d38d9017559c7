"""A kind of data is one class and its line in the registry: a toy one is fitted, asked, kept and compressed like the others."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from anyorder import AnyOrder, Category, InputError, Question, Recipe, Schema, build_model, compress, decompress
from anyorder import fit as train
from anyorder.archives import Codec, Source
from anyorder.archives.blocks import PLAIN, Content
from anyorder.cli.commands import app
from anyorder.errors import UnavailableError
from anyorder.inference import log_prob, sample, seeded
from anyorder.modalities.base import MODALITIES, Fitted, Modality, register
from anyorder.models.trained import Trained


@dataclass
class FittedWalks(Fitted):
    model: Trained
    history: list[Any]
    what: ClassVar[str] = "walks"

    def about(self):
        return {"walks": {}}

    def describe(self):
        return {"what": self.what, "turns": len(self.model.schema)}

    def score_samples(self, X):
        x = in_numbers(X)
        return log_prob(self.model, x, Question.joint(x.isfinite())).double().numpy()

    def sample(self, n, seed=0):
        x = torch.zeros(n, len(self.model.schema))
        return in_letters(sample(self.model, x, Question.joint(x.isfinite()), seeded(seed)))


class WalksSource(Source):
    what, items, wants = "walks", {"lines": "walks"}, Codec

    def __init__(self, X):
        self.X, self.form, self.count, self.item_bytes = X, {"kind": "lines"}, len(X), max(map(len, X))

    def pack(self, codec, some):
        return Content(PLAIN, {}, b"", " ".join(self.X[some.start : some.stop]).encode())

    def same(self, codec, some, content):
        return content.rest.decode().split() == self.X[some.start : some.stop]


class Walks(Modality):
    name, what, plural, fitted = "walks", "a list of walks", "walks", FittedWalks

    def accepts(self, X):
        return isinstance(X, list) and all(isinstance(one, str) and set(one) <= set("LR") for one in X)

    def fit(self, X, y, training):
        model = build_model(Schema.of(**{f"turn{k}": Category(2) for k in range(len(X[0]))}), width=8, depth=1)
        return FittedWalks(model, train(model, in_numbers(X), recipe=Recipe(steps=200, seed=training.seed)).history)

    def rebuild(self, model, about, history):
        return FittedWalks(model, history)

    def source(self, X, verify=True):
        return WalksSource(X)

    def unpack(self, archive):
        return [walk for _, content in archive.contents() for walk in content.rest.decode().split()], []


def in_numbers(X):
    return torch.tensor([["LR".index(turn) for turn in walk] for walk in X], dtype=torch.float32)


def in_letters(x):
    return ["".join("LR"[int(turn)] for turn in row) for row in x]


WALKS = ["LLR", "LLR", "LLL", "RRR"] * 8


@pytest.fixture
def walks():
    yield register(Walks())
    MODALITIES.pop(0)


def test_a_third_kind_is_fitted_asked_saved_loaded_and_compressed(walks, tmp_path):
    model = AnyOrder(random_state=1).fit(WALKS)
    scores = model.score_samples(["LLR", "RRR", "RLR"])
    assert scores[0] > scores[1] > scores[2]
    assert set(model.sample(50)) <= {a + b + c for a in "LR" for b in "LR" for c in "LR"}
    model.save(tmp_path / "walks.ao")
    again = AnyOrder.load(tmp_path / "walks.ao")
    assert (again.score_samples(["LLR", "RRR", "RLR"]) == scores).all()
    assert "walks" in repr(again)
    assert decompress(compress(WALKS)) == WALKS


def test_the_terminal_knows_a_third_kind(walks, tmp_path):
    AnyOrder().fit(WALKS).save(tmp_path / "walks.ao")
    told = CliRunner().invoke(app, ["info", str(tmp_path / "walks.ao")])
    assert re.search(r"a model of +walks", told.stdout)


def test_what_a_third_kind_lacks_is_refused_like_anything_else(walks):
    model = AnyOrder().fit(WALKS)
    with pytest.raises(UnavailableError, match="This is a model of walks, and intervals is a question about tables"):
        model.intervals(WALKS)
    with pytest.raises(InputError, match="sample of a model of walks has no option 'given', which is for texts and tables"):
        model.sample(given="LL_")
    with pytest.raises(InputError, match=r"kinds= is for tables; this is a list of walks\. Leave it out"):
        AnyOrder(kinds={"turn0": "category"}).fit(WALKS)


IMAGES = np.random.default_rng(0).integers(0, 2, (12, 4, 4)).astype(np.uint8)
TABLE = pd.DataFrame({"a": [1, 2, 3, 4] * 5, "b": list("xyxy") * 5})


@pytest.fixture(scope="module")
def of_images():
    return AnyOrder(effort=0.001).fit(IMAGES)


@pytest.fixture(scope="module")
def of_a_table():
    return AnyOrder(effort=0.01).fit(TABLE)


FOREIGN_TO_IMAGES = [
    ("score_samples", (IMAGES,), {"given": ["a"]}, "given"),
    ("sample", (1,), {"given": {"a": 1}}, "given"),
]
FOREIGN_TO_TABLES = [
    ("sample", (1,), {"label": "cat"}, "label"),
    ("sample", (1,), {"mode": "rows"}, "mode"),
    ("score_samples", (TABLE,), {"label": "cat"}, "label"),
]


@pytest.mark.parametrize(("verb", "arguments", "options", "foreign"), FOREIGN_TO_IMAGES)
def test_images_refuse_the_options_of_tables(of_images, verb, arguments, options, foreign):
    with pytest.raises(InputError, match=f"{verb} of a model of images has no option '{foreign}', which is for .*tables"):
        getattr(of_images, verb)(*arguments, **options)


@pytest.mark.parametrize(("verb", "arguments", "options", "foreign"), FOREIGN_TO_TABLES)
def test_tables_refuse_the_options_of_images(of_a_table, verb, arguments, options, foreign):
    with pytest.raises(InputError, match=f"{verb} of a model of a table has no option '{foreign}', which is for images"):
        getattr(of_a_table, verb)(*arguments, **options)


@pytest.mark.parametrize("settings", [{"kinds": {"a": "number"}}, {"keep_rows": False}, {"na": 999}])
def test_images_refuse_the_settings_of_tables(settings):
    (name,) = settings
    with pytest.raises(InputError, match=f"{name}= is for tables; this is an array of images"):
        AnyOrder(effort=0.001, **settings).fit(IMAGES)


@pytest.mark.parametrize("settings", [{"size": "fine"}, {"base": 2}])
def test_tables_refuse_the_settings_of_images(settings):
    (name,) = settings
    with pytest.raises(InputError, match=f"{name}= is for images; this is a table"):
        AnyOrder(effort=0.01, **settings).fit(TABLE)


def test_images_refuse_weights_of_rows():
    with pytest.raises(InputError, match="sample_weight= is for tables; this is an array of images"):
        AnyOrder(effort=0.001).fit(IMAGES, sample_weight=[1] * 12)
