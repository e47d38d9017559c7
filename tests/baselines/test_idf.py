"""IDF: a bijection of whole numbers, probabilities that sum to one, and bits as many as log2 p says."""

import math

import pytest
import torch

from anyorder.baselines import IDF, BaselineRecipe, IDFSize, fit_baseline
from anyorder.baselines.idf import escape_bits
from anyorder.coding import Encoder
from anyorder.errors import FormatError, InputError
from anyorder.inference import seeded
from anyorder.schema import Category, Ordinal, Schema
from exact import all_states


def shaken(shape=(4, 4, 1), levels=5, size=IDFSize(2, 4, 8), seed=1):
    """A model whose couplings really move."""
    model = IDF(Schema.repeat(Ordinal(levels), math.prod(shape)), shape, size)
    with torch.no_grad():
        for network in model.networks():
            size = 0.05 if network is model.prior else 0.2  # extreme distributions are coded coarsely
            network.last.gain.fill_(2.5 * size)
            for p in network.parameters():
                p += size * torch.randn(p.shape, generator=seeded(seed))
    return model.eval()


def images(rows=40, levels=5, variables=16, seed=3):
    return torch.randint(levels, (rows, variables), generator=seeded(seed)).float()


@pytest.mark.parametrize(("shape", "levels"), [((4, 4, 1), 5), ((5, 3, 1), 2), ((4, 4, 3), 256)])
def test_it_is_a_bijection_also_of_numbers_beyond_the_pixels(shape, levels):
    model = shaken(shape, levels)
    x = images(20, levels, math.prod(shape))
    for numbers in (x, 7 * x - 2 * levels):
        z = model(numbers).detach()
        assert torch.equal(z, z.round())
        assert (z != numbers).float().mean() > 0.2
        assert torch.equal(model.inverse(z), numbers)


def test_no_two_images_share_latent_numbers_and_all_probabilities_sum_to_one():
    """2 x 2 pixels of 2 levels, 6 usual latent values each: all 1296 latent images; the two ends hold what lies beyond."""
    model = shaken((2, 2, 1), 2, IDFSize(2, 4, 8))
    z = all_states((6, 6, 6, 6)).float() - model.offset
    bits = escape_bits(z + model.offset, model.head.levels)
    total = (model.latent_log_prob(z) + math.log(2) * bits).sum(-1).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-5)
    x = all_states((2, 2, 2, 2)).float()
    assert len(model(x).unique(dim=0)) == 16
    assert model.log_prob(x).exp().sum() < 1  # some of it is on what is no image
    torch.testing.assert_close(model.log_prob(x), model.latent_log_prob(model(x)).sum(-1))


def test_what_lies_beyond_costs_what_its_code_takes():
    symbols = torch.tensor([[-9.0, -1.0, 0.0, 1.0, 8.0, 9.0, 10.0, 400.0]])
    expected = []
    for symbol in symbols[0].long().tolist():
        if 0 < symbol < 9:
            expected.append(0.0)
            continue
        encoder, beyond = Encoder(), symbol - min(max(symbol, 0), 9)
        folded = 2 * beyond if beyond >= 0 else -2 * beyond - 1
        expected.append(6.0 + folded.bit_length())
        encoder.signed(torch.tensor([beyond] * 1000).numpy())
        assert encoder.written / 1000 == pytest.approx(expected[-1], abs=0.1)
    assert escape_bits(symbols, 10)[0].tolist() == expected


@pytest.mark.parametrize(("shape", "levels"), [((4, 4, 1), 5), ((5, 3, 1), 2), ((4, 4, 3), 256)])
def test_decoding_gives_the_images_back_in_as_many_bits_as_log_p_says(shape, levels):
    model = shaken(shape, levels)
    x = images(60, levels, math.prod(shape))
    content = model.encode(x)
    assert torch.equal(model.decode(content, len(x)), x)
    frozen = model.freeze()
    assert frozen.encode(x) == content
    assert torch.equal(frozen.decode(content, len(x)), x)
    bits = -float(model.log_prob(x).sum().detach()) / math.log(2)
    assert abs(8 * len(content) - bits) < 0.01 * bits + 64  # scales are coded on a coarse grid


@pytest.mark.slow
def test_training_finds_what_goes_together():
    """Every 2 x 2 block has one shade, of 5: log2 5 bits for four pixels."""
    small = torch.randint(5, (600, 2, 2), generator=seeded())
    x = small.repeat_interleave(2, 1).repeat_interleave(2, 2).flatten(1).float()
    model = IDF(Schema.repeat(Ordinal(5), 16), (4, 4, 1), IDFSize(2, 3, 16))
    before = -model.log_prob(x[:50]).mean().item()
    recipe = BaselineRecipe(steps=250, check_every=125, batch_size=16, learning_rate=1e-2, average=0.98)
    fit_baseline(model, x, recipe=recipe)
    after = -model.log_prob(x[:50]).mean().item()
    assert after < 0.6 * 16 * math.log(5)
    assert after < 0.6 * before
    model = model.freeze()
    content = model.encode(x[:50])
    assert torch.equal(model.decode(content, 50), x[:50])
    assert 8 * len(content) == pytest.approx(50 * after / math.log(2), rel=0.01, abs=64)
    drawn = model.sample(20, seeded())
    model.schema.check(drawn, torch.ones_like(drawn, dtype=torch.bool))


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"Ordinal\(256\)"):
        IDF(Schema.repeat(Category(5), 4), (2, 2, 1))
    with pytest.raises(InputError, match="levels=4"):
        IDF(Schema.repeat(Ordinal(5), 16), (4, 4, 1), IDFSize(4))
    model = shaken()
    with pytest.raises(InputError, match="gaps"):
        model.bound(images(2), torch.zeros(2, 16, dtype=torch.bool), seeded())
    with pytest.raises(FormatError):
        model.decode(shaken(seed=9).encode(images(50)), 50)
