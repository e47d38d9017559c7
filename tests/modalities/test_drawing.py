"""Pictures of text: bars in proportion, inside the width, with nothing a terminal would obey."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from anyorder.cli.printing import mean_text
from anyorder.modalities.displays import Bar, block, bytes_text, draw, number_text, percent, probability_text, seconds_text

LAWS = st.lists(st.tuples(st.text(max_size=60), st.floats(0, 1)), min_size=1, max_size=8)


@given(LAWS, st.integers(60, 120))
def test_lines_stay_inside_the_width(distribution, width):
    lines = draw([Bar(*item) for item in distribution], width)
    assert len(lines) == len(distribution)
    assert all(cell_len(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


@given(st.floats(0, 60))
def test_a_bar_is_as_long_as_it_says(length):
    drawn = block(length)
    assert len(drawn) - 1 <= length + 1 / 16
    assert length - 1 / 16 <= len(drawn)


def test_numbers_as_a_person_reads_them():
    assert [percent(p) for p in (0.0, 0.0001, 0.25, 0.9999, 1.0)] == ["  0.0 %", " <0.1 %", " 25.0 %", ">99.9 %", "100.0 %"]
    assert [probability_text(p) for p in (0.0362, 1e-9)] == ["3.62 %", "1.00e-09"]
    assert [bytes_text(size) for size in (12, 658_000, 3_200_000_000)] == ["12 bytes", "658 kB", "3.2 GB"]
    assert [seconds_text(s) for s in (9.31, 125.0)] == ["9.3 s", "2 min 5 s"]
    assert [number_text(v) for v in (0.1 + 0.2, 50.0, 3, "2024-01-31")] == ["0.3", "50", "3", "2024-01-31"]


@pytest.mark.parametrize("label", ["\x1b[31mred", "two\nlines", ""])
def test_labels_cannot_break_the_picture(label):
    (line,) = draw([Bar(label, 1.0)], 60)
    assert line.isprintable()


@pytest.mark.parametrize(
    ("mean", "low", "high", "wanted"),
    [
        (41.3411071, 20, 60, "41.3"),
        (0.50818, 0, 1, "0.51"),
        (123456.789, 10_000, 900_000, "123000"),
        (1.5e-7, 1e-7, 2e-7, "1.5e-07"),
        (3.25, 3.25, 3.25, "3.25"),
        ("2024-01-31", "2024-01-01", "2024-03-01", "2024-01-31"),
    ],
)
def test_a_mean_has_as_many_digits_as_its_interval_is_worth(mean, low, high, wanted):
    assert mean_text(mean, low, high) == wanted
