"""Shared by the tests of reproductions: the prepared rows of cells with given metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.frames.rows import prepared
from highway_bench.results.schema import row
from highway_bench.studies.reproduce.base import Conclusion, Reproduction
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.request import Request

Values = dict[Cell, dict[str, float]]
Point = tuple[str, str, float]
"""A metric, an axis and an index on it."""
R, S, U, A, C, N = Verdict  # reproduced, suggestive, undecided, suggestive against, contradicted, not testable


def rows_of(values: Mapping[Cell, Mapping[str | Point, float]] | Values, **columns: Any) -> pd.DataFrame:
    """One row per metric. A value that is not finite becomes null, and its run has diverged."""
    rows: list[dict[str, Any]] = []
    for number, (cell, metrics) in enumerate(values.items()):
        for what, value in metrics.items():
            fine = math.isfinite(value)
            metric, axis, index = what if isinstance(what, tuple) else (what, "", None)
            rows.append(
                row(
                    **cell.columns(),
                    metric=metric,
                    axis=axis,
                    value=value if fine else None,
                    machine="m",
                    status="ok" if fine else "diverged",
                    time_utc="2026-01-01",
                    digest=f"d{number}",
                )
                | {"index": index, **columns}
            )
    return prepared(pd.DataFrame(rows))


def verdicts(result: Conclusion, what: str = "") -> list[Verdict]:
    """The verdicts on the claims whose statement has these words."""
    return [one.verdict for one in result.findings if what in one.claim.statement]


def followed(study: Reproduction, request: Request, metrics: Callable[[Cell], dict[str, float]]) -> Values:
    """The ``metrics`` of every cell of a study, and of all that follow from them. The rate 0.1 is the best of those
    that are tried."""
    values: Values = {}
    ended: Values = {}
    new = study.cells(request)
    while new := [cell for cell in dict.fromkeys(new) if cell not in values]:
        for cell in new:
            tried = {"final_loss": 1 + abs(math.log(cell.recipe.get("rate", 0.1) / 0.1)), "success": 1.0}
            values[cell] = metrics(cell) if cell.trial is None else tried
            ended[cell] = {name: value if math.isfinite(value) else math.nan for name, value in values[cell].items()}
        new = study.pending(request, ended)
    return values
