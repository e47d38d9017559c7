"""The server without a browser: what it opens, refuses and remembers; and that nothing of it leads outside."""

import gzip
import io
import json
import threading
import time

import numpy as np
import pytest
from PIL import Image

from anyorder.errors import InputError
from anyorder.studio.jobs import Jobs
from anyorder.studio.notes import remarks_are_heard
from anyorder.studio.server import PAGE, build_app
from anyorder.studio.workspace import Workspace, tidy_name
from studio_client import TOKEN, Studio, TestClient

CSV = b"age,city\n" + b"".join(b"%d,%s\n" % (20 + k % 20, [b"Oslo", b"Rome"][k % 2]) for k in range(40))


pytestmark = pytest.mark.filterwarnings("always::UserWarning")  # remarks are for people, and heard by the server


# What may ask


def test_a_foreign_host_is_refused(studio):
    assert studio.client.get("/open.json", headers={**studio.headers, "host": "evil.example"}).status_code == 400


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], "é" * 5])
def test_without_the_token_nothing_is_shown_and_nothing_done(studio, token):
    headers = {} if token is None else {"X-Studio-Token": token.encode()}
    assert studio.client.get("/open.json", headers=headers).status_code == 401
    assert studio.client.post("/do/sample", json={"sample": "wine"}, headers=headers).status_code == 403
    assert set(studio.space.datasets) == {"d1", "d2"}


def test_the_link_of_the_terminal_sets_a_cookie_which_is_enough_to_look_but_not_to_do(studio):
    answer = studio.client.get("/ask", params={"token": TOKEN, "model": "m3"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ask?model=m3")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert studio.client.get("/open.json").status_code == 200
    assert studio.client.post("/do/sample", json={"sample": "wine"}).status_code == 403
    assert f'content="{TOKEN}"' in studio.client.get("/").text


def test_nobody_is_sent_to_another_host(studio):
    answer = studio.client.get(f"http://127.0.0.1//evil.example/?token={TOKEN}", follow_redirects=False)
    assert not answer.headers.get("location", "").startswith("//")


def test_every_answer_says_what_a_browser_may_load(studio):
    for path in ("/", "/open.json", "/static/main.js", "/nowhere"):
        headers = studio.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_the_page_is_small_and_loads_nothing_from_elsewhere(studio):
    files = [path for path in PAGE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    for path in files:
        text = path.read_text()
        assert "innerHTML" not in text
        assert "https://" not in text
        assert studio.client.get(f"/static/{path.relative_to(PAGE)}").status_code == 200


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd"]
)
def test_no_path_leads_out_of_the_page(studio, path):
    assert studio.get(path).status_code == 404


# Files


def test_a_table_is_opened_shown_and_exported(studio):
    about = studio.upload(("my people.csv", CSV)).json()
    assert (about["name"], about["count"]) == ("my people.csv", 40)
    assert [(one["name"], one["kind"]) for one in about["columns"]] == [("age", "whole number"), ("city", "category")]
    other = studio.get("/data.json", data=about["data"], kinds='{"age": "category"}').json()
    assert other["columns"][0]["kind"] == "category"
    assert studio.get("/export.csv", data=about["data"]).content == CSV


def test_a_folder_of_images_is_opened_with_its_classes(studio):
    def picture(value):
        file = io.BytesIO()
        Image.fromarray(np.full((5, 5), value, dtype=np.uint8)).save(file, format="PNG")
        return file.getvalue()

    files = [(f"shades/{name}/{k}.png", picture(value + k)) for name, value in (("dark", 10), ("light", 200)) for k in range(3)]
    about = studio.upload(*files).json()
    assert (about["count"], about["shape"], about["classes"], about["name"]) == (6, [5, 5], ["dark", "light"], "shades")
    assert studio.get("/pictures.json", data=about["data"], count=2).json()["labels"] == ["dark", "dark"]


def test_a_model_is_opened_and_its_file_is_the_same(studio, people_model, tmp_path):
    people_model.save(tmp_path / "one.ao")
    content = (tmp_path / "one.ao").read_bytes()
    about = studio.upload(("one.ao", content)).json()
    assert "conditional" in about["verbs"]
    assert studio.get("/saved.ao", model=about["model"]).content == content


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("forged.ao", b"PK\x03\x04 not a model", "forged.ao"),
        ("forged.ao", (8).to_bytes(8, "little") + b"{}      ", "forged.ao"),
        ("x.csv", b"\x00\xff\xfe\x00", "x.csv"),
        ("x.pkl", b"cos\nsystem\n", "expected"),
        ("../../etc/passwd", b"root", "expected"),
        ("x.npy", b"\x93NUMPY", "x.npy"),
        ("x.csv.gz", b"no gzip", "gzip"),
        ("x.parquet", b"PAR1", "x.parquet"),
    ],
)
def test_what_is_no_data_is_refused_without_a_path_of_this_machine(studio, name, content, says):
    answer = studio.upload((name, content))
    assert answer.status_code == 400
    assert says in answer.json()["error"]
    assert "/tmp" not in answer.text
    assert "the-file" not in answer.text


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(studio):
    answer = studio.upload(("bomb.csv.gz", gzip.compress(b"0" * 2**25)))
    assert answer.status_code == 400
    assert "unpacks to more" in answer.json()["error"]


