"""Two commits compared: the planted ratio is measured, in as many fresh pairs of processes as its interval needs."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

import highway_bench.history.compare as comparing
from highway_bench.asv_suite.process import CellLacking, RequestFailed
from highway_bench.asv_suite.series import HistoryCell
from highway_bench.cli import app
from highway_bench.cli.history.noise import pairs_needed
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.compare import Compared, Precision, compare, path_of

CELLS = [HistoryCell("highway", "dense", 10), HistoryCell("plain", "dense", 10)]
ABSENT = HistoryCell("absent", "dense", 10)


def test_the_planted_ratio_is_measured_in_fresh_pairs(planted, planted_processes) -> None:
    first, lines = planted.commits[0], []
    cells = [*CELLS, ABSENT, CELLS[0]]
    slower, same, absent = compare(planted.paths, first, "HEAD", cells, report=lines.append)
    assert (slower.verdict, same.verdict) == ("slower", "no difference detected")
    assert slower.ratio().value == pytest.approx(1.5, 0.01)
    assert slower.waited == pytest.approx(1 - 1 / 1.1)
    assert len(slower.ratios) == 8
    assert len(slower.seconds[0]) == len(slower.seconds[1]) >= 8 * 20
    assert len(planted_processes) == 16
    assert len(set(planted_processes)) == 2  # a folder a commit
    assert (absent.reason, absent.ratios) == ("unknown block 'absent'", [])
    assert lines[-1] == "8 pairs of processes, 2 of 3 cells"


def test_pairs_are_added_until_the_interval_is_narrow_or_time_is_up(planted, monkeypatch) -> None:
    ratios = iter(100 * [0.9, 1.1])
    monkeypatch.setattr(comparing, "one_pair", lambda sides, one, order: one.ratios.append(next(ratios)))
    (wide,) = compare(planted.paths, "HEAD", "HEAD", CELLS[:1], precision=Precision(most=30, half_width=0.05))
    assert 8 < len(wide.ratios) < 30
    assert wide.ratio().high / wide.ratio().value <= 1.05
    (most,) = compare(planted.paths, "HEAD", "HEAD", CELLS[:1], precision=Precision(most=9, half_width=0.05))
    assert len(most.ratios) == 9
    (late,) = compare(planted.paths, "HEAD", "HEAD", CELLS[:1], precision=Precision(seconds=0))
    assert late.ratios == []
    ratios = iter([0.99, 1.01, 1.0, 1.0])
    (excluded,) = compare(planted.paths, "HEAD", "HEAD", CELLS[:1], precision=Precision(excluded=1.05))
    assert len(excluded.ratios) == 4


def test_a_ratio_is_printed_with_its_interval_or_as_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [
        Compared(CELLS[1], [1.5, 1.51, 1.52, 1.5, 1.49, 1.5], ([1.0], [1.5]), [2.5]),
        Compared(CELLS[0], [1.5, 1.8, 1.2, 1.5, 1.4, 1.6], ([1.0], [1.5]), [2.5]),
    ]
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared)
    output = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", "--device", "cpu"])
    assert output.exit_code == 0
    assert re.search(r"1\.50\d \[1\.49\d, 1\.51\d\]", output.output)
    assert "undecided [1.29, 1.72]" in output.output
    assert "more than 10 % from it" in " ".join(output.output.split())
    strict = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", "--device", "cpu", "--strict"])
    assert strict.exit_code == 1
    assert strict.stderr.endswith(f"slower: {CELLS[1]}; {CELLS[0]}\n")
    data = json.loads(
        CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", "--device", "cpu", "--json"]).output
    )
    assert data["steps"][0]["ratios"] == compared[0].ratios
    assert data["steps"][0]["low"] < data["steps"][0]["ratio"] < data["steps"][0]["high"]


def test_noise_says_how_many_pairs_the_gate_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [Compared(CELLS[0], [1.02, 0.98] * 6, ([1.0], [1.0]), [2.0])]
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared)
    (row,) = json.loads(CliRunner().invoke(app, ["history", "noise", "--device", "cpu", "--json"]).output)["cells"]
    assert row["sd"] == pytest.approx(0.0209, 0.01)
    assert row["pairs_needed"] == pairs_needed(0.0209) == 8
    assert pairs_needed(0.04) > 12
    assert "sd of a pair" in CliRunner().invoke(app, ["history", "noise", "--device", "cpu"]).output


@pytest.mark.parametrize("command", [["compare", "HEAD", "HEAD"], ["noise"]])
def test_a_cell_that_failed_is_named_and_is_no_success(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    compared = [
        Compared(CELLS[0], [1.02, 0.98] * 6, ([1.0], [1.0]), [2.0]),
        Compared(ABSENT, reason="unknown block 'absent'"),
        Compared(CELLS[1], [1.0], reason="OutOfMemoryError", failed=True),
    ]
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared)
    output = CliRunner().invoke(app, ["history", *command, "--device", "cpu"])
    assert output.exit_code == 1
    assert f"left out: {ABSENT}: unknown block 'absent'\nfailed: {CELLS[1]}: OutOfMemoryError\n" in output.stderr
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared[2:])
    failed = CliRunner().invoke(app, ["history", *command, "--device", "cpu", "--json"])
    assert (failed.exit_code, json.loads(failed.stdout)["left_out"][0]["failed"]) == (1, True)
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared[:2])
    assert CliRunner().invoke(app, ["history", *command, "--device", "cpu"]).exit_code == 0


def test_a_strict_comparison_names_what_failed_and_what_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [
        Compared(CELLS[0], [1.2, 1.21] * 6, ([1.0], [1.2]), [2.2]),
        Compared(CELLS[1], [1.0], reason="OutOfMemoryError", failed=True),
    ]
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: compared)
    strict = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", "--device", "cpu", "--strict"])
    assert strict.stderr.endswith(f"failed: {CELLS[1]}; slower: {CELLS[0]}\n")


def test_a_request_that_fails_is_no_cell_that_is_lacking(planted, monkeypatch) -> None:
    def one_pair(sides, one, order) -> None:
        if one.cell == CELLS[1]:
            raise RequestFailed("out of memory")
        if one.cell == ABSENT:
            raise CellLacking("unknown block")
        one.ratios.append(1.0)

    monkeypatch.setattr(comparing, "one_pair", one_pair)
    every = compare(planted.paths, "HEAD", "HEAD", [*CELLS, ABSENT], precision=Precision(least=6, most=6))
    assert [(one.reason, one.failed) for one in every] == [
        ("", False),
        ("out of memory", True),
        ("unknown block", False),
    ]


def test_nothing_in_common(planted, planted_processes) -> None:
    with pytest.raises(NothingMeasured):
        compare(planted.paths, "HEAD~1", "HEAD", [ABSENT])


def test_no_cell(planted) -> None:
    with pytest.raises(BadInput, match="no cell to compare: name a --block"):
        compare(planted.paths, "HEAD~1", "HEAD", [])


def test_too_few_pairs(planted) -> None:
    with pytest.raises(BadInput, match="6 pairs"):
        compare(planted.paths, "HEAD~1", "HEAD", CELLS, precision=Precision(least=5))


def test_a_package_in_a_src_folder_is_found_first(tmp_path) -> None:
    (tmp_path / "src").mkdir()
    assert path_of(tmp_path)[:2] == [str(tmp_path / "src"), str(tmp_path)]


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
