"""Data to try the studio with, from scikit-learn: nothing is downloaded."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..modalities.base import Modality
from ..modalities.registry import modality_of

GAPS = 0.04  # share of the cells of a sample table that are hidden, so that there is something to fill


class Sample(NamedTuple):
    """What it is, in a line, and how it is made."""

    says: str
    load: Callable[[], tuple[str, Modality, Any, Any]]  # name, kind of data, X, y


def patients() -> tuple[str, Modality, Any, Any]:
    """442 people with diabetes: seven of the eleven columns, which are learned in a few seconds."""
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True, scaled=False).frame
    table = table[["age", "sex", "bmi", "bp", "s1", "s6", "target"]]
    table.columns = ["age", "sex", "bmi", "pressure", "cholesterol", "glucose", "progression"]
    table["sex"] = table["sex"].map({1: "code 1", 2: "code 2"})  # the source does not say which is which
    table = with_gaps(table.astype({"age": "Int64", "cholesterol": "Int64", "glucose": "Int64", "progression": "Int64"}))
    return "patients.csv", modality_of(table), table, None


def wine() -> tuple[str, Modality, Any, Any]:
    from sklearn.datasets import load_wine

    data = load_wine(as_frame=True)
    table = data.frame.rename(columns={"target": "cultivar", "od280/od315_of_diluted_wines": "od280"})
    table["cultivar"] = table["cultivar"].map(dict(enumerate(("first", "second", "third"))))
    return "wine.csv", modality_of(table), with_gaps(table), None


def digits() -> tuple[str, Modality, Any, Any]:
    from sklearn.datasets import load_digits

    data = load_digits()
    images = data.images.astype(np.uint8)
    return "digits", modality_of(images), images, [str(label) for label in data.target]


def with_gaps(table: Any) -> Any:
    hidden = np.random.default_rng(0).random(table.shape) < GAPS
    return table.mask(hidden)


SAMPLES = {
    "patients": Sample("442 people with diabetes, and how it had progressed a year later", patients),
    "wine": Sample("178 wines of three cultivars, thirteen measurements", wine),
    "digits": Sample("1,797 handwritten digits of 8 by 8 pixels", digits),
}
