"""Networks of whole numbers: the same as a plain computation with 64-bit integers, in every setting."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from anyorder.errors import FormatError, InputError
from anyorder.inference import seeded
from anyorder.networks import IntegerUNet, exactly, integer
from anyorder.networks.integer import FINEST, LARGEST_EXACT, LARGEST_INNER_WEIGHT, TOP, Whole, rounded_means_around
from anyorder.schema import Category, Colour, Ordinal, Schema


def trained(schema=Schema.repeat(Ordinal(256), 6 * 5), shape=(6, 5, 1), widths=(4, 8), patch=1, numbers=3, around=()):
    """As if trained: every number of the network is somewhere else than where it began."""
    torch.manual_seed(0)
    net = IntegerUNet(schema, numbers * len(schema), shape, widths, 1, patch, around=around)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return net


def rows(net, count=7):
    rng = seeded(1)
    levels = 16**3 if net.shades else 256
    x = torch.randint(levels, (count, len(net.schema)), generator=rng).float()
    return x, torch.rand(x.shape, generator=rng) < 0.5


# The obvious twin


def conv(h, layer, stride=1):
    """Sums of products of whole numbers, and how many binary places each output channel has."""
    m, k, offset = (part.numpy().astype(np.int64) for part in layer.whole())
    side = m.shape[2]
    pad = side // 2 if stride == 1 else 0
    h = np.pad(h, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height, width = (h.shape[2] - side) // stride + 1, (h.shape[3] - side) // stride + 1
    out = np.zeros((len(h), len(m), height, width), dtype=np.int64)
    for row, column in itertools.product(range(height), range(width)):
        seen = h[:, :, row * stride : row * stride + side, column * stride : column * stride + side]
        out[:, :, row, column] = np.einsum("bcij,ocij->bo", seen, m) + offset
    return out, k[:, None, None]


def nearest(numerator, k):
    """numerator / 2^k to the nearest whole number, halves to the even one."""
    low, rest = numerator >> k, numerator & ((1 << k) - 1)
    half = (1 << k) // 2
    up = (rest > half) | ((rest == half) & (low % 2 == 1) & (k > 0))
    return low + up


def activated(numerator, k):
    return nearest(numerator, k).clip(0, TOP)


def shuffled(h):
    batch, channels, height, width = h.shape
    return (
        h.reshape(batch, channels // 4, 2, 2, height, width).transpose(0, 1, 4, 2, 5, 3).reshape(batch, -1, 2 * height, 2 * width)
    )


def blocks(h, module):
    for inner, outer in zip(module.inner, module.outer, strict=True):
        numerator, k = conv(activated(*conv(h, inner)), outer)
        h = activated(numerator + (h << k), k)
    return h


def twin(net, x, given):
    with torch.no_grad():
        maps = net._inputs(x, given).numpy().astype(np.int64)
    h = activated(*conv(maps, net.first))
    kept = []
    for module, shrink in zip(net.down, net.shrink, strict=True):
        h = blocks(h, module)
        kept.append(h)
        h = activated(*conv(h, shrink, stride=2))
    h = blocks(h, net.middle)
    for module, grow, before in zip(reversed(net.up), reversed(net.grow), reversed(kept), strict=True):
        numerator, k = conv(h, grow)
        numerator, k = shuffled(numerator << (14 - k)), 14
        h = blocks(activated(numerator + (before << k), k), module)
    numerator, k = conv(np.concatenate([h, maps[:, net.alone :]], axis=1), net.last)
    said = nearest(16 * numerator, k).clip(-(2**15) + 1, 2**15 - 1)
    said = said.repeat(net.patch, axis=2).repeat(net.patch, axis=3)[:, :, : net.shape[0], : net.shape[1]]
    return said.transpose(0, 2, 3, 1).reshape(len(x), -1)


NETS = {
    "grey": lambda: trained(),
    "patches": lambda: trained(patch=2),
    "three levels": lambda: trained(Schema.repeat(Ordinal(256), 9 * 8), (9, 8, 1), (4, 6, 8)),
    "one lattice": lambda: trained(widths=(5,)),
    "colours": lambda: trained(Schema.repeat(Colour(16), 30), patch=2, numbers=10),
    "means around": lambda: trained(around=(3, 5)),
    "means of colours": lambda: trained(Schema.repeat(Colour(16), 30), patch=2, numbers=10, around=(3,)),
    "two values a pixel": lambda: trained(Schema.repeat(Ordinal(256), 24), (4, 3, 2)),
}


@pytest.mark.parametrize("name", NETS)
def test_answers_are_those_of_64_bit_integers(name):
    net = NETS[name]().freeze()
    x, given = rows(net)
    with exactly():
        assert (net(x, given).numpy() * 1024 == twin(net, x, given)).all()


@pytest.mark.parametrize("side", [1, 3, 5])
def test_means_around_are_those_of_fractions(side):
    rng = np.random.default_rng(0)
    known = rng.random((2, 1, 6, 5)) < 0.4
    seen = rng.integers(0, TOP + 1, (2, 3, 6, 5)) * known
    mean, share = rounded_means_around(torch.tensor(seen).float(), torch.tensor(known).float(), side)
    for image, row, column in np.ndindex(2, 6, 5):
        near = np.s_[max(row - side // 2, 0) : row + side // 2 + 1, max(column - side // 2, 0) : column + side // 2 + 1]
        count = int(known[image, 0][near].sum())
        assert share[image, 0, row, column] == 128 * count // side**2
        for channel in range(3):
            exact = Fraction(int(seen[image, channel][near].sum()), max(count, 1))
            assert mean[image, channel, row, column] == int(exact + Fraction(1, 2))


@pytest.mark.parametrize("name", NETS)
def test_frozen_networks_answer_as_they_were_trained(name):
    net = NETS[name]()
    x, given = rows(net)
    with torch.no_grad():
        assert torch.equal(net(x, given), net.freeze()(x, given))
    assert torch.equal(net(x, given), net.freeze()(x, given))  # the path with gradients, too


@pytest.mark.parametrize("name", NETS)
def test_nothing_about_the_computation_matters(name):
    """Batches of any size, other threads, without oneDNN, inside an autocast to narrower numbers."""
    net = NETS[name]().freeze()
    x, given = rows(net, 70)
    with exactly():
        expected = net(x, given)
        for size in (1, 3, 7, 63, 64):
            parts = [net(x[some], given[some]) for some in torch.arange(70).split(size)]
            assert torch.equal(torch.cat(parts), expected), size
        before = torch.backends.mkldnn.set_flags(False)
        try:
            assert torch.equal(net(x, given), expected)
        finally:
            torch.backends.mkldnn.set_flags(before[0])
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(3 - min(before, 2))
            assert torch.equal(net(x, given), expected)
        finally:
            torch.set_num_threads(before)
        with torch.autocast("cpu", dtype=torch.bfloat16), exactly():
            assert torch.equal(net(x, given), expected)


@pytest.mark.parametrize("setting", ["conv", "matmul"])
def test_narrower_products_are_switched_off_and_on_again(setting):
    kind = getattr(torch.backends.mkldnn, setting)
    before, kind.fp32_precision = kind.fp32_precision, "bf16"
    try:
        with exactly():
            assert kind.fp32_precision == "ieee"
        assert kind.fp32_precision == "bf16"
    finally:
        kind.fp32_precision = before


@pytest.mark.skipif(not integer.int8_available(), reason="this build of torch has no int8 kernels")
@pytest.mark.parametrize("name", NETS)
def test_int8_kernels_give_the_same_answers(name):
    """Also where every activation and every weight is as large as can be."""
    net = NETS[name]().freeze()
    x, given = rows(net, 70)
    with exactly():
        expected = net(x, given)
        net.int8 = True
        for size in (1, 3, 64, 70):
            parts = [net(x[some], given[some]) for some in torch.arange(70).split(size)]
            assert torch.equal(torch.cat(parts), expected), size


@pytest.mark.skipif(not integer.int8_available(), reason="this build of torch has no int8 kernels")
@pytest.mark.parametrize("sign", [1, -1])
def test_int8_kernels_do_not_saturate_inside(sign):
    layer = Whole(80, 8, 3, residual=True, frozen=True)
    layer.numerator.fill_(sign * LARGEST_INNER_WEIGHT)
    layer.power.fill_(FINEST)
    layer.check_bound()
    h = torch.full((2, 80, 5, 5), TOP, dtype=torch.uint8)
    with exactly():
        assert torch.equal(layer(h).float(), layer(h.float()))
        plus = torch.full((2, 8, 5, 5), TOP, dtype=torch.uint8)
        assert torch.equal(layer(h, plus).float(), layer(h.float(), plus.float()))
        layer.cut = False
        assert torch.equal(layer(h), layer(h.float()))


def test_hidden_values_do_not_matter():
    net = NETS["grey"]()
    x, given = rows(net)
    other = torch.where(given, x, 255 - x)
    assert torch.equal(net(x, given), net(other, given))


def test_gradient_reaches_every_parameter():
    net = NETS["patches"]()
    net(*rows(net, 64)).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_weights_stay_exact_however_large_they_grow():
    layer, frozen = Whole(64, 3, 3, residual=True), Whole(64, 3, 3, residual=True, frozen=True)
    for scale in (1e-6, 1.0, 100.0, 1e4):
        with torch.no_grad():
            layer.gain.fill_(scale)
            layer.bias.fill_(scale)
        frozen.freeze(layer)  # checks the bound
        assert frozen.numerator.abs().max() <= LARGEST_INNER_WEIGHT


@pytest.mark.parametrize("residual", [False, True])
def test_a_layer_that_could_leave_exact_arithmetic_is_refused(residual):
    """The bound, and that sums up to it are exact and beyond it are not."""
    layer = Whole(1100, 1, residual=residual, frozen=True)
    layer.numerator.fill_(63)
    with pytest.raises(FormatError, match="could leave exact arithmetic"):
        layer.check_bound()
    layer = Whole(1000, 1, residual=residual, frozen=True)
    layer.numerator.fill_(63)
    layer.check_bound()
    assert 1000 * 63 * TOP < LARGEST_EXACT
    assert F.conv2d(torch.full((1, 1000, 1, 1), float(TOP)), *layer.kernel()).item() == 1000 * 63 * TOP
    assert torch.tensor(float(LARGEST_EXACT)) + 1 == LARGEST_EXACT  # what happens beyond


@pytest.mark.parametrize(("part", "value"), [("power", 15), ("power", -1), ("numerator", 64)])
def test_a_layer_of_other_numbers_is_refused(part, value):
    layer = Whole(2, 1, frozen=True)
    getattr(layer, part).fill_(value)
    with pytest.raises(FormatError, match="not m / 2"):
        layer.check_bound()


def test_too_many_levels_are_refused():
    with pytest.raises(InputError, match="at most 256"):
        IntegerUNet(Schema.repeat(Category(300), 4), 4, (2, 2, 1))
