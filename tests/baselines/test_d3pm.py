"""D3PM against enumeration: every trajectory of tiny chains, multinomial diffusion's formulas, and the any-order bound."""

import itertools
import math

import pytest
import torch

from anyorder.baselines import D3PM, Absorbing, BaselineRecipe, Gauss, Nearest, Uniform, fit_baseline
from anyorder.baselines.d3pm import MOST_TABLE_CELLS, code_tables
from anyorder.distributions import CategoricalDistribution, LogisticMixture
from anyorder.errors import InputError
from anyorder.inference import elbo, seeded
from anyorder.models.conditionals import Conditionals, NetworkDistributions
from anyorder.networks import UNetSize
from anyorder.schema import Category, Ordinal, Real, Schema
from anyorder.subsets import CanonicalOrder, Planned, Question
from exact import JointTable, all_states

EMBEDDING = torch.tensor([[0.0, 0.0], [1.0, 0.2], [1.1, -0.3], [2.0, 1.0]])
NOISES = [Uniform(3), Absorbing(3), Gauss(3, 0.001, 0.004), Nearest(3, EMBEDDING[:3], 1)]
NAMES = ["uniform", "absorbing", "gauss", "nearest"]


def matrices(noise, levels):
    """Q_1 .. Q_T as they stand in the paper, states by states, with nothing but loops."""
    T, eye = noise.steps, torch.eye(levels, dtype=torch.float64)
    match noise:
        case Absorbing():
            out = []
            for t in range(1, T + 1):
                beta, q = 1 / (T - t + 1), torch.eye(levels + 1, dtype=torch.float64)
                q[:levels] *= 1 - beta
                q[:levels, levels] = beta
                out.append(q)
            return out
        case Uniform():
            share = [math.cos((t / T + 0.008) / 1.008 * math.pi / 2) ** 2 for t in range(T + 1)]
            betas = [min(0.999, 1 - b / a) for a, b in itertools.pairwise(share)]
            return [(1 - beta) * eye + beta / levels for beta in betas]
        case Gauss():
            out = []
            for t in range(T):
                beta = (noise.first + (noise.last - noise.first) * t / (T - 1)) * 1000 / T
                norm = sum(math.exp(-4 * n**2 / ((levels - 1) ** 2 * beta)) for n in range(-levels + 1, levels))
                q = torch.zeros(levels, levels, dtype=torch.float64)
                for i, j in itertools.product(range(levels), repeat=2):
                    q[i, j] = math.exp(-4 * (i - j) ** 2 / ((levels - 1) ** 2 * beta)) / norm if i != j else 0.0
                for i in range(levels):
                    q[i, i] = 1 - q[i].sum()
                out.append(q)
            return out
        case Nearest():
            kernel = noise.kernel(levels, range(T + 1))
            return [q.double() for q in kernel.alone]  # its own laws are tested below
    raise TypeError(noise)


class Guesser:
    """Made-up guesses of x_0 that depend on the whole noised row and on the time."""

    def __init__(self, sizes, seed=0):
        self.sizes, self.seed = sizes, seed
        self.schema = Schema.of(**{f"v{i}": Category(k) for i, k in enumerate(sizes)})

    def __call__(self, x, given, context=None):
        rows = torch.where(given, x.double(), -1.0)
        time = torch.zeros(len(x), 1) if context is None else context.double()
        told = torch.cat([rows, time], dim=-1)
        parts = []
        for i, size in enumerate(self.sizes):
            weight = torch.randn(told.shape[1], size, generator=seeded(self.seed + i), dtype=torch.float64)
            parts.append(NetworkDistributions(torch.tensor([i]), CategoricalDistribution, (told @ weight).sin()[:, None] * 2))
        return Conditionals(parts)


def guess_tables(model, state, t, sizes):
    """p~(x_0i | x_t) of one noised row, a list for each variable."""
    row, levels = torch.tensor([state]), torch.tensor(sizes)
    seen = row < levels
    context = None if model.noise.absorbing else torch.tensor([[t]])
    found = model.model(torch.where(seen, row, 0).double(), seen, context)
    return [part.at(...).pmf()[0, 0].double() for part in found.parts]


