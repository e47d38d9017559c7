"""Every training objective against the sum over its paths, edge by edge, by enumeration at D = 4."""

import math
from collections import defaultdict
from fractions import Fraction

import pytest
import torch

from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Schema
from anyorder.subsets import (
    AnySize,
    CanonicalOrder,
    EachWithProbability,
    Even,
    Everything,
    FirstK,
    MixtureOfOrders,
    Observed,
    RandomOrder,
    Schedule,
    TwoStage,
)
from anyorder.training import (
    PathObjective,
    ace,
    ardm,
    edge_loss,
    mac,
    mac_all_edges,
    mac_exact,
    mdlm,
    mixture,
    resampled,
    reweighted,
    sfarm,
)
from anyorder.training.objectives import AllNextEdges
from exact import edge_mass, mask_distribution, mask_of, question_distribution, sets_of, subsets

D = 4
QUESTIONS = [
    Everything(),
    AnySize(),
    EachWithProbability(0.25),
    Observed(torch.tensor([[True, False, True, False], [False] * 4])),
]
PRESENT = [(0, 1, 2, 3), (0, 1, 3), (2,)]
STRIDED = CanonicalOrder.strided(D, 2)
MODES = [RandomOrder(), TwoStage(torch.tensor([True, False, False, True])), CanonicalOrder((3, 1, 0, 2))]


def path_nats(order, block=1):
    return lambda questions, present: edge_mass(questions, order, present, D, block)


def over_hidden(order, weight, tilt=lambda given: 1):
    """Masks of the paper's sampler, perhaps tilted, with a weight on all hidden variables."""

    def objective(questions, present):
        masks = {e: p * tilt(e) for e, p in mask_distribution(questions, order, present, D).items()}
        share = sum(mask_distribution(questions, order, present, D).values()) if tilt(frozenset({0})) == 1 else 1
        total = sum(masks.values()) or 1
        return {(e, j): share * p / total * weight(len(present) - len(e)) for e, p in masks.items() for j in set(present) - e}

    return objective


def averaged(*objectives):
    def objective(questions, present):
        out = defaultdict(Fraction)
        for inner in objectives:
            for edge, mass in inner(questions, present).items():
                out[edge] += mass / len(objectives)
        return out

    return objective


def tilt(given):
    return 1 + len(given)


LAWS = {
    "ardm": (ardm, path_nats(RandomOrder())),
    "mdlm": (mdlm, path_nats(RandomOrder())),
    "ace": (ace, over_hidden(RandomOrder(), lambda hidden: 1)),
    "mac": (mac, over_hidden(CanonicalOrder(), lambda hidden: Fraction(1, hidden))),
    "mac, strided": (lambda q: mac(q, STRIDED), over_hidden(STRIDED, lambda hidden: Fraction(1, hidden))),
    "mac, exact": (mac_exact, path_nats(CanonicalOrder())),
    "mac, exact, user's order": (lambda q: mac_exact(q, CanonicalOrder((3, 1, 0, 2))), path_nats(CanonicalOrder((3, 1, 0, 2)))),
    "mac, all edges": (mac_all_edges, path_nats(CanonicalOrder())),
    "mac, all edges, strided": (lambda q: mac_all_edges(q, STRIDED), path_nats(STRIDED)),
    "mac, resampled": (
        lambda q: resampled(mac(q), 100),
        over_hidden(CanonicalOrder(), lambda hidden: Fraction(1, hidden), tilt),
    ),
    "sfarm": (lambda q: sfarm(MODES, q), averaged(*map(path_nats, MODES))),
    "sfarm, two per step": (
        lambda q: sfarm(MODES, q, PairBlocks()),
        averaged(*(path_nats(order, block=2) for order in MODES)),
    ),
    "mixture of orders": (lambda q: PathObjective(q, MixtureOfOrders(MODES)), path_nats(MixtureOfOrders(MODES))),
    "half ardm, half mac": (
        lambda q: mixture(ardm(q), mac_exact(q)),
        averaged(path_nats(RandomOrder()), path_nats(CanonicalOrder())),
    ),
}


