"""Images through the face: what is known stays, what is missing is drawn from a distribution that sums to one."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.inference import mixture_log_prob, seeded
from anyorder.io import shipped
from anyorder.modalities.base import Training
from anyorder.modalities.images.image_model import FittedImages, binarise, build_image_model, fit_images
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.networks import SIZES, UNetSize
from anyorder.subsets import CanonicalOrder, Question
from anyorder.training import ardm, edge_loss
from anyorder.training.optimizer import Descent

RNG = np.random.default_rng(0)


def stripes(count=200, seed=0):
    """Images of 6 x 5 pixels whose rows are all the same: one row tells all others."""
    row = np.random.default_rng(seed).integers(0, 2, (count, 1, 5), dtype=np.uint8)
    return np.repeat(row, 6, axis=1)


@pytest.fixture(scope="module")
def model():
    return AnyOrder(effort=0.06, orders=2).fit(stripes(), np.arange(200) % 2)


def tiny(levels=2, seed=0):
    """An untrained model of 2 x 2 pixels, with parameters that are not zero."""
    encoder = ImageEncoder(2, 2, 1, levels)
    net = build_image_model(encoder, UNetSize((4, 6), 1), context=(2,), seed=seed)
    with torch.no_grad():
        for p in net.parameters():
            p += 0.2 * torch.randn(p.shape, generator=seeded(seed))
    return FittedImages(encoder, net.eval())


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("orders", [1, 3])
@pytest.mark.parametrize("steps", [None, 2])
def test_all_images_together_have_probability_one(levels, orders, steps):
    every = np.array(list(itertools.product(range(levels), repeat=4)), dtype=np.uint8).reshape(-1, 2, 2)
    ours = tiny(levels)
    assert np.exp(ours.score_samples(every, orders=orders, steps=steps)).sum() == pytest.approx(1, abs=1e-5)
    missing = np.array([[1, 0], [0, 1]])
    same = every[(every[:, 0, 1] == 1) & (every[:, 1, 0] == 0)]
    assert np.exp(ours.score_samples(same, missing, orders=orders, steps=steps)).sum() == pytest.approx(1, abs=1e-5)


def small(encoder, seed=0):
    """An untrained model with parameters that are not zero."""
    net = build_image_model(encoder, UNetSize((4, 6), 1), seed=seed)
    with torch.no_grad():
        for p in net.parameters():
            p += 0.3 * torch.randn(p.shape, generator=seeded(seed))
    return FittedImages(encoder, net.eval())


# Values as digits and pixels as colours, with so few images that all can be listed
WRITTEN = [
    ImageEncoder(1, 2, 1, 4, base=2),
    ImageEncoder(2, 2, 1, 3, base=2),  # 3 is no power of 2: one combination of digits is no value
    ImageEncoder(1, 1, 3, 5, base=3),
    ImageEncoder(1, 2, 3, 2, colours=True),
    ImageEncoder(1, 1, 3, 5, colours=True),
]
every_writing = pytest.mark.parametrize("encoder", WRITTEN, ids=repr)


def all_images(encoder):
    count = int(np.prod(encoder.pixels))
    return np.array(list(itertools.product(range(encoder.levels), repeat=count)), dtype=np.uint8).reshape(-1, *encoder.pixels)


@every_writing
@pytest.mark.parametrize("orders", [1, 3])
def test_all_images_together_have_probability_one_however_they_are_written(encoder, orders):
    ours, every = small(encoder), all_images(encoder)
    for steps in (None, 2 * encoder.digits):
        assert np.exp(ours.score_samples(every, orders=orders, steps=steps)).sum() == pytest.approx(1, abs=1e-5)


@every_writing
def test_images_are_drawn_as_often_as_they_are_likely_however_they_are_written(encoder):
    ours, count = small(encoder), 4000
    every = all_images(encoder)
    x = encoder.encode(every)
    walks = torch.stack([ours.order.rank(Question.joint(x[:1] > -1), seeded(s))[0].argsort() for s in range(150)])
    orders = [CanonicalOrder(tuple(walk.tolist())) for walk in walks]
    p = mixture_log_prob(ours.model, x, Question.joint(torch.ones_like(x, dtype=torch.bool)), orders).exp().numpy()
    places = {image.tobytes(): k for k, image in enumerate(every)}
    drawn = ours.sample(count).reshape(count, *encoder.pixels)
    counts = np.bincount([places[np.ascontiguousarray(image).tobytes()] for image in drawn], minlength=len(every))
    excess = (counts / count - p) / np.sqrt(p * (1 - p) / count + 1e-5)
    assert np.abs(excess).max() < 5.5
    assert (excess**2).mean() < 1.5


def test_the_digits_of_an_image_are_learned_and_completed():
    images = (stripes(400) * 9 + 3).astype(np.int64)  # values 3 and 12 of 16
    encoder = ImageEncoder(6, 5, 1, 16, base=4)
    ours = fit_images(encoder, encoder.encode(images), size=UNetSize((16, 16), 1), training=Training(0.07))
    mask = np.arange(6)[:, None] * np.ones(5) > 2
    filled = ours.inpaint(images[:20], mask, steps=12)[0]
    assert (filled == images[:20]).mean() > 0.97
    assert ours.score_samples(images[:20]).mean() > -10
    with pytest.raises(InputError, match="multiple"):
        ours.sample(1, steps=3)


def test_colours_are_learned_and_completed():
    clean = stripes(400)[..., None] * np.array([100, 60, 80]) + np.array([60, 80, 70])
    images = clean + np.random.default_rng(1).integers(-15, 16, clean.shape)
    encoder = ImageEncoder.learn(images.astype(np.uint8))
    ours = fit_images(encoder, encoder.encode(images), size=UNetSize((16, 16), 1), training=Training(0.1))
    mask = np.arange(6)[:, None] * np.ones(5) > 2
    filled = ours.inpaint(images[:20], mask, steps=6)[0]
    unknown = np.abs(clean - clean.mean()).mean()
    assert np.abs(filled.astype(float) - clean[:20]).mean() < 0.6 * unknown
    assert ours.sample(2, steps=3).shape == (2, 6, 5, 3)
    with pytest.raises(InputError, match="colours"):
        ours.inpaint(images[:1], mask[..., None] * np.array([1, 0, 0]))


def parameters_by_hand(widths, depth, patch, attention, maps, numbers):
    """Convolutions with their offsets, norms with their scales, level by level."""
    conv = lambda a, b, side=3: a * b * side**2 + b  # noqa: E731
    block = lambda w: 2 * (w + conv(w, w))  # noqa: E731
    look = lambda w: w + 3 * w * w + w * w + w  # noqa: E731
    total = conv(maps * patch**2, widths[0]) + widths[0] + conv(widths[0], numbers * patch**2)
    total += sum(2 * depth * block(w) for w in widths) + (2 * depth * look(widths[-1]) if attention else 0)
    return total + sum(conv(a, b, 2) + conv(b, a, 2) for a, b in itertools.pairwise(widths))


BLACK, GREY, COLOURED = ImageEncoder(28, 28, 1, 2), ImageEncoder(28, 28, 1, 256), ImageEncoder(32, 32, 3, 256, colours=True)


@pytest.mark.parametrize(
    ("name", "encoder", "maps", "numbers", "parameters"),
    [
        ("small", BLACK, 3, 1, 206_244),
        ("fine", GREY, 7, 15, 487_911),
        ("medium", BLACK, 3, 1, 875_764),
        ("large", BLACK, 3, 1, 12_623_012),
        ("sfarm-mnist", BLACK, 3, 1, 149_697),
        ("sfarm-fashion-mnist", GREY, 3, 3, 150_275),
        ("sfarm-cifar10", COLOURED, 5, 300, 19_259_052),
        ("sfarm-celeba64", COLOURED, 5, 300, 47_849_516),
        ("sfarm-imagenet64", COLOURED, 5, 300, 47_849_516),
        ("ardm-cifar10", ImageEncoder(32, 32, 3, 256), 7, 45, 92_493_357),
    ],
)
def test_the_papers_networks_can_be_built(name, encoder, maps, numbers, parameters):
    with torch.device("meta"):
        model = build_image_model(encoder, SIZES[name])
    size = SIZES[name]
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert parameters == parameters_by_hand(size.widths, size.depth, size.patch, size.attention, maps, numbers)


def test_every_size_is_tested():
    assert len(SIZES) == 10


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SIZES if name != "sfarm-imagenet64"])  # that of celeba64
def test_a_named_network_takes_a_step(name):
    """On very small images: the kernels are the same."""
    encoder = ImageEncoder(4, 4, 1, 2) if "mnist" in name else ImageEncoder(4, 4, 3, 256, colours=name != "ardm-cifar10")
    model = build_image_model(encoder, SIZES[name])
    descent = Descent(model.parameters(), model.network.kernels(), 1e-3, 0.01)
    x, before = torch.zeros(1, len(encoder)), model.network.last.weight.detach().clone()
    edges = ardm().sample(torch.ones_like(x, dtype=torch.bool), seeded())
    nats = [edge_loss(model, x, edges).sum()]
    nats[0].backward()
    descent.step(1.0)
    nats.append(edge_loss(model, x, edges).sum())
    assert nats[1] < nats[0]
    assert not torch.equal(before, model.network.last.weight)


def test_unknown_sizes_are_refused():
    with pytest.raises(InputError, match="sfarm-cifar10"):
        AnyOrder(size="huge").fit(stripes())
    with pytest.raises(InputError, match="for images"):
        AnyOrder(size="medium").fit(np.zeros((10, 2)))


def test_samples_are_as_frequent_as_likely():
    ours, count = tiny(), 4000
    every = np.array(list(itertools.product(range(2), repeat=4)), dtype=np.uint8).reshape(-1, 2, 2)
    drawn = ours.sample(count).reshape(count, 4) @ [8, 4, 2, 1]
    every_order = [CanonicalOrder(order) for order in itertools.permutations(range(4))]  # a walk takes a random one
    x = ours.encoder.encode(every)
    p = mixture_log_prob(ours.model, x, Question.joint(torch.ones_like(x, dtype=torch.bool)), every_order).exp().numpy()
    error = np.sqrt(p * (1 - p) / count)
    assert (np.abs(np.bincount(drawn, minlength=16) / count - p) < 4.5 * error + 1e-3).all()


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_known_pixel_is_ever_changed(data):
    shape = data.draw(st.sampled_from([(1, 1, 1), (3, 2, 1), (2, 3, 3), (5, 5, 1)]))
    levels = data.draw(st.sampled_from([2, 17, 256]))
    encoder = ImageEncoder(*shape, levels)
    net = FittedImages(encoder, build_image_model(encoder, UNetSize((4,), 1), seed=1))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    images = rng.integers(0, levels, (2, *shape), dtype=np.uint8)
    mask = rng.random((2, *shape[:2])) < data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    filled = net.inpaint(images, mask, draws=2, steps=data.draw(st.sampled_from([None, 1, 3])))
    assert filled.shape == (2, *images.shape)
    assert filled.dtype == images.dtype
    assert (filled[:, ~mask] == images[None][:, ~mask]).all()
    assert filled.max() < levels


def test_the_face_learns_inpaints_samples_and_scores(model):
    images, mask = stripes(8, seed=1), np.ones((6, 5), dtype=bool)
    mask[2] = False  # one row is known, and tells all others
    filled = model.inpaint(images, mask, draws=3, steps=4)
    assert filled.shape == (3, 8, 6, 5)
    assert (filled == images).mean() > 0.9
    new = model.sample(16, steps=6)
    assert new.shape == (16, 6, 5)
    assert (new == new[:, :1]).mean() > 0.85
    assert model.score_samples(images).mean() > -8  # five bits are 3.5 nats; knowing nothing costs 21
    assert model.score_samples(images, mask).mean() > -4
    assert model.score_samples(images).mean() > model.score_samples(RNG.integers(0, 2, (8, 6, 5))).mean() + 10
    np.testing.assert_array_equal(model.sample(3, steps=2), model.sample(3, steps=2))
    assert model.sample(2, steps=2, label=1, temperature=0.5).shape == (2, 6, 5)


def test_a_saved_model_says_the_same(model, tmp_path):
    model.save(tmp_path / "stripes.ao")
    again = AnyOrder.load(tmp_path / "stripes.ao")
    images = stripes(4, seed=2)
    np.testing.assert_array_equal(again.score_samples(images), model.score_samples(images))
    np.testing.assert_array_equal(again.sample(2, steps=3), model.sample(2, steps=3))
    assert again.parts_ == model.parts_ == ["network"]
    assert again.keeps_rows_ == 0
    assert [check.held_out_nats for check in again.history_] == [check.held_out_nats for check in model.history_]


def test_a_film_ends_with_the_image(model):
    frames = list(model.fitted_.film(steps=5, n=2))
    assert 1 < len(frames) <= 5
    shown = [mask.sum().item() for _, mask in frames]
    assert shown == sorted(shown)
    assert shown[-1] == 60
    for (before, there), (after, _) in itertools.pairwise(frames):
        held = there.numpy().reshape(before.shape)
        assert (before[held] == after[held]).all()


def test_black_and_white_is_drawn_anew():
    grey = torch.tensor([[0.0, 64.0, 255.0]]).expand(20000, -1)
    drawn = binarise(grey, seeded())
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert drawn.mean(0).tolist() == pytest.approx([0, 64 / 255, 1], abs=0.015)
    assert torch.equal(drawn, binarise(grey, seeded()))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.inpaint(stripes(2), np.zeros((3, 3))), "The mask has shape"),
        (lambda m: m.inpaint(stripes(2), np.zeros((6, 5)), draws=0), "draws=0"),
        (lambda m: m.inpaint(stripes(2)[:, :4], np.zeros((4, 5))), "this model knows"),
        (lambda m: m.sample(-1), "n=-1"),
        (lambda m: m.sample(1, steps=0), "steps=0; expected a whole number, 1 or more, or None"),
        (lambda m: m.sample(1, label=7), "knows the labels 0 to 1"),
        (lambda m: m.sample(1, temperature=0.0), "temperature"),
        (lambda m: m.transform(stripes(2)), "This is a model of images"),
        (lambda m: m.predict(stripes(2)), "This is a model of images"),
        (lambda m: m.next_best({}, "y"), "This is a model of images"),
        (lambda m: AnyOrder().fit(stripes(4), [0, 1]), "expected 4 whole numbers"),
        (lambda m: AnyOrder().fit(stripes(4), [0.5] * 4), "expected 4 whole numbers"),
    ],
)
def test_bad_questions_are_explained(model, ask, message):
    with pytest.raises(InputError, match=message):
        ask(model)


def test_a_table_is_no_image():
    table = AnyOrder(effort=0.002).fit(RNG.integers(0, 3, (30, 2)).astype(float))
    with pytest.raises(InputError, match="This is a model of a table"):
        table.inpaint(stripes(1), np.zeros((6, 5)))
    with pytest.raises(InputError, match="sample of a model of a table has no option 'label', which is for images"):
        table.sample(1, label=3)
    with pytest.raises(NotFittedError):
        AnyOrder().inpaint(stripes(1), np.zeros((6, 5)))


def test_a_file_of_half_the_size_answers_nearly_the_same(model, tmp_path):
    whole, half = tmp_path / "whole.ao", tmp_path / "half.ao"
    model.save(whole)
    model.save(half, half=True)
    assert half.stat().st_size < 0.62 * whole.stat().st_size  # numbers by half; the description stays
    again = AnyOrder.load(half)
    np.testing.assert_allclose(again.fitted_.score_samples(stripes(8)), model.fitted_.score_samples(stripes(8)), atol=0.05)
    again.save(tmp_path / "again.ao", half=True)
    np.testing.assert_array_equal(
        AnyOrder.load(tmp_path / "again.ao").fitted_.score_samples(stripes(8)),
        again.fitted_.score_samples(stripes(8)),
    )


@pytest.mark.parametrize("name", shipped.names())
def test_models_that_come_with_the_package_are_small_and_draw(name):
    assert shipped.model_file(name).stat().st_size < 2_000_000
    ours = AnyOrder.load(name)
    drawn = ours.sample(2, steps=8)
    assert len(drawn) == 2
    mask = np.zeros(drawn.shape[1:3])
    mask[: drawn.shape[1] // 2] = 1
    filled = ours.inpaint(drawn, mask, steps=4)[0]
    np.testing.assert_array_equal(filled[:, mask == 0], drawn[:, mask == 0])


def test_mnist_comes_with_the_package_and_knows_digits():
    """Its own samples are far likelier than noise of the same brightness."""
    ours = AnyOrder.load("mnist").fitted_
    drawn = ours.sample(4, steps=50)
    noise = RNG.permuted(drawn.reshape(4, -1), axis=1).reshape(drawn.shape)
    bits = [-ours.score_samples(images, steps=20).mean() / 784 / np.log(2) for images in (drawn, noise)]
    assert bits[0] < 0.25
    assert bits[1] > 0.6


def test_a_name_that_is_neither_file_nor_model_is_refused():
    with pytest.raises(InputError, match=r"no file 'mnits'.*mnist"):
        AnyOrder.load("mnits")
