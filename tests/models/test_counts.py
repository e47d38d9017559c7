"""Counting: which rows match, how a model is corrected by them, against enumeration and plain counting."""

import itertools

import numpy as np
import pytest
import torch

from anyorder.errors import InputError
from anyorder.inference import fixed_orders, log_prob, mixture_log_prob, sample, seeded
from anyorder.modalities.tables.table_model import table_heads
from anyorder.models.any_order import build_model
from anyorder.models.blend import Blend
from anyorder.models.counts import MANY, Counted, Recount, contradiction, degrees, estimate_worth, posterior
from anyorder.models.pair_counts import PairCounted
from anyorder.models.row_index import FEWEST_RECURRING, NOBODY, Recurring, RowIndex
from anyorder.schema import Category, Real, Recorded, Schema
from anyorder.subsets import MixtureOfOrders, Question
from anyorder.training import load_model, save_model

CODES = Schema.of(a=Category(3), b=Category(2), c=Category(4))
MIXED = Schema.of(a=Category(3), x=Recorded(0.25), b=Category(2), y=Recorded(0.1, (0.5,)))


def rows_of(schema, count, seed=0, gaps=0.0):
    """Rows in which every variable has to do with the one before."""
    rng = seeded(seed)
    hidden = torch.randn(count, generator=rng)
    columns = []
    for variable in schema:
        hidden = 0.8 * hidden + 0.6 * torch.randn(count, generator=rng)
        if isinstance(variable.domain, Category):
            levels = variable.domain.levels
            columns.append(((hidden + 2) / 4 * levels).floor().clamp(0, levels - 1))
        else:
            columns.append((hidden / variable.domain.spacing).round() * variable.domain.spacing)
    x = torch.stack(columns, dim=-1)
    present = torch.rand(x.shape, generator=rng) >= gaps
    return torch.where(present, x, 0.0), present


def counted_of(schema, count=400, seed=0, gaps=0.1, worth=None):
    x, present = rows_of(schema, count, seed, gaps)
    model = Counted(Blend([build_model(schema, table_heads(schema), width=8, depth=1, seed=seed)]), x, present).eval()
    if worth is not None:
        model.worth.fill_(worth)
    return model


def evidence_of(schema, size, seed=0):
    x, _ = rows_of(schema, size, seed + 100)
    return x, torch.rand(x.shape, generator=seeded(seed)) < 0.4


def plain_matches(model, x, given, exactly=False):
    """The slow twin: row by row, column by column."""
    index, out = model.index, []
    for k, row in enumerate(model.rows):
        same = True
        for i in given.nonzero().squeeze(-1).tolist():
            edges = index.edges[i]
            mine, other = float(x[i]), float(row[i])
            near = abs(mine - other) < index.spacing[i] / 2
            if edges is not None and not exactly:
                near = int((edges < mine).sum()) == int((edges < other).sum())
            same &= bool(model.held[k, i]) and near
        if same:
            out.append(k)
    return out


@pytest.mark.parametrize("schema", [CODES, MIXED], ids=["codes", "mixed"])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_rows_match_if_all_that_is_known_is_in_the_same_bins_and_gaps_match_nothing(schema, gaps):
    model = counted_of(schema, gaps=gaps)
    x, given = evidence_of(schema, 30)
    index = model.index
    codes = index.codes_of(x, given)
    enough, sets = index.matching(codes)
    codes[~given.numpy()] = NOBODY
    assert not index.matching(codes)[0][(~given).any(-1).numpy()].any()  # a code that nobody has
    for k in range(len(x)):
        wanted = plain_matches(model, x[k], given[k])
        assert enough[k] == (len(wanted) >= FEWEST_RECURRING)
        if enough[k]:
            mine = sets[enough[:k].sum()]
            assert index.members(mine, 10**6).tolist() == wanted
            for i in range(len(schema)):
                held = index.codes[wanted, i]
                assert (index.count(mine[None], i)[0] == np.bincount(held[held >= 0], minlength=index.bins[i])).all()
        assert model.matching(x[k : k + 1], given[k : k + 1], {}, exactly=False).tolist() == wanted
        exact = plain_matches(model, x[k], given[k], exactly=True)
        assert model.matching(x[k : k + 1], given[k : k + 1], {}, exactly=True).tolist() == exact


