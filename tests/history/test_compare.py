"""Two commits compared: the planted ratio is measured, in as many fresh pairs of processes as its interval needs."""

import json
import re

import pytest
from typer.testing import CliRunner

import highway_bench.history.compare as comparing
from highway_bench.cli import app
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.builds import path_of
from highway_bench.history.compare import Compared, Precision, StepChange, ValueChange, compare, compare_counts
from highway_bench.history.paths import Paths
from highway_bench.history.suite.series import BY_NAME, HistoryCell

CELLS = [HistoryCell("highway", "dense", 10), HistoryCell("plain", "dense", 10)]
ABSENT = HistoryCell("absent", "dense", 10)


def test_the_planted_ratio_is_measured_in_fresh_pairs(copy, planted_processes):
    first, lines = copy.commits[0], []
    cells = [*CELLS, ABSENT, CELLS[0]]
    slower, same, absent = compare(copy.paths, first, "HEAD", cells, report=lines.append)
    assert (slower.change(0.98), same.change(0.98)) == (StepChange.SLOWER, StepChange.NEITHER)
    assert slower.ratio().value == pytest.approx(1.5, 0.01)
    assert slower.waited == pytest.approx(1 - 1 / 1.1)
    assert len(slower.ratios) == 8
    assert len(slower.seconds[0]) == len(slower.seconds[1]) >= 8 * 20
    assert len(planted_processes) == 16
    assert len(set(planted_processes)) == 2  # a folder a commit
    assert (absent.reason, absent.failed, absent.ratios) == ("unknown block 'absent'", False, [])
    assert "2 of 3 cells" in lines[-1]
    copy.commit("a block that fails", plain={"broken": 1})
    slower, failed = compare(copy.paths, first, "HEAD", CELLS)
    assert (slower.reason, failed.reason, failed.failed) == ("", "RuntimeError: planted", True)


def test_pairs_are_added_until_the_interval_is_narrow_or_time_is_up(planted, planted_processes, monkeypatch):
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


@pytest.fixture
def compared(monkeypatch):
    """A function that prints a comparison of some cells and counts, with options."""

    def printed(every, *words, counts=()):
        monkeypatch.setattr(comparing, "compare", lambda *_, **__: every)
        monkeypatch.setattr(comparing, "compare_counts", lambda *_: list(counts))
        return CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", "--device", "cpu", *words])

    return printed


def of(cell, ratios, **fields):
    return Compared(cell, list(ratios), ([1.0], [1.5]), [2.5], **fields)


WIDE = of(CELLS[0], [1.5, 1.8, 1.2, 1.5, 1.4, 1.6])
SLOWER = of(CELLS[1], [1.5, 1.51, 1.52, 1.5, 1.49, 1.5])


def test_a_ratio_is_printed_with_its_interval_or_as_undecided(compared):
    output = compared([SLOWER, WIDE], "--block", "plain")
    assert output.exit_code == 0
    assert re.search(r"1\.50\d \[1\.48\d, 1\.52\d\]", output.output)
    (row, _) = json.loads(compared([SLOWER, WIDE], "--json").output)["steps"]
    assert row["ratios"] == SLOWER.ratios
    assert row["low"] < row["ratio"] < row["high"]


