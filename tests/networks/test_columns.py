"""The network of columns: the same as a plain computation with 64-bit integers, and no column sees itself or a later one."""

import numpy as np
import pytest
import torch

from anyorder.errors import FormatError, InputError
from anyorder.networks import IntegerColumns, exactly
from anyorder.networks.integer import TOP, UNITS_OF_ONE
from anyorder.networks.integer_columns import HAT, INPUTS_OF_COLUMN, OUTPUTS_OF_COLUMN, START_GRID, hats
from anyorder.schema import Category, Ordinal, Schema, Variable

DOMAINS = (Category(5), Ordinal(60), Category(5), Ordinal(40), Category(2))
SCHEMA = Schema(tuple(Variable(str(k), domain) for k, domain in enumerate(DOMAINS)))
LEVELS = [domain.levels for domain in DOMAINS]
CONTEXT, AFTER = (30, 9, 60), (0, 0, 2)
OUTPUTS = [0, 2, 1, 3, 4]  # by kind, as heads are grouped: two of 5 levels, then 60, 40 and 2


def trained():
    torch.manual_seed(0)
    network = IntegerColumns(SCHEMA, sum(LEVELS), 6, CONTEXT, AFTER)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return network


def rows(count=9):
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, n, count) for n in LEVELS], axis=1)
    context = np.stack([rng.integers(-1, n, count) for n in CONTEXT], axis=1)
    return torch.from_numpy(x).float(), torch.from_numpy(context), torch.from_numpy(rng.random(x.shape) < 0.7)


def rounded(numerator, power):
    """numerator / 2^power to the nearest whole number, halves to the even one."""
    low, rest, half = numerator >> power, numerator & ((1 << power) - 1), (1 << power) // 2
    return low + int(rest > half or (rest == half and low % 2 == 1 and power > 0))


def twin(network, x, given, context):
    """One row, one column, one product after the other."""
    m, k, offset = (part.numpy().astype(np.int64) for part in network.first.whole())
    last, last_k, last_offset = (part.numpy().astype(np.int64) for part in network.last.whole())
    start = network.start.numpy().astype(np.int64)
    sight = [hats(n, n if isinstance(d, Category) else INPUTS_OF_COLUMN) for n, d in zip(LEVELS, DOMAINS, strict=True)]
    sight += [hats(n, INPUTS_OF_COLUMN) for n in CONTEXT]
    speech = [
        hats(n, n if isinstance(d, Category) else OUTPUTS_OF_COLUMN).numpy().astype(int)
        for n, d in zip(LEVELS, DOMAINS, strict=True)
    ]
    codes, seen_from = [*x, *context], [*range(1, len(LEVELS) + 1), *AFTER]
    known = [*given, *(c >= 0 for c in context)]
    scores = {}
    for column, count in enumerate(LEVELS):
        inputs = []
        for table, code, since, is_known in zip(sight, codes, seen_from, known, strict=True):
            shown = is_known and since <= column
            inputs += (
                table[int(code)].numpy().astype(int) * (2 * UNITS_OF_ONE // HAT) if shown else [0] * table.shape[1]
            ).__iter__()
        inputs += [UNITS_OF_ONE * (other == column) for other in range(len(LEVELS))]
        sums = m[:, :, 0, 0] @ np.array(inputs, dtype=np.int64) + offset
        h = np.array([min(max(rounded(int(s), int(p)), 0), TOP) for s, p in zip(sums, k, strict=True)])
        first = sum(table.shape[1] for table in speech[:column])
        knots = range(first, first + speech[column].shape[1])
        told = [rounded(int((last[j, :, 0, 0] @ h + last_offset[j]) * 16), int(last_k[j])) for j in knots]
        told = np.clip(told, -(2**15) + 1, 2**15 - 1)
        own = start[sum(LEVELS[:column]) :][:count] * (1024 // START_GRID)
        scores[column] = [
            min(max(rounded(int(own[s]) * HAT + int(speech[column][s] @ told), 7), -(2**15) + 1), 2**15 - 1) for s in range(count)
        ]
    return np.concatenate([scores[column] for column in OUTPUTS])


def test_answers_are_those_of_plain_integers():
    network, (x, context, given) = trained().freeze(), rows()
    network.check_bound()
    with exactly():
        said = network(x, given, context)
    expected = [twin(network, *row) for row in zip(x.numpy(), given.numpy(), context.numpy(), strict=True)]
    np.testing.assert_array_equal((said * 1024).numpy(), np.stack(expected))


def test_freezing_changes_no_more_than_the_grid():
    network, (x, context, given) = trained(), rows()
    frozen = network.freeze()
    with exactly():
        assert torch.equal(network(x, given, context), frozen(x, given, context))
    assert (network(x, given, context) - frozen(x, given, context)).abs().max() <= 1 / 2048


def test_no_column_sees_itself_or_a_later_one():
    network, (x, context, _) = trained().freeze(), rows()
    everything = torch.ones_like(x, dtype=torch.bool)
    starts = dict(zip(OUTPUTS, np.cumsum([0, *(LEVELS[c] for c in OUTPUTS)]), strict=False))
    whole = network(x, everything, context)
    moved = set()
    for changed in range(len(LEVELS) + len(CONTEXT)):
        y, other = x.clone(), context.clone()
        if changed < len(LEVELS):
            y[:, changed] = (y[:, changed] + 1) % LEVELS[changed]
        else:
            other[:, changed - len(LEVELS)] = (other[:, changed - len(LEVELS)] + 1) % CONTEXT[changed - len(LEVELS)]
        since = changed + 1 if changed < len(LEVELS) else AFTER[changed - len(LEVELS)]
        again = network(y, everything, other)
        for column, start in starts.items():
            part = slice(start, start + LEVELS[column])
            if column < since:
                assert torch.equal(whole[:, part], again[:, part])
            elif not torch.equal(whole[:, part], again[:, part]):
                moved.add((changed, column))
    assert {(0, 1), (1, 2), (2, 3), (5, 0), (7, 2)} <= moved


def test_hidden_is_not_the_same_as_zero():
    network, (x, context, _) = trained().freeze(), rows()
    x = torch.zeros_like(x)
    known, hidden = torch.ones_like(x, dtype=torch.bool), torch.zeros_like(x, dtype=torch.bool)
    assert not torch.equal(network(x, known, context), network(x, hidden, context))
    assert torch.equal(network(x, known), network(x, known, torch.full_like(context, -1)))


@pytest.mark.parametrize(("levels", "knots"), [(1, 8), (5, 5), (3, 8), (250, 8), (57, 16)])
def test_levels_share_knots(levels, knots):
    table = hats(levels, knots)
    assert (table.sum(1) == HAT).all()
    assert ((table > 0).sum(1) <= 2).all()
    place = table @ torch.arange(table.shape[1], dtype=table.dtype)
    assert (place.diff() > 0).all() or levels == 1


def test_a_bound_is_kept():
    network = trained().freeze()
    network.start.fill_(10_000)
    with pytest.raises(FormatError, match="starts from"):
        network.check_bound()


@pytest.mark.parametrize(
    "sizes", [{"context": (0,), "after": (0,)}, {"context": (3,), "after": ()}, {"context": (3,), "after": (9,)}, {"width": 0}]
)
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(InputError):
        IntegerColumns(SCHEMA, sum(LEVELS), **sizes)
