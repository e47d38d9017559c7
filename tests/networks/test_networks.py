"""What every network must obey, and what the model makes of it."""

import itertools

import pytest
import torch

from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.models.any_order import build_model
from anyorder.networks import NETWORKS, IntegerColumns, IntegerUNet, ResMLP, UNet
from anyorder.networks.resmlp import Inputs
from anyorder.networks.unet import StepEmbedding, means_around
from anyorder.schema import Category, Ordinal, Real, Recorded, Schema

SCHEMA = Schema.of(a=Real(), b=Category(3), c=Ordinal(5), d=Category(2), e=Real())
LEVELS = torch.tensor([1, 3, 5, 2, 1])


def rows(count=16):
    rng = seeded()
    x = torch.rand(count, 5, generator=rng)
    return torch.where(LEVELS > 1, (x * LEVELS).floor(), x), torch.rand(count, 5, generator=rng) < 0.5


PIXELS = Schema.repeat(Ordinal(4), 5 * 3 * 3)  # sides that are no multiples of two


def pixels(count=16):
    rng = seeded()
    return torch.randint(4, (count, 45), generator=rng).float(), torch.rand(count, 45, generator=rng) < 0.5


def resmlp(context=()):
    return ResMLP(SCHEMA, 7, width=16, depth=2, context=context)


def unet_by_sines(context=()):
    """As SFARM tells what is no pixel: the last column of the context is the step."""
    return unet(context, len(context) - 1 if context else None)


def unet(context=(), step=None):
    net = UNet(PIXELS, 2 * 45, shape=(5, 3, 3), widths=(8, 12, 16), depth=1, context=context, around=(3,), step=step)
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.ndim == 4 and not parameter.any():  # what begins at zero blocks all before it
                parameter += 0.1 * torch.randn(parameter.shape, generator=seeded(1))
    return net


MAKERS = [(resmlp, rows), (unet, pixels), (unet_by_sines, pixels)]
every_network = pytest.mark.parametrize(("make", "data"), MAKERS, ids=["resmlp", "unet", "unet by sines"])


def test_every_network_is_tested():
    elsewhere = {IntegerUNet, IntegerColumns}  # in test_integer.py and test_columns.py
    assert {type(make()) for make, _ in MAKERS} | elsewhere == set(NETWORKS.values())


@every_network
def test_gradient_reaches_every_parameter(make, data):
    net = make((3, 4))
    x, given = data(64)
    rng = seeded()
    context = torch.stack([torch.randint(0, n, (64,), generator=rng) for n in (3, 4)], dim=-1)
    net(x, given, context).pow(2).sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@every_network
def test_rows_do_not_see_each_other(make, data):
    net = make().eval()
    x, given = data()
    with torch.no_grad():
        torch.testing.assert_close(net(x, given)[3:5], net(x[3:5], given[3:5]), atol=1e-5, rtol=1e-5)


@every_network
def test_zero_and_hidden_look_different(make, data):
    net = make()
    x, given = data(1)
    x = torch.zeros_like(x)
    with torch.no_grad():
        assert not torch.allclose(net(x, torch.ones_like(given)), net(x, torch.zeros_like(given)))


@every_network
def test_an_unknown_context_is_the_same_as_none(make, data):
    net = make((3,))
    x, given = data(2)
    with torch.no_grad():
        torch.testing.assert_close(net(x, given), net(x, given, torch.full((2, 1), -1)))
        assert not torch.allclose(net(x, given), net(x, given, torch.zeros(2, 1, dtype=torch.long)))


@torch.no_grad()
def test_a_unet_answers_where_it_is_told():
    """What changes at one pixel moves the numbers around it, and hardly those far away."""
    net = UNet(Schema.repeat(Ordinal(2), 1024), 1024, shape=(32, 32, 1), widths=(8,), depth=1)
    x, known = torch.zeros(1, 1024), torch.ones(1, 1024, dtype=torch.bool)
    change = x.clone()
    change[0, 5 * 32 + 20] = 1.0
    moved = (net(change, known) - net(x, known)).view(32, 32) != 0
    row, column = moved.nonzero().unbind(-1)
    assert row.float().mean() == 5  # around the pixel, in rows and in columns
    assert column.float().mean() == 20