def reverse_step(model, step, so_far, state, t, sizes):
    """p(x_{t-1} | x_t) of one row: a table for each variable, from the paper's formula."""
    tables = []
    for i, guess in enumerate(guess_tables(model, state, t, sizes)):
        states = len(step[i])
        p = [
            step[i][before, state[i]] * sum(guess[k] * so_far[i][k, before] for k in range(sizes[i])) for before in range(states)
        ]
        tables.append([float(one / sum(p)) for one in p])
    return tables


def exact(model, x, sizes):
    """log p(x) of the reverse chain, and E_q[log p(x_0..T) - log q(x_1..T | x_0)], by all trajectories."""
    T = model.noise.steps
    chains = [matrices(model.noise, k) for k in sizes]
    so_far = [[torch.eye(len(chain[0]), dtype=torch.float64)] for chain in chains]
    for chain, products in zip(chains, so_far, strict=True):
        for q in chain:
            products.append(products[-1] @ q)
    rows = list(itertools.product(*[range(len(chain[0])) for chain in chains]))
    back = {
        (t, row): reverse_step(model, [c[t - 1] for c in chains], [s[t - 1] for s in so_far], row, t, sizes)
        for t in range(1, T + 1)
        for row in rows
        if all(bool(s[t][: sizes[i], row[i]].sum() > 0) for i, s in enumerate(so_far))
    }
    prior = [model.kernels[str(k)].prior.double() for k in sizes]
    total, bound = 0.0, 0.0
    for path in itertools.product(rows, repeat=T):
        log_p = sum(math.log(p) if (p := float(prior[i][path[-1][i]])) else -math.inf for i in range(len(sizes)))
        log_q, before = 0.0, x
        for t, now in enumerate(path, 1):
            forward = math.prod(float(chains[i][t - 1][before[i], now[i]]) for i in range(len(sizes)))
            log_q += math.log(forward) if forward > 0 else -math.inf
            if log_q > -math.inf or (t, now) in back:
                tables = back.get((t, now))
                p = math.prod(tables[i][before[i]] for i in range(len(sizes))) if tables else 0.0
                log_p += math.log(p) if p > 0 else -math.inf
            else:
                log_p = -math.inf
            before = now
        total += math.exp(log_p)
        bound += math.exp(log_q) * (log_p - log_q) if log_q > -math.inf else 0.0
    return math.log(total), bound


def summed_bound(model, x, sizes):
    """The package's terms, with the noised rows enumerated instead of drawn."""
    rows = torch.tensor([x], dtype=torch.float64)
    everything = torch.ones_like(rows, dtype=torch.bool)
    total = -model.prior_cost(rows, everything).item()
    for t in range(1, model.steps + 1):
        step, tables = torch.tensor([t]), []
        for i, k in enumerate(sizes):
            kernel = model.kernels[str(k)]
            known = torch.full((1, 1, len(kernel.prior)), -1e4, dtype=torch.float64)
            known[0, 0, x[i]] = 0.0
            tables.append(kernel.log_ahead(known, step)[0, 0].exp())
        states = torch.tensor(list(itertools.product(*[range(len(table)) for table in tables])))
        p = torch.stack([table[states[:, i]] for i, table in enumerate(tables)]).prod(0)
        states, p = states[p > 0], p[p > 0]
        kl = model.terms(rows.expand(len(states), -1), states, step.expand(len(states)))[0].sum(-1)
        total -= float((p * kl).sum())
    return total


@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
def test_the_bound_is_that_of_all_trajectories_and_a_bound(noise):
    sizes = (3, 2) if not isinstance(noise, Nearest) else (3, 3)
    if isinstance(noise, Absorbing):
        sizes = (2, 2)  # 9 ** 3 trajectories
    model = D3PM(Guesser(sizes), noise)
    for x in [(1, 0), (0, 1)]:
        log_p, bound = exact(model, x, sizes)
        assert bound < log_p - 1e-3
        assert summed_bound(model, x, sizes) == pytest.approx(bound, abs=2e-6)


