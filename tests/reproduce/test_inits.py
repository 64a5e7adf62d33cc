"""Inits: the grid, and the verdict for given successes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from highway_bench.report.rows import prepared
from highway_bench.reproduce.base import Conclusion, reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.inits import ACTIVATIONS, INITS
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row

STUDY = reproductions.get("inits")


def outcome(fails: set[tuple[str, str, int]], loss: float = 2.3) -> Conclusion:
    """The conclusion if highway fails with ``loss`` at these (init, activation, seed), and plain fails always."""
    rows = []
    for number, cell in enumerate(STUDY.cells(Request())):
        triple = (
            cell.family_options.get("init", "default"),
            cell.family_options.get("activation", "relu"),
            cell.seed - 3,
        )
        success = cell.block == "highway" and triple not in fails
        common: dict[str, Any] = cell.columns() | {"time_utc": "2026-01-01", "machine": "m", "digest": str(number)}
        for metric, value in (("success", float(success)), ("final_loss", 0.1 if success else loss), ("rate", 0.1)):
            rows.append(row(**common, status="ok", metric=metric, value=value))
    return STUDY.outcome(prepared(pd.DataFrame(rows)), Request())


def test_every_pair_in_both_blocks() -> None:
    cells = STUDY.cells(Request(seeds=1))
    assert len(cells) == 2 * len(INITS) * len(ACTIVATIONS)
    assert {(cell.depth, cell.block_options.get("gate_bias")) for cell in cells} == {(49, None)}


EVERY = {("small", "gelu", seed) for seed in range(5)}


@pytest.mark.parametrize(
    ("fails", "loss", "verdict"),
    [
        (set(), 2.3, Verdict.REPRODUCED),
        ({("small", "gelu", 1)}, 2.3, Verdict.UNDECIDED),
        (EVERY, 0.4, Verdict.UNDECIDED),  # it learns, but not within 300 steps
        (EVERY, 2.3, Verdict.CONTRADICTED),
    ],
)
def test_the_verdict(fails: set[tuple[str, str, int]], loss: float, verdict: Verdict) -> None:
    result = outcome(fails, loss)
    assert [one.verdict for one in result.findings] == [verdict]
    assert ("small with gelu" in result.findings[0].measured) == (verdict == Verdict.CONTRADICTED)
    assert "plain: 0 of 16" in result.findings[0].measured
    assert [picture.name for picture in result.pictures] == ["inits"]
