"""Streamed tables: what fits is read as it is in memory; of more a uniform sample is kept, and what the encoder must not miss."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anyorder import AnyOrder
from anyorder.errors import InputError
from anyorder.modalities.tables import streams
from anyorder.modalities.tables.columns import CategoryColumn, NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.streams import read_stream
from anyorder.modalities.tables.table_files import Dialect, read_table


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": rng.normal(0, 1, rows).round(3),
            "whole": pd.array(np.where(rng.random(rows) < 0.1, None, rng.integers(0, 1000, rows)), dtype="Int64"),
            "city": np.where(rng.random(rows) < 0.1, None, rng.choice(["Oslo", "Rome"], rows)),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D"),
            "id": np.arange(rows) + 7,
        }
    )


@pytest.fixture
def parts(tmp_path):
    """4,000 rows in four Parquet files of several row groups, and the same in csv files; one value of a kind in the last file."""
    whole = table(4000)
    whole.loc[3990, "city"] = "Vardø"
    whole.loc[3991, "number"] = -99.0
    whole.loc[10, "day"] = pd.Timestamp("1990-05-05")
    for number in range(4):
        some = whole[1000 * number : 1000 * (number + 1)]
        pq.write_table(pa.Table.from_pandas(some, preserve_index=False), tmp_path / f"{number}.parquet", row_group_size=300)
        some.to_csv(tmp_path / f"{number}.csv", index=False)
    whole.to_csv(tmp_path / "whole.txt.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_what_fits_is_the_table_in_memory(parts, suffix, recwarn):
    streamed = read_stream(parts / f"[0-3].{suffix}", Dialect())
    assert streamed.is_whole
    in_memory = pd.concat([read_table(parts / f"{number}.{suffix}") for number in range(4)], ignore_index=True)
    pd.testing.assert_frame_equal(streamed.sample, in_memory)
    kinds = {"id": "number"}
    assert TableEncoder.learn(streamed.for_encoder(), streamed.kinds(kinds)) == TableEncoder.learn(in_memory, kinds)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_of_more_a_uniform_sample_is_kept(parts, suffix, monkeypatch):
    monkeypatch.setattr(streams, "SAMPLED_CELLS", 400 * 5)
    with pytest.warns(UserWarning, match="Of 4,000 rows a uniform sample of 400 is learned from"):
        streamed = read_stream(parts / f"[0-3].{suffix}", Dialect())
    assert (len(streamed), len(streamed.sample), streamed.is_whole) == (4000, 400, False)
    ids = streamed.sample["id"].to_numpy() - 7
    assert len(set(ids)) == 400
    assert (np.diff(ids) > 0).all()
    counts = np.bincount(ids // 1000, minlength=4)
    assert (np.abs(counts - 100) < 4 * np.sqrt(100)).all()  # four standard deviations
    assert streamed.rising == ["id"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_encoder_of_a_sample_knows_levels_and_ends_exactly(parts, suffix, monkeypatch):
    monkeypatch.setattr(streams, "SAMPLED_CELLS", 400 * 5)
    monkeypatch.setattr(streams, "MOST_LEVELS_SEEN", 20)
    with pytest.warns(UserWarning, match="uniform sample"):
        streamed = read_stream(parts / f"[0-3].{suffix}", Dialect())
    exact = TableEncoder.learn(read_stream(parts / f"[0-3].{suffix}", Dialect(), stream=False).sample)
    found = TableEncoder.learn(streamed.for_encoder(), streamed.kinds({}))
    assert (
        [column.name for column in found.columns]
        == [column.name for column in exact.columns]
        == ["number", "whole", "city", "day"]
    )
    assert "id" in found.left_out
    error = np.sqrt(np.log(2 / 0.001) / (2 * 400))  # how far the shares of 400 rows may be off, but once in a thousand times
    for mine, true in zip(found.columns, exact.columns, strict=True):
        if isinstance(true, CategoryColumn):
            assert mine.levels == true.levels == ("Oslo", "Rome", "Vardø")
            continue
        assert isinstance(mine, NumberColumn)
        assert isinstance(true, NumberColumn)
        assert (mine.unit, mine.decimals, mine.spacing) == (true.unit, true.decimals, true.spacing)
        assert (mine.knots[0], mine.knots[-1]) == pytest.approx((true.knots[0], true.knots[-1]), abs=true.spacing / 100)
        assert mine.bounds == pytest.approx(true.bounds, rel=1e-9)
        values = exact_values(parts, suffix, mine)
        for share, knot in zip(np.linspace(0, 1, len(mine.knots)), mine.knots, strict=True):
            assert abs((values <= knot).mean() - share) < error + 0.01


def exact_values(parts, suffix, column):
    from anyorder.modalities.tables.columns import read_numbers
    from anyorder.modalities.tables.dataframes import as_frame

    values = read_numbers(as_frame(read_stream(parts / f"[0-3].{suffix}", Dialect(), stream=False).sample)[column.name])
    return values[~np.isnan(values)]


def test_the_sample_is_uniform_over_many_seeds():
    """Every row of ten is kept in four of ten samples: the reservoir against binomial counts."""
    counts = np.zeros(10)
    for seed in range(1500):
        keys = np.random.default_rng(seed).random(10)
        reservoir = streams.Reservoir(4, np.concatenate)
        for start in range(0, 10, 3):
            reservoir.add(np.arange(start, min(start + 3, 10)), keys[start : start + 3], lambda frame, rows: frame[rows])
        reservoir.cut(lambda frame, rows: frame[rows])
        assert set(reservoir.parts[0]) == set(np.argsort(keys)[:4])
        counts[reservoir.parts[0]] += 1
    assert (np.abs(counts - 600) < 5 * np.sqrt(1500 * 0.24)).all()


def test_a_file_of_other_columns_is_named(parts):
    pq.write_table(pq.read_table(parts / "2.parquet").drop_columns("city"), parts / "2.parquet")
    with pytest.raises(InputError, match=r"2\.parquet, row group 1 of 1 lacks the column 'city'"):
        read_stream(parts / "*.parquet", Dialect())
    with pytest.raises(InputError, match="several kinds"):
        read_stream(parts, Dialect())


def test_a_column_of_two_types_is_refused(parts):
    other = pq.read_table(parts / "3.parquet")
    pq.write_table(other.set_column(0, "number", other["number"].cast(pa.string())), parts / "3.parquet")
    with pytest.raises(InputError, match="a column of several types"):
        read_stream(parts / "*.parquet", Dialect())


def test_a_model_is_fitted_to_files(parts, tmp_path):
    model = AnyOrder(effort=0.01).fit(str(parts / "[0-1].parquet"))
    assert model.fitted_.fit_info == {"rows": 2000, "effort": 0.01}
    assert "id" in model.encoder_.left_out
    same = AnyOrder(effort=0.01).fit(pd.concat([read_table(parts / f"{k}.parquet") for k in range(2)], ignore_index=True))
    for one, name in ((model, "a.ao"), (same, "b.ao")):
        one.save(tmp_path / name)
    assert (tmp_path / "a.ao").read_bytes() == (tmp_path / "b.ao").read_bytes()


@pytest.mark.slow
def test_a_sample_is_as_good_as_the_table_within_the_spread(tmp_path, monkeypatch):
    """3,000 of 4,000 rows: the held-out score differs by less than twice its standard error from that of all rows."""
    rng = np.random.default_rng(1)
    city = rng.choice(["Oslo", "Rome", "Bergen"], 4400)
    income = (np.select([city == "Oslo", city == "Rome"], [50.0, 20.0], 80.0) + rng.normal(0, 3, 4400)).round()
    rows = pd.DataFrame({"city": city, "income": income, "age": (income + rng.normal(0, 10, 4400)).round()})
    rows[:4000].to_parquet(tmp_path / "train.parquet", row_group_size=500)
    whole = AnyOrder(effort=0.1).fit(rows[:4000]).score_samples(rows[4000:])
    monkeypatch.setattr(streams, "SAMPLED_CELLS", 3000 * 3)
    with pytest.warns(UserWarning, match="uniform sample of 3,000"):
        sampled = AnyOrder(effort=0.1).fit(str(tmp_path / "*.parquet"))
    assert sampled.fitted_.fit_info == {"rows": 4000, "effort": 0.1, "sampled": 3000}
    difference = sampled.score_samples(rows[4000:]) - whole
    assert abs(difference.mean()) < max(0.03, 2 * difference.std() / np.sqrt(400))
