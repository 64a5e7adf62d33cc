"""Which stored cells are measured again: failed ones always, all, or those of a pattern."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.runner import Summary
from highway_bench.results import Store


@pytest.mark.parametrize(
    ("rerun", "again"),
    [
        ("failed", {3}),
        ("all", {1, 2, 3}),
        ("depth 2", {2, 3}),
        ("fake plain*depth [12]", {1, 2, 3}),
        ("highway*", {2, 3}),
    ],
)
def test_what_is_measured_again(
    run: Callable[..., Summary], cell: Callable[..., Cell], log: Path, rerun: str, again: set[int]
) -> None:
    cells = [cell(depth=1), cell(depth=2), cell("raise", depth=3)]
    if rerun == "highway*":
        cells[1] = cell(depth=2, block="highway")
    run(cells)
    log.write_text("")
    run(cells, rerun=rerun)
    assert {int(line.split()[1]) for line in log.read_text().splitlines()} == again


@pytest.mark.parametrize("rerun", ["depth 7", ""])
def test_a_pattern_of_no_cell(run: Callable[..., Summary], store: Store, cell: Callable[..., Cell], rerun: str) -> None:
    with pytest.raises(BadInput, match=f"no cell of this run has '{rerun}' in its name"):
        run([cell()], rerun=rerun)
    assert store.runs() == {}
