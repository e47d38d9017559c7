"""Names, domains and the check at the border."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import FormatError, InputError
from anyorder.schema import Category, Ordinal, Real, Schema, Variable

domains = st.sampled_from([Real(), Category(2), Category(7), Ordinal(3), Ordinal(256)])
columns = st.dictionaries(st.text(max_size=8), domains, min_size=1, max_size=8)


def schema_of(columns):
    return Schema(tuple(Variable(name, domain) for name, domain in columns.items()))


@given(columns)
def test_json_round_trip(columns):
    schema = schema_of(columns)
    assert Schema.from_json(schema.to_json()) == schema


@given(columns, st.data())
def test_names_and_masks_are_inverse(columns, data):
    schema = schema_of(columns)
    names = data.draw(st.lists(st.sampled_from(schema.names), unique=True))
    assert set(schema.names_of(schema.mask_of(names))) == set(names)


@given(columns, st.data())
def test_legal_rows_pass_and_what_is_not_present_may_hold_anything(columns, data):
    schema = schema_of(columns)
    row = [data.draw(st.floats(-9, 9) if isinstance(v.domain, Real) else st.integers(0, v.domain.levels - 1)) for v in schema]
    x = torch.tensor([row], dtype=torch.float32)
    schema.check(x, torch.ones_like(x, dtype=torch.bool))
    schema.check(x * torch.nan, torch.zeros_like(x, dtype=torch.bool))
    with pytest.raises(InputError, match="is not a finite number"):
        schema.check(x * torch.nan, torch.ones_like(x, dtype=torch.bool))


def test_repeat_names_by_number():
    assert Schema.repeat(Ordinal(256), 3).names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Schema(()), InputError, "at least one variable; got none"),
        (lambda: Schema((Variable("a", Real()), Variable("a", Real()))), InputError, "Two variables are named 'a'"),
        (lambda: Category(1), InputError, "levels=1; expected between 2"),
        (lambda: Ordinal(0), InputError, "levels=0; expected between 2"),
        (lambda: Schema.from_json([{"name": "a", "kind": "colour"}]), FormatError, "schema cannot be read"),
        (lambda: Schema.from_json([{"name": "a", "kind": "category", "levels": 1}]), FormatError, "schema cannot be read"),
        (
            lambda: Schema.of(a=Real()).check(torch.zeros(2, 1), torch.ones(2, 1)),
            InputError,
            r"`present` is torch.float32 of shape \(2, 1\); expected torch.bool",
        ),
        (
            lambda: Schema.of(a=Real()).check(torch.zeros(2), torch.zeros(2) > 0),
            InputError,
            r"x has shape \(2,\); expected a 2-D",
        ),
        (
            lambda: Schema.of(a=Real()).check([[0.0]], None),
            InputError,
            r"`x` is a list; expected a 2-D tensor .* torch.as_tensor",
        ),
        (lambda: Schema.of(income=Real()).index("incom"), InputError, "Did you mean 'income'"),
    ],
)
def test_bad_schemas_are_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()
