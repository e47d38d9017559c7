"""What columns are taken for, what is filled into them, and the words in which it is said."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from anyorder.errors import InputError
from anyorder.modalities.tables.columns import OWN_LEVELS, CategoryColumn, NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder, encode_value, look_at
from anyorder.modalities.tables.preview import Preview

ROWS = 60
RNG = np.random.default_rng(0)
MAKERS = {"pandas": lambda t: t, "polars": pl.from_pandas, "arrow": lambda t: pa.Table.from_pandas(t, preserve_index=False)}

COLUMNS = {
    "flag": (RNG.integers(0, 2, ROWS), "category", "has only the values 0, 1"),
    "flag with gaps": (np.where(np.arange(ROWS) % 7, RNG.integers(0, 2, ROWS), np.nan), "category", "has only the values 0, 1"),
    "height": (RNG.choice([3.5, 7.0], ROWS), "category", "has only the values 3.5, 7"),
    "status": (RNG.integers(0, 3, ROWS), "category", "has only the values 0, 1, 2"),
    "edema": (RNG.choice([0, 0.5, 1], ROWS), "category", "has only the values 0, 0.5, 1"),
    "rating": (np.arange(ROWS) % 5 + 1, "category", "has only the values 1, 2, 3, 4, 5"),
    "quality": (np.arange(ROWS) % 6 + 3, "number", "has 6 different numbers"),
    "dose": (RNG.choice([0, 50, 100], ROWS), "number", "has 3 different numbers"),
    "glazing": (RNG.choice([0, 0.1, 0.25, 0.4], ROWS), "number", "has 4 different numbers"),
    "seldom": (np.r_[np.arange(5), np.full(ROWS - 5, np.nan)], "number", "has 5 different numbers"),
    "price": (RNG.permutation(10**6)[:ROWS], "number", "has 60 different numbers"),
    "year": (np.arange(ROWS) + 1950, "number", "has 60 different numbers"),
    "measured": (RNG.normal(size=ROWS), "number", "has 60 different numbers"),
    "paid": (RNG.permutation(10**6)[:ROWS], "number", "has 60 different numbers"),
    "case": (np.arange(ROWS) + 1001, "leave out", "counts up by row, 1001 to 1060: an identifier"),
    "case2": (np.arange(ROWS) * 1.0, "number", "has 60 different numbers"),
    "shuffled": (RNG.permutation(80)[:ROWS], "leave out", "has a different whole number in every row, "),
    "PassengerId": (RNG.permutation(10**6)[:ROWS], "leave out", "has a different whole number in each of 60 rows and is called"),
    "phone": (np.int64(5550000000) + RNG.permutation(10**6)[:ROWS], "leave out", "is called like an identifier"),
    "zip": (RNG.choice([10001, 90210, 60601], ROWS), "category", "is called like an identifier and has 3 different values"),
    "postcode": ([f"{k:05}" for k in np.arange(ROWS) % 20 + 1000], "category", "has 20 different values in 60 rows"),
    "hash": (
        [f"{k:08x}-{k * 7919:08x}" for k in range(ROWS)],
        "leave out",
        "has 60 different values in 60 rows: an identifier or free",
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_column_is_taken_for_what_it_is(make):
    table = make(pd.DataFrame({name: values for name, (values, _, _) in COLUMNS.items()}))
    for found in look_at(table):
        _, kind, why = COLUMNS[found.name]
        assert found.kind == kind, found
        assert why in found.why
    kinds = {name: "leave out" if kind == "category" else "category" for name, (_, kind, _) in COLUMNS.items()}
    assert [one.kind for one in look_at(table, kinds)] == list(kinds.values())  # what is said overrules


def test_an_identifier_says_how_it_can_be_modelled():
    notes = {one.name: one.note() for one in look_at(pd.DataFrame({n: COLUMNS[n][0] for n in ("case", "hash", "price")}))}
    assert str(notes["case"]) == (
        "Column 'case' is left out of the model: it counts up by row, 1001 to 1060: an identifier. "
        "To model it all the same: kinds={'case': 'number'}."
    )
    assert "kinds={'hash': 'category'}" in str(notes["hash"])
    assert notes["hash"].command_line is None  # `anyorder fit` prints what is left out
    assert notes["price"] is None


def places(encoder, name, values):
    """Where numbers lie in model space, off the lattice or not."""
    column = next(c for c in encoder.columns if c.name == name)
    return torch.tensor([[(v - column.centre) / column.scale for v in values]]).T.float()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_number_with_few_values_is_filled_with_the_nearest_of_them(make):
    values = [0.0, 0.1, 0.25, 0.4] * 10
    table = make(pd.DataFrame({"g": [None, None, None, *values]}))
    encoder = TableEncoder.learn(table)
    means = [0.04, 0.17, 9.0]
    x = torch.cat([places(encoder, "g", means), encoder.encode(table)[0][3:]])
    filled = encoder.fill(table, x, torch.ones_like(x, dtype=torch.bool))
    assert (filled["g"].to_pylist() if isinstance(filled, pa.Table) else list(filled["g"])) == [0.0, 0.1, 0.4, *values]
    drawn = encoder.frame(places(encoder, "g", means), table)
    assert (drawn["g"].to_pylist() if isinstance(drawn, pa.Table) else list(drawn["g"])) == [0.0, 0.1, 0.4]
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert encoder.columns[0].best_guess(x[:3, 0].double().numpy()).tolist() == [0.0, 0.1, 0.4]


def test_a_number_with_many_values_is_not_held_to_them():
    column = TableEncoder.learn(pd.DataFrame({"g": np.arange(40) / 10})).columns[0]
    assert column.only == ()
    assert column.cells(np.array([(0.72 - column.centre) / column.scale])) == [0.7]


def test_columns_of_old_files_are_read_and_old_fields_are_all_that_plain_ones_write():
    old = {
        "columns": [
            {"kind": "category", "name": "c", "levels": ["a", "b"]},
            {"kind": "number", "name": "v", "centre": 1.0, "scale": 2.0, "spacing": 0.5, "decimals": 1, "atoms": [1.0]},
        ],
        "left_out": {"id": "is empty"},
        "names": ["c", "v", "id"],
    }
    encoder = TableEncoder.from_json(old)
    assert encoder.columns == (CategoryColumn("c", ("a", "b")), NumberColumn("v", 1.0, 2.0, 0.5, 1, (1.0,)))
    assert encoder.columns[0].to_json() == old["columns"][0]
    assert encoder.to_json().keys() == old.keys()


def test_a_column_that_is_always_the_same_is_filled_with_its_value():
    table = pd.DataFrame({"same": ["x", None] * 5, "seven": [7.0, np.nan] * 5, "v": np.arange(10) / 3, "none": [None] * 10})
    encoder = TableEncoder.from_json(TableEncoder.learn(table).to_json())
    assert encoder.left_out["same"] == "is always 'x'"
    x, present = encoder.encode(table)
    for filled in (encoder.fill(table, x, ~present), encoder.fill(table[["same", "seven", "v"]], x, ~present)):
        assert filled["same"].tolist() == ["x"] * 10
        assert filled["seven"].tolist() == [7.0] * 10
    assert encoder.frame(x, table).columns.tolist() == ["v"]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_sentinels_are_gaps_and_are_filled(make):
    data = {
        "age": [30, 40, 999, 50, 35] * 6,
        "city": ["Oslo", "unknown", "Rome", "Oslo", "Bern"] * 6,
        "v": [11.5, 999, 12.5, 13, 14] * 6,
    }
    table = make(pd.DataFrame(data))
    for na in ({"age": 999, "city": "unknown"}, {"age": "999", "city": ["unknown", "?"]}, {"age": 999.0, "city": "unknown "}):
        encoder = TableEncoder.learn(table, na=na)
        assert encoder.columns[0].knots[-1] == 50
        assert encoder.columns[1].levels == ("Bern", "Oslo", "Rome")
        encoder = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
        x, present = encoder.encode(table)
        assert present[:5].tolist() == [[True, True, True], [True, False, True], [False, True, True], *[[True] * 3] * 2]
        filled = encoder.fill(table, torch.where(present, x, 0.0), ~present)
        found = filled.to_pandas() if hasattr(filled, "to_pandas") else filled
        before = pd.DataFrame(data)
        kept = ~((before == 999) & (before.columns == "age")) & (before != "unknown")
        assert (found[kept] == before[kept]).to_numpy()[kept].all()
        assert not (found[["age", "city"]].isin([999, "unknown"])).any().any()
        assert (filled.dtypes == table.dtypes).all() if isinstance(table, pd.DataFrame) else filled.schema == table.schema
    everywhere = TableEncoder.learn(table, na=[999, "unknown"])
    assert everywhere.columns[2].knots[-1] == 14
    with pytest.raises(InputError, match=r"na names a column 'aged' that the table does not have; it has age, city, v\."):
        TableEncoder.learn(table, na={"aged": 1})
    with pytest.raises(InputError, match="na holds None; expected numbers or texts that stand for gaps"):
        TableEncoder.learn(table, na={"age": [None]})


def many_levels(rows=3000, often=250, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.choice([f"a{k:03}" for k in range(often)], rows - 300, p=np.arange(1, often + 1) / np.arange(1, often + 1).sum())
    rare = [f"r{k:02}" for k in range(100) for _ in range(3)]
    return pd.DataFrame({"c": [*common, *rare], "v": rng.normal(size=rows)}).sample(frac=1, random_state=0, ignore_index=True)


def test_rare_levels_share_a_code_and_are_drawn_back_by_their_frequency():
    table = many_levels()
    encoder = TableEncoder.from_json(json.loads(json.dumps(TableEncoder.learn(table).to_json())))
    column, counts = encoder.columns[0], table["c"].value_counts()
    assert set(column.levels) == set(counts.index)
    assert column.domain.levels == OWN_LEVELS
    assert counts[list(column.common)].min() >= counts[list(column.rare)].max()
    x, present = encoder.encode(table)
    assert present.all()
    rare = x[:, 0] == OWN_LEVELS - 1
    assert rare.tolist() == table["c"].isin(column.rare).tolist()
    shares = np.exp(encoder.log_shares(table))
    assert (shares[~rare.numpy()] == 1).all()
    some = next(i for i, value in enumerate(table["c"]) if value == column.rare[0])
    assert shares[some, 0] == pytest.approx(counts[column.rare[0]] / counts[list(column.rare)].sum())
    codes = torch.full((20_000, 2), float(OWN_LEVELS - 1))
    drawn = encoder.frame(codes, table, rng=np.random.default_rng(0))["c"].value_counts(normalize=True)
    for level, share in zip(column.rare, column.shares, strict=True):
        assert drawn[level] == pytest.approx(share, abs=5 * np.sqrt(share / 20_000))
    distribution = np.random.default_rng(0).dirichlet(np.ones(OWN_LEVELS))
    assert column.spread(distribution).sum() == pytest.approx(1, abs=1e-12)
    assert encode_value(column, column.rare[3]) == OWN_LEVELS - 1


def test_a_few_levels_have_codes_of_their_own():
    column = TableEncoder.learn(pd.DataFrame({"c": [f"a{k}" for k in range(OWN_LEVELS)] * 2})).columns[0]
    assert (len(column.common), column.rare) == (OWN_LEVELS, ())


def test_a_preview_says_what_would_be_done():
    table = pd.DataFrame({name: COLUMNS[name][0] for name in ("flag", "glazing", "case")}).assign(
        size=[*["n.a.", "12,5"], *(f"{v:.1f}" for v in np.linspace(10, 20, ROWS - 2))], same=["x", None] * (ROWS // 2)
    )
    found = Preview.of(table, {"glazing": "category"})
    lines = repr(found).splitlines()
    assert lines[0].split() == ["column", "kind", "distinct", "gaps", "values", "why"]
    assert lines[1].split()[:4] == ["flag", "category", "2", "0"]
    assert lines[1].endswith("has only the values 0, 1")
    assert lines[2].endswith("was asked to be a category")
    assert "counts up by row, 1001 to 1060: an identifier" in lines[3]
    assert lines[4].split()[:4] == ["size", "number", str(found.columns[3].distinct), "1"]
    assert "1 text is a gap: 'n.a.'" in lines[4]
    assert lines[5].endswith("is always 'x'")
    assert lines[-1] == (
        "60 rows. To overrule: AnyOrder(kinds={'column': 'category'}), or 'number' or 'leave out'; na={'column': 999} names gaps."
    )
    assert max(found.columns[0].histogram) == "█"
    assert len(found.columns[0].histogram) == 2
    assert found.columns[2].histogram == ""
    assert found._repr_html_().count("<tr>") == 6
    assert "&#x27;x&#x27;" in found._repr_html_()