def test_what_is_too_large_is_refused_with_the_cap(tmp_path):
    space = Workspace(tmp_path)
    small = Studio(space)
    small.client = TestClient(build_app(space, TOKEN, most_upload=2**20), base_url="http://127.0.0.1")
    answer = small.upload(("big.csv", b"a,b\n" + b"1,2\n" * 2**19))
    assert (answer.status_code, "cap" in answer.text) == (413, True)
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    headers = {**small.headers, "content-type": "multipart/form-data; boundary=b"}
    chunks = small.client.post("/upload/open", content=iter([part, *[b"x" * 2**19] * 3]), headers=headers)
    assert chunks.status_code == 413
    space.close()


def test_no_upload_stays_on_the_disk(studio):
    import tempfile
    from pathlib import Path

    before = set(Path(tempfile.gettempdir()).glob("anyorder-studio-*"))
    studio.upload(("people.csv", CSV))
    studio.upload(("forged.ao", b"no"))
    assert set(Path(tempfile.gettempdir()).glob("anyorder-studio-*")) == before


def test_compressed_files_come_back_byte_for_byte(studio, tmp_path):
    held = studio.upload(("people.csv", CSV * 20), to="/upload/keep").json()
    result = studio.done(studio.post("/do/compress", upload=held["upload"], effort=0.05))["result"]
    assert result["identical"]
    archive = studio.get("/archive.aoz", upload=held["upload"]).content
    assert len(archive) == result["bytes"] < held["bytes"]
    from anyorder.cli.archiving import decompress_path

    (tmp_path / "people.csv.aoz").write_bytes(archive)
    decompress_path(tmp_path / "people.csv.aoz", tmp_path / "back.csv", None)
    assert (tmp_path / "back.csv").read_bytes() == CSV * 20


# Cells


def test_a_cell_is_typed_drawn_and_given_back(studio, people):
    row = int(people["income"].isna().to_numpy().nonzero()[0][0])
    cell = {"model": "m3", "data": "d1", "row": row, "column": "income"}
    assert studio.post("/do/cell", **cell, value=42.5).json()["value"] == 42.5
    assert isinstance(studio.post("/do/draw", **cell).json()["value"], float)
    (mark,) = studio.get("/table.json", data="d1", start=row, count=1).json()["marks"]
    assert mark["how"] == "drawn"
    assert studio.post("/do/cell", **cell, value=None).json()["value"] is None
    assert studio.get("/table.json", data="d1", start=row, count=1).json()["marks"] == []
    assert people["income"].isna()[row], "the table that was opened is not changed"


