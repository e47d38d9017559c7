"""Every answer equals that of the Python call shown beside it, and its command line means the same question."""

import base64
import json
import os
import shlex

import numpy as np
import pandas as pd
import pytest

from anyorder import AnyOrder, Between, OneOf
from anyorder.cli.question import parse_question

GIVEN = [
    {},
    {"age": 30},
    {"age": {"low": 30, "high": 40}, "city": {"in": ["Oslo", "Washington, D.C."]}},
    {"member": True, "joined": {"low": "2020-06-01"}},
    {"income": {"high": 55.5}},
]


def run(python, folder, models):
    """What the program that is shown answers: its last line is the value."""
    for name, model in models.items():
        model.save(folder / name)
    here, (*first, last) = os.getcwd(), python.split("\n")
    names = {}
    try:
        os.chdir(folder)
        exec("\n".join(first), names)
        return eval(last, names)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("target", ["income", "city"])
def test_a_distribution_is_that_of_the_call(studio, people_model, tmp_path, target, given):
    if target in given:
        pytest.skip("a column is known or asked for")
    document = studio.get("/ask.json", model="m3", target=target, given=json.dumps(given)).json()
    (answer,) = document["answers"]
    found = run(document["python"], tmp_path, {"people.ao": people_model})
    if answer["kind"] == "category":
        told = {one["value"]: one["probability"] for one in answer["probabilities"]}
        assert told == pytest.approx(found.pmf())
    else:
        assert [one["probability"] for one in answer["bins"]] == pytest.approx([p for _, _, p in found.bins(24)])
        assert answer["median"] == found.quantile(0.5)
        assert answer["mean"] == pytest.approx(found.mean())
    assert answer["rows"] == found.rows
    (targets, known) = parse_question(shlex.split(document["command"])[-1])
    assert [part.name for part in targets] == [target]
    assert [part.name for part in known] == list(given)


def test_the_marginal_is_the_answer_with_nothing_known(studio, people_model):
    document = studio.get("/ask.json", model="m3", target="city", given='{"age": 30}').json()
    told = {one["value"]: one["probability"] for one in document["answers"][0]["marginal"]["probabilities"]}
    assert told == pytest.approx(people_model.conditional({}, "city").pmf())


def test_the_command_line_answers_the_same(studio, people_model, tmp_path):
    from typer.testing import CliRunner

    from anyorder.cli import app

    people_model.save(tmp_path / "people.ao")
    given = '{"age": {"low": 30, "high": 40}, "city": "Washington, D.C."}'
    document = studio.get("/ask.json", model="m3", target="member", given=given).json()
    words = shlex.split(document["command"].replace("people.ao", str(tmp_path / "people.ao")))
    said = json.loads(CliRunner().invoke(app, [*words[1:], "--json"]).stdout)
    told = [one["probability"] for one in document["answers"][0]["probabilities"]]
    assert [one["probability"] for one in said["answers"][0]["probabilities"]] == pytest.approx(told)


def test_an_event_has_the_probability_of_the_call(studio, people_model, tmp_path):
    asked = {"event": '{"income": {"low": 30}, "member": true}', "given": '{"city": {"in": ["Rome", "Oslo"]}}'}
    document = studio.get("/probability.json", model="m3", **asked).json()
    direct = people_model.probability({"income": Between(30, None), "member": True}, {"city": OneOf(("Rome", "Oslo"))})
    assert document["probability"] == pytest.approx(direct)
    assert run(document["python"], tmp_path, {"people.ao": people_model}) == pytest.approx(direct)


def test_what_moved_an_answer_is_what_explain_says(studio, people_model, tmp_path):
    document = studio.get("/moved.json", model="m3", target="income", given='{"age": 30, "city": "Rome"}').json()
    found = run(document["python"], tmp_path, {"people.ao": people_model})
    assert [(one["condition"], one["moved"]) for one in document["conditions"]] == [
        (one.condition, pytest.approx(one.moved)) for one in found
    ]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"costs": {"city": 3.0, "panel": 2.0}, "groups": {"panel": ["age", "member"]}, "budget": 10.0},
        {"costs": {"city": 3.0, "member": 1.0}, "worth": 0.001},
    ],
    ids=str,
)
def test_the_next_question_is_that_of_the_call(studio, people_model, tmp_path, more):
    said = {name: json.dumps(value) for name, value in more.items()}
    document = studio.get("/next.json", model="m3", target="income", known='{"joined": "2021-01-01"}', **said).json()
    table = run(document["python"], tmp_path, {"people.ao": people_model})
    assert [one["measurement"] for one in document["measurements"]] == list(table["measurement"])
    assert [one["gain"] for one in document["measurements"]] == pytest.approx(list(table["gain"]))
    assert (document["stop"] is None) == bool(table["advised"].iloc[0])


