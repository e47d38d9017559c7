"""Statistics on small random joints: what is scored adds up to one, and what is drawn follows what is scored.

Every check of chance has a stated rate of false alarms, ALARM; all others are exact up to rounding.
"""

import torch
from scipy import stats

from anyorder.inference import log_prob, sample
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Ordinal, Schema
from anyorder.subsets import CanonicalOrder, Question
from exact import JointTable, all_states

ALARM = 1e-7  # of one check of chance: one false alarm in ten million
LEAST_EXPECTED = 8  # draws in a cell; rarer states are taken together


def rng_of(random):
    return torch.Generator().manual_seed(random.randint(0, 2**31))


def some_model(random):
    """A joint whose conditionals are exact, or a network that was never trained, whose conditionals contradict each other."""
    sizes = [random.randint(2, 3) for _ in range(random.randint(2, 4))]
    if random.random() < 0.5:
        return JointTable.random(*sizes, seed=random.randint(0, 2**31)), sizes, torch.float64
    domains = {f"v{k}": Category(n) if n == 2 or random.random() < 0.5 else Ordinal(n) for k, n in enumerate(sizes)}
    torch.manual_seed(random.randint(0, 2**31))
    model = build_model(Schema.of(**domains), width=8, depth=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape)
    return model.eval(), sizes, torch.float32


def some_question(random, variables):
    """Some variables asked for, some known, the others in neither."""
    roles = [random.choice("tgn") for _ in range(variables)]
    roles[random.randrange(variables)] = "t"
    return torch.tensor([[role == "t" for role in roles]]), torch.tensor([[role == "g" for role in roles]])


def check_joint(random, draws=3000):
    """One model, one question, one order: its scores add up to one, are the exact ones, and its draws follow them."""
    model, sizes, kind = some_model(random)
    target, given = some_question(random, len(sizes))
    order = CanonicalOrder(tuple(random.sample(range(len(sizes)), len(sizes))))
    states, rng = all_states(sizes).to(kind), rng_of(random)
    known = states[rng.initial_seed() % len(states)].clone()
    states = torch.unique(torch.where(target, states, torch.where(given, known, 0)), dim=0)
    question = Question(given.expand(len(states), -1), target.expand(len(states), -1))
    scores = log_prob(model, states, question, order=order).double()
    total = scores.exp().sum().item()
    assert abs(total - 1) < 1e-5, f"the scores of {len(states)} states add up to {total}"
    if isinstance(model, JointTable):
        exact = model.log_marginal(states, target | given) - model.log_marginal(states, given)
        torch.testing.assert_close(scores, exact, rtol=0, atol=1e-9)
    rows = states[:1].expand(draws, -1)
    asked = Question(given.expand(draws, -1), target.expand(draws, -1))
    drawn = sample(model, rows, asked, rng, order=order)
    found = (drawn[:, None] == states[None]).all(-1).double().sum(0)
    assert found.sum() == draws, "a draw is no state, or changed what was known"
    assert p_value(found, draws * scores.exp() / total) > ALARM, "draws do not follow the scores"


def p_value(found, expected):
    """Of Pearson's test, rare states together."""
    rare = expected < LEAST_EXPECTED
    counts = [torch.cat([part[~rare], part[rare].sum()[None]]) for part in (found, expected)]
    if counts[1][-1] < LEAST_EXPECTED:  # together still too rare: to the rarest of the others
        counts = [torch.cat([part[:-2], part[-2:].sum()[None]]) if len(part) > 1 else part for part in counts]
    if len(counts[0]) < 2:
        return 1.0
    return float(stats.chisquare(counts[0].numpy(), counts[1].numpy()).pvalue)


def check_calibration(random, rows=3000):
    """Of data from a joint, what it gave a chance of p comes true as often: for one event, a z-test."""
    model, sizes = JointTable.random(3, 2, 3, seed=random.randint(0, 2**31)), (3, 2, 3)
    rng = rng_of(random)
    data = model.states()[torch.multinomial(model.probs.flatten(), rows, replacement=True, generator=rng)]
    target = random.randrange(3)
    value, given = random.randrange(sizes[target]), torch.tensor([[k != target for k in range(3)]])
    asked = data.clone()
    asked[:, target] = value
    chance = log_prob(model, asked, Question(given.expand(rows, -1), ~given.expand(rows, -1))).exp()
    deviation = (data[:, target] == value).double() - chance
    z = deviation.sum() / (chance * (1 - chance)).sum().sqrt().clamp(min=1e-9)
    assert 2 * stats.norm.sf(abs(float(z))) > ALARM, f"z = {float(z):.1f}"