@pytest.mark.parametrize("value", ["many", {"low": 1}, [1], "1e999", True])
def test_what_is_no_value_of_a_column_is_refused(studio, value):
    answer = studio.post("/do/cell", model="m3", data="d1", row=0, column="income", value=value)
    assert answer.status_code == 400
    assert "income" in answer.json()["error"]


# Jobs


def test_one_job_at_a_time_and_one_that_waits_is_cancelled_at_once():
    jobs, go, running = Jobs(), threading.Event(), []

    def work(job):
        running.append(job.id)
        assert len(running) == 1
        go.wait(5)
        running.remove(job.id)
        return {}

    first, second, third = (jobs.start("work", work) for _ in range(3))
    jobs.cancel(second)
    assert second.state == "cancelled"
    go.set()
    end = time.monotonic() + 5
    while third.state != "done" and time.monotonic() < end:
        time.sleep(0.01)
    assert (first.state, second.state, third.state) == ("done", "cancelled", "done")
    jobs.close()


def test_too_many_jobs_are_refused():
    jobs, go = Jobs(), threading.Event()
    first = jobs.start("wait", lambda job: {"x": go.wait(10)})
    while first.state == "waiting":
        time.sleep(0.01)
    for _ in range(20):
        jobs.start("wait", lambda job: {})
    with pytest.raises(InputError, match="waiting already"):
        jobs.start("wait", lambda job: {})
    go.set()
    jobs.close()


def test_an_error_of_ours_is_told_and_one_of_somebody_else_has_no_trace():
    jobs = Jobs()

    def fails(error):
        def work(job):
            raise error

        job = jobs.start("fails", work)
        while job.state not in ("failed", "done"):
            time.sleep(0.01)
        return job.error

    assert fails(InputError("say this")) == "say this"
    told = fails(ZeroDivisionError("/secret/path"))
    assert "ZeroDivisionError" in told
    assert "/secret" not in told
    jobs.close()


@pytest.mark.slow
def test_training_is_cancelled_and_nothing_is_left(studio):
    job = studio.post("/do/train", data="d1", effort=1.0).json()["job"]
    while not studio.get("/job.json", job=job).json()["progress"].get("checks"):
        time.sleep(0.02)
    studio.post("/do/cancel", job=job)
    end = time.monotonic() + 60
    while studio.get("/job.json", job=job).json()["state"] == "running" and time.monotonic() < end:
        time.sleep(0.02)
    assert studio.get("/job.json", job=job).json()["state"] == "cancelled"
    assert studio.space.saved() == []


@pytest.mark.slow
def test_training_that_is_stopped_keeps_the_best(studio):
    job = studio.post("/do/train", data="d2", effort=0.3).json()["job"]
    while not studio.get("/job.json", job=job).json()["progress"].get("checks"):
        time.sleep(0.02)
    studio.post("/do/finish", job=job)
    found = studio.done(studio.get("/job.json", job=job))
    assert found["state"] == "done"
    assert found["progress"]["step"] < found["progress"]["steps"]
    assert studio.space.saved() == ["bars.ao"]


def test_progress_comes_as_events_until_the_end(studio):
    job = studio.post("/do/fill", model="m3", data="d1").json()["job"]
    with studio.client.stream("GET", "/events", params={"job": job}, headers=studio.headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        told = [json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: ")]
    assert told[-1]["state"] == "done"


def test_saved_models_are_found_again_and_never_overwritten(tmp_path, people_model):
    space = Workspace(tmp_path / "models")
    assert [space.save(people_model, "people"), space.save(people_model, "people")] == ["people.ao", "people-2.ao"]
    again = Workspace(tmp_path / "models")
    assert again.saved() == ["people-2.ao", "people.ao"]
    assert again.load("people.ao").model.schema_ == people_model.schema_
    with pytest.raises(InputError, match="listed"):
        again.load("../models/people.ao")
    for one in (space, again):
        one.close()


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("a.csv", "a.csv"),
        ("../../x.ao", "x.ao"),
        ("C:\\x\\y.csv", "y.csv"),
        ("", "unnamed"),
        ("...", "unnamed"),
        ("a\0b;c", "a_b_c"),
    ],
)
def test_names_of_files_are_tame(said, name):
    assert tidy_name(said) == name


