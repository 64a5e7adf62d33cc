"""The gate: planted changes are flagged at their commit, harmless ones are not, and measuring nothing never passes."""

import json
import math
import random
import shutil
from pathlib import Path

import json5
import pytest
from typer.testing import CliRunner

from highway_bench.cli import app
from highway_bench.cli.history.gate import table_row
from highway_bench.errors import BadInput
from highway_bench.history.compare import Compared
from highway_bench.history.files import MACHINE, Point, Result, read_json, write_json
from highway_bench.history.gate import gate, rises_to_list, verdict_on
from highway_bench.history.lines import SuspectedRegression, TrackedSeries, lines_of, rises
from highway_bench.history.suite.process import RequestFailed
from highway_bench.history.suite.series import SERIES, HistoryCell, Suite
from highway_bench.history.verdicts import VERDICTS, GateVerdict
from highway_bench.provenance.git import git

SLOWER, HEAVIER, WORSE = 2, 3, 4  # which commits of ``planted``
TIME, PEAK, LOSS = (next(one for one in SERIES if one.name == name) for name in ("ratio", "peak_bytes", "log_loss"))
CELL = HistoryCell("plain", "dense", 10)
ALL = {f"c{index}" for index in range(40)}


@pytest.fixture(scope="module")
def report(planted):
    return gate(planted.paths)


@pytest.fixture(autouse=True)
def no_verdicts(planted):
    """Each test times again."""
    yield
    for folder in planted.paths.results.glob(f"*/{VERDICTS}"):
        shutil.rmtree(folder)


def test_planted_changes_are_flagged_at_their_commits_and_nothing_else(planted, report):
    flagged = {
        (one.rise.of.series, one.rise.of.cell.block, one.rise.good, one.rise.commit, one.verdict)
        for one in report.findings
    }
    assert flagged == {
        (series, block, planted.commits[number - 1], planted.commits[number], verdict)
        for series, block, number, verdict in (
            (TIME, "highway", SLOWER, GateVerdict.UNDECIDED),  # a proposal, which nothing timed again
            (PEAK, "plain", HEAVIER, GateVerdict.REGRESSION),
            (LOSS, "highway", WORSE, GateVerdict.REGRESSION),
        )
    }
    assert report.judged >= 30
    assert not report.lost


def test_the_commits_that_regressed_are_named(planted, report):
    """The one that trains worse comes last; no commit before either was left out."""
    heavier, worse = report.culprits
    assert [one.commit for one in report.culprits] == [planted.commits[number] for number in (HEAVIER, WORSE)]
    assert [(one.commits, one.blocks) for one in report.culprits] == [(1, ("plain",)), (1, ("highway",))]
    assert heavier.subject == git(planted.root, "log", "-1", "--format=%s", planted.commits[HEAVIER])
    assert heavier.series + worse.series == len(report.of(GateVerdict.REGRESSION))


def test_a_proposed_time_is_confirmed_beside_the_last_good_commit(planted, planted_processes):
    report = gate(planted.paths, planted.machine)
    timed = [one for one in report.findings if one.rise.of.series is TIME]
    assert timed
    assert {one.verdict for one in timed} == {GateVerdict.REGRESSION}
    assert all(one.ratio.low < 1.5 < one.ratio.high or one.ratio.value == pytest.approx(1.5, 0.01) for one in timed)
    assert "1.50" in table_row(timed[0])[7]
    shutil.copytree(planted.paths.results, planted.paths.shown, dirs_exist_ok=True)
    assert {rise.of for rise, _ in rises_to_list(planted.paths)} == {one.rise.of for one in report.findings}
    assert len(planted_processes) == 2 * 8  # eight pairs, in which all proposed cells are timed
    assert "of the cores" in report.load


def test_a_comparison_that_fails_leaves_its_series_undecided(planted, planted_processes, monkeypatch):
    def fails(self, request, **cell):
        raise RequestFailed("the good commit does not start")

    monkeypatch.setattr("highway_bench.history.compare.PackageProcess.ask", fails)
    timed = [one for one in gate(planted.paths, planted.machine).findings if one.rise.of.series is TIME]
    assert {one.verdict for one in timed} == {GateVerdict.UNDECIDED}
    assert all("does not start" in one.remark for one in timed)
    monkeypatch.undo()
    late = gate(planted.paths, planted.machine, seconds=0)
    (remark,) = {one.remark for one in late.findings if one.rise.of.series is TIME}
    assert remark.startswith("0 pairs")


