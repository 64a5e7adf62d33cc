"""Two commits compared: the planted ratio is found, in as many pairs of processes as were asked for."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

import highway_bench.history.compare as comparing
from highway_bench.cli import app
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.compare import Worker, compare

CELLS = [("highway", "dense", 10), ("plain", "dense", 10)]
ABSENT = ("absent", "dense", 10)


def test_the_planted_ratio_is_found_in_fresh_pairs_that_take_turns(planted, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Noted(Worker):
        def __init__(self, name: str, *places: Any) -> None:
            made.append(name)
            super().__init__(name, *places)

    monkeypatch.setattr(comparing, "Worker", Noted)
    first, told = planted.commits[0], []
    slower, same = compare(planted.layout, first, "HEAD", [*CELLS, ABSENT, CELLS[0]], pairs=7, steps=2, say=told.append)
    assert slower.verdict == "slower"  # three times, as planted; other processes may disturb either side
    assert same.ratio.value < 2 < slower.ratio.value
    assert [len(slower.ratios), len(slower.first), len(slower.second)] == [7, 14, 14]  # also the cell named twice
    assert made == [first, "HEAD", "HEAD", first, first, "HEAD", "HEAD", first, first, "HEAD", "HEAD", first, first,
                    "HEAD"]
    assert told[0].startswith("left out: absent, dense, depth 10: ")
    assert told[1:] == [f"{number} of 7 pairs of processes" for number in range(1, 8)]


def test_nothing_in_common(planted) -> None:
    with pytest.raises(NothingMeasured):
        compare(planted.layout, "HEAD~1", "HEAD", [ABSENT], pairs=6, steps=1)


@pytest.mark.parametrize(("options", "says"), [({"pairs": 5}, "6 pairs"), ({"steps": 0}, "one step or more")])
def test_too_few(planted, options: dict[str, int], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        compare(planted.layout, "HEAD~1", "HEAD", CELLS, **options)


@pytest.mark.parametrize(("words", "says"), [
    (["--block", "hihgway"], "unknown block 'hihgway'; did you mean highway"),
    (["--family", "desne"], "unknown family 'desne'; did you mean dense"),
    (["--device", "gpu"], "a device is cpu or cuda, not 'gpu'"),
])
def test_a_slip_of_the_pen_is_one_line(words: list[str], says: str) -> None:
    refused = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", *words])
    assert refused.exit_code == 2
    assert says in refused.output
