"""Against enumeration: every string of a small alphabet, and the probability that reading it from left to right gives it."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from anyorder.inference import log_prob, mixture_log_prob, sample
from anyorder.models import text_automaton
from anyorder.models.text_automaton import ROOT, Automaton
from anyorder.models.text_counts import StringCounts, bits_of, closed, keys_of, pack, reversed_tables, rounded, unpack, unrounded
from anyorder.models.text_lattice import Lattice, stretches
from anyorder.models.text_memory import TextMemory, one_gap
from anyorder.models.trained import described, rebuilt
from anyorder.subsets import CanonicalOrder, Question

LEVELS, LENGTH = 4, 6


def babble(count, levels=LEVELS, seed=0):
    """Text with structure: what comes next depends on the last two symbols."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(levels, 0.4), size=(levels, levels))
    text = [0, 1]
    for _ in range(count):
        text.append(rng.choice(levels, p=law[text[-2], text[-1]]))
    return np.array(text[2:], np.uint8)


def ended_babble(documents):
    """Documents of 1, 2 and 3, each with a 0 behind it."""
    rng = np.random.default_rng(7)
    return [np.append(1 + babble(rng.geometric(1 / 25), 3, seed), 0).astype(np.uint8) for seed in range(documents)]


def memory_of(both=False, beam=4096, count=3000, **more):
    return TextMemory.of([babble(count)], LEVELS, LENGTH, beam=beam, both=both, longest=5, **more)


MEMORY = memory_of()
STATES = np.array(list(itertools.product(range(LEVELS), repeat=LENGTH)), np.uint8)
JOINT = np.exp([MEMORY.log_probs(text).sum() for text in STATES])
PATTERNS = [(0, 0, 0, 0, 0, 0), (1, 0, 1, 1, 0, 1), (0, 1, 0, 0, 1, 0), (1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1)]


def conditioned(known, text):
    """p(every string | the known symbols), by enumeration."""
    agree = ((text == STATES) | ~known).all(1) * JOINT
    return agree / agree.sum()


def marginals(mass):
    return np.array([[mass[STATES[:, i] == k].sum() for k in range(LEVELS)] for i in range(LENGTH)])


# Counting