# Questions that do not fit


@pytest.mark.parametrize(
    ("path", "params", "says"),
    [
        ("/ask.json", {"model": "m4", "target": "x"}, "is a question about tables"),
        ("/ask.json", {"model": "m9", "target": "x"}, "Open it again"),
        ("/ask.json", {"model": "m3", "target": "incom"}, "Did you mean 'income'"),
        ("/ask.json", {"model": "m3", "target": "income", "given": "{"}, "cannot be read as JSON"),
        ("/ask.json", {"model": "m3", "target": "income", "given": '{"age": {"around": 3}}'}, "not understood"),
        ("/ask.json", {"model": "m3", "target": "income", "given": '{"city": "Roma"}'}, "Did you mean 'Rome'"),
        ("/ask.json", {"model": "m3", "target": "income", "given": '{"joined": "soon"}'}, "a date"),
        ("/ask.json", {"model": "m3", "target": "income", "verbose": "1"}, "no parameter 'verbose'"),
        ("/ask.json", {"model": "m3"}, "'target' is missing"),
        ("/table.json", {"data": "d1", "start": "-1"}, "expected start from 0"),
        ("/table.json", {"data": "d1", "start": "x"}, "cannot be read as JSON"),
        ("/table.json", {"data": "d2"}, "no cells"),
        ("/pictures.json", {"data": "d1"}, "no pictures"),
        ("/next.json", {"model": "m3", "target": "income", "costs": '{"city": -1}'}, "expected a number, 0 or more"),
        ("/next.json", {"model": "m3", "target": "income", "groups": '{"g": "city"}'}, "list of names"),
        ("/job.json", {"job": "j99"}, "no job"),
        ("/paint.json", {"model": "m3"}, "a question about images"),
    ],
)
def test_the_message_says_what_is_wrong(studio, path, params, says):
    answer = studio.get(path, **params)
    assert answer.status_code in (400, 404)
    assert says in answer.json()["error"]


def test_a_remark_is_heard_by_the_request_that_caused_it(studio):
    with remarks_are_heard():
        far = studio.get("/ask.json", model="m3", target="city", given='{"age": 99}').json()
        near = studio.get("/ask.json", model="m3", target="city", given='{"age": 30}').json()
    assert "outside what was seen" in far["notes"][0]
    assert near["notes"] == []


def test_the_description_names_every_endpoint(studio):
    found = studio.get("/openapi.json").json()
    assert {"/ask.json", "/do/train", "/export.csv"} <= set(found["paths"])
    assert found["paths"]["/ask.json"]["get"]["parameters"][0]["name"] == "model"
    assert all(next(iter(one.values()))["summary"] for one in found["paths"].values())


def test_samples_are_one_click_away(studio):
    for name in ("patients", "wine", "digits"):
        assert studio.post("/do/sample", sample=name).json()["count"] > 100


def test_the_command_is_there_and_says_what_is_missing():
    from typer.testing import CliRunner

    from anyorder.cli import app

    assert "--max-upload" in CliRunner().invoke(app, ["studio", "--help"], env={"COLUMNS": "200"}).stdout
    assert CliRunner().invoke(app, ["studio", "nowhere.ao", "--no-browser"]).exit_code == 1


def test_a_model_without_a_folder_stays_in_memory(people_model):
    space = Workspace(None)
    assert space.save(people_model, "people") == "people.ao"
    assert space.saved() == []
    space.close()