def test_only_machines_that_were_measured_at_head_are_judged(copy):
    """A count that rose on another machine, and was mended since, must not fail the gate for ever."""
    own, other = copy.paths.results / copy.machine.name, copy.paths.results / "other-box"
    for number in (0, 1):  # points of an older torch
        (path,) = own.glob(f"{copy.commits[number][:8]}-*.json")
        write_json(path.with_name(f"{path.name[:8]}-old.json"), read_json(path) | {"env_name": "old"})
    shutil.copytree(own, other)
    for path in other.glob("*.json"):
        data = read_json(path)
        (data if path.name == MACHINE else data["params"])["machine"] = "other-box"
        write_json(path, data)
    both = gate(copy.paths)
    assert (both.machines, both.lines) == ([copy.machine.name, "other-box"], [])
    (head,) = other.glob(f"{copy.commits[-1][:8]}-*.json")
    data = read_json(head)
    head.unlink()
    one = gate(copy.paths)
    assert one.machines == [copy.machine.name] == list({finding.rise.of.machine for finding in one.findings})
    assert [line.partition(":")[0] for line in one.lines] == ["other-box"]
    write_json(head.with_name(f"{head.name[:8]}-old.json"), data | {"env_name": "old"})
    assert gate(copy.paths).machines == both.machines


@pytest.mark.parametrize(
    ("accepted", "message"),
    [
        ({"[": None}, "is no pattern"),
        ({".*": "0123456"}, "no commit"),
        ({".*": "aside"}, "line"),
        (None, "no object"),
        ({".*": 5}, "no object"),
    ],
)
def test_an_accepted_rise_that_cannot_be_is_one_line(copy, accepted, message):
    if accepted == {".*": "aside"}:
        accepted = {".*": copy.git("commit-tree", "HEAD^{tree}", "-m", "aside")}
    configuration = json5.loads((copy.root / "asv.conf.json").read_text()) | {"regressions_first_commits": accepted}
    copy.write("asv.conf.json", json.dumps(configuration))
    copy.git("commit", "-qam", "accepted")
    with pytest.raises(BadInput, match=message):
        gate(copy.paths)


def test_a_proposal_that_is_not_slower_is_no_regression(planted, planted_processes, monkeypatch):
    """The stored points rose because the machine was slow; beside the good commit HEAD is as fast."""
    ask = "highway_bench.history.compare.PackageProcess.ask"
    monkeypatch.setattr(ask, lambda self, request, **cell: None if request == "prepare" else (1.0, 1.0))
    timed = [one for one in gate(planted.paths, planted.machine).findings if one.rise.of.series is TIME]
    assert {one.verdict for one in timed} == {GateVerdict.UNCONFIRMED}
    shutil.copytree(planted.paths.results, planted.paths.shown, dirs_exist_ok=True)
    assert {rise.of.series for rise, _ in rises_to_list(planted.paths)} == {PEAK, LOSS}


def test_a_window_leaves_old_regressions_out(planted):
    flagged = [one for one in gate(planted.paths, window=2).findings if one.rise.of.series is not TIME]
    assert {one.rise.commit for one in flagged} == {planted.commits[WORSE]}


def command(paths, *words):
    return CliRunner().invoke(app, ["history", "gate", "--no-confirm", "--root", str(paths.root), *words])


def test_statuses_of_the_command(planted, throwaway):
    """0 no regression, 1 a regression, 2 bad input, 3 nothing measured, 5 undecided."""
    result = command(planted.paths, "--json")
    assert (result.exit_code, "series regressed" in result.stderr) == (1, True)
    assert {one["commit"] for one in json.loads(result.stdout)["findings"]} == {
        planted.commits[number] for number in (SLOWER, HEAVIER, WORSE)
    }
    assert command(planted.paths, "--window", "0").exit_code == 2
    throwaway.commit("start")
    assert command(throwaway.paths).exit_code == 3
    throwaway.measure()
    assert command(throwaway.paths).exit_code == 3  # nothing to compare it with
    throwaway.commit("same")
    assert command(throwaway.paths).exit_code == 3  # HEAD has no point
    throwaway.measure()
    clean = command(throwaway.paths)
    assert (clean.exit_code, "no regression" in clean.output) == (0, True)
    throwaway.commit("slower", plain={"ratio": 1.1})
    throwaway.measure()
    undecided = command(throwaway.paths)
    assert (undecided.exit_code, "undecided" in undecided.output) == (5, True)
    throwaway.write("highway_bench/__init__.py", "api = 1\n")
    dirty = command(throwaway.paths, "--measure")
    assert (dirty.exit_code, "uncommitted changes" in dirty.stderr) == (2, True)