def test_bins_are_about_as_full_as_each_other_and_a_frequent_value_has_its_own():
    values = torch.cat([torch.arange(160) * 0.25, torch.full((100,), 7.5)])
    schema = Schema.of(x=Recorded(0.25))
    index = RowIndex(schema, values[:, None], torch.ones(260, 1, dtype=torch.bool))
    counts = np.bincount(index.codes[:, 0])
    alone = index.codes_of(torch.tensor([[7.5]]), torch.tensor([[True]]))[0, 0]
    assert counts[alone] == 101
    assert (np.delete(counts, alone) <= 17).all()
    assert len(counts) <= 20


@pytest.mark.parametrize("worth", [5.0, 60.0])
def test_given_categories_the_answer_is_a_dirichlet_around_the_models_word(worth):
    """(n_b + s q_b) / (n + s), or with a smaller s where rows contradict the model; by plain counting."""
    model = counted_of(CODES, worth=worth)
    for a, b in itertools.product(range(3), range(2)):
        x, given = torch.tensor([[a, b, 0.0]]), torch.tensor([[True, True, False]])
        rows = [k for k in plain_matches(model, x[0], given[0]) if model.held[k, 2]]
        own = model.model(x, given).distribution(2).pmf()[0].detach()
        mine = model(x, given).distribution(2).pmf()[0].detach()
        if len(rows) < FEWEST_RECURRING:
            torch.testing.assert_close(mine, own)
            continue
        n = torch.bincount(model.rows[rows, 2].long(), minlength=4).float()
        torch.testing.assert_close(mine, posterior(n[None], own[None], torch.tensor(worth))[0])
        share = n / n.sum()
        assert ((mine >= torch.minimum(own, share) - 1e-6) & (mine <= torch.maximum(own, share) + 1e-6)).all()
        agreeing = (n.sum() * own).round()
        assert torch.allclose(
            posterior(agreeing[None], own[None], torch.tensor(worth)), (agreeing + worth * own) / (agreeing.sum() + worth)
        )


