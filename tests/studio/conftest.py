"""A studio with a small table and hardly trained models of it and of tiny images, asked without a browser."""

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra `studio` is not installed")

from anyorder import AnyOrder
from anyorder.modalities.registry import modality_of
from anyorder.studio.workspace import Workspace
from studio_client import Studio, make_people


@pytest.fixture(scope="session")
def people():
    return make_people()


@pytest.fixture(scope="session")
def people_model(people):
    return AnyOrder(effort=0.01).fit(people)


@pytest.fixture(scope="session")
def tiny_images():
    """Bars that stand or lie, black and white, 6 by 6."""
    rng = np.random.default_rng(0)
    images = np.zeros((40, 6, 6), dtype=np.uint8)
    for number, image in enumerate(images):
        place = rng.integers(6)
        image[(slice(None), place) if number % 2 else (place, slice(None))] = 255
    return images, ["lies", "stands"] * 20


@pytest.fixture(scope="session")
def image_model(tiny_images):
    return AnyOrder(effort=0.005).fit(*tiny_images)


@pytest.fixture
def studio(tmp_path, people, people_model, tiny_images, image_model):
    """With a table d1, images d2, and their models m3 and m4."""
    space = Workspace(tmp_path / "models")
    space.add_data("people.csv", modality_of(people), people)
    space.add_data("bars", modality_of(tiny_images[0]), *tiny_images)
    space.add_model("people.ao", people_model, "d1")
    space.add_model("bars.ao", image_model, "d2")
    found = Studio(space)
    with found.client:
        yield found
