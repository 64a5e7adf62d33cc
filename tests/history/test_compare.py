"""Two commits compared: the planted ratio is measured, in as many pairs of processes as requested."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import highway_bench.history.compare as comparing
from highway_bench.cli import app
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.compare import CommitProcess, Compared, compare

CELLS = [("highway", "dense", 10), ("plain", "dense", 10)]
ABSENT = ("absent", "dense", 10)


def test_the_planted_ratio_is_measured_in_fresh_pairs_that_take_turns(planted, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Counted(CommitProcess):
        def __init__(self, name: str, *arguments: Any) -> None:
            started.append(name)
            super().__init__(name, *arguments)

    monkeypatch.setattr(comparing, "CommitProcess", Counted)
    first, lines = planted.commits[0], []
    cells = [*CELLS, ABSENT, CELLS[0]]
    slower, same = compare(planted.paths, first, "HEAD", cells, pairs=7, steps=2, report=lines.append)
    assert slower.verdict == "slower"  # three times, as planted; other processes may disturb either side
    assert same.ratio.value < 2 < slower.ratio.value
    assert [len(slower.ratios), len(slower.first), len(slower.second)] == [7, 14, 14]  # also the cell named twice
    assert started == [
        first,
        "HEAD",
        "HEAD",
        first,
        first,
        "HEAD",
        "HEAD",
        first,
        first,
        "HEAD",
        "HEAD",
        first,
        first,
        "HEAD",
    ]
    assert lines[0].startswith("left out: absent, dense, depth 10: ")
    assert lines[1:] == [f"{number} of 7 pairs of processes" for number in range(1, 8)]


def test_a_ratio_is_printed_with_its_interval_or_as_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [
        Compared(("plain", "dense", 10), [1.0] * 6, [1.5] * 6, [1.5, 1.51, 1.52, 1.5, 1.49, 1.5]),
        Compared(("highway", "dense", 10), [1.0] * 6, [1.5] * 6, [1.5, 1.8, 1.2, 1.5, 1.4, 1.6]),
    ]
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared)
    output = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD"])
    assert output.exit_code == 0
    assert "1.50 [1.49, 1.52]" in output.output
    assert "undecided [1.20, 1.80]" in output.output
    assert "more than 10 % from it" in " ".join(output.output.split())
    data = json.loads(CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", "--json"]).output)
    assert [(row["low"], row["ratio"], row["high"]) for row in data["steps"]] == [(1.49, 1.5, 1.52), (1.2, 1.5, 1.8)]


def test_nothing_in_common(planted) -> None:
    with pytest.raises(NothingMeasured):
        compare(planted.paths, "HEAD~1", "HEAD", [ABSENT], pairs=6, steps=1)


@pytest.mark.parametrize(("options", "message"), [({"pairs": 5}, "6 pairs"), ({"steps": 0}, "one step or more")])
def test_too_few(planted, options: dict[str, int], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        compare(planted.paths, "HEAD~1", "HEAD", CELLS, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block", "hihgway"], "unknown block 'hihgway'; did you mean highway"),
        (["--family", "desne"], "unknown family 'desne'; did you mean dense"),
        (["--device", "gpu"], "a device is cpu or cuda, not 'gpu'"),
    ],
)
def test_an_unknown_name_is_one_line(arguments: list[str], message: str) -> None:
    refused = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", *arguments])
    assert refused.exit_code == 2
    assert message in refused.output