@pytest.mark.parametrize(("levels", "cut"), [(4, 1), (4, 700), (200, 333)])
def test_counts_are_those_of_looking_at_every_place(levels, cut, monkeypatch):
    monkeypatch.setattr("anyorder.models.text_counts.BLOCK", 256)
    text = babble(1500, 4) * np.uint8(levels // 4)
    counts = StringCounts(levels, longest=5)
    for part in np.split(text, range(cut, len(text), 997)):
        counts.add(part)
    for length, table in enumerate(counts.finish(fewest=1), 1):
        seen = Counter(tuple(text[i : i + length].tolist()) for i in range(len(text) - length + 1))
        keys = {sum(int(c) << bits_of(levels) * (length - 1 - j) for j, c in enumerate(s)): n for s, n in seen.items()}
        assert dict(zip(table.keys.tolist(), table.counts.tolist(), strict=True)) == keys


def test_counting_stays_within_its_room(monkeypatch):
    monkeypatch.setattr("anyorder.models.text_counts.BLOCK", 1000)
    counts = StringCounts(4, most=500, longest=8)
    held = []
    for seed in range(20):
        counts.add(babble(1000, seed=seed))
        held.append(sum(len(table.keys) for table in counts.tables))
    tables = counts.finish()
    assert max(held) <= 1000
    assert sum(len(table.keys) for table in tables) <= 500
    assert Automaton(tables, 4, 4).rows(np.array([ROOT]))[0].sum() == pytest.approx(1)


def test_every_kept_string_has_both_its_parts():
    counts = StringCounts(4, longest=6)
    counts.add(babble(800))
    tables = closed(counts.finish(4), 4, 2)
    for length, table in enumerate(tables[1:], 2):
        assert (tables[length - 2].find(table.keys >> np.uint64(2)) >= 0).all()
        assert (tables[length - 2].find(table.keys & np.uint64((1 << 2 * (length - 1)) - 1)) >= 0).all()


def test_packed_counts_come_back_rounded():
    counts = StringCounts(200, longest=4)
    counts.add(babble(5000) * np.uint8(50))
    tables = counts.finish(1)
    sizes = [len(table.keys) for table in tables]
    for before, after in zip(tables, unpack(pack(tables, 200), sizes, 200), strict=True):
        assert (before.keys == after.keys).all()
        assert np.abs(after.counts / before.counts - 1).max() < 0.036
        small = before.counts <= 31
        assert (before.counts == after.counts)[small].all()


def test_backwards_is_the_text_turned_round():
    text = babble(700)
    one, other = StringCounts(4, longest=4), StringCounts(4, longest=4)
    one.add(text)
    other.add(text[::-1])
    for turned, own in zip(reversed_tables(one.finish(1), 4), other.finish(1), strict=True):
        assert (turned.keys == own.keys).all()
        assert (turned.counts == own.counts).all()


# The automaton


def test_probabilities_sum_to_one_in_every_state_and_follow_the_counts():
    automaton = MEMORY.forwards
    chance, after = automaton.rows(np.arange(len(automaton)))
    assert np.allclose(chance.sum(1), 1, atol=1e-6)
    assert (chance > 0).all()
    single, target = automaton.step(np.arange(len(automaton))[:, None], np.arange(LEVELS))
    assert np.allclose(single, chance)
    assert (target == after).all()
    assert JOINT.sum() == pytest.approx(1, abs=1e-5)


def test_a_state_is_the_longest_context_that_occurred_often():
    text, automaton = babble(3000), MEMORY.forwards
    often = Counter(tuple(text[i : i + n].tolist()) for n in range(1, 5) for i in range(len(text) - n + 1))
    chain = babble(200, seed=5)
    for place, state in enumerate(automaton.states_along(chain)):
        fitting = [n for n in range(1, min(place, 4) + 1) if often[tuple(chain[place - n : place].tolist())] >= (1, 4)[n > 1]]
        assert automaton.length[state] == max(fitting, default=0)


def test_a_symbol_never_seen_is_possible():
    memory = TextMemory.of([np.zeros(50, np.uint8)], 3, 5, longest=4)
    assert np.isfinite(memory.log_probs(np.array([0, 2, 1, 0], np.uint8))).all()


def test_long_alphabets_use_what_fits_into_64_bits():
    text = np.random.default_rng(0).integers(0, 256, 4000).astype(np.uint8)
    memory = TextMemory.of([text], 256, 5)
    assert memory.forwards.order == 7
    assert np.allclose(memory.forwards.rows(np.arange(50))[0].sum(1), 1, atol=1e-5)


# Ends of documents


ENDED_TEXT = np.concatenate([np.array([0], np.uint8), *ended_babble(40)])
ENDED = TextMemory.of([ENDED_TEXT], LEVELS, 4, fewest=2, longest=5, beam=4096, both=False, end=0)


def counted_end(table, context):
    """The share of ends after a context, and for one more occurrence that after its suffix, by the definition."""
    below = 1 / LEVELS if not context else counted_end(table, context[1:])
    return (table[(*context, 0)] + below) / (sum(table[(*context, y)] for y in range(LEVELS)) + 1)


def test_an_end_has_its_counted_share_backed_off_and_the_others_the_rest():
    text = ENDED_TEXT
    seen = Counter(tuple(text[i : i + n].tolist()) for n in range(1, 6) for i in range(len(text) - n + 1))
    codes = rounded(np.array(list(seen.values())))
    table = Counter(dict(zip(seen, unrounded(codes).tolist(), strict=True)))
    automaton = ENDED.forwards
    for context in ((), (1,), (0, 2), (1, 2, 3), (3, 3, 3, 3), (1, 3, 2, 2)):
        state = automaton.after(np.array(context, np.uint8))
        kept = context[len(context) - int(automaton.length[state]) :]
        assert automaton.step(np.array([state]), np.array([0]))[0][0] == pytest.approx(counted_end(table, kept), rel=1e-6)
    chance, after = automaton.rows(np.arange(len(automaton)))
    assert np.allclose(chance.sum(1), 1, atol=1e-6)
    assert (chance > 0).all()
    single, target = automaton.step(np.arange(len(automaton))[:, None], np.arange(LEVELS))
    assert np.allclose(single, chance)
    assert (target == after).all()
    longer = np.arange(1, len(automaton))
    found = automaton.find(longer, np.zeros(len(longer), np.uint8)) >= 0
    assert (chance[longer, 0] <= chance[automaton.parent[longer], 0])[~found].all()
    assert (~found).sum() > 10


def test_gaps_between_documents_are_filled_as_by_enumeration():
    states = np.array(list(itertools.product(range(LEVELS), repeat=4)), np.uint8)
    joint = np.exp([ENDED.log_probs(one).sum() for one in states])
    assert joint.sum() == pytest.approx(1, abs=1e-5)
    known, text = np.array([1, 0, 0, 1], bool), states[77]
    mass = joint * ((states == text) | ~known).all(1)
    wanted = [[mass[states[:, i] == k].sum() / mass.sum() for k in range(LEVELS)] for i in range(4)]
    assert np.allclose(ENDED.posteriors(text, known), wanted, atol=1e-6)


# Forward-backward


@pytest.mark.parametrize("pattern", PATTERNS)
def test_posteriors_are_those_of_enumeration(pattern):
    known, text = np.array(pattern, bool), STATES[777]
    wanted = marginals(conditioned(known, text))
    assert np.allclose(MEMORY.posteriors(text, known), wanted, atol=1e-6)
    other = np.where(known, text, (text + 1) % LEVELS).astype(np.uint8)
    assert (MEMORY.posteriors(other, known) == MEMORY.posteriors(text, known)).all()


@pytest.mark.parametrize("pattern", PATTERNS[1:])
def test_the_best_filling_and_the_probability_of_each(pattern):
    known, text = np.array(pattern, bool), STATES[1234]
    mass = conditioned(known, text)
    lattice = Lattice(MEMORY.forwards, text, known)
    best, log_p = lattice.best()
    assert (best == STATES[mass.argmax()]).all()
    assert log_p == pytest.approx(np.log(mass.max()), abs=1e-5)
    some = np.flatnonzero(mass)[::7]
    assert [lattice.log_prob(STATES[i]) for i in some] == pytest.approx(np.log(mass[some]), abs=1e-5)


def test_draws_have_the_joint_distribution():
    known, text = np.array([1, 0, 0, 1, 0, 1], bool), STATES[321]
    mass = conditioned(known, text)
    draws = Lattice(MEMORY.forwards, text, known).draw(np.random.default_rng(0), 5000)
    number = draws @ LEVELS ** np.arange(LENGTH - 1, -1, -1)
    often = np.bincount(number, minlength=len(STATES))
    assert often[mass == 0].sum() == 0
    likely = mass * 5000 > 5
    assert likely.sum() > 10
    wanted = np.append(mass[likely], mass[~likely].sum())
    wanted = wanted[wanted > 0] * 5000
    seen = np.append(often[likely], often[~likely].sum())[: len(wanted)]
    assert chisquare(seen, wanted * 5000 / wanted.sum()).pvalue > 0.001


@pytest.mark.parametrize("beam", [8, 12])
def test_a_narrow_beam_loses_no_mass(beam):
    memory = TextMemory.of([babble(20000, 5)], 5, 5, beam=beam, longest=6, both=False)
    everything = np.array(list(itertools.product(range(5), repeat=5)), np.uint8)
    for known in (np.zeros(5, bool), np.array([0, 0, 0, 1, 0], bool)):
        lattice = Lattice(memory.forwards, everything[99], known, beam=beam)
        assert max(len(weights) for weights in lattice.weights) <= beam < len(memory.forwards)
        same = ((everything == everything[99]) | ~known).all(1)
        assert np.exp([lattice.log_prob(one) for one in everything[same]]).sum() == pytest.approx(1, abs=1e-6)
        assert np.allclose(lattice.posteriors(5).sum(1), 1)


def test_a_wider_beam_comes_closer():
    rng = np.random.default_rng(3)
    text = babble(30000, 5)
    memory = TextMemory.of([text], 5, 5, longest=7, both=False)
    passage, known = text[:60], rng.random(60) < 0.3
    exact = memory.resized(beam=4000).posteriors(passage, known)
    off = [np.abs(memory.resized(beam=beam).posteriors(passage, known) - exact).mean() for beam in (8, 40, 400, 800)]
    assert off[0] > off[1] > off[2] > off[3]
    assert off[3] < 0.002  # of 3142 contexts


def test_stretches_do_not_depend_on_each_other():
    """One lattice over everything gives what those of single stretches give."""
    text = babble(400)[100:160]
    known = np.ones(60, bool)
    known[[3, 4, 20, 40, 41, 47, 59]] = False
    assert [*stretches(known, 4)] == [(3, 9), (20, 25), (40, 46), (47, 52), (59, 60)]
    whole = Lattice(MEMORY.forwards, text, known, beam=4096).posteriors(LEVELS)
    assert np.allclose(MEMORY.posteriors(text, known), whole, atol=1e-9)


def test_one_by_one_is_one_gap_after_the_other():
    text, memory = babble(50, seed=4), memory_of(both=True)
    table = memory.one_by_one(text)
    for place in range(len(text)):
        known = np.arange(len(text)) != place
        assert np.allclose(table[place], memory.posteriors(text, known)[place], atol=1e-6)
    assert np.allclose(table, np.concatenate([table[:0], memory.one_by_one(text)]))
    assert np.allclose(one_gap(memory.forwards, text, ROOT, at_once=7), one_gap(memory.forwards, text, ROOT))


def test_gaps_may_be_told_what_they_can_be():
    known, text = np.array([1, 0, 0, 1, 0, 1], bool), STATES[321]
    mass = conditioned(known, text) * np.isin(STATES[:, ~known], [1, 3]).all(1)
    found = MEMORY.posteriors(text, known, allowed=np.array([1, 3]))
    assert np.allclose(found, marginals(mass / mass.sum()), atol=1e-6)


def test_gaps_inside_and_behind_are_drawn_together():
    known, text = np.array([1, 0, 1, 0, 0, 0], bool), STATES[321]
    mass = conditioned(known, text)
    draws = MEMORY.draws(text, known, 5000, np.random.default_rng(1))
    often = np.bincount(draws @ LEVELS ** np.arange(LENGTH - 1, -1, -1), minlength=len(STATES))
    likely = mass * 5000 > 5
    wanted = np.append(mass[likely], mass[~likely].sum()) * 5000
    assert chisquare(np.append(often[likely], often[~likely].sum()), wanted * 5000 / wanted.sum()).pvalue > 0.001


def test_what_is_drawn_on_is_what_scores_say():
    drawn = MEMORY.continued(np.zeros(4000, np.int64), 2, np.random.default_rng(0))
    seen = np.bincount(drawn @ [LEVELS, 1], minlength=LEVELS**2)
    wanted = JOINT.reshape(LEVELS**2, -1).sum(1)
    assert chisquare(seen, 4000 * wanted / wanted.sum()).pvalue > 0.001


# As a model among models


@pytest.mark.parametrize("both", [False, True])
def test_scores_sum_to_one_along_any_order_and_mixture(both):
    memory = memory_of(both, beam=12)
    memory = memory.resized(length=3)
    x = torch.tensor(list(itertools.product(range(LEVELS), repeat=3))).float()
    question = Question(torch.zeros_like(x).bool(), torch.ones_like(x).bool())
    orders = [CanonicalOrder((2, 0, 1)), CanonicalOrder((2, 1, 0))]
    for scores in (log_prob(memory, x, question, order=orders[0]), mixture_log_prob(memory, x, question, orders)):
        assert scores.double().exp().sum() == pytest.approx(1, abs=1e-4)


def test_the_walk_from_left_to_right_is_the_score_of_a_text():
    x = torch.from_numpy(STATES[::97].copy()).float()
    question = Question(torch.zeros_like(x).bool(), torch.ones_like(x).bool())
    wanted = torch.from_numpy(np.log(JOINT[::97]))
    for order in (CanonicalOrder(), CanonicalOrder((4, 1, 0, 5, 2, 3))):  # consistent: every order agrees
        assert torch.allclose(log_prob(MEMORY, x, question, order=order).double(), wanted, atol=1e-4)


def test_hidden_values_and_variables_not_asked_for_change_nothing():
    x, given = torch.tensor([[0.0, 2, 1, 3, 0, 1]]), torch.tensor([[True, False, False, True, False, False]])
    target = torch.tensor([[False, True, False, False, False, False]])
    other = torch.where(given | target, x, torch.nan)
    scores = [log_prob(MEMORY, one, Question(given, target)) for one in (x, other)]
    assert torch.equal(*scores)
    wanted = marginals(conditioned(given[0].numpy(), x[0].numpy()))[1, 2]
    assert float(scores[0].exp()) == pytest.approx(wanted, abs=1e-5)


def test_known_values_are_certain_and_stay():
    x, given = torch.tensor([[0.0, 2, 1, 3, 0, 1]]), torch.tensor([[True, False, True, True, False, True]])
    known = MEMORY(x, given)
    assert torch.allclose(known.log_prob(x)[given], torch.zeros(4))
    drawn = sample(MEMORY, x, Question(given, ~given), torch.Generator().manual_seed(0))
    assert torch.equal(drawn[given], x[given])


@pytest.mark.parametrize("both", [False, True])
def test_a_rebuilt_memory_answers_alike(both):
    memory = memory_of(both)
    other = rebuilt("here", described(memory), dict(memory.state_dict()))
    known = np.array(PATTERNS[1], bool)
    assert (other.posteriors(STATES[5], known) == memory.posteriors(STATES[5], known)).all()


@pytest.mark.parametrize("change", [{"sizes": [4]}, {"levels": 3}, {"sizes": [10**9] * 9}, {"beam": 0}, {"levels": 300}])
def test_a_description_that_contradicts_the_counts_is_refused(change):
    with pytest.raises(ValueError, match=r"describes no|contradict"):
        rebuilt("here", {**described(MEMORY), **change}, dict(MEMORY.state_dict()))


def test_the_compiled_loops_answer_like_numpy(monkeypatch):
    pytest.importorskip("numba")
    slow = TextMemory.of([babble(20000, 5)], 5, 40, beam=30, longest=6)
    for reading in (slow.forwards, slow.backwards):
        reading.fast = None
    text_automaton.compiled.cache_clear()
    fast = TextMemory.of([babble(20000, 5)], 5, 40, beam=30, longest=6)
    assert fast.forwards.fast
    states, text = np.arange(len(fast.forwards)), babble(40, 5, seed=1)
    for one, other in zip(fast.forwards.rows(states), slow.forwards.rows(states), strict=True):
        assert np.allclose(one, other, rtol=1e-6)
    known = np.random.default_rng(0).random(40) < 0.5
    assert np.allclose(fast.posteriors(text, known), slow.posteriors(text, known), atol=1e-6)
    assert np.allclose(fast.log_probs(text), slow.log_probs(text))
    assert np.allclose(fast.one_by_one(text), slow.one_by_one(text), atol=1e-6)


def test_keys_are_strings_as_numbers():
    assert keys_of(np.array([1, 2, 3], np.uint8), 2, 4).tolist() == [0x12, 0x23]
