"""Bits back: the images and the bits before them come back, and the net length is minus the VAE's bound."""

import math

import constriction
import numpy as np
import pytest
import torch

from anyorder.baselines import VAE, BaselineRecipe, BitsBack, fit_baseline
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.schema import Category, Ordinal, Real, Schema


@pytest.fixture(scope="module")
def trained():
    """Rows of 12 codes that all tell which of two kinds a row is."""
    kind = torch.randint(2, (600, 1), generator=seeded())
    x = ((torch.rand(600, 12, generator=seeded(1)) < 0.1) ^ kind.bool()).float() * 3
    model = VAE.build(Schema.repeat(Ordinal(4), 12), latent=2, width=16, depth=1)
    fit_baseline(model, x, recipe=BaselineRecipe(steps=300, check_every=150, batch_size=64, learning_rate=5e-3))
    return model, x


def test_everything_comes_back(trained):
    model, x = trained
    codec = BitsBack(model)
    sent = codec.encode(x[:40], seed=5)
    found, before = codec.decode(sent)
    assert torch.equal(found, x[:40])
    again = np.random.default_rng(5).integers(1, 2**32, len(before), dtype=np.uint32)
    assert np.array_equal(before, again)


def test_the_net_length_is_what_the_choices_say_and_minus_the_bound(trained):
    model, x = trained
    x, codec = x[:300], BitsBack(trained[0])
    sent = codec.encode(x)
    stack = constriction.stream.stack.AnsCoder(np.arange(1, 50, dtype=np.uint32))
    said = [codec.push(stack, row[None]).item() for row in x]
    assert sent.net_bits == pytest.approx(sum(said), rel=0.02, abs=64)  # other first bits, other choices
    model.samples = 200
    with torch.no_grad():
        bound = model.bound(x, torch.ones_like(x, dtype=torch.bool), seeded()).sum().item() / math.log(2)
    assert sent.net_bits == pytest.approx(-bound, rel=0.03, abs=64)
    assert sent.net_bits < 0.8 * 12 * 300  # a code of two usual values, one bit each, takes 12 a row


def test_one_image_alone_costs_all_that_it_chose(trained):
    codec, x = BitsBack(trained[0]), trained[1]
    alone, many = codec.encode(x[:1]), codec.encode(x[:300])
    assert alone.bits_after - alone.net_bits == alone.bits_before
    assert alone.bits_after / 1 > 2 * many.net_bits / 300  # the bits to be hidden have to be there first


def test_codes_of_several_sizes(trained):
    model = VAE.build(Schema.of(a=Category(2), b=Ordinal(5), c=Category(3)), latent=2, width=8, depth=1)
    x = torch.stack([torch.randint(k, (30,), generator=seeded(k)) for k in (2, 5, 3)], dim=-1).float()
    codec = BitsBack(model)
    assert torch.equal(codec.decode(codec.encode(x))[0], x)
    with pytest.raises(InputError, match="real numbers"):
        BitsBack(VAE.build(Schema.of(a=Real())))
