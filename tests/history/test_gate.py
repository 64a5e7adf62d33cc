"""The gate: planted changes are flagged at their commit, harmless ones are not, and measuring nothing never passes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Invoked

import highway_bench.history.gate as gating
import highway_bench.history.remeasure as confirming
from highway_bench.cli import app
from highway_bench.cli.history.gate import table_row
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.compare import Compared
from highway_bench.history.files import Point, Result
from highway_bench.history.gate import gate
from highway_bench.history.measure import Measured
from highway_bench.history.noise import tolerated
from highway_bench.history.regressions import Regression, lines_of, newest_steps, rise, step_up
from highway_bench.history.remeasure import cell_of

BENCHES = Path(__file__).resolve().parents[2] / "benches/history/cells.py"
TIMED = r"Depths\.time_step\(.*, 10\)"
SLOWER, HEAVIER, WORSE = 4, 5, 6  # which commits of ``planted``


@pytest.fixture(scope="module")
def verdict(planted):
    return gate(planted.paths)


def commits_of(verdict, kind: str, block: str) -> set[str]:
    return {one.commit for one in verdict.regressions if f".{kind}(" in one.series and f"'{block}'" in one.series}


@pytest.mark.parametrize(
    ("kind", "block", "number"),
    [
        ("time_step", "highway", SLOWER),
        ("track_slowdown", "highway", SLOWER),
        ("track_peak_bytes", "plain", HEAVIER),
        ("track_log_loss", "highway", WORSE),
        ("track_steps_to_threshold", "highway", WORSE),
    ],
)
def test_a_planted_change_is_flagged_at_its_commit(planted, verdict, kind, block, number) -> None:
    assert commits_of(verdict, kind, block) == {planted.commits[number]}


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("time_step", "plain"),
        ("track_slowdown", "plain"),
        ("track_saved_bytes", "plain"),
        ("track_peak_bytes", "highway"),
        ("track_log_loss", "plain"),
        ("track_steps_to_threshold", "plain"),
    ],
)
def test_controls_are_not_flagged(verdict, kind, block) -> None:
    assert not commits_of(verdict, kind, block)


def test_before_and_after(verdict) -> None:
    series = "blocks.Families.track_peak_bytes('plain', 'dense')"
    (regression,) = [one for one in verdict.regressions if one.series == series]
    assert (regression.before, regression.after, regression.tolerated) == (1000, 1008, 0)


def test_a_rerun_confirms_what_is_still_there(planted) -> None:
    report = gate(planted.paths, planted.machine)
    slower = [one for one in report.regressions if ".Depths.time_step('highway', 10)" in one.series]
    assert [one.commit for one in slower] == [planted.commits[SLOWER]]
    assert slower[0].remeasured > 1.3 * slower[0].before
    assert slower[0].ratio_to_good.value > 1.3
    (entry,) = [table_row(one)[-1] for one in slower]
    assert re.search(r"in turn: (\d\.\d+|undecided) \[\d\.\d+, \d+\.\d+\]", entry)
    assert not report.dismissed


def test_a_window_leaves_old_regressions_out(planted) -> None:
    assert {one.commit for one in gate(planted.paths, window=2).regressions} == {planted.commits[WORSE]}


def test_the_newest_commit_is_judged(throwaway) -> None:
    for _ in range(2):
        throwaway.commit("same")
        throwaway.measure(series=[TIMED])
    assert gate(throwaway.paths).regressions == []
    throwaway.commit("slower at HEAD", plain={"step": 3.0})
    throwaway.measure(series=[TIMED])
    assert {one.commit for one in gate(throwaway.paths).regressions} == {throwaway.commits[-1]}


def test_nothing_measured_at_head_does_not_pass(throwaway) -> None:
    throwaway.commit("start")
    with pytest.raises(NothingMeasured):
        gate(throwaway.paths)
    throwaway.measure(series=[TIMED])
    throwaway.commit("not measured")
    with pytest.raises(NothingMeasured, match="HEAD"):
        gate(throwaway.paths)


def command(paths, *words: str) -> Invoked:
    return CliRunner().invoke(app, ["history", "gate", "--no-confirm", "--root", str(paths.root), *words])


def test_statuses_of_the_command(planted, throwaway) -> None:
    """0 no regression, 1 a regression, 2 bad input, 3 nothing measured."""
    result = command(planted.paths, "--json")
    assert result.exit_code == 1
    assert {one["commit"] for one in json.loads(result.stdout)["regressions"]} == {
        planted.commits[number] for number in (SLOWER, HEAVIER, WORSE)
    }
    assert "series regressed" in result.stderr
    assert command(planted.paths, "--window", "0").exit_code == 2
    throwaway.commit("start")
    assert command(throwaway.paths).exit_code == 3
    throwaway.measure(series=[TIMED])
    assert command(throwaway.paths).exit_code == 3  # nothing to compare it with
    throwaway.commit("same")
    throwaway.measure(series=[TIMED])
    assert command(throwaway.paths).exit_code == 0


def test_a_series_that_fails_or_vanishes_at_head_does_not_pass(throwaway) -> None:
    for values in ({}, {"highway": {"broken": 1}}):
        throwaway.commit("change", **values)
        throwaway.measure(series=[r"Depths\.track_saved_bytes", TIMED])
    lost = {one.series: one.reason for one in gate(throwaway.paths).lost}
    assert lost["blocks.Depths.time_step('highway', 10)"] == "failed"
    assert lost["blocks.Depths.track_saved_bytes('highway', 10)"] == "failed"
    assert not any("plain" in series for series in lost)
    del throwaway.values["highway"]
    throwaway.commit("the block's file is there, and the package does not know it")
    throwaway.measure(series=[r"Depths\.track_saved_bytes", TIMED])
    lost = {one.series: one.reason for one in gate(throwaway.paths).lost}  # the point before had no value either
    assert lost["blocks.Depths.time_step('highway', 10)"].startswith("n/a, and")
    assert throwaway.commits[0][:8] in lost["blocks.Depths.track_saved_bytes('highway', 10)"]
    throwaway.commit("known again", highway={})
    throwaway.measure(series=[TIMED])
    del throwaway.values["highway"]
    throwaway.commit("and unknown")
    throwaway.measure(series=[TIMED])
    (lost,) = gate(throwaway.paths).lost
    assert (lost.series, lost.reason[:8]) == ("blocks.Depths.time_step('highway', 10)", "n/a, and")


@pytest.mark.parametrize(
    ("again", "ratio", "regressions"),
    [(None, None, 1), (2e-2, 3.0, 0), (6e-2, 3.0, 1), (6e-2, 1.05, 0), (6e-2, None, 1)],
)
def test_a_rerun_decides_and_a_time_must_exceed_the_last_good_commits(
    planted, monkeypatch: pytest.MonkeyPatch, again: float | None, ratio: float | None, regressions: int
) -> None:
    """A machine that is slower for an hour is slower with the good commit too. A missing value decides nothing."""
    one = Regression("blocks.Depths.time_step('highway', 50)", planted.machine.name, 2e-2, 6e-2, 2e-3, "b", "a")

    def measure(paths, machine, *, quick: bool, out: Path, series: list[str], only: list[str]) -> Measured:
        assert (quick, only) == (False, ["highway|dense|50"])
        assert re.match(series[0], one.series)
        if again is None:
            raise NothingMeasured("nothing")
        row = [[again], [["'highway'"], ["50"]], "1"]
        data = {"result_columns": ["result", "params", "version"], "results": {"blocks.Depths.time_step": row}}
        return Measured(machine.name, {"c": Result(Path(), "c", data)})

    def compare(paths, first: str, second: str, cells: list, **_) -> list[Compared]:
        assert (first, second, cells) == ("a", "HEAD", [("highway", "dense", 50)])
        if ratio is None:
            raise NothingMeasured("no cell that both have")
        return [Compared(cells[0], ratios=[ratio] * 6)]

    monkeypatch.setattr(confirming, "compare", compare)
    monkeypatch.setattr(confirming, "measure_here", measure)
    monkeypatch.setattr(gating, "asv_steps", lambda *_: [])
    monkeypatch.setattr(gating, "newest_steps", lambda *_: [one])
    verdict = gate(planted.paths, planted.machine)
    assert (len(verdict.regressions), len(verdict.dismissed)) == (regressions, 1 - regressions)


def test_uncommitted_changes_are_not_judged(throwaway) -> None:
    throwaway.commit("start")
    throwaway.measure(series=[TIMED])
    throwaway.commit("not measured")
    throwaway.write("highway_bench/__init__.py", '__version__ = "1"\n')
    throwaway.measure(series=[TIMED])
    with pytest.raises(BadInput, match="uncommitted changes"):
        gate(throwaway.paths)
    assert command(throwaway.paths, "--measure").exit_code == 2


def points(*values: float) -> list[tuple[str, Point]]:
    return [(f"c{index}", Point(value, math.nan, 1)) for index, value in enumerate(values)]


ALL = {f"c{index}" for index in range(20)}


def test_a_step_is_blamed_on_its_first_commit() -> None:
    series = "blocks.Depths.time_step('plain', 10)"
    assert step_up(series, points(*[1.0] * 6, 2.0), ALL, 0.01)[:2] == (6, 1.0)
    assert step_up(series, points(*[1.0] * 6, 2.0, 2.0), ALL, 0.01)[:2] == (6, 1.0)
    assert step_up(series, points(*[1.0] * 6, 2.0, 1.0), ALL, 0.01) is None  # a spike
    assert step_up(series, points(*[1.0] * 6, 2.0), {"c5"}, 0.01) is None  # not measured at a recent commit


def test_bytes_that_rose_lately_are_seen_commits_later() -> None:
    assert rise(points(5, 5, 5, 6, 6, 6, 6), ALL) == (3, 5, 0)
    assert rise(points(5, 5, 6, 6, 5, 5), ALL) is None  # taken back
    assert rise(points(5, 5, 6, 6, 6, 6), {"c4", "c5"}) is None  # long ago


def results_of(values: list[float], torch: str = "2.13") -> list[Result]:
    results = []
    for index, value in enumerate(values):
        row = {"track_peak_bytes": [[value], [["'plain'"]], "1"]}
        data = {
            "result_columns": ["result", "params", "version"],
            "params": {"python": "3.11"},
            "requirements": {"torch": torch},
            "results": {f"b.{name}": cells for name, cells in row.items()},
        }
        results.append(Result(Path(), f"c{index}", data))
    return results


def test_a_meant_change_is_accepted_from_its_commit_on() -> None:
    results, order = results_of([5, 5, 9, 9, 9]), {f"c{index}": index for index in range(5)}
    flagged = [one.commit for one in newest_steps("m", lines_of(results, {}, order), ALL, {})]
    assert flagged == ["c2"]
    for accepted in ({r".*_bytes\('plain": "c2"}, {r".*_bytes": None}):
        assert not list(newest_steps("m", lines_of(results, accepted, order), ALL, {}))
    earlier = lines_of(results, {r".*_bytes": "c1"}, order)
    assert [one.commit for one in newest_steps("m", earlier, ALL, {})] == ["c2"]


def test_a_new_torch_starts_a_new_line() -> None:
    order = {f"c{index}": index for index in range(4)}
    results = results_of([5, 5])[:2] + results_of([0, 0, 9, 9], torch="2.14")[2:]
    lines = lines_of(results, {}, order)
    assert [point.value for _, point in lines["b.track_peak_bytes('plain')"]] == [9, 9]


def test_thresholds_come_from_noise() -> None:
    flat = [Point(10.0, float("nan"), 1)] * 6
    assert tolerated("b.track_peak_bytes('x')", flat) == 0
    assert tolerated("b.time_step('x')", flat) == pytest.approx(1.0)
    assert tolerated("b.time_step('x')", flat, repeated=0.001) == pytest.approx(0.5)
    assert tolerated("b.time_step('x')", flat[:1]) == pytest.approx(3 * math.sqrt(1 + math.pi / 2))  # unknown
    assert tolerated("b.time_step('x')", flat[:1], repeated=0.001) == pytest.approx(0.5)
    noisy = [Point(value, float("nan"), 1) for value in (10, 12, 9, 12, 10, 13)]
    assert tolerated("b.time_step('x')", noisy) > 3
    assert tolerated("b.time_step('x')", noisy, repeated=0.001) > 3  # runs in a row miss what drifts
    assert tolerated("b.time_step('x')", flat, repeated=0.2) > 6
    seeds = [Point(5.0, 0.5, 5)] * 6
    assert tolerated("b.track_log_loss('x')", seeds) > 3 * 0.5 / 5**0.5


@pytest.mark.parametrize("failed", [3, 4, 5])
def test_seeds_that_stop_training_are_flagged_in_spite_of_their_spread(failed: int) -> None:
    """Most of five seeds stop training: the median rises, and the seeds' spread with it."""
    losses = sorted([5.04, 5.05, 5.06, 5.07, 5.08][: 5 - failed] + [6.36] * failed)
    fallen = Point(losses[2], (losses[3] - losses[1]) / 1.349, 5)
    line = [*((f"c{index}", Point(5.06, 0.015, 5)) for index in range(6)), ("c6", fallen)]
    assert step_up("b.track_log_loss('x')", line, ALL, 0.0)[0] == 6


def test_a_series_names_its_cell() -> None:
    """The cells agree with the benchmarks' constants, since a re-run measures these cells only."""
    constants = dict(re.findall(r"^(FAMILY_DEPTH|OTHER_DEPTH) = (\d+)$", BENCHES.read_text(), re.MULTILINE))
    assert cell_of("blocks.Families.time_step('plain', 'conv')") == ("plain", "conv", int(constants["FAMILY_DEPTH"]))
    assert cell_of("blocks.Depths.time_step('plain', 50)") == ("plain", "dense", 50)
    assert cell_of("blocks.Others.time_step('mine')") == ("mine", "dense", int(constants["OTHER_DEPTH"]))
