"""Signals and gradients at the start: the cells, and the verdicts for given sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from highway_bench.cell import Cell
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.request import Request
from tests.reproduce.conftest import C, N, R, U, rows_of, verdicts

VANISHING, UNATTENUATED = reproductions.get("vanishing"), reproductions.get("unattenuated")


def scattered(value: float, cell: Cell) -> float:
    return value * (1 + 0.02 * (cell.seed % 3))


def of_start(cell: Cell, sizes: Mapping[float, float], still: Mapping[str, int]) -> dict[str, float]:
    """What a cell of ``vanishing`` measures, by its gain and its activation."""
    size = scattered(sizes[cell.recipe["gain"]], cell)
    values = {"activation_ratio": size, "gradient_ratio": size}
    if cell.dataset is None:
        return values
    layers = still[str(cell.family_options["activation"])] + cell.seed % 2
    return values | {"still_layers": float(layers), "still_first": 1.0, "still_last": float(layers)}


@pytest.mark.parametrize(
    ("sizes", "still", "expected"),
    [
        ({0.5: 1e-15, 1.0: 0.3, 2.0: 1e14}, {"sigmoid": 45, "tanh": 0}, [R] * 4),
        ({0.5: 1.0, 1.0: 1.0, 2.0: 1.0}, {"sigmoid": 2, "tanh": 30}, [C] * 4),
        (
            {0.5: 1e-9, 1.0: 1.0, 2.0: 1e9},
            {"sigmoid": 15, "tanh": 15},
            [R] * 2 + [U] * 2,
        ),
    ],
)
def test_vanishing(sizes: Mapping[float, float], still: Mapping[str, int], expected: list[Verdict]) -> None:
    request = Request(device="cpu")
    result = VANISHING.conclude(
        rows_of({cell: of_start(cell, sizes, still) for cell in VANISHING.cells(request)}), request
    )
    assert verdicts(result) == expected
    assert len(result.tables[0].entries) == 5


def test_the_layers_that_stand_still_are_named() -> None:
    request = Request(device="cpu")
    cells = VANISHING.cells(request)
    rows = rows_of({cell: of_start(cell, {0.5: 1, 1: 1, 2: 1}, {"sigmoid": 45, "tanh": 0}) for cell in cells})
    assert "layers 1 to 45" in VANISHING.outcome(rows, request).findings[2].measured


def test_seeds_that_were_seen_do_not_decide() -> None:
    request = Request(device="cpu")
    rows = rows_of({cell: of_start(cell, {0.5: 1e-9, 1: 1, 2: 1e9}, {"sigmoid": 45, "tanh": 0})
                    for cell in VANISHING.cells(request)})  # fmt: skip
    rows["seed"] -= 200
    assert set(verdicts(VANISHING.outcome(rows, request))) == {N}


def of_depth(factor: float) -> Callable[[Cell], dict[str, float]]:
    return lambda cell: {"activation_ratio": 1.0, "gradient_ratio": scattered(factor**cell.depth, cell)}


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1.6, [R, C, C]),
        (1.02, [R, R, R]),
        (0.8, [C, C, C]),
    ],
)
def test_unattenuated(factor: float, expected: list[Verdict]) -> None:
    request = Request(device="cpu")
    rows = rows_of({cell: of_depth(factor)(cell) for cell in UNATTENUATED.cells(request)})
    assert verdicts(UNATTENUATED.conclude(rows, request)) == expected
