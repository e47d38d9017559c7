"""Models of the chain rule: nothing leaks from what comes later, rows sum to one along their order, sizes are the papers'."""

import itertools
import math

import pytest
import torch

from anyorder.baselines import (
    PIXEL_CNNS,
    TRANSFORMERS,
    ARTransformer,
    BaselineRecipe,
    OATransformer,
    PixelCNN,
    PixelCNNSize,
    TransformerSize,
    fit_baseline,
)
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.schema import Category, Colour, Ordinal, Real, Schema
from anyorder.subsets import Question
from exact import all_states

TINY = TransformerSize(1, 8, 2)
MIXED = Schema.of(a=Category(2), b=Ordinal(3), c=Category(4))


def shaken(model, size=0.3):
    with torch.no_grad():
        for p in model.parameters():
            p += size * torch.randn(p.shape, generator=seeded(1))
    return model.eval()


PIXELS = {
    "two colours of one shade": lambda: PixelCNN(Schema.repeat(Ordinal(2), 6), (2, 3, 1), PixelCNNSize(4, 1, 2)),
    "shades": lambda: PixelCNN(Schema.repeat(Ordinal(4), 4), (2, 2, 1), PixelCNNSize(4, 2, 3, 2)),
    "colours": lambda: PixelCNN(Schema.repeat(Colour(2), 2), (2, 1, 1), PixelCNNSize(4, 1, 1, 2)),
}
MODELS = PIXELS | {"AR": lambda: ARTransformer(MIXED, TINY), "OA": lambda: OATransformer(MIXED, TINY)}


@pytest.mark.parametrize("name", MODELS)
def test_all_rows_together_have_probability_one(name):
    model = shaken(MODELS[name]())
    states = all_states([v.domain.levels for v in model.schema]).float()
    with torch.no_grad():
        assert model.log_prob(states).exp().sum().item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("given", [(), (0,), (2,), (1, 2)])
def test_a_transformer_of_any_order_sums_to_one_along_each_given_any(order, given):
    model, states = shaken(OATransformer(MIXED, TINY)), all_states((2, 3, 4)).float()
    known = torch.tensor([i in given for i in range(3)])
    states = states[(states[:, known] == 1).all(-1)]
    question = Question(known.expand_as(states), ~known.expand_as(states))
    with torch.no_grad():
        assert model.log_prob(states, question, order).exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_one_pass_is_the_product_of_its_conditionals():
    model, x, order = shaken(OATransformer(MIXED, TINY)), torch.tensor([[1.0, 2.0, 3.0]]), (2, 0, 1)
    steps, known = 0.0, torch.zeros(1, 3, dtype=torch.bool)
    for i in order:
        now = torch.zeros(1, 3, dtype=torch.bool)
        now[:, i] = True
        steps += model.log_prob(x, Question(known, now), order).item()
        known = known | now
    assert model.log_prob(x, order=order).item() == pytest.approx(steps, abs=1e-5)
    assert model.log_prob(x, order=(0, 1, 2)).item() != pytest.approx(steps, abs=1e-3)


@pytest.mark.parametrize("shape", [(4, 4, 1), (5, 7, 1), (3, 2, 1)])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_pixel_sees_all_before_it_and_none_after(shape, levels):
    """The Jacobian of every pixel's numbers: exactly zero from itself and what follows; something from every pixel before."""
    count = shape[0] * shape[1]
    model = shaken(PixelCNN(Schema.repeat(Ordinal(2), count), shape, PixelCNNSize(4, 2, levels)), 0.2).double()
    x = torch.rand(1, count, generator=seeded(), dtype=torch.float64)
    order = torch.arange(count)[None]
    jacobian = torch.autograd.functional.jacobian(lambda row: model.along(row, order).parts[0].params.sum(-1)[0], x)[:, 0]
    before = torch.ones(count, count).tril(-1).bool()
    assert (jacobian[~before] == 0).all()
    if count < 8:
        assert (jacobian[before] != 0).all()
    assert (jacobian.diagonal(-1) != 0)[[i for i in range(count - 1) if (i + 1) % shape[1]]].all()  # the pixel to the left
    assert (jacobian.diagonal(-shape[1]) != 0).all()  # the pixel above


