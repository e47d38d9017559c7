"""Tables as nobody would make them: never a stack trace, a NaN or a changed observed cell."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder

MAKERS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(-5, 5, n).astype(float),
    "large integers": lambda rng, n: rng.integers(-(2**40), 2**40, n),
    "huge": lambda rng, n: rng.normal(size=n) * 1e300,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-300,
    "one far out": lambda rng, n: np.where(np.arange(n) == 0, 1e12, rng.normal(size=n)),
    "text": lambda rng, n: rng.choice(["a", "b", "ü", "", " "], n),
    "boolean": lambda rng, n: rng.choice([True, False], n),
    "empty": lambda rng, n: np.full(n, np.nan),
    "constant": lambda rng, n: np.full(n, 3),
    "instants": lambda rng, n: pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**9, n), unit="s"),
    "categories": lambda rng, n: pd.Categorical(rng.choice(["x", "y"], n), categories=["y", "x", "z"]),
    "identifiers": lambda rng, n: [f"id{i}" for i in range(n)],
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.5, np.nan], n),
    "float32": lambda rng, n: rng.normal(size=n).round(2).astype(np.float32),
    "nullable integers": lambda rng, n: pd.array(rng.integers(0, 9, n), dtype="Int64"),
    "mixed objects": lambda rng, n: np.array([rng.choice([1, "one", 2.5, None]) for _ in range(n)], dtype=object),
}


@st.composite
def strange_tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=40))
    names = draw(st.lists(st.text(max_size=6), min_size=len(kinds), max_size=len(kinds), unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, gaps = draw(st.integers(1, 40)), draw(st.sampled_from([0.0, 0.3, 0.9]))
    columns = [pd.Series(MAKERS[kind](rng, rows)) for kind in kinds]
    return pd.DataFrame({name: column.mask(rng.random(rows) < gaps) for name, column in zip(names, columns, strict=True)})


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 12))])
def test_every_verb_answers_or_explains(part):
    """Three hundred tables, in twelve parts that can run side by side."""

    @seed(part)
    @settings(max_examples=25, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strange_tables())
    def check(table):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            ask_everything(table)

    check()


def ask_everything(table):
    try:
        model = AnyOrder(effort=0.0004).fit(table)
    except InputError as error:
        assert "There is nothing to model in this table" in str(error)  # noqa: PT017
        return
    filled = [model.transform(table), *model.impute(table, draws=2)]
    assert np.isfinite(model.score_samples(table)).all()
    assert len(model.sample(3)) == 3
    assert np.isfinite(model.anomalies(table).rows).all()
    model.intervals(table)
    modelled = [column.name for column in model.encoder_.columns]
    for result in filled:
        for name in table:
            observed = table[name].notna()
            assert result[name].dtype == table[name].dtype
            assert result[name][observed].equals(table[name][observed])
        assert result[modelled].notna().all().all()