def test_means_around_are_those_of_what_is_known():
    rng = seeded()
    seen, known = torch.randn(2, 3, 6, 5, generator=rng), (torch.rand(2, 1, 6, 5, generator=rng) < 0.3).float()
    mean, share = means_around(seen * known, known, 3)
    for image, row, column in itertools.product(range(2), range(6), range(5)):
        near = (slice(max(row - 1, 0), row + 2), slice(max(column - 1, 0), column + 2))
        values = seen[(image, slice(None), *near)][:, known[(image, 0, *near)] > 0]
        expected = values.mean(-1) if values.numel() else torch.zeros(3)
        torch.testing.assert_close(mean[image, :, row, column], expected)
        torch.testing.assert_close(share[image, 0, row, column], torch.tensor(values.shape[1] / 9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (5, 3)}, "expected \\(height, width, channels\\)"),
        ({"shape": (5, 4, 3)}, "for 45 variables"),
        ({"outputs": 46}, "expected a multiple of 15 places"),
        ({"widths": ()}, "expected 1 to 8 widths"),
        ({"depth": -1}, "0 to 100 blocks"),
        ({"context": (0,)}, "at most 16 columns"),
        ({"around": (2,)}, "odd numbers of pixels"),
        ({"schema": Schema.repeat(Real(), 45)}, "same number of levels"),
    ],
)
def test_sizes_of_a_unet_are_checked(change, message):
    sizes = {"schema": PIXELS, "outputs": 45, "shape": (5, 3, 3), "widths": (4, 4), "depth": 1, "context": ()} | change
    with pytest.raises(InputError, match=message):
        UNet(**sizes)


def test_inputs_are_scaled_or_one_hot_and_zero_where_hidden():
    inputs = Inputs(SCHEMA)
    x = torch.tensor([[0.5, 2.0, 4.0, 1.0, -3.0]])
    known = torch.ones(1, 5, dtype=torch.bool)
    assert inputs(x, known).tolist() == [[0.5, 1.0, -3.0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1]]
    assert inputs(x, ~known).tolist() == [[0] * 13]
    assert inputs.width == 13


def test_numbers_with_knots_are_shown_piece_by_piece():
    inputs = Inputs(Schema.of(a=Recorded(0.1, knots=(0.0, 1.0, 3.0)), b=Recorded(0.1, knots=(0.0, 2.0)), c=Recorded(0.1)))
    x = torch.tensor([[2.0, 0.5, 7.0]])
    known = torch.ones(1, 3, dtype=torch.bool)
    assert inputs(x, known).tolist() == [[2.0, 0.5, 7.0, 1.0, 0.5, 0.25, 0.0, 1, 1, 1]]
    assert inputs(x, ~known).tolist() == [[0] * 10]
    assert inputs.width == 10


def test_the_model_hands_every_variable_its_own_law():
    """Each variable's answer comes from its own head, wherever it stands among the others."""
    model = build_model(SCHEMA, width=16, depth=1)
    x, given = rows(6)
    with torch.no_grad():
        conditionals = model(x, given)
    for answer in ("log_prob", "cdf"):
        together = getattr(conditionals, answer)(x)
        for i in range(5):
            torch.testing.assert_close(together[:, i], getattr(conditionals.distribution(i), answer)(x[:, i]))
    for answer in ("mean", "entropy"):
        together = getattr(conditionals, answer)()
        for i in range(5):
            torch.testing.assert_close(together[:, i], getattr(conditionals.distribution(i), answer)())
    half = torch.full_like(x, 0.5)
    torch.testing.assert_close(conditionals.quantile(half)[:, 2], conditionals.distribution(2).quantile(half[:, 2]))
    assert conditionals.distribution(1).pmf().shape == (6, 3)
    drawn = conditionals.sample(seeded())
    assert (drawn[:, 1:4] == drawn[:, 1:4].round()).all()
    assert (drawn[:, 1:4] < LEVELS[1:4]).all()
    with pytest.raises(IndexError, match="no variable number 9"):
        conditionals.distribution(9)


def test_asking_for_some_cells_only_gives_the_same_numbers():
    model = build_model(SCHEMA, width=16, depth=1)
    x, at = rows(6)
    with torch.no_grad():
        conditionals = model(x, ~at)
        torch.testing.assert_close(conditionals.log_prob(x, at=at), torch.where(at, conditionals.log_prob(x), 0.0))


def test_sizes_are_checked():
    with pytest.raises(InputError, match=r"width=0, depth=1; expected 1 to 65536 units"):
        ResMLP(SCHEMA, 1, width=0, depth=1)


def test_the_same_seed_builds_the_same_network():
    one, other, third = (build_model(SCHEMA, width=8, depth=1, seed=s) for s in (1, 1, 2))
    assert torch.equal(one.network.first.weight, other.network.first.weight)
    assert not torch.equal(one.network.first.weight, third.network.first.weight)


def test_double_precision_rows_are_welcome():
    model = build_model(SCHEMA, width=16, depth=1)
    x, given = rows(4)
    with torch.no_grad():
        torch.testing.assert_close(model(x.double(), given).log_prob(x.double()).float(), model(x, given).log_prob(x))


def test_an_unknown_step_tells_nothing_and_neighbours_are_told_apart():
    embedding = StepEmbedding(784, 16)
    told = embedding(torch.tensor([-1, 0, 1, 2, 300, 783]))
    assert not told[0].any()
    assert (torch.cdist(told[1:], told[1:]) + torch.eye(5) > 0.01).all()


def test_a_step_that_is_no_column_is_refused():
    with pytest.raises(InputError, match=r"step=2 with 2 columns of context"):
        unet((3, 4), 2)
