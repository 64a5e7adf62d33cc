"""Numbers as text."""

from __future__ import annotations

import math

import pytest

from highway_bench.report.format import between, count, listed, quantity, signed, three


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.8349, "1.83"), (12345, "12,300"), (0.0012345, "0.00123"), (9.999, "10.0"), (0, "0"), (-2.5, "−2.50"),
     (1e9, "1.00e+09"), (-1e-7, "−1.00e-07"), (math.inf, "∞"), (math.nan, "–"), (None, "–")],
)  # fmt: skip
def test_three_significant_digits(value: float | None, text: str) -> None:
    assert three(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.003214, "s", "3.21 ms"), (4.5e-7, "s", "450 ns"), (1234.0, "s", "1,230 s"), (1.02e6, "B", "1.02 MB"),
     (12.3e3, "sample/s", "12.3 ksample/s"), (0.31, "1", "0.310"), (3, "B", "3.00 B"), (0, "B", "0 B"),
     (0.9999, "s", "1.00 s"), (999.9e3, "B", "1.00 MB")],
)  # fmt: skip
def test_a_quantity_has_the_prefix_that_suits_it(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_intervals_counts_and_lists() -> None:
    assert (signed(-2.0), signed(0.5), signed(-0.126, "+.2f")) == ("−2", "0.5", "−0.13")
    assert between(1.8, 1.864) == "[1.80, 1.86]"
    assert between(math.nan, 1.0) == ""
    assert count(85660.0) == "85,660"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
