"""From coarse to fine: every pixel is coded once, comes back, and costs what the model says."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyorder.archives import from_bytes, load_codec, save_codec, to_bytes
from anyorder.errors import FormatError, InputError
from anyorder.inference import log_prob
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.pyramid_codec import StagePlan, fit_image_codec, plans
from anyorder.subsets import CanonicalOrder, Planned, Question
from some_codecs import ENCODERS, made, some_codec, some_images

every_codec = pytest.mark.parametrize("name", ENCODERS)


@given(st.integers(1, 70), st.integers(1, 70))
def test_every_pixel_is_coded_once(height, width):
    coded = np.zeros((height, width), dtype=int)
    for plan in plans(ImageEncoder(height, width, 1, 256)):
        lattice = coded[:: plan.stride, :: plan.stride]
        assert lattice.shape == plan.shape[:2]
        assert ((lattice > 0).ravel() == plan.known.numpy()).all()
        lattice += ~plan.known.numpy().reshape(lattice.shape)
    assert (coded == 1).all()


def test_later_pixels_have_known_neighbours():
    plan = plans(ImageEncoder(28, 28, 1, 256))[-1]
    known = plan.known.numpy().reshape(28, 28).copy()
    for start, stop in zip(plan.places, plan.places[1:], strict=False):
        now = np.array(plan.order[784 - plan.places[-1] :][start:stop])
        rows, columns = np.divmod(now, 28)
        inside = (rows > 0) & (rows < 27) & (columns > 0) & (columns < 27)
        around = [known[rows[inside] + a, columns[inside] + b] for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))]
        diagonal = [known[rows[inside] + a, columns[inside] + b] for a in (-1, 1) for b in (-1, 1)]
        assert np.all(around) or np.all(diagonal)
        known[rows, columns] = True


@every_codec
@pytest.mark.parametrize("count", [0, 1, 7])
def test_images_come_back(name, count):
    codec = some_codec(name)
    x = codec.encoder.encode(some_images(name, count))
    content = codec.encode(x)
    assert torch.equal(codec.decode(content, count), x)
    assert codec.encode(x) == content


@every_codec
def test_bits_are_those_of_the_model(name):
    """The stream is as long as the log-probability in floating point, stage by stage, and one word."""
    codec = some_codec(name)
    x = codec.encoder.encode(some_images(name, 40))
    nats = 0.0
    for stage in codec.stages:
        plan = stage.plan
        lattice = x.unflatten(1, codec.encoder.shape)[:, :: plan.stride, :: plan.stride].flatten(1)
        known = plan.known.expand(len(x), -1)
        path = {"order": CanonicalOrder(plan.order), "schedule": Planned(plan.places)}
        nats -= log_prob(stage.model, lattice, Question(known, ~known), **path).double().sum().item()
    assert 8 * len(codec.encode(x)) == pytest.approx(nats / math.log(2), rel=0.01, abs=64)


@every_codec
def test_bytes_make_the_same_codec(name, tmp_path):
    codec = some_codec(name)
    content = to_bytes(codec)
    again = from_bytes(content)
    assert to_bytes(again) == content
    x = codec.encoder.encode(some_images(name, 3))
    assert again.encode(x) == codec.encode(x)
    save_codec(codec, tmp_path / "some.codec")
    assert load_codec(tmp_path / "some.codec").fingerprint() == codec.fingerprint()


def test_fingerprints_tell_codecs_apart():
    codecs = [some_codec(name) for name in ENCODERS] + [made(ImageEncoder(14, 15, 1, 256))]
    other = from_bytes(to_bytes(some_codec("grey")))
    other.stages[-1].model.network.last.numerator[0, 0, 0, 0] += 1
    assert len({codec.fingerprint() for codec in [*codecs, other]}) == len(codecs) + 1


def test_damaged_codecs_are_refused():
    """A bit that flips is noticed, unless it changes nothing."""
    content, rng = to_bytes(some_codec("one pixel")), np.random.default_rng(0)
    for place in rng.integers(0, len(content), 150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        try:
            found = from_bytes(bytes(damaged))
        except FormatError:
            continue
        x = found.encoder.encode(some_images("one pixel", 20)) if found.encoder == some_codec("one pixel").encoder else None
        assert x is not None
        assert found.encode(x) == some_codec("one pixel").encode(x)
    for place in range(0, len(content), max(1, len(content) // 50)):
        with pytest.raises(FormatError):
            from_bytes(content[:place])


def test_codecs_of_other_arithmetic_are_refused(monkeypatch):
    content = to_bytes(some_codec("grey"))
    monkeypatch.setattr("anyorder.archives.codecs.proof_answers", lambda model: 1)
    with pytest.raises(FormatError, match="other answers"):
        from_bytes(content)


def test_a_plan_that_leaves_pixels_out_is_refused():
    item = plans(ENCODERS["grey"])[0].to_json()
    with pytest.raises(FormatError, match="every pixel"):
        StagePlan.from_json(item | {"order": [*item["order"][:-1], 0]})


def test_missing_files_are_named():
    with pytest.raises(InputError, match="no file"):
        load_codec("nowhere.codec")


@pytest.mark.slow
def test_training_pays():
    """Stripes cost far less than the eight bits of a pixel once they were learned; the checks name the stages."""
    images = np.tile(np.arange(14, dtype=np.uint8) * 18, (64, 14, 1)) + np.arange(64, dtype=np.uint8)[:, None, None] % 4
    encoder = ImageEncoder(14, 14, 1, 256)
    x, stages = encoder.encode(images), set()
    codec = fit_image_codec(encoder, x, steps=60, progress=lambda stage, check: stages.add(stage))
    assert stages == {0, 1}
    assert 8 * len(codec.encode(x)) < 0.8 * 8 * len(made(encoder).encode(x))
    assert torch.equal(codec.decode(codec.encode(x), 64), x)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_nonsense_decodes_to_something_or_is_refused(seed, words):
    """A stream that was not written by us gives pixels of the right kind: checksums tell, not crashes."""
    codec = some_codec("few levels")
    content = np.random.default_rng(seed).integers(0, 2**32, words, dtype=np.uint32).tobytes()
    try:
        x = codec.decode(content, 2)
    except FormatError:
        return
    assert x.shape == (2, 72)
    assert ((x >= 0) & (x < 17)).all()