class PairBlocks(Schedule):  # any Blocks can be plugged in
    """Two targets per step."""

    def bounds(self, count):
        return (2 * torch.arange(D // 2 + 2)).minimum(count)


def check_edge_mass(sampler, present, expected, draws):
    """The mean weight of every edge lies within 5 standard errors of its expected mass."""
    edges = sampler.sample(present, seeded())
    assert not (edges.given & ~present).any()
    assert not ((edges.weight > 0) & (edges.given | ~present)).any()
    found = defaultdict(lambda: (torch.zeros(D), torch.zeros(D)))
    codes = (edges.given.long() * 2 ** torch.arange(D)).sum(-1)
    for code in codes.unique().tolist():
        weight = edges.weight[codes == code].double()
        given = frozenset(i for i in range(D) if code >> i & 1)
        found[given] = weight.sum(0) / draws, (weight**2).sum(0) / draws
    for given in subsets(range(D)):
        mean, square = found[given]
        for j in range(D):
            mass = float(expected.get((given, j), 0))
            error = math.sqrt(max(float(square[j] - mean[j] ** 2), 0) / draws)
            assert abs(float(mean[j]) - mass) <= 5 * error + 1e-9, (set(given), j, float(mean[j]), mass)


@pytest.mark.parametrize("present", PRESENT, ids=str)
@pytest.mark.parametrize("questions", QUESTIONS, ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("name", LAWS)
def test_expected_weights_are_the_sum_over_paths(name, questions, present):
    make, oracle = LAWS[name]
    draws = 2**13 if name == "mac, resampled" else 2**18
    check_edge_mass(make(questions), mask_of(present, D, draws), oracle(questions, present), draws)


@pytest.mark.parametrize("questions", [Everything(), AnySize(), FirstK(3)], ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("present", PRESENT, ids=str)
def test_reweighting_in_closed_form(questions, present):
    draws = 2**18
    oracle = over_hidden(CanonicalOrder(), lambda hidden: Fraction(1, hidden), tilt)
    check_edge_mass(reweighted(mac(questions)), mask_of(present, D, draws), oracle(questions, present), draws)


@pytest.mark.parametrize("name", ["ardm", "mac", "mac, all edges", "sfarm", "mdlm"])
def test_rows_with_different_gaps_share_a_batch(name):
    make, oracle = LAWS[name]
    patterns = [(0, 1, 2, 3), (0, 1, 3), (2,), (), (1, 2)]
    draws = 5 * 2**15
    present = torch.cat([mask_of(p, D) for p in patterns]).repeat(2**15, 1)
    questions = AnySize()
    check_edge_mass(make(questions), present, averaged(*[lambda q, _, p=p: oracle(q, p) for p in patterns])(questions, ()), draws)


def expected_loss(log_p, mass):
    return -sum(float(m) * log_p[given, j] for (given, j), m in mass.items())


def test_the_bounds_of_ardm_and_mdlm_are_equal_for_a_model_that_contradicts_itself():
    """The integral over t of MDLM's loss, by quadrature, against the mean over all orders, by enumeration."""
    model = build_model(Schema.repeat(Category(3), D), width=16, depth=1, seed=3)
    x = torch.tensor([[0.0, 2.0, 1.0, 2.0]])
    log_p = {}
    for given in subsets(range(D)):
        terms = model(x, mask_of(given, D)).log_prob(x)[0].tolist()
        log_p |= {(given, j): terms[j] for j in set(range(D)) - given}
    ardm_bound = expected_loss(log_p, edge_mass(Everything(), RandomOrder(), range(D), D))
    mdlm_bound = 0.0
    for t, w in zip(*gauss_legendre_on_unit_interval(8), strict=True):
        for given in subsets(range(D)):
            p = t ** (D - len(given)) * (1 - t) ** len(given)
            mdlm_bound -= w * p / t * sum(log_p[given, j] for j in set(range(D)) - given)
    assert mdlm_bound == pytest.approx(ardm_bound, abs=1e-9)
    rows = 2**18
    for objective in (ardm(), mdlm()):
        edges = objective.sample(torch.ones(rows, D, dtype=torch.bool), seeded())
        loss = edge_loss(model, x.expand(rows, D), edges).double()
        assert abs(loss.mean().item() - ardm_bound) < 5 * loss.std().item() / rows**0.5


def gauss_legendre_on_unit_interval(points):
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (nodes + 1) / 2, weights / 2


def test_all_next_edges_has_less_noise_than_the_one_next_edge():
    present = torch.ones(2**14, 6, dtype=torch.bool)
    f = torch.randn(2**6, 6, generator=seeded())
    losses = []
    for objective in (mac_exact(), mac_all_edges()):
        edges = objective.sample(present, seeded(1))
        code = (edges.given.long() * 2 ** torch.arange(6)).sum(-1)
        losses.append((edges.weight * f[code]).sum(-1).var().item())
    assert losses[1] < 0.75 * losses[0]


@pytest.mark.parametrize("variables", [1, 2, 250, 3072])
def test_the_weights_of_all_next_edges_stay_finite_and_keep_their_mean(variables):
    """Their sum over a row has the mean (n + 1) / 2 at any width: the mean length of a path."""
    rows = 4000 if variables > 1000 else 40_000
    edges = mac_all_edges().sample(torch.ones(rows, variables, dtype=torch.bool), seeded())
    total = edges.weight.double().sum(-1)
    assert edges.weight.isfinite().all()
    assert (edges.weight >= 0).all()
    assert abs(total.mean() - (variables + 1) / 2) <= 5 * total.std() / rows**0.5 + 1e-6


def test_the_posterior_weights_agree_with_enumeration_for_every_mask():
    """Given a mask, the weights are no longer random: mass of the edge / probability of the mask."""
    edges = mac_all_edges().sample(mask_of(range(D), D, 4096), seeded())
    mass, masks = edge_mass(AnySize(), CanonicalOrder(), range(D), D), mask_distribution(AnySize(), CanonicalOrder(), range(D), D)
    for given, weight in zip(sets_of(edges.given), edges.weight.tolist(), strict=True):
        for j in range(D):
            assert weight[j] == pytest.approx(float(mass.get((given, j), 0) / masks[given]), abs=1e-5)


def test_sfarm_tells_mode_and_step():
    edges = sfarm(MODES).sample(mask_of(range(D), D, 1000), seeded())
    mode, step = edges.context.T
    assert set(mode.tolist()) == {0, 1, 2}
    assert torch.equal(step, edges.given.sum(-1))
    only_prefixes = edges.given[mode == 2]
    assert set(sets_of(only_prefixes)) == {frozenset(), frozenset({3}), frozenset({1, 3}), frozenset({0, 1, 3})}


def test_sizes_are_spread_evenly_over_a_batch():
    sizes = ardm().sample(torch.ones(24, 12, dtype=torch.bool), seeded()).given.sum(-1)
    assert sizes.bincount(minlength=12).tolist() == [2] * 12


def test_nats_of_a_law_are_the_nats_of_its_questions():
    for objective in (mac(), resampled(mac()), reweighted(mac())):
        assert objective.nats() == mac_exact()
    assert mixture(ace(), mac()).nats().samplers == [ardm(), mac_exact()]


def test_a_fully_given_row_or_an_empty_one_weighs_nothing():
    for objective in (ardm(Observed(torch.ones(1, D, dtype=torch.bool))), mdlm(Observed(torch.ones(1, D, dtype=torch.bool)))):
        assert (objective.sample(mask_of(range(D), D, 16), seeded()).weight == 0).all()
    for make, _ in LAWS.values():
        assert (make(AnySize()).sample(mask_of((), D, 4), seeded()).weight == 0).all()


@pytest.mark.parametrize("questions", QUESTIONS, ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("name", LAWS)
def test_batches_of_no_row_and_of_one_row(name, questions):
    objective = LAWS[name][0](questions)
    for rows in (0, 1):
        edges = objective.sample(mask_of(range(D), D, 1)[:rows], seeded())
        assert edges.given.shape == edges.weight.shape == (rows, D)


def test_question_law_sums_to_one():
    for objective in QUESTIONS:
        for present in PRESENT:
            assert sum(question_distribution(objective, present).values()) == 1


def test_what_has_no_closed_form_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"no closed form for EachWithProbability.*Use resampled"):
        reweighted(mac(EachWithProbability()))
    with pytest.raises(InputError, match="give all of them a mode, or none"):
        mixture(ardm(), sfarm(MODES)).sample(mask_of(range(D), D, 64), seeded())


def test_laws_are_printable_and_comparable():
    assert repr(mac_all_edges()).startswith(
        "PathObjective(questions=AnySize(favour_large=False), order=CanonicalOrder(order=None)"
    )
    assert mac_all_edges().weigh == AllNextEdges()
    assert sfarm(MODES, schedule=Even(2)) == sfarm(MODES, schedule=Even(2))