@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
def test_drawn_noise_gives_the_same_bound_on_average(noise):
    sizes = (3, 3)
    model, x = D3PM(Guesser(sizes), noise), (2, 1)
    rows = torch.tensor([x]).repeat(3000, 1).double()
    wanted = summed_bound(model, x, sizes)
    found = model.elbo(rows, seeded())
    assert found.mean().item() == pytest.approx(wanted, abs=4 * found.std().item() / len(rows) ** 0.5 + 1e-6)
    one_step = model.bound(rows, torch.ones_like(rows, dtype=torch.bool), seeded())
    assert one_step.mean().item() == pytest.approx(wanted, abs=4 * one_step.std().item() / len(rows) ** 0.5 + 1e-6)


@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
@pytest.mark.parametrize("fewer", [3, 2, 1])
def test_what_is_drawn_has_the_probability_of_the_chain(noise, fewer):
    """Fewer steps are a chain of their own, of which the same holds: draws as often as the reverse chain says."""
    sizes = (3, 3)
    model = D3PM(Guesser(sizes), noise).fewer(fewer)
    drawn = model.sample(20_000, seeded()).long()
    found = torch.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=9) / 20_000
    assert (found - reverse_marginal(model, sizes)).abs().max() < 0.015


def reverse_marginal(model, sizes):
    """p(x_0) by pushing the distribution of whole rows through the reverse chain."""
    prior = [model.kernels[str(k)].prior.double() for k in sizes]
    p = {row: float(prior[0][row[0]] * prior[1][row[1]]) for row in itertools.product(*[range(len(one)) for one in prior])}
    for t in range(model.steps, 0, -1):
        after = dict.fromkeys(p, 0.0)
        for row, mass in p.items():
            if mass > 0:
                state, step = torch.tensor([row]), torch.tensor([t])
                tables = {}
                for guess in model.guesses(state, step):
                    kernel = model.kernels[str(guess.levels)]
                    log_p = kernel.log_jump(state[:, guess.variables], step) + kernel.log_ahead(guess.log_p, step - 1)
                    tables |= {int(i): log_p[0, n].double().softmax(-1) for n, i in enumerate(guess.variables)}
                for before in p:
                    after[before] += mass * float(tables[0][before[0]] * tables[1][before[1]])
        p = after
    return torch.tensor([p[i, j] for i in range(3) for j in range(3)])


def test_uniform_noise_is_multinomial_diffusion():
    """The formulas of https://arxiv.org/abs/2102.05379: x_0 mixed with 1/K, times x_t mixed with 1/K."""
    model = D3PM(Guesser((4, 4)), Uniform(6))
    kept, state, p0 = model.kernels["4"].kept, torch.tensor([[2, 0]]), torch.rand(1, 2, 4, generator=seeded()).double()
    p0 = p0 / p0.sum(-1, keepdim=True)
    for t in range(1, 7):
        alpha, before = kept[t] / kept[t - 1], kept[t - 1]
        wanted = (alpha * torch.nn.functional.one_hot(state, 4) + (1 - alpha) / 4) * (before * p0 + (1 - before) / 4)
        kernel, step = model.kernels["4"], torch.tensor([t])
        found = (kernel.log_jump(state, step) + kernel.log_ahead(p0.log(), step - 1)).softmax(-1)
        torch.testing.assert_close(found, wanted / wanted.sum(-1, keepdim=True))


