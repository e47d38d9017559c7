"""Text as a kind of data: from any characters to answers, and what is said where there is no answer."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from anyorder import AnyOrder
from anyorder.errors import FormatError, InputError, UnavailableError
from anyorder.modalities.registry import modality_of, modality_reading
from anyorder.modalities.text.alphabet import CODE_POINTS, END, FIRST, OTHER, Alphabet
from anyorder.modalities.text.corpus import is_texts, read_corpus
from anyorder.modalities.text.modality import Text
from anyorder.subsets import CanonicalOrder

SENTENCE = "the quick brown fox jumps over the lazy dog and the small cat sleeps near the warm red fire"
WORDS = SENTENCE.split()


def story(words, seed=0):
    rng = np.random.default_rng(seed)
    return " ".join(rng.choice(WORDS, words))


@pytest.fixture(scope="module")
def model():
    return AnyOrder().fit([story(60, seed) for seed in range(60)])


# Characters


def test_every_character_has_a_code_and_the_rare_ones_share_one():
    text = "aab\r\n\x00é漢\U0001f600\udcff" * 2 + "a"
    alphabet = Alphabet.of([text], most=3)
    codes = alphabet.encode(text)
    assert alphabet.decode(codes, text) == text
    assert alphabet.levels == FIRST + 3
    assert (codes == OTHER).any()
    assert END not in codes
    assert Alphabet.from_json(json.loads(json.dumps(alphabet.to_json()))) == alphabet


def test_rare_characters_have_a_distribution_that_sums_to_one():
    alphabet = Alphabet.of(["aaaabbbcccdde"], most=2)
    never = CODE_POINTS - len(alphabet.characters) - len(alphabet.rare)
    mass = sum(math.exp(alphabet.log_other(one)) for one in alphabet.rare) + never * math.exp(alphabet.log_other("漢"))
    assert set(alphabet.rare) == {"c", "d", "e"}
    assert mass == pytest.approx(1)


# Where texts come from


def test_lists_columns_and_files_are_the_same(tmp_path):
    import pandas as pd

    texts = [story(30, seed) for seed in range(5)]
    (tmp_path / "all").mkdir()
    for i, text in enumerate(texts):
        (tmp_path / "all" / f"{i}.txt").write_text(text)
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    sources = [texts, tuple(texts), np.array(texts), pd.Series(texts), tmp_path / "all", str(tmp_path / "all.jsonl")]
    for one in sources:
        assert isinstance(modality_of(one), Text)
    scores = [AnyOrder().fit(one).score_samples(texts).tolist() for one in sources]
    assert all(score == scores[0] for score in scores)
    assert isinstance(modality_reading(tmp_path / "all"), Text)
    assert isinstance(modality_reading(tmp_path / "all.jsonl"), Text)


class NeverListed(np.ndarray):
    def tolist(self):
        pytest.fail("every number of an array was made a Python object to find out that it is no text")


@pytest.mark.parametrize("shape", [(5, 4, 4), (6, 3), (7,)])
def test_numbers_are_no_text_and_are_not_looked_at_one_by_one(shape):
    assert not is_texts(np.zeros(shape, np.uint8).view(NeverListed))


def test_rows_of_a_table_and_folders_of_images_are_no_text(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "a", "age": 3}\n')
    (tmp_path / "images").mkdir()
    for name in ("a.png", "b.png", "labels.txt"):
        (tmp_path / "images" / name).write_bytes(b"")
    assert modality_reading(tmp_path / "rows.jsonl").name == "table"
    assert modality_reading(tmp_path / "images").name == "images"


def test_files_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr("anyorder.modalities.text.corpus.PIECE", 7)
    content = "déjà\r\nvu\n\r end".encode() + b"\xff\n"
    (tmp_path / "a.txt").write_bytes(content)
    corpus = read_corpus(tmp_path / "a.txt")
    assert len(list(corpus.pieces())) > 1
    assert corpus.texts()[0].encode("utf-8", "surrogateescape") == content


# Answers


def test_restored_text_keeps_what_is_known_and_lists_alternatives(model):
    restored = model.restore("the q____ brown f_x", draws=4)
    assert restored.text == "the quick brown fox"
    assert 0 < restored.probability <= 1
    assert [(gap.start, gap.length) for gap in restored.gaps] == [(5, 4), (17, 1)]
    assert restored.gaps[0].alternatives[0].text == "uick"
    assert all(draw[:5] == "the q" and len(draw) == 19 for draw in restored.draws)
    assert sum(one.probability for one in model.restore("f_x", alternatives=99).gaps[0].alternatives) == pytest.approx(1)
    assert "uick" in repr(restored)
    assert "<mark" in restored._repr_html_()
    assert str(restored) == restored.text


def test_a_mask_says_the_same_as_marks(model):
    missing = np.zeros(9, bool)
    missing[[2, 4]] = True
    marked = model.restore("th_ _uick")
    assert model.restore("the quick", missing=missing).text == marked.text == "the quick"
    listed = model.restore(["the quick", "l_zy"], missing=[missing, [False, True, False, False]])
    assert [one.text for one in listed] == ["the quick", "lazy"]
    assert model.restore("la#y", gap="#").text == "lazy"


def test_only_gaps_and_none(model):
    assert len(model.restore("______").text) == 6
    with pytest.raises(InputError, match=r"has no gap\. Write '_'"):
        model.restore("no gap")
    with pytest.raises(InputError, match=r"expected an array of booleans"):
        model.restore("abc", missing=[True])
    with pytest.raises(InputError, match="expected one character"):
        model.restore("abc", gap="__")


def test_scores_sum_to_one_and_targets_are_conditioned(model):
    letters = model.fitted_.alphabet.characters
    alone = model.score_samples(list(letters))
    assert 0.9 < np.exp(alone).sum() <= 1 + 1e-6  # the rest is for ends of documents and rare characters
    one = np.array([False, True, False])
    inside = model.score_samples([f"t{letter}e" for letter in letters], target=[one] * len(letters))
    assert 0.9 < np.exp(inside).sum() <= 1 + 1e-6
    # Bayes: p(target | rest) = p(all) / p(rest), and the rest is the same
    pairs = [f"t{a}{b} " for a, b in itertools.product(letters[:5], repeat=2)]
    inside = model.score_samples(pairs, target=[np.array([False, True, True, False])] * len(pairs))
    both = model.score_samples(pairs)
    assert np.allclose(inside - inside[0], both - both[0], atol=1e-6)


def test_a_walk_scores_like_one_pass_where_the_forward_reading_walks_alone(model):
    text = "the lazy"
    memory = model.model_.resized(beam=5000)
    memory.both = False
    forwards = AnyOrder.of(replace(model.fitted_, model=memory))
    walked = forwards.score_samples([text], order=CanonicalOrder((3, 0, 7, 2, 1, 5, 4, 6)))
    assert walked == pytest.approx(model.score_samples([text]), abs=1e-3)
    assert np.isfinite(model.score_samples([text], steps=3)).all()


def test_a_typo_is_the_most_surprising_character(model):
    text = "the quick brown fox jumps over the lazx dog and the small cat"
    found = model.anomalies(text)
    odd = found.lines(1)[0]
    assert (odd.place, odd.found, odd.expected) == (38, "x", "y")
    assert "'y'" in repr(found)
    assert "<table" in found._repr_html_()
    assert len(found.nats[0]) == len(text)
    assert model.anomalies([""]).lines() == []


def test_draws_keep_what_is_given_and_follow_seeds(model):
    drawn = model.sample(3, given="the q____ ")
    assert all(len(one) == 10 and one.startswith("the q") for one in drawn)
    assert drawn == model.sample(3, given="the q____ ")
    assert all(one.startswith("the q") for one in model.sample(2, given="the q____ ", steps=2))
    assert model.sample(1, given="the q____ ", temperature=0.05) == ["the quick "]
    new = model.sample(12)
    assert all(set(one) <= set(" ".join(WORDS)) for one in new)
    assert np.mean([len(one) for one in new]) > 100
    with pytest.raises(InputError, match="has no gap to draw"):
        model.sample(1, given="abc")


@pytest.mark.parametrize(("documents", "words"), [(30, 15), (120, 40)])
def test_drawn_documents_are_as_long_as_those_of_a_small_corpus(documents, words):
    """Mean and quartiles within a quarter, as far as so few documents tell them; nearly none empty."""
    rng = np.random.default_rng(documents)
    corpus = [story(count, seed) for seed, count in enumerate(rng.geometric(1 / words, documents))]
    model = AnyOrder().fit(corpus)
    lengths, drawn = ([len(one) for one in texts] for texts in (corpus, model.sample(400)))
    assert np.mean(drawn) == pytest.approx(np.mean(lengths), rel=0.25)
    typical = -np.log([0.75, 0.5, 0.25]) * np.mean(lengths)  # of as many words, on average
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx(typical, rel=0.25)
    assert np.mean(np.array(drawn) == 0) < 0.02


def test_longer_gaps_need_only_the_forward_reading(model, tmp_path):
    model.save(tmp_path / "m.ao")
    other = AnyOrder.load(tmp_path / "m.ao")
    restored = other.restore("the q____ brown")
    assert restored.text == "the quick brown"
    assert set(restored.characters) == {5, 6, 7, 8}
    assert "backwards" not in vars(other.model_._readings)
    assert other.restore("the q_ick").text == "the quick"
    assert "backwards" in vars(other.model_._readings)


# Keeping


def test_a_saved_model_answers_alike(model, tmp_path):
    model.save(tmp_path / "m.ao")
    other = AnyOrder.load(tmp_path / "m.ao")
    assert other.restore("the q____ fox") == model.restore("the q____ fox")
    assert other.score_samples(["a dog"]) == model.score_samples(["a dog"])
    assert "60 document(s)" in repr(other)
    raw = bytearray((tmp_path / "m.ao").read_bytes())
    raw[-200] ^= 0x5A
    (tmp_path / "m.ao").write_bytes(raw)
    with pytest.raises(FormatError):
        AnyOrder.load(tmp_path / "m.ao")


# What is refused, and what is warned of


def test_empty_short_and_binary_corpora_are_refused(tmp_path):
    for empty in ([""], ["", ""]):
        with pytest.raises(InputError, match="There is no text to learn from"):
            AnyOrder().fit(empty)
    with pytest.raises(InputError, match="at least 20"):
        AnyOrder().fit(["short"])
    (tmp_path / "b.txt").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(InputError, match=r"b\.txt is no text"):
        AnyOrder().fit(tmp_path / "b.txt")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no folder with images in it"):
        AnyOrder().fit(tmp_path / "none")
    with pytest.raises(InputError, match="There is no file"):
        AnyOrder().fit("missing.txt")
    (tmp_path / "c.jsonl").write_text('"fine"\n{"text": 3}\n')
    with pytest.raises(InputError, match=r"Line 2 of c\.jsonl holds no text"):
        AnyOrder().fit(tmp_path / "c.jsonl")


def test_a_foreign_alphabet_is_answered_with_a_warning(model):
    with pytest.warns(UserWarning, match="rare or never seen"):
        assert len(model.restore("привет ми_").text) == 10
    with pytest.warns(UserWarning, match="rare or never seen"):
        assert np.isfinite(model.score_samples(["привет"])).all()


def test_questions_of_other_kinds_of_data_are_refused(model):
    with pytest.raises(UnavailableError, match="This is a model of text"):
        model.inpaint(np.zeros((1, 2, 2)), np.zeros((2, 2)))
    with pytest.raises(InputError, match="no option 'label'"):
        model.sample(1, label=3)
    with pytest.raises(InputError, match="kinds="):
        AnyOrder(kinds={"a": "category"}).fit([story(20)])
    with pytest.raises(InputError, match="without a y"):
        AnyOrder().fit([story(20)], y=[1])
    with pytest.raises(InputError, match="Expected a text or a list of texts"):
        model.restore([1, 2])