def test_a_series_that_fails_or_vanishes_at_head_does_not_pass(throwaway):
    for values in ({}, {"highway": {"broken": 1}}):
        throwaway.commit("change", **values)
        throwaway.measure()
    lost = gate(throwaway.paths).lost
    assert {(one.of.cell.block, one.reason) for one in lost} == {("highway", "failed")}
    assert {"ratio", "saved_bytes"} <= {one.of.series.name for one in lost}
    del throwaway.values["highway"]
    throwaway.commit("known by its file alone")
    throwaway.measure()
    lost = gate(throwaway.paths).lost
    assert {one.of.cell.block for one in lost} == {"highway"}
    assert all(one.reason.startswith("n/a, and") and throwaway.commits[0][:8] in one.reason for one in lost)
    (throwaway.root / "highway_bench/blocks/highway.py").unlink()
    throwaway.commit("removed")
    throwaway.measure()
    assert not gate(throwaway.paths).lost


def line(*values, sd=math.nan, samples=1):
    return [(f"c{index}", Point(value, sd, samples)) for index, value in enumerate(values)]


def found(series, values, recent=ALL):
    return list(rises({TrackedSeries(series, CELL, "m", "name"): values}, recent))


SMALL_STEPS_DOWN = ((2.217, 2.15), (2.21, 2.14, 2.14), (2.21, 2.22, 2.21, 2.14, 2.15, 2.14))
FLAT, UNEVEN = [1.0] * 6, [1.74, 1.75] * 4
SPANS = [(better, after) for better in (1, 2, 3) for after in (1, 2, 5)]


@pytest.mark.parametrize(
    ("series", "values", "first_bad", "before"),
    [
        (TIME, [*FLAT, 1.05], 6, 1.0),
        (TIME, [*FLAT, 1.05, 1.05], 6, 1.0),
        (TIME, [*FLAT, 2.0, 1.0], None, 0),  # a spike
        (TIME, [*FLAT, 1.01], None, 0),  # too little to time again
        # an improvement does not hide what follows it
        *((TIME, [*[1.2] * 6, *[1.0] * better, *[1.1] * after], 6 + better, 1.0) for better, after in SPANS),
        *((LOSS, [*[6.0] * 6, *[5.0] * better, *[5.5] * after], 6 + better, 5.0) for better, after in SPANS),
        (TIME, [*[1.2] * 6, 1.0, 1.0], None, 0),
        # nor a small step down the rise before it
        *((TIME, [*UNEVEN, *after], 8, 1.745) for after in SMALL_STEPS_DOWN),
        *((TIME, [*UNEVEN, *after, 1.74, 1.75], None, 0) for after in SMALL_STEPS_DOWN),
        (PEAK, [5, 5, 5, 6, 6, 6, 6], 3, 5),
        (PEAK, [5, 5, 6, 6, 5, 5], None, 0),  # taken back
        (PEAK, [5, 5, 6, 5, 5, 6], 5, 5),  # and raised again
    ],
)
def test_a_step_is_blamed_on_its_first_commit(series, values, first_bad, before):
    steps = [one for one in found(series, line(*values)) if not one.trend]
    if first_bad is None:
        assert not steps
        return
    (rise,) = steps
    assert (rise.commit, rise.good) == (f"c{first_bad}", f"c{first_bad - 1}")
    assert rise.before == pytest.approx(before, abs=0.01)
    assert rise.change == pytest.approx(values[-1] / rise.before - 1)


def test_what_rose_long_ago_or_was_not_measured_lately_is_left_out():
    assert not found(PEAK, line(5, 5, 6, 6, 6, 6), {"c4", "c5"})
    assert not found(TIME, line(*FLAT, 2.0), {"c5"})
    assert not found(TIME, line(1.0, 1.008, 1.016, 1.024, 1.032))  # too few points for a trend


