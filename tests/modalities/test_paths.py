"""What to train for, along which order, in which steps: on the face and in the terminal, each reaching the model."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anyorder import AnyOrder, InputError, Question
from anyorder.cli.commands import app
from anyorder.inference import log_prob
from anyorder.subsets import CanonicalOrder, Even, Everything, Planned, QuestionDistribution
from anyorder.training.objectives import ardm, mac, sfarm

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.integers(0, 3, 120), "b": RNG.choice(["x", "y"], 120)}).assign(
    c=lambda t: t.a * 10.0 + (t.b == "x")
)
STRIPES = (np.arange(6)[None, :, None] + RNG.integers(0, 2, (48, 1, 1)) + np.zeros((1, 1, 6), int)).astype(np.uint8) % 2
CLASSES = STRIPES[:, 0, 0].astype(int)


@dataclass(frozen=True)
class Counted(QuestionDistribution):
    """Questions that tell how often they were asked."""

    asked: list = field(default_factory=list)

    def sample(self, present, rng):
        self.asked.append(len(present))
        return Everything().sample(present, rng)


@pytest.mark.parametrize("data", [TABLE, STRIPES], ids=["table", "images"])
@pytest.mark.parametrize("named", [ardm, mac])
def test_training_asks_what_the_objective_says(data, named):
    questions = Counted()
    AnyOrder(effort=0.002, objective=named(questions)).fit(data)
    assert sum(questions.asked) > len(data)


@pytest.fixture(scope="module")
def table():
    return AnyOrder(effort=0.02).fit(TABLE)


@pytest.fixture(scope="module")
def images():
    """Two classes of stripes, learned in three of SFARM's modes."""
    return AnyOrder(effort=0.05, objective=sfarm(["uniform", "left", "top"])).fit(STRIPES, CLASSES)


def test_scores_follow_the_order_and_the_steps(table):
    x, present = table.encoder_.encode(TABLE[:5])
    backward = CanonicalOrder((2, 1, 0))
    for options in ({}, {"schedule": Even(2)}):
        wanted = log_prob(table.model_, x, Question.joint(present), order=backward, **options).double().numpy()
        found = table.score_samples(TABLE[:5], order=backward, **options)
        np.testing.assert_allclose(found, wanted + table.encoder_.log_shares(TABLE[:5]).sum(-1), rtol=1e-5)
    assert not np.allclose(table.score_samples(TABLE[:5], steps=1), table.score_samples(TABLE[:5]))


def test_a_planned_schedule_costs_no_more_than_an_even_one(table, images):
    for model, data in ((table, TABLE), (images, STRIPES)):
        schedule = model.plan(data, 2)
        assert isinstance(schedule, Planned)
        assert len(schedule.places) == 3
        assert len(model.sample(3, schedule=schedule)) == 3
        planned, even = (model.score_samples(data, schedule=one).mean() for one in (schedule, Even(2)))
        assert planned > even - 0.2
    with pytest.raises(InputError, match=r"steps=0"):
        table.plan(TABLE, 0)


def test_images_know_modes_and_classes_by_name(images, tmp_path):
    right = images.score_samples(STRIPES, label=CLASSES).mean()
    wrong = images.score_samples(STRIPES, label=1 - CLASSES).mean()
    assert right > wrong + 1
    images.save(tmp_path / "stripes.ao")
    again = AnyOrder.load(tmp_path / "stripes.ao")
    assert again.fitted_.modes == ("uniform", "left", "top")
    drawn = [model.sample(4, mode="left", label=1) for model in (images, again)]
    np.testing.assert_array_equal(*drawn)
    assert not np.array_equal(drawn[0], images.sample(4, mode="top", label=0))
    mask = np.zeros((6, 6))
    mask[:, 3:] = 1
    assert images.inpaint(STRIPES[:2], mask, mode="left", label=CLASSES[:2]).shape == (1, 2, 6, 6)
    with pytest.raises(InputError, match="mode='interior'; this model knows uniform, left, top"):
        images.sample(1, mode="interior")
    with pytest.raises(InputError, match="There is no order called 'left': no order has a name for such data"):
        AnyOrder(effort=0.01, objective=sfarm(["left"])).fit(TABLE)


def test_temperature_reaches_the_images(images):
    cold, warm = (images.sample(64, steps=6, temperature=t).astype(float) for t in (0.05, 5.0))
    assert images.score_samples(cold.astype(np.uint8)).mean() > images.score_samples(warm.astype(np.uint8)).mean() + 1


def test_digits_of_shades_in_a_base():
    shades = (STRIPES * 9 + 3).astype(np.uint8)
    model = AnyOrder(effort=0.01, base=4).fit(shades)
    assert model.fitted_.encoder.base == 4
    assert model.sample(2, steps=4).shape == (2, 6, 6)
    with pytest.raises(InputError, match="digit after digit"):
        model.plan(shades, 2)
    with pytest.raises(InputError, match="base= sets the order"):
        AnyOrder(effort=0.01, base=4, objective=ardm()).fit(shades)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_the_terminal_has_the_same_words(tmp_path, table):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    place = tmp_path / "t.ao"
    assert run("fit", tmp_path / "t.csv", "-o", place, "--effort", "0.01", "--objective", "mac").exit_code == 0
    forward, backward = (
        run("score", place, tmp_path / "t.csv", "--order", order, "--json").stdout for order in ("forward", "backward")
    )
    assert forward != backward
    few = run("score", place, tmp_path / "t.csv", "--steps", "2", "--schedule", "quadratic", "--json")
    assert few.exit_code == 0
    assert few.stdout not in (forward, backward)
    assert run("sample", place, "-n", "2", "--order", "forward", "--steps", "1").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "t.csv", "--objective", "mca"), "--objective 'mca' is unknown; expected ardm, "),
        (("fit", "t.csv", "--objective", "sfarm"), "There is no order called 'uniform': no order has a name for such data"),
        (("fit", "t.csv", "--base", "4"), "--base is for images; this is a table"),
        (("score", "t.ao", "t.csv", "--order", "sideways"), "--order 'sideways' is unknown; expected forward or backward"),
        (("score", "t.ao", "t.csv", "--schedule", "even"), "--schedule even needs the number of steps: --steps 20"),
        (("sample", "t.ao", "--mode", "left"), "has no option 'mode', which is for images"),
    ],
)
def test_what_is_meant_must_be_clear(tmp_path, monkeypatch, table, arguments, message):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("t.csv", index=False)
    table.save("t.ao")
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