def test_it_says_when_nothing_is_left_or_affordable(studio):
    everything = json.dumps({"city": "Rome", "age": 30, "member": True, "joined": "2021-01-01"})
    assert "nothing is left" in studio.get("/next.json", model="m3", target="income", known=everything).json()["stop"]
    assert "costs more" in studio.get("/next.json", model="m3", target="income", budget="0.5").json()["stop"]


def test_a_cell_is_asked_given_the_rest_of_its_row(studio, people, people_model):
    row = int(people["income"].isna().to_numpy().nonzero()[0][0])
    document = studio.get("/cell.json", model="m3", data="d1", row=row, column="income").json()
    assert document["now"] is None
    found = people_model.conditional(people.iloc[row].to_dict(), "income")
    assert document["median"] == found.quantile(0.5)


def test_filling_and_surprises_are_those_of_the_calls(studio, people, people_model):
    result = studio.done(studio.post("/do/fill", model="m3", data="d1"))["result"]
    assert result["filled"] == people["income"].isna().sum()
    pd.testing.assert_frame_equal(studio.space.data("d1").X, people_model.transform(people))
    low, high = people_model.intervals(people)
    marks = studio.get("/table.json", data="d1", count=200).json()["marks"]
    assert {one["row"] for one in marks} == set(people["income"].isna().to_numpy().nonzero()[0])
    assert all(one["low"] == low["income"][one["row"]] and one["high"] == high["income"][one["row"]] for one in marks)
    studio.post("/do/restore", data="d1")
    odd = people.assign(income=np.where(np.arange(len(people)) == 3, 500.0, people["income"]))
    studio.space.data("d1").X = odd
    found = studio.done(studio.post("/do/surprises", model="m3", data="d1"))["result"]
    direct = people_model.anomalies(odd).lines()
    assert [(one["row"], one["column"], one["why"]) for one in found["top"]] == [
        (o["row"], o["column"], o["why"]) for o in direct
    ]
    assert found["top"][0]["row"] == 3


def text(array):
    return base64.b64encode(np.asarray(array, dtype=np.uint8).tobytes()).decode()


def test_completions_and_new_pictures_are_those_of_the_calls(studio, tiny_images, image_model):
    image, mask = tiny_images[0][0], np.arange(36).reshape(6, 6) % 2 == 0
    asked = {"image": text(image), "missing": text(mask), "draws": 3, "steps": 4, "seed": 7}
    result = studio.done(studio.post("/do/paint", model="m4", **asked))["result"]
    direct = image_model.set_params(random_state=7).inpaint(image[None], mask, 3, steps=4)[:, 0]
    assert [one["bytes"] for one in result["pictures"]] == [text(one) for one in direct]
    assert all((one[~mask] == image[~mask]).all() for one in direct)
    new = studio.done(studio.post("/do/pictures", model="m4", n=2, steps=5, label="lies", seed=7))["result"]
    assert [one["bytes"] for one in new["pictures"]] == [text(one) for one in image_model.sample(2, steps=5, label="lies")]
    image_model.set_params(random_state=0)


def test_the_likelihood_map_sums_what_each_pixel_takes(studio, tiny_images, image_model):
    image = tiny_images[0][0]
    result = studio.done(studio.post("/do/likelihood", model="m4", image=text(image)))["result"]
    masks = np.eye(36, dtype=bool).reshape(-1, 6, 6)
    nats = -image_model.score_samples(image[None].repeat(36, 0), masks)
    assert result["total"] == pytest.approx(nats.sum(), rel=1e-4)
    assert result["most"] == pytest.approx(nats.max(), rel=1e-4)


def test_training_gives_the_model_of_the_call_and_saves_it(studio, people, tmp_path):
    job = studio.done(studio.post("/do/train", data="d1", effort=0.01, settings={"kinds": {"age": "category"}}))
    assert job["state"] == "done", job
    direct = AnyOrder(effort=0.01, kinds={"age": "category"}).fit(people)
    kept = studio.space.model(job["result"]["model"]).model
    assert kept.score(people) == pytest.approx(direct.score(people))
    saved = AnyOrder.load(tmp_path / "models" / job["result"]["name"])
    assert saved.score(people) == pytest.approx(direct.score(people))
    assert job["progress"]["checks"][-1][2] == pytest.approx(direct.history_[-1].held_out_nats)