@pytest.mark.parametrize("schema", [CODES, MIXED], ids=["codes", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_lies_between_the_blend_and_the_count_and_tends_to_the_count(schema, seed):
    """A distribution over random tables: with one given category, the more rows the nearer to their share."""
    x, given = torch.zeros(1, len(schema)), torch.arange(len(schema))[None] == 0
    target = 2
    apart = []
    for count in (100, 1000, 10_000):
        model = counted_of(schema, count, seed, worth=50.0)
        rows = [k for k in plain_matches(model, x[0], given[0]) if model.held[k, target]]
        levels = schema.variables[target].domain.levels
        share = torch.bincount(model.rows[rows, target].long(), minlength=levels) / len(rows)
        own, mine = (m(x, given).distribution(target).pmf()[0].detach() for m in (model.model, model))
        assert ((mine - own) * (share - own) >= -1e-6).all()
        assert ((mine - own).abs() <= (share - own).abs() + 1e-6).all()
        apart.append(float((mine - share).abs().sum() / (own - share).abs().sum()))
        assert (mine - own).abs().max() > 1e-4  # switched off, the correction would not be there
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.1


@pytest.mark.slow
def test_the_count_is_consistent_as_rows_grow():
    """Whatever the model says, with many rows answers are those of the joint that rows come from."""
    joint = torch.rand(3, 2, 4, generator=seeded(5)) + 0.1
    joint /= joint.sum()
    drawn = torch.multinomial(joint.flatten(), 60_000, replacement=True, generator=seeded(6))
    x = torch.stack([drawn // 8, drawn // 4 % 2, drawn % 4], dim=-1).float()
    model = Counted(Blend([build_model(CODES, table_heads(CODES), width=8, depth=1)]), x, torch.ones_like(x, dtype=torch.bool))
    for known in itertools.chain.from_iterable(itertools.combinations(range(3), r) for r in range(3)):
        for state in itertools.product(range(3), range(2), range(4)):
            given = torch.zeros(1, 3, dtype=torch.bool)
            given[0, list(known)] = True
            here = model(torch.tensor([state]).float(), given)
            for target in set(range(3)) - set(known):
                rest = tuple(i for i in range(3) if i != target and i not in known)
                table = joint.sum(rest, keepdim=True) if rest else joint
                place = tuple(state[i] if i in known else slice(None) if i == target else 0 for i in range(3))
                wanted = table[place] / table[place].sum()
                assert (here.distribution(target).pmf()[0] - wanted).abs().max() < 0.03


@pytest.mark.parametrize("schema", [CODES, MIXED], ids=["codes", "mixed"])
def test_answers_are_normalised_whatever_is_given(schema):
    model = counted_of(schema, 600)
    x, given = evidence_of(schema, 40, seed=3)
    conditionals = model(x, given)
    for i, variable in enumerate(schema):
        distribution = conditionals.distribution(i)
        if isinstance(variable.domain, Category):
            torch.testing.assert_close(distribution.pmf().sum(-1), torch.ones(40))
        else:
            points = torch.arange(-2000, 2001) * variable.domain.spacing
            mass = (
                distribution.map_tensors(lambda t: t.unsqueeze(1).expand(t.shape[0], 4001, *t.shape[1:]))
                .log_prob(points.expand(40, -1))
                .exp()
            )
            torch.testing.assert_close(mass.sum(-1), torch.ones(40), atol=2e-4, rtol=0)


def test_answers_are_normalised_where_values_recur_and_bins_are_as_full_as_their_laws():
    """Counts around recurring values: the short way to the bins' probabilities is the long way, and all masses sum to 1."""
    model = counted_of(MIXED, 600)
    model.model.share += 0.4
    model.model.remember(Recurring(MIXED, model.rows, model.held.bool()))
    x, given = evidence_of(MIXED, 12, seed=5)
    for i in model.index.numbers:
        base, distribution = (m(x, given).distribution(i).map_tensors(torch.Tensor.detach) for m in (model.model, model))
        edges = model.index.edges[i].expand(12, -1)
        torch.testing.assert_close(base.cdfs_between_bins(edges), base.cdfs(edges), atol=1e-5, rtol=0)
        points = torch.arange(-2000, 2001) * MIXED.variables[i].domain.spacing
        mass = (
            distribution.map_tensors(lambda t: t.unsqueeze(1).expand(t.shape[0], 4001, *t.shape[1:]))
            .log_prob(points.expand(12, -1))
            .exp()
        )
        torch.testing.assert_close(mass.sum(-1), torch.ones(12), atol=5e-4, rtol=0)
        torch.testing.assert_close(distribution.mean(), (mass * points).sum(-1), atol=0.2, rtol=0)


@pytest.fixture
def one_look(monkeypatch):
    """Nothing is counted a second time in narrow bins."""
    monkeypatch.setattr(RowIndex, "narrow_codes_of", lambda self, x, codes: np.full_like(codes, NOBODY))


def test_where_numbers_are_evidence_the_model_is_corrected_by_what_it_expected_of_matching_rows(one_look):
    """The slow twin: q times (what was seen, with the prior) over (what was expected of the witnesses), made to sum to 1."""
    model = counted_of(MIXED, 300, gaps=0.0, worth=40.0)
    x, given = rows_of(MIXED, 12, seed=9)[0], torch.tensor([[False, True, False, False]]).expand(12, -1)
    said = model(x, given).distribution(2).pmf()
    own = model.model(x, given).distribution(2).pmf()
    for k in range(12):
        rows = plain_matches(model, x[k], given[k])
        assert len(rows) >= FEWEST_RECURRING
        witnesses = rows if len(rows) <= 32 else [rows[round(p)] for p in np.linspace(0, len(rows) - 1, 32)]
        theirs = model.places_of(torch.tensor(witnesses))
        expected = model.model(model.rows[witnesses], given[:1].expand(len(witnesses), -1), theirs).distribution(2).pmf().mean(0)
        n = torch.bincount(model.rows[rows, 2].long(), minlength=2).float()
        wanted = own[k] * posterior(n[None], expected[None], torch.tensor(40.0))[0] / expected
        torch.testing.assert_close(said[k], wanted / wanted.sum(), atol=1e-5, rtol=1e-4)


def test_given_a_number_rows_in_its_narrow_bin_are_counted_once_more(monkeypatch):
    """The slow twin: the answer of the first look is the prior of the second, at fewer and nearer rows."""
    model, place = counted_of(MIXED, 2000, gaps=0.0, worth=40.0), 1
    edges = model.index.narrow[place]
    assert len(edges) > len(model.index.edges[place])
    x, given = rows_of(MIXED, 12, seed=9)[0], (torch.arange(4) == place).expand(12, -1)
    said = model(x, given).distribution(2).pmf().double()
    monkeypatch.setattr(RowIndex, "narrow_codes_of", lambda self, x, codes: np.full_like(codes, NOBODY))
    first = model(x, given).distribution(2).pmf().double()
    for k in range(12):
        near = [row for row in model.rows if int((edges < row[place]).sum()) == int((edges < x[k, place]).sum())]
        n = torch.bincount(torch.stack(near)[:, 2].long(), minlength=2).double()
        wanted = posterior(n[None], first[k][None], torch.tensor(40.0))[0] if len(near) >= FEWEST_RECURRING else first[k]
        torch.testing.assert_close(said[k], wanted, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_where_few_rows_match_those_around_the_number_that_tells_most_are_counted_first():
    """The slow twin: of two known numbers the one whose neighbours contradict the model most."""
    model = counted_of(MIXED, 1500, gaps=0.1, worth=40.0)
    index, (x, _), given = model.index, rows_of(MIXED, 25, seed=9), torch.tensor([[False, True, False, True]])
    far_looks = 0
    for k in range(25):
        mine, row = x[k : k + 1], np.zeros(1, dtype=np.int64)
        recount, looks = Recount(model, mine, given, None), {}
        for number in (1, 3):
            cuts = index.narrow[number]
            near = (cuts < model.rows[:, number, None]).sum(-1) == (cuts < mine[0, number]).sum()
            rows = (near & model.held[:, [1, 2, 3]].bool().all(-1)).nonzero()[:, 0].tolist()
            if len(rows) < FEWEST_RECURRING:
                continue
            witnesses = rows if len(rows) <= 32 else [rows[round(p)] for p in np.linspace(0, len(rows) - 1, 32)]
            theirs = model.places_of(torch.tensor(witnesses))
            said = (
                model.model(model.rows[witnesses], given.expand(len(witnesses), -1), theirs)
                .distribution(2)
                .pmf()
                .double()
                .mean(0)
            )
            n = torch.bincount(model.rows[rows, 2].long(), minlength=2).double()
            off = contradiction(n[None], said[None]) - degrees(n.sum() * said[None])
            looks[number] = float(off), n, said
        wide = recount.counts(row, 2)
        told = [look for look in looks.values() if look[0] > 0]
        n, said = max(told)[1:] if told and wide.seen.sum() < MANY else (torch.zeros(2), torch.full((2,), torch.nan))
        found = recount._far(row, 2, wide)
        torch.testing.assert_close(torch.from_numpy(found.seen[0]).double(), n.double())
        torch.testing.assert_close(
            torch.from_numpy(found.expected[0]).double(), said.double(), equal_nan=True, atol=1e-5, rtol=1e-4
        )
        far_looks += bool(n.sum() > 0)
    assert far_looks > 10


@pytest.mark.parametrize("look", ["alike", "near", "around"])
def test_of_every_look_the_row_itself_is_left_out(look):
    model = counted_of(MIXED, 600, gaps=0.2)
    index, rows = model.index, torch.arange(0, 600, 5)
    x, given = model.rows[rows], torch.tensor([[True, True, False, False]]) & model.held[rows].bool()
    place, left_out = np.arange(len(rows)), 0
    with_own, without = (Recount(model, x, given, own) for own in (None, rows))
    evidence = [one.around(1) if look == "around" else getattr(one, look) for one in (with_own, without)]
    seen = [one._counts(e, place, 2, one._only_counts).seen for one, e in zip((with_own, without), evidence, strict=True)]
    for k, row in enumerate(rows.tolist()):
        enough = look == "alike" or (bool(given[k, 1]) and (look == "near" or bool(given[k, 0])))
        there = enough and seen[0][k].sum() > 0 and index.codes[row, 2] >= 0
        wanted = np.eye(2)[index.codes[row, 2]] if there else np.zeros(2)
        assert (seen[0][k] - seen[1][k] == wanted).all()
        left_out += there
    assert left_out > 10


def test_a_training_row_is_no_witness_of_itself():
    x, present = rows_of(CODES, 60, gaps=0.0)
    model = counted_of(CODES, 60, gaps=0.0, worth=20.0)
    for row in range(0, 60, 7):
        rest = torch.arange(60) != row
        without = Counted(model.model, x[rest], present[rest])
        without.worth.fill_(20.0)
        for given in ([True, False, False], [False, True, False], [False, False, False]):
            known = torch.tensor([given])
            mine = model(x[row : row + 1], known, torch.tensor([[row]])).distribution(2).pmf()
            torch.testing.assert_close(mine, without(x[row : row + 1], known).distribution(2).pmf())
        assert not torch.equal(mine, model(x[row : row + 1], known).distribution(2).pmf())


def test_values_that_recur_leave_out_the_row_itself():
    x, present = rows_of(MIXED, 80, gaps=0.0)
    seen = Recurring(MIXED, x, present)
    share = torch.full((4, 64), 0.6)
    seen.use(share)
    distribution = (
        build_model(MIXED, table_heads(MIXED), width=8, depth=1)(x[:1], present[:1] & False)
        .distribution(1)
        .map_tensors(torch.Tensor.detach)
    )
    less = []
    for row in range(80):
        mine, all_rows = (
            seen.distribution(distribution, torch.tensor([1]), own).log_prob(x[row, 1:2]) for own in (torch.tensor([row]), None)
        )
        less.append(float(all_rows - mine))
    assert min(less) > -1e-6  # a bin may hold no other value
    assert sum(amount > 0.01 for amount in less) > 15


def test_rows_that_contradict_the_model_count_for_more():
    expected = torch.tensor([[0.5, 0.5]])
    worth = torch.tensor(1000.0)
    as_expected = posterior(torch.tensor([[52.0, 48.0]]), expected, worth)
    assert as_expected[0, 0] == pytest.approx((52 + 500) / 1100)
    surprise = posterior(torch.tensor([[100.0, 0.0]]), expected, worth)
    assert surprise[0, 0] > 0.98
    assert float(contradiction(torch.tensor([[50.0, 50.0]]), expected)) == pytest.approx(0.0, abs=1e-4)
    assert float(degrees(torch.tensor([[5.0, 5.0, 0.5]]))) == 1.5


def test_a_model_that_is_right_is_worth_more_rows_than_one_that_is_wrong():
    x, present = rows_of(CODES, 3000, gaps=0.0)
    wrong = Counted(Blend([build_model(CODES, table_heads(CODES), width=8, depth=1, seed=3)]), x, present)
    estimate_worth(wrong, seeded(0))
    drawn = sample(wrong.model, torch.zeros(3000, 3), Question.joint(present), seeded(1))
    right = Counted(wrong.model, drawn, present)
    estimate_worth(right, seeded(0))
    assert (right.worth > 3 * wrong.worth).all()


def test_samples_and_scores_are_of_one_law():
    """All states enumerated: rows drawn along the mixture of orders are as frequent as the mixture's score says."""
    model = counted_of(CODES, 200)
    states = torch.tensor(list(itertools.product(range(3), range(2), range(4)))).float()
    everything, orders = torch.ones_like(states, dtype=torch.bool), fixed_orders(3, 4)
    p = mixture_log_prob(model, states, Question.joint(everything), orders).exp().double()
    assert p.sum().item() == pytest.approx(1, abs=1e-5)
    count = 40_000
    nothing = torch.zeros(count, 3)
    drawn = sample(model, nothing, Question.joint(nothing == 0), seeded(2), order=MixtureOfOrders(orders))
    seen = torch.bincount((drawn @ torch.tensor([8.0, 4.0, 1.0])).long(), minlength=24)
    chi_square = ((seen - count * p) ** 2 / (count * p)).sum()
    assert chi_square < 23 + 4 * (2 * 23) ** 0.5


def test_scores_are_the_same_one_by_one_and_all_at_once():
    model = counted_of(MIXED, 500)
    x, present = rows_of(MIXED, 20, seed=4)
    question = Question.joint(present)
    together = log_prob(model, x, question)
    alone = torch.cat([log_prob(model, x[k : k + 1], question[torch.tensor([k])]) for k in range(20)])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-5)


def test_what_is_too_large_to_keep_is_matched_again(monkeypatch):
    model = counted_of(MIXED, 500)
    x, given = evidence_of(MIXED, 25, seed=8)
    kept = model(x, given).log_prob(x)
    monkeypatch.setattr("anyorder.models.counts.MATCH_WORDS_AT_ONCE", 3 * model.index.words)
    model.expected.clear()
    torch.testing.assert_close(model(x, given).log_prob(x), kept)


@pytest.mark.parametrize("schema", [CODES, MIXED], ids=["codes", "mixed"])
def test_counts_of_pairs_say_the_same_where_nothing_or_one_value_is_known(schema, tmp_path, one_look):
    counted = counted_of(schema, 500, worth=30.0)
    x, _ = rows_of(schema, 20, seed=7)
    known = [torch.zeros_like(x, dtype=torch.bool), *(torch.arange(len(schema)).expand_as(x) == i for i in range(len(schema)))]
    wanted = [[counted(x, given).log_prob(x) for given in known], counted.model(x, known[1] | known[2]).log_prob(x)]
    pairs = PairCounted.of(counted)
    for model in (pairs, saved_and_loaded(pairs, tmp_path)):
        for given, answer in zip(known, wanted[0], strict=True):
            torch.testing.assert_close(model(x, given).log_prob(x)[~given], answer[~given], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(model(x, known[1] | known[2]).log_prob(x), wanted[1])  # given two, the blend


def test_counts_of_few_rows_are_not_among_the_pairs():
    counted = counted_of(CODES, 60)
    pairs = PairCounted.of(counted)
    first = np.cumsum([0, *pairs.index.bins])
    for start, stop in itertools.pairwise(first):
        total = pairs.seen[:, start:stop].sum(-1)
        assert ((total == 0) | (total >= FEWEST_RECURRING)).all()
    assert not any(tensor.shape[0] == 60 for tensor in pairs.state_dict().values())


def saved_and_loaded(model, folder):
    save_model(model, folder / "m.ao")
    return load_model(folder / "m.ao")


def test_a_file_keeps_the_rows_and_gives_the_same_answers(tmp_path):
    model = counted_of(MIXED, 200)
    model.model.share += 0.3
    model.model.remember(Recurring(MIXED, model.rows, model.held.bool()))
    model.worth[1] = 77.0
    save_model(model, tmp_path / "m.ao")
    loaded = load_model(tmp_path / "m.ao")
    x, given = evidence_of(MIXED, 10)
    torch.testing.assert_close(loaded(x, given).log_prob(x), model(x, given).log_prob(x))
    assert torch.equal(loaded.held, model.held)


def test_densities_cannot_be_counted():
    schema = Schema.of(x=Real())
    with pytest.raises(InputError, match="recorded on a lattice"):
        Counted(Blend([build_model(schema)]), torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.bool))