def any_order_bound(joint, x, given, steps):
    """Our bound with blocks of random size: every hidden variable is revealed at one of T times, whichever it likes."""
    hidden = [i for i in range(x.shape[1]) if not given[0, i]]
    total = torch.zeros(len(x), dtype=torch.float64)
    for times in itertools.product(range(steps), repeat=len(hidden)):
        order = [i for _, i in sorted(zip(times, hidden, strict=True))]
        places = [0, *itertools.accumulate(times.count(t) for t in range(steps) if t in times)]
        question = Question(given, ~given)
        whole = CanonicalOrder((*[i for i in range(x.shape[1]) if i not in hidden], *order))
        total += elbo(joint, x, question, [whole], schedule=Planned(tuple(places))) / steps ** len(hidden)
    return total


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_absorbing_noise_is_any_order_with_blocks_of_random_size(steps):
    joint = JointTable.random(2, 3, 2)
    model, x = D3PM(joint, Absorbing(steps)), torch.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    wanted = any_order_bound(joint, x, torch.zeros_like(x, dtype=torch.bool), steps)
    found = [summed_bound(model, tuple(row), (2, 3, 2)) for row in x.long().tolist()]
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), wanted, atol=1e-6, rtol=0)


def test_with_many_steps_absorbing_noise_has_our_bound():
    joint = JointTable.random(2, 3, 2)
    x = torch.tensor([[1.0, 2.0, 0.0]], dtype=torch.float64)
    question = Question.joint(torch.ones_like(x, dtype=torch.bool))
    orders = [CanonicalOrder(order) for order in itertools.permutations(range(3))]
    ours = elbo(joint, x, question, orders).item()
    gaps = [ours - summed_bound(D3PM(joint, Absorbing(steps)), (1, 2, 0), (2, 3, 2)) for steps in (40, 160)]
    assert 0 < abs(gaps[1]) < 5e-3
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.12)  # what is revealed together by chance goes with 1 / T


def test_absorbing_noise_answers_conditional_questions_and_no_other_does():
    joint = JointTable.random(2, 3, 2)
    x = torch.tensor([[1.0, 2.0, 0.0]], dtype=torch.float64).repeat(4000, 1)
    given = torch.tensor([[False, True, False]]).expand_as(x)
    question = Question(given, ~given)
    found = D3PM(joint, Absorbing(3)).conditional_elbo(x, question, seeded())
    wanted = any_order_bound(joint, x[:1], given[:1], 3).item()
    assert found.mean().item() == pytest.approx(wanted, abs=4 * found.std().item() / 4000**0.5)
    with pytest.raises(InputError, match="a difference of two bounds bounds nothing"):
        D3PM(joint, Uniform(3)).conditional_elbo(x, question, seeded())


class Denoiser:
    """The best guess for a known joint: p(x_0i | the noised others), by summing the table."""

    def __init__(self, joint, noise):
        self.joint, self.noise, self.schema = joint, noise, joint.schema
        self.kernels = [noise.kernel(k, range(noise.steps + 1)) for k in joint.sizes]

    def __call__(self, x, given, context=None):
        states, parts = self.joint.states().long(), []
        likely = []  # (row, state) for every variable: q(x_ti | x_0i)
        for i, kernel in enumerate(self.kernels):
            every = torch.eye(self.joint.sizes[i], dtype=torch.float64)[None]
            times, which = context[:, 0].unique(return_inverse=True)
            tables = torch.stack([kernel.log_ahead(every.clamp(min=1e-300).log(), t[None])[0].exp() for t in times])
            likely.append(tables[which[:, None], states[None, :, i], x[:, i].long()[:, None]])
        for i, size in enumerate(self.joint.sizes):
            others = torch.stack([one for j, one in enumerate(likely) if j != i]).prod(0) * self.joint.probs.flatten()
            table = torch.stack([(others * (states[:, i] == k)).sum(-1) for k in range(size)], dim=-1)
            parts.append(NetworkDistributions(torch.tensor([i]), CategoricalDistribution, table.log()[:, None]))
        return Conditionals(parts)


