"""Signals and gradients at the start: the cells, and the verdicts for given sizes."""

import pytest

from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.request import Request
from tests.reproduce.conftest import C, N, R, U, rows_of, verdicts

REQUEST = Request(device="cpu")
VANISHING, UNATTENUATED = reproductions.get("vanishing"), reproductions.get("unattenuated")


def scattered(value, cell):
    return value * (1 + 0.02 * (cell.seed % 3))


def of_start(cell, sizes, still):
    """What a cell of ``vanishing`` measures, by its gain and its activation."""
    size = scattered(sizes[cell.recipe["gain"]], cell)
    values = {"activation_ratio": size, "gradient_ratio": size}
    if cell.dataset is None:
        return values
    layers = still[str(cell.family_options["activation"])] + cell.seed % 2
    return values | {"still_layers": float(layers), "still_first": 1.0, "still_last": float(layers)}


def of_vanishing(sizes, still):
    return rows_of({cell: of_start(cell, sizes, still) for cell in VANISHING.cells(REQUEST)})


@pytest.mark.parametrize(
    ("sizes", "still", "expected"),
    [
        ({0.5: 1e-15, 1.0: 0.3, 2.0: 1e14}, {"sigmoid": 45, "tanh": 0}, [R] * 4),
        ({0.5: 1.0, 1.0: 1.0, 2.0: 1.0}, {"sigmoid": 2, "tanh": 30}, [C] * 4),
        ({0.5: 1e-9, 1.0: 1.0, 2.0: 1e9}, {"sigmoid": 15, "tanh": 15}, [R] * 2 + [U] * 2),
    ],
)
def test_vanishing(sizes, still, expected):
    rows = of_vanishing(sizes, still)
    result = VANISHING.conclude(rows, REQUEST)
    assert verdicts(result) == expected
    assert f"layers 1 to {still['sigmoid']}" in result.findings[2].measured
    assert len(result.tables[0].entries) == 5
    rows["seed"] -= 200  # those that were seen before the rule do not decide
    assert set(verdicts(VANISHING.outcome(rows, REQUEST))) == {N}


def of_depth(factor, largest):
    """What a cell of ``unattenuated`` measures: a factor a layer, but for the signal through gates."""

    def values(cell):
        size = scattered(factor**cell.depth, cell)
        signal = scattered(1.0, cell) if cell.block == "highway" else size
        return {
            "activation_ratio": signal,
            "gradient_ratio": size,
            "jacobian_largest": largest,
            "jacobian_smallest": 1.0,
        }

    return values


@pytest.mark.parametrize(
    ("factor", "largest", "expected"),
    [(1.6, 1.5, [R, *[C] * 4, R, C]), (1.02, 1 + 1e-15, [*[R] * 5, U, R]), (0.8, 1.5, [*[C] * 5, U, C])],
)
def test_unattenuated(factor, largest, expected):
    rows = rows_of({cell: of_depth(factor, largest)(cell) for cell in UNATTENUATED.cells(REQUEST)})
    assert verdicts(UNATTENUATED.conclude(rows, REQUEST)) == expected
