"""Verdicts are taken once, and points and accepted rises follow rewritten commits."""

import json
import math

import json5
import pytest

from highway_bench.errors import BadInput
from highway_bench.history.files import read_results
from highway_bench.history.gate import gate
from highway_bench.history.lines import SuspectedRegression, TrackedSeries
from highway_bench.history.paths import Paths
from highway_bench.history.points import follow_accepted, follow_points
from highway_bench.history.suite.series import SERIES, HistoryCell
from highway_bench.history.verdicts import GateVerdict, covering, read_verdicts, rename_commits, store_verdict
from highway_bench.measure.statistics import IntervalEstimate

ORDER = {f"c{number}": number for number in range(12)}
OF = TrackedSeries(SERIES[0], HistoryCell("plain", "dense", 10), "m", "blocks.Depths.track_ratio('plain', 10)", "py")
JUDGED = SuspectedRegression(OF, 1.0, 1.05, "c4", "c2", level=1.05)
RATIO = IntervalEstimate(1.01, 0.99, 1.02, 8)


@pytest.mark.parametrize(
    ("changes", "covered"),
    [
        ({}, True),
        ({"commit": "c3"}, True),  # the spans overlap
        ({"commit": "c9", "good": "c3"}, True),
        ({"commit": "c6", "good": "c4"}, False),
        ({"commit": "c2", "good": "c1"}, False),
        ({"level": 1.07}, True),
        ({"level": 1.072}, False),  # 2 % above the level that was judged
        ({"level": math.nan}, True),
        ({"of": OF._replace(environment="another")}, False),
        ({"of": OF._replace(name="another")}, False),
        ({"trend": True, "good": "c0", "commit": "c1"}, True),  # which goes on until HEAD
    ],
)
def test_a_verdict_covers_the_rise_that_was_judged(tmp_path, changes, covered):
    store_verdict(tmp_path, JUDGED, GateVerdict.UNCONFIRMED, RATIO, ORDER)
    known = covering(tmp_path, JUDGED._replace(**changes), ORDER)
    assert (known is not None) is covered
    assert not covered or (known.verdict, known.interval, known.head) == ("not confirmed", RATIO, "c11")


def test_the_newest_verdict_counts_and_a_broken_one_is_named(tmp_path):
    store_verdict(tmp_path, JUDGED, GateVerdict.UNCONFIRMED, RATIO, dict(list(ORDER.items())[:5]))
    higher = JUDGED._replace(commit="c3", level=1.1)
    store_verdict(tmp_path, higher, GateVerdict.REGRESSION, RATIO, ORDER)
    assert covering(tmp_path, JUDGED, ORDER).verdict == "regression"
    assert covering(tmp_path, JUDGED, {"c0": 0, "c2": 1}) is None  # commits that were rewritten
    rename_commits(tmp_path / "m", {"c2": "d2"})
    assert {(stored.good, path.name[:2]) for path, stored in read_verdicts(tmp_path / "m")} == {("d2", "d2")}
    (path, _), _ = read_verdicts(tmp_path / "m")
    path.write_text("{}")
    with pytest.raises(BadInput, match="is no verdict"):
        covering(tmp_path, JUDGED, ORDER)


def timed(report):
    return {(one.verdict, one.remark) for one in report.findings if one.rise.of.series is SERIES[0]}


def test_a_gate_times_nothing_again(copy, planted_processes):
    assert timed(gate(copy.paths, copy.machine)) == {(GateVerdict.REGRESSION, "")}
    started = len(planted_processes)
    head = copy.git("rev-parse", "HEAD")[:8]
    for _ in range(10):
        assert timed(gate(copy.paths, copy.machine)) == {(GateVerdict.REGRESSION, f"judged at {head}")}
    assert timed(gate(copy.paths)) == {(GateVerdict.REGRESSION, f"judged at {head}")}  # another machine, with the files
    assert len(planted_processes) == started
    copy.commit("refactoring")
    copy.measure()
    assert timed(gate(copy.paths, copy.machine)) == {(GateVerdict.REGRESSION, f"judged at {head}")}
    assert len(planted_processes) == started
    copy.commit("slower still", highway={"ratio": 3.2})
    copy.measure()
    assert timed(gate(copy.paths, copy.machine)) == {(GateVerdict.REGRESSION, "")}
    assert len(planted_processes) > started


def test_an_undecided_rise_is_not_stored_and_a_replaced_point_takes_its_verdicts_along(copy, planted_processes):
    assert {verdict for verdict, _ in timed(gate(copy.paths, copy.machine, seconds=0))} == {GateVerdict.UNDECIDED}
    machine = copy.paths.results / copy.machine.name
    assert not read_verdicts(machine)
    gate(copy.paths, copy.machine)
    assert read_verdicts(machine)
    copy.git("checkout", "-q", copy.commits[2])
    copy.measure(replace=True)
    assert not read_verdicts(machine)


def test_points_and_verdicts_follow_equal_files_and_accepted_rises_equal_patches(copy, planted_processes):
    """A rebase onto a commit that changes no measured file; then one that drops a commit."""
    gate(copy.paths, copy.machine)
    old = list(copy.commits)
    configuration = json5.loads((copy.root / "asv.conf.json").read_text())
    (copy.root / "asv.conf.json").write_text(json.dumps(configuration | {"regressions_first_commits": {"x": old[3]}}))
    copy.git("commit", "-qam", "accepted")
    accepted = copy.git("rev-parse", "HEAD")
    copy.git("checkout", "-q", "--detach", old[1])
    copy.write("NOTES.md", "A note.")
    copy.git("add", "NOTES.md")
    copy.git("commit", "-qm", "a note")
    copy.git("rebase", "-q", "--onto", "HEAD", old[1], accepted)
    paths = Paths.of(copy.root)
    before = {result.commit for result in read_results(paths.results)}
    (line,) = follow_points(paths)
    assert line.count(" to ") == 4
    after = {result.commit for result in read_results(paths.results)}
    line_of_head = copy.git("rev-list", "HEAD").split()
    assert after == {*line_of_head[1:5], *old[:2]}  # all but the acceptance and the note
    assert before & after == set(old[:2])
    assert {stored.commit for _, stored in read_verdicts(paths.results / copy.machine.name)} <= after
    (line,) = follow_accepted(paths)
    assert copy.git("rev-parse", "HEAD~3")[:8] in line
    assert copy.git("rev-parse", "HEAD~3") in (copy.root / "asv.conf.json").read_text()
    copy.git("commit", "-qam", "followed")
    assert not follow_points(paths) + follow_accepted(paths)
    copy.git("rebase", "-q", "--onto", "HEAD~5", "HEAD~4", "HEAD", "-X", "theirs")  # without the slow-down
    assert "points of no commit" in follow_points(paths)[-1]
    path = copy.root / "asv.conf.json"
    text = json5.loads(path.read_text()) | {"regressions_first_commits": {"x": "0123456789"}}
    path.write_text(json.dumps(text))
    assert "is at no commit" in follow_accepted(paths)[0]