def test_with_the_right_guesses_more_steps_reach_the_truth():
    joint = JointTable.random(3, 3)
    for kind in (Uniform, lambda steps: Gauss(steps, 0.02, 0.2)):
        gaps, x = [], joint.states()
        for steps in (8, 40):
            noise = kind(steps)
            bound = torch.tensor([summed_bound(D3PM(Denoiser(joint, noise), noise), tuple(r), (3, 3)) for r in x.long().tolist()])
            gaps.append(float((joint.probs.flatten() * (joint.probs.flatten().log() - bound)).sum()))
        assert 0 < gaps[1] < 0.5 * gaps[0]


@pytest.mark.parametrize(("noise", "tolerance"), [(Uniform(20), 0.06), (Absorbing(30), 0.035)])
def test_filling_draws_nearly_the_conditional(noise, tolerance):
    """Replacing is an approximation with uniform noise, and better with repeats; with absorbing noise it is exact."""
    joint = JointTable.random(3, 3, seed=3)
    model = D3PM(joint if noise.absorbing else Denoiser(joint, noise), noise)
    x = torch.tensor([[2.0, 0.0]]).repeat(3000, 1)
    known = torch.tensor([[True, False]]).expand(3000, 2)
    wanted = joint.probs[2] / joint.probs[2].sum()

    def error(resample):
        drawn = model.fill(x, known, seeded(), resample)
        assert torch.equal(drawn[:, 0], x[:, 0])
        return float((torch.bincount(drawn[:, 1].long(), minlength=3) / 3000 - wanted).abs().max())

    assert error(4) < tolerance
    if noise.absorbing:
        assert error(1) < tolerance


