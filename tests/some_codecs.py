"""Codecs as if they had been trained: every number is somewhere else than where it began."""

from functools import cache

import numpy as np
import pandas as pd
import torch

from anyorder.inference import sample
from anyorder.modalities.images.pixels import ImageEncoder
from anyorder.modalities.images.pyramid_codec import ImageCodec, Stage, frozen_stage, plans, untrained_stage
from anyorder.modalities.tables.codec.table_archives import FrameSource
from anyorder.modalities.tables.codec.table_codec import fit_table_codec
from anyorder.subsets import CanonicalOrder, Planned, Question

ENCODERS = {
    "grey": ImageEncoder(15, 14, 1, 256),
    "black and white": ImageEncoder(8, 8, 1, 2),
    "few levels": ImageEncoder(8, 9, 1, 17),
    "colours": ImageEncoder(14, 14, 3, 256, colours=True),
    "one pixel": ImageEncoder(1, 1, 1, 256),
}


@cache
def some_codec(name):
    return made(ENCODERS[name])


def made(encoder):
    stages = []
    for plan in plans(encoder):
        model = untrained_stage(encoder, plan, seed=0)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(1)
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn(parameter.shape)
        stages.append(Stage(plan, frozen_stage(model)))
    return ImageCodec(encoder, tuple(stages))


def some_images(name, count, seed=0):
    """Images that the codec of this name expects, so that it codes them shorter than zstd."""
    return made_images(name, count, seed).copy()


@cache
def made_images(name, count, seed):
    return expected(some_codec(name), count, seed)


def expected(codec, count, seed):
    """Images that a codec expects: drawn from its own distributions."""
    pixels, rng = torch.zeros(count, *codec.encoder.shape), torch.Generator().manual_seed(seed)
    for stage in codec.stages:
        lattice, known = pixels[:, :: stage.plan.stride, :: stage.plan.stride], stage.plan.known.expand(count, -1)
        order, schedule = CanonicalOrder(stage.plan.order), Planned(stage.plan.places)
        drawn = sample(stage.model, lattice.flatten(1), Question(known, ~known), rng, order=order, schedule=schedule)
        lattice.copy_(drawn.view_as(lattice))
    return codec.encoder.decode(pixels.flatten(1))


def some_frame(rows=400, seed=0):
    """Columns that follow each other, rows that follow each other, gaps, odd cells, words and noise."""
    rng = np.random.default_rng(seed)
    walk = np.round(np.cumsum(rng.normal(0, 0.02, rows)) + 20, 2)
    walk[::17] = np.nan
    town = rng.choice(["Oslo", "Bergen", "Tromsø"], rows, p=[0.6, 0.3, 0.1])
    price = np.where(town == "Oslo", 100, 50) + rng.integers(0, 9, rows)
    note = [f"note {k} {rng.integers(10**6)}" for k in range(rows)]
    odd = rng.normal(size=rows).round(3).astype(str).astype(object)
    odd[5::50] = "unknown"
    day = pd.date_range("2020-01-01", periods=rows, freq="h")
    return pd.DataFrame({"walk": walk, "town": town, "price": price, "note": note, "odd": odd, "day": day})


@cache
def some_table_codec():
    source = FrameSource(some_frame(2000))
    return fit_table_codec(source.names, source.texts, effort=200 / 1500)
