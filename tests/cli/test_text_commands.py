"""Text on the command line: fit, info, restore, proofread, sample."""

import json

import numpy as np
import pytest

SENTENCE = "the quick brown fox jumps over the lazy dog and the small cat sleeps near the warm red fire"
WORDS = SENTENCE.split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    path.write_text(" ".join(np.random.default_rng(0).choice(WORDS, 3000)))
    return path


@pytest.fixture(scope="module")
def text_model(corpus, run):
    result = run("fit", corpus, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["texts"] == 1
    return corpus.with_suffix(".ao")


def test_info_says_what_it_is(run, text_model):
    result = run("info", text_model)
    assert result.exit_code == 0, result.stderr
    assert "text of" in result.stdout


def test_restore_answers_as_text_and_as_json(run, text_model):
    result = run("restore", text_model, "the q____ brown f_x", "--draws", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("the quick brown fox\ndraw 1: the q")
    document = json.loads(run("restore", text_model, "the q____ brown f_x", "--json").stdout)
    assert document["text"] == "the quick brown fox"
    assert document["gaps"][0]["alternatives"][0]["text"] == "uick"
    assert run("restore", text_model, "-", input="the l_zy dog").stdout.startswith("the lazy dog")
    assert "has no gap" in run("restore", text_model, "no gap").stderr


def test_proofread_names_the_typo(run, text_model, tmp_path):
    (tmp_path / "letter.txt").write_text("the small cat slxeps near")
    result = run("proofread", text_model, tmp_path / "letter.txt")
    assert result.exit_code == 0, result.stderr
    assert "sl[x]eps" in result.stdout
    document = json.loads(run("proofread", text_model, "the small cat slxeps near", "--json", "--top", "1").stdout)
    assert (document["odd"][0]["place"], document["odd"][0]["expected"]) == (17, "e")


def test_sample_fills_what_is_given(run, text_model, tmp_path):
    result = run("sample", text_model, "--given", "the quick ____", "-n", "2")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line[:10] for line in lines] == ["the quick "] * 2
    assert run("sample", text_model, "-n", "1", "-o", tmp_path / "new.txt").exit_code == 0
    assert len((tmp_path / "new.txt").read_text()) == 251
    assert "Use -o" in run("sample", text_model, "--grid", tmp_path / "a.png").stderr


def test_what_is_not_for_text_is_refused(run, corpus, text_model, tmp_path):
    assert "--size is for" in run("fit", corpus, "--size", "medium").stderr
    for command in ("anomalies", "score"):
        assert "This command reads tables" in run(command, text_model, corpus).stderr
    assert "is a question about tables" in run("ask", text_model, "a").stderr
    (tmp_path / "b.txt").write_bytes(bytes(range(256)))
    assert "is no text" in run("fit", tmp_path / "b.txt").stderr