@pytest.mark.parametrize("noise", [Uniform(20), Gauss(20), Nearest(20, EMBEDDING, 2)], ids=lambda n: type(n).__name__)
def test_transitions_are_doubly_stochastic_compose_and_forget(noise):
    kernel, few = noise.kernel(4, range(21)), noise.kernel(4, (0, 7, 20))
    eye = torch.eye(4).double().clamp(min=1e-30).log()[None]
    tables = [kernel.log_ahead(eye, torch.tensor([t]))[0].exp() for t in range(21)]
    for table in tables:
        torch.testing.assert_close(table.sum(0), torch.ones(4).double(), atol=1e-5, rtol=0)
        torch.testing.assert_close(table.sum(1), torch.ones(4).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(few.log_ahead(eye, torch.tensor([1]))[0].exp(), tables[7], atol=1e-6, rtol=0)
    for t in range(1, 21):
        step = torch.tensor([t])
        jump = torch.stack([kernel.log_jump(torch.tensor([[to]]), step)[0, 0].exp() for to in range(4)], dim=-1).double()
        torch.testing.assert_close(tables[t - 1] @ jump, tables[t], atol=1e-6, rtol=0)
    assert (tables[20] - 0.25).abs().max() < 0.03


def test_schedules_are_the_papers():
    kept = Uniform(1000).kernel(256, range(1001)).kept
    assert kept[500].item() == pytest.approx(
        math.cos(0.508 / 1.008 * math.pi / 2) ** 2 / math.cos(0.008 / 1.008 * math.pi / 2) ** 2
    )
    hidden = 1 - Absorbing(1000).kernel(27, range(1001)).kept
    torch.testing.assert_close(hidden, torch.arange(1001).double() / 1000)
    one = Gauss(1000).kernel(5, range(1001)).alone
    weight = [math.exp(-4 * n**2 / 16 / 0.02) for n in range(-4, 5)]
    assert one[999, 0, 1].item() == pytest.approx(weight[5] / sum(weight), rel=1e-4)
    told = Nearest(10, EMBEDDING, 2).kernel(4, range(11)).so_far.double()
    information = 1 + torch.xlogy(told, told).sum((-1, -2)) / 4 / math.log(4)
    torch.testing.assert_close(information, 1 - torch.arange(11).double() / 10, atol=1e-3, rtol=0)


def test_variables_of_several_sizes_and_the_logistic_head():
    schema = Schema.of(a=Category(2), b=Category(5), c=Ordinal(7), d=Category(3))
    model = D3PM.build(schema, Uniform(5), width=16, depth=1, hybrid=0.01)
    x = torch.tensor([[1.0, 4.0, 6.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
    loss = -model.bound(x, torch.ones_like(x, dtype=torch.bool), seeded()).sum()
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert model.elbo(x, seeded()).isfinite().all()
    drawn = model.sample(200, seeded())
    schema.check(drawn, torch.ones_like(drawn, dtype=torch.bool))
    image = D3PM.build_convolutional(
        Schema.repeat(Ordinal(7), 6), (2, 3, 1), UNetSize((8,), 1), Gauss(5), logistic=True, hybrid=1e-3
    )
    assert image.model.heads == (LogisticMixture(7, 1),) * 6
    index, levels, log_p = next(code_tables(image.model(torch.zeros(1, 6), torch.ones(1, 6).bool(), torch.zeros(1, 1).long())))
    assert (len(index), levels, log_p.shape[-1]) == (6, 7, 7)
    assert image.elbo(torch.ones(2, 6), seeded()).isfinite().all()


@pytest.mark.parametrize("noise", [Uniform(20), Absorbing(20)], ids=lambda n: type(n).__name__)
def test_training_finds_what_goes_together(noise):
    """Three equal codes: 1.1 nats a row, 3.3 if nothing is learned."""
    x = torch.randint(3, (400, 1), generator=seeded()).repeat(1, 3).float()
    model = D3PM.build(Schema.repeat(Category(3), 3), noise, width=32, depth=1, hybrid=0.01)
    fit_baseline(model, x, recipe=BaselineRecipe(steps=250, check_every=125, batch_size=64, learning_rate=1e-2))
    assert model.elbo(all_states((3, 3, 3)).float()[[0, 13, 26]], seeded(), draws=20).mean() > -2.0
    drawn = model.sample(300, seeded())
    assert (drawn == drawn[:, :1]).all(-1).double().mean() > 0.75


def test_gaps_are_for_absorbing_noise():
    schema, x = Schema.repeat(Category(3), 2), torch.tensor([[1.0, torch.nan], [torch.nan, 2.0]])
    weights = []
    for junk in (0.0, 2.0):
        model = D3PM.build(schema, Absorbing(4), width=8, depth=1)
        filled = torch.where(x.isfinite(), x, junk)
        fit_baseline(model, filled, x.isfinite(), BaselineRecipe(steps=4, check_every=2, batch_size=2))
        weights.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(*weights)
    with pytest.raises(InputError, match="absorbing noise only"):
        fit_baseline(D3PM.build(schema, Uniform(4), width=8, depth=1), x)


def test_what_does_not_fit_is_refused():
    pair = Schema.repeat(Category(3), 2)
    with pytest.raises(InputError, match="'x' is a number"):
        D3PM.build(Schema.of(c=Category(3), x=Real()), Uniform(3))
    with pytest.raises(InputError, match="steps=0"):
        Uniform(0)
    with pytest.raises(InputError, match=f"at most {MOST_TABLE_CELLS // 256**2 - 1} steps"):
        Gauss(1000).kernel(256, range(1001))
    with pytest.raises(InputError, match="shape None"):
        D3PM.build(pair, Nearest(3))
    with pytest.raises(InputError, match="Take more neighbours"):
        Nearest(3, torch.tensor([[0.0], [0.1], [5.0], [5.1]]), 1).kernel(4, range(4))
    with pytest.raises(InputError, match="steps=9"):
        D3PM.build(pair, Uniform(3), width=8, depth=1).fewer(9)
    with pytest.raises(InputError, match="hybrid=-1"):
        D3PM.build(pair, Uniform(3), hybrid=-1.0)
    with pytest.raises(InputError, match="resample=0"):
        D3PM.build(pair, Uniform(3), width=8, depth=1).fill(torch.zeros(1, 2), torch.ones(1, 2).bool(), seeded(), 0)