@pytest.mark.parametrize(
    ("every", "after", "status", "message"),
    [
        ([SLOWER], None, 1, f"slower: {CELLS[1]}"),
        ([of(CELLS[0], [1.0] * 8)], None, 0, ""),
        ([of(CELLS[0], [1.02, 1.021] * 8)], None, 0, ""),  # certain, and less than 2.5 %
        ([of(CELLS[0], [1.0] * 8)], 3.0, 1, f"higher counts: {CELLS[0]}"),
        ([of(CELLS[0], [1.0] * 8)], 1.0, 0, ""),
        ([of(CELLS[0], [1.0] * 8)], "OutOfMemoryError", 1, f"failed: {CELLS[0]}"),
        ([of(CELLS[0], [0.9, 1.2, 1.1, 0.8, 1.0, 1.2])], None, 5, f"undecided: {CELLS[0]}"),
        ([of(CELLS[0], []), of(CELLS[1], [1.0] * 8)], None, 5, "undecided"),  # not reached in time
        ([of(CELLS[0], []), SLOWER], None, 1, "slower"),
    ],
)
def test_a_strict_comparison_fails_by_the_gates_rule(compared, every, after, status, message):
    counts = [] if after is None else [ValueChange(BY_NAME["flop"], CELLS[0], 2.0, after)]
    output = compared(every, "--strict", "--block", "plain", counts=counts)
    assert (output.exit_code, message in output.stderr) == (status, True), output.output
    loose = compared(every, "--block", "plain", counts=counts)
    assert loose.exit_code == ("failed" in message)


def test_by_default_all_cells_are_compared_that_the_gate_judges(monkeypatch):
    asked = []
    monkeypatch.setattr(comparing, "compare", lambda *given, **__: asked.append(given[3]) or [SLOWER])
    monkeypatch.setattr(comparing, "compare_counts", lambda *given: asked.append(given[3]) or [])
    CliRunner().invoke(app, ["history", "compare", "HEAD", "--device", "cpu"])
    suite = Paths.of().suite()
    assert asked == [list(suite.cells(BY_NAME[name], quick=True)) for name in ("ratio", "flop")]


def test_counts_of_two_commits(planted, planted_processes):
    (change,) = compare_counts(planted.paths, planted.commits[2], "HEAD", CELLS)
    assert change == ValueChange(BY_NAME["peak_bytes"], CELLS[1], 1000.0, 1008.0)


def test_the_stored_points_of_two_commits(planted):
    words = ["history", "compare", planted.commits[0], "HEAD", "--stored", "--root", str(planted.root)]
    assert "1,008" in CliRunner().invoke(app, words).output
    rows = json.loads(CliRunner().invoke(app, [*words, "--json", "--block", "plain"]).output)["stored"]
    assert {row["block"] for row in rows} == {"plain"}
    assert {(row["before"], row["after"]) for row in rows if row["series"] == "peak_bytes"} == {(1000.0, 1008.0)}
    assert CliRunner().invoke(app, [*words[:2], "HEAD^{tree}", *words[3:]]).exit_code == 2


def test_a_cell_that_failed_is_named_and_is_no_success(compared):
    every = [
        of(CELLS[0], [1.02, 0.98] * 6),
        Compared(ABSENT, reason="unknown block 'absent'"),
        Compared(CELLS[1], [1.0], reason="OutOfMemoryError", failed=True),
    ]
    output = compared(every)
    assert output.exit_code == 1
    assert f"{ABSENT}: unknown" in output.stderr
    failed = compared(every[2:], "--json")
    assert (failed.exit_code, json.loads(failed.stdout)["left_out"][0]["failed"]) == (1, True)
    assert compared(every[:2]).exit_code == 0


@pytest.mark.parametrize(
    ("cells", "least", "error", "message"),
    [
        ([ABSENT], 8, NothingMeasured, "no cell"),
        ([], 8, BadInput, "--block"),
        (CELLS, 5, BadInput, "6 pairs"),
    ],
)
def test_what_cannot_be_compared_is_one_line(planted, planted_processes, cells, least, error, message):
    with pytest.raises(error, match=message):
        compare(planted.paths, "HEAD~1", "HEAD", cells, precision=Precision(least=least))


def test_a_package_in_a_src_folder_is_found_first(tmp_path):
    (tmp_path / "src").mkdir()
    assert path_of(tmp_path)[:2] == [str(tmp_path / "src"), str(tmp_path)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block", "hihgway"], "mean highway"),
        (["--device", "gpu"], "'gpu'"),
    ],
)
def test_an_unknown_name_is_one_line(arguments, message):
    refused = CliRunner().invoke(app, ["history", "compare", "HEAD", "HEAD", *arguments])
    assert refused.exit_code == 2
    assert message in refused.output
