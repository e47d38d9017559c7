"""Tables as nobody would make them: never a stack trace, a NaN or a changed observed cell."""

import warnings

import numpy as np
import pandas as pd
import pytest

from anyorder import AnyOrder, InputError

MAKERS = [
    lambda rng, n: rng.normal(size=n),
    lambda rng, n: rng.integers(-5, 5, n).astype(float),
    lambda rng, n: rng.integers(-(2**40), 2**40, n),
    lambda rng, n: rng.normal(size=n) * 1e300,
    lambda rng, n: rng.normal(size=n) * 1e-300,
    lambda rng, n: rng.choice(["a", "b", "ü", "", " "], n),
    lambda rng, n: rng.choice([True, False], n),
    lambda rng, n: np.full(n, np.nan),
    lambda rng, n: np.full(n, 3),
    lambda rng, n: pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**9, n), unit="s"),
    lambda rng, n: pd.Categorical(rng.choice(["x", "y"], n), categories=["y", "x", "z"]),
    lambda rng, n: [f"id{i}" for i in range(n)],
    lambda rng, n: rng.choice([0.0, -0.0, 1.5, np.nan], n),
    lambda rng, n: rng.normal(size=n).round(2).astype(np.float32),
    lambda rng, n: np.array([rng.choice([1, "one", 2.5, None]) for _ in range(n)], dtype=object),
]


def strange_table(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 30))
    columns = {}
    for i in range(int(rng.integers(1, 9))):
        column = pd.Series(MAKERS[rng.integers(len(MAKERS))](rng, rows))
        columns[rng.choice(["", "é", "a b", "col"]) + str(i)] = column.mask(rng.random(rows) < 0.3 * rng.integers(2))
    return pd.DataFrame(columns)


@pytest.mark.parametrize("seed", range(60))
def test_every_verb_answers_or_explains(seed):
    table = strange_table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = AnyOrder(effort=0.0004).fit(table)
        except InputError as error:
            assert "There is nothing to model in this table" in str(error)  # noqa: PT017
            return
        filled = [model.transform(table), *model.impute(table, draws=2)]
        assert np.isfinite(model.score_samples(table)).all()
        assert len(model.sample(3)) == 3
        assert np.isfinite(model.anomalies(table).rows).all()
    modelled = [column.name for column in model.encoder_.columns]
    for result in filled:
        for name in table:
            observed = table[name].notna()
            assert result[name].dtype == table[name].dtype
            assert result[name][observed].equals(table[name][observed])
        assert result[modelled].notna().all().all()