def test_a_drift_of_one_per_cent_a_commit_is_proposed_and_noise_is_not():
    noise = random.Random(0)
    drifts = flat = 0
    for _ in range(100):
        values = [noise.gauss(1, 0.01) for _ in range(10)]
        flat += any(rise.trend for rise in found(TIME, line(*values)))
        rising = found(TIME, line(*(value * 1.01**number for number, value in enumerate(values))))
        drifts += any(rise.trend and (rise.commit, rise.good) == ("c1", "c0") for rise in rising)
    assert drifts >= 99
    assert flat <= 5


@pytest.mark.parametrize("failed", [3, 4, 5])
def test_seeds_that_stop_training_are_flagged_in_spite_of_their_spread(failed):
    """Most of five seeds stop training: the median rises, and the seeds' spread with it."""
    losses = sorted([5.04, 5.05, 5.06, 5.07, 5.08][: 5 - failed] + [6.36] * failed)
    fallen = Point(losses[2], (losses[3] - losses[1]) / 1.349, 5)
    (rise,) = found(LOSS, [*line(*[5.06] * 6, sd=0.015, samples=5), ("c6", fallen)])
    assert rise.commit == "c6"
    assert not found(LOSS, line(*[5.06] * 6, 5.08, sd=0.015, samples=5))


def results_of(values, torch="2.13"):
    results = []
    for index, value in enumerate(values):
        data = {
            "result_columns": ["result", "params", "version"],
            "params": {"python": "3.11", "machine": "m"},
            "requirements": {"torch": torch},
            "results": {"b.Depths.track_peak_bytes": [[value], [["'plain'"], ["10"]], "1"]},
        }
        results.append(Result(Path(), f"c{index}", data))
    return results


def test_a_meant_change_is_accepted_from_its_commit_on():
    suite = Suite(core=("plain",), families=("dense",))
    results, order = results_of([5, 5, 9, 9, 9]), {f"c{index}": index for index in range(5)}
    flagged = [one.commit for one in rises(lines_of(results, suite, {}, order), ALL)]
    assert flagged == ["c2"]
    for accepted in ({r".*_bytes\('plain": "c2"}, {r".*_bytes": None}):
        assert not list(rises(lines_of(results, suite, accepted, order), ALL))
    earlier = lines_of(results, suite, {r".*_bytes": "c1"}, order)
    assert [one.commit for one in rises(earlier, ALL)] == ["c2"]


def test_a_new_torch_starts_a_new_line():
    order = {f"c{index}": index for index in range(4)}
    results = results_of([5, 5]) + results_of([0, 0, 9, 9], torch="2.14")[2:]
    (points,) = lines_of(results, Suite(core=("plain",), families=("dense",)), {}, order).values()
    assert [point.value for _, point in points] == [9, 9]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.05, 1.06, 1.05, 1.04, 1.05, 1.06, 1.05, 1.05], GateVerdict.REGRESSION),
        ([1.00, 1.01, 0.99, 1.00, 1.01, 1.00, 0.99, 1.00], GateVerdict.UNCONFIRMED),
        ([*[1.02] * 7, 1.021], GateVerdict.UNCONFIRMED),  # too small to matter
        ([1.00, 1.01, 0.99, 1.00], GateVerdict.UNCONFIRMED),  # 5 % is excluded by four pairs
        ([1.03] * 4, GateVerdict.UNDECIDED),  # a rise is never confirmed so early
        ([0.9, 1.2, 1.1, 0.8, 1.0, 1.2, 1.0, 1.1], GateVerdict.UNDECIDED),
        ([1.5, 1.2, 1.4, 1.9, 1.3, 1.6, 1.8, 1.4], GateVerdict.REGRESSION),  # how much is not certain
    ],
)
def test_an_alarm_needs_a_bound_above_one_and_an_estimate_that_matters(ratios, verdict):
    compared = Compared(CELL, ratios, ([1.0], [1.0]), [2.5])
    finding = verdict_on(SuspectedRegression(TrackedSeries(TIME, CELL, "m", "name"), 1, 2, "b", "a"), compared)
    assert finding.verdict is verdict
    assert finding.waited == (pytest.approx(0.2) if finding.ratio else 0)