@pytest.mark.parametrize("name", ["colours", "AR", "OA"])
def test_what_is_drawn_is_what_is_scored(name):
    model = shaken(MODELS[name]())
    sizes = [v.domain.levels for v in model.schema]
    drawn = model.sample(20_000, seeded()).long()
    code = torch.zeros(len(drawn), dtype=torch.long)
    for i, size in enumerate(sizes):
        code = code * size + drawn[:, i]
    found = torch.bincount(code, minlength=math.prod(sizes)) / len(drawn)
    with torch.no_grad():
        wanted = model.log_prob(all_states(sizes).float(), order=range(len(sizes))).exp()
    assert (found - wanted).abs().max() < 0.015


def test_the_papers_sizes():
    """GPT's small Transformer of text8, and PixelCNN++'s 53 million weights of CIFAR-10."""
    with torch.device("meta"):
        text = OATransformer(Schema.repeat(Category(27), 250), TRANSFORMERS["text8"])
        image = PixelCNN(Schema.repeat(Colour(256), 1024), (32, 32, 1), PIXEL_CNNS["cifar10"])
    inside = sum(p.numel() for p in text.layers.parameters())
    assert inside == 12 * (12 * 768**2 + 13 * 768)
    assert sum(p.numel() for p in text.parameters()) == inside + (28 + 251 + 250) * 768 + 2 * 768 + 27 * 769
    assert sum(p.numel() for p in image.parameters()) == pytest.approx(53e6, rel=0.02)


def test_training_finds_what_goes_together():
    x = torch.randint(3, (500, 1), generator=seeded()).repeat(1, 4).float()
    recipe = BaselineRecipe(steps=100, check_every=50, batch_size=64, learning_rate=1e-2)
    for kind in (ARTransformer, OATransformer):
        model = kind(Schema.repeat(Category(3), 4), TransformerSize(1, 16, 2))
        fit_baseline(model, x, recipe=recipe)
        assert model.log_prob(x[:50]).mean().item() > -1.4  # log 3 is 1.1
    image = PixelCNN(Schema.repeat(Ordinal(2), 16), (4, 4, 1), PixelCNNSize(8, 1, 2))
    stripes = torch.randint(2, (500, 1, 4), generator=seeded()).repeat(1, 4, 1).flatten(1).float()
    fit_baseline(image, stripes, recipe=recipe)
    assert image.log_prob(stripes[:50]).mean().item() > -4  # 4 log 2 is 2.8


def test_gaps_are_left_out_where_any_order_can_be_asked():
    model, weights = None, []
    present = torch.rand(40, 3, generator=seeded()) < 0.6
    for junk in (0.0, 1.0):
        x = torch.where(present, torch.ones(40, 3), junk)
        model = OATransformer(MIXED, TINY)
        fit_baseline(model, x, present, BaselineRecipe(steps=4, check_every=2, batch_size=16))
        weights.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_what_does_not_fit_is_refused():
    x = torch.zeros(2, 3)
    known = torch.tensor([[False, True, False]]).expand(2, 3)
    with pytest.raises(InputError, match="knows one order"):
        ARTransformer(MIXED, TINY).log_prob(x, Question(known, ~known))
    with pytest.raises(InputError, match="every number from 0 to 2 once"):
        OATransformer(MIXED, TINY).log_prob(x, order=(0, 0, 1))
    with pytest.raises(InputError, match="'x' is a number"):
        ARTransformer(Schema.of(a=Category(2), x=Real()))
    with pytest.raises(InputError, match="heads can share"):
        ARTransformer(MIXED, TransformerSize(1, 9, 2))
    with pytest.raises(InputError, match=r"Colour\(256\)"):
        PixelCNN(Schema.repeat(Category(4), 4), (2, 2, 1))
    with pytest.raises(InputError, match="for 4 variables"):
        PixelCNN(Schema.repeat(Ordinal(4), 4), (2, 1, 2))
