"""Points: whole ones of clean commits are stored; nothing stored is lost, whatever else is measured."""

import itertools
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import highway_bench.history.measure as measuring
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.files import read_json, read_result, read_results, result_paths, write_json
from highway_bench.history.git import has_git, is_dirty
from highway_bench.history.machine import entry
from highway_bench.history.measure import measure_here, measure_range
from highway_bench.history.publish import publish
from highway_bench.history.verdicts import Gap, read_gaps

PEAK = "blocks.Families.track_peak_bytes('plain', 'dense')"
DEEP = "blocks.Depths.track_ratio('plain', 100)"  # only a full point has it


def graph(html, name):
    """The points of a benchmark's graph on the page, as asv wrote them: [revision, values by combination]."""
    (path,) = html.glob(f"graphs/arch-*/**/{name}.json")  # next to graphs/summary, the mean over all combinations
    return json.loads(path.read_text())


def contents(paths):
    return {str(path): path.read_bytes() for path in paths.results.glob("*/*.json")}


def test_a_block_that_sorts_first_leaves_old_points_alone(throwaway):
    for _ in range(2):
        throwaway.commit("same")
        throwaway.measure()
    before = {result.path.name: result.points for result in read_results(throwaway.paths.results)}
    throwaway.block("aaa")
    throwaway.commit("a block that sorts first", aaa={"peak_bytes": 7000})
    throwaway.measure()

    html = publish(throwaway.paths, scripts=False).html
    names = read_json(html / "index.json")["benchmarks"]["blocks.Families.track_peak_bytes"]["params"][0]
    assert names == ["'aaa'", "'highway'", "'plain'"]
    assert [values for _, values in graph(html, "blocks.Families.track_peak_bytes")] == [
        [None, 2000, 1000],
        [None, 2000, 1000],
        [7000, 2000, 1000],
    ]
    for name, points in before.items():
        assert read_result(throwaway.paths.results / throwaway.machine.name / name).points == points
    next(throwaway.paths.results.rglob(f"{throwaway.commits[0][:8]}-*.json")).unlink()  # withdrawn: it does not return
    assert publish(throwaway.paths, scripts=False).points == 2


@pytest.mark.slow
def test_a_range_is_built_and_feeds_the_same_line(throwaway):
    throwaway.write("highway_bench/__init__.py", "")
    old = throwaway.commit("predates the benchmarks")
    throwaway.write("highway_bench/__init__.py", "api = True\n")
    (throwaway.root / "README.md").unlink()
    broken = throwaway.commit("does not build")
    throwaway.write("README.md", "A stand-in.\n")
    good = throwaway.commit("good")
    head = throwaway.commit("measured as a checkout", plain={"peak_bytes": 1234})
    here = throwaway.measure()

    measured = measure_range(throwaway.paths, throwaway.machine, "HEAD")
    assert "already" in measured.lines[0]
    throwaway.git("commit", "-q", "--allow-empty", "-m", "one more")
    measured = measure_range(throwaway.paths, throwaway.machine, f"{old}..HEAD~1")
    assert set(measured.results) == {good, head}
    assert [str(line)[:8] for line in measured.without] == [broken[:8]]
    (gap,) = read_gaps(throwaway.paths.results / throwaway.machine.name)
    assert gap == Gap(broken, str(measured.without[0]))
    with pytest.raises(NothingMeasured, match="predates"):
        measure_range(throwaway.paths, throwaway.machine, old)
    # The commit's own package was measured, not the checkout's, and both ways have the same identity.
    assert measured.results[good].points[PEAK].value == 1000
    built, checkout = measured.results[good].data, here.results[head].data
    for name in ("params", "requirements", "python", "env_name"):
        assert built[name] == checkout[name]
    assert str(throwaway.root) not in json.dumps([built, checkout])
    assert not is_dirty(throwaway.root)  # the points do not make the tree dirty
    assert len(graph(publish(throwaway.paths, scripts=False).html, "blocks.Families.track_peak_bytes")) == 2
    throwaway.write("benches/history/blocks.py", "")
    with pytest.raises(BadInput, match="benches/history"):
        measure_range(throwaway.paths, throwaway.machine, "HEAD", replace=True)


def test_a_full_point_replaces_a_quick_one_and_never_the_other_way(throwaway):
    (commit,) = {throwaway.commit("start")}
    (quick,) = throwaway.measure().results.values()
    assert not quick.is_full
    assert DEEP not in quick.points
    (full,) = throwaway.measure(quick=False).results.values()
    assert full.is_full
    assert quick.points.keys() < full.points.keys()
    before = contents(throwaway.paths)
    for measured in (
        throwaway.measure(),
        throwaway.measure(quick=False),
        measure_range(throwaway.paths, throwaway.machine, "HEAD"),
    ):
        assert measured.results[commit].is_full
        assert "already" in measured.lines[0]
    assert contents(throwaway.paths) == before
    with pytest.raises(BadInput, match="quick"):
        throwaway.measure(replace=True)
    assert contents(throwaway.paths) == before
    throwaway.measure(quick=False, replace=True)
    assert contents(throwaway.paths) != before


@pytest.mark.parametrize(
    ("is_full", "quick", "wanted"),
    [(True, True, False), (True, False, True), (False, True, True), (False, False, True)],
)
def test_a_point_with_a_failure_is_measured_again_but_not_a_full_one_quickly(is_full, quick, wanted):
    known = SimpleNamespace(is_full=is_full, is_current=True, failures=["a series"], commit="a" * 40)
    assert measuring.is_wanted(known, quick, False) == wanted


def test_an_interrupted_run_leaves_no_point_and_changes_none(throwaway, monkeypatch):
    throwaway.commit("start")
    throwaway.measure()
    before, whole = contents(throwaway.paths), measuring.asv

    def killed(paths, command, *arguments, **options):
        whole(paths, command, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "asv", killed)
    with pytest.raises(KeyboardInterrupt):
        throwaway.measure(replace=True)
    assert result_paths(throwaway.paths.scratch / throwaway.machine.name)
    assert contents(throwaway.paths) == before
    monkeypatch.undo()
    throwaway.commit("next")
    assert list(throwaway.measure().results) == [throwaway.commits[-1]]


def test_a_dirty_tree_is_shown_and_not_stored(throwaway):
    throwaway.commit("start")
    throwaway.measure()
    before = contents(throwaway.paths)
    throwaway.values["plain"]["peak_bytes"] = 1500
    throwaway.write("highway_bench/values.json", json.dumps(throwaway.values))
    with pytest.raises(BadInput, match="--out"):
        throwaway.measure(out=throwaway.root / "reports/out")
    measured = throwaway.measure()
    assert measured.dirty
    shown = publish(throwaway.paths, scripts=False)
    assert "uncommitted" in shown.lines[0]
    assert [values[-1] for _, values in graph(shown.html, "blocks.Families.track_peak_bytes")] == [1500]
    assert contents(throwaway.paths) == before
    throwaway.commit("taken up")
    assert publish(throwaway.paths, scripts=False).lines == []
    assert not throwaway.paths.uncommitted.exists()


def test_a_tree_that_changes_while_it_is_measured_gives_an_uncommitted_point(throwaway, monkeypatch):
    throwaway.commit("start")
    whole = measuring.asv

    def changed(paths, command, *arguments, **options):
        whole(paths, command, *arguments, **options)
        throwaway.write("highway_bench/asv_api.py", "changed = True")

    monkeypatch.setattr(measuring, "asv", changed)
    measured = throwaway.measure()
    assert measured.dirty
    assert any("was changed while" in line for line in measured.lines)
    assert not contents(throwaway.paths)


def test_a_new_torch_and_another_machine_get_points_of_their_own(throwaway, monkeypatch):
    commit = throwaway.commit("start")
    throwaway.measure()
    for module in ("asv_plugin", "machine"):
        monkeypatch.setattr(f"highway_bench.history.{module}.requirements", lambda: {"torch": "9.9"})
    monkeypatch.setattr(measuring, "series_name", lambda: "py3.11-torch9.9")
    assert not measuring.stored(throwaway.paths.results, throwaway.machine.name)
    monkeypatch.undo()
    other = replace(throwaway.machine, entry=entry("other-box", None))
    measure_here(throwaway.paths, other)
    assert [result.machine for result in read_results(throwaway.paths.results)] == [throwaway.machine.name, "other-box"]
    assert {result.commit for result in read_results(throwaway.paths.results)} == {commit}
    with pytest.raises(BadInput, match="two names"):
        measure_here(throwaway.paths, replace(other, entry=entry("other-box", "NVIDIA H100")))


def test_a_point_that_lacks_todays_series_stays_until_it_is_to_be_replaced(throwaway):
    throwaway.commit("start")
    (result,) = throwaway.measure(quick=False).results.values()
    results = {name: row for name, row in result.data["results"].items() if "track_ratio" not in name}
    write_json(result.path, result.data | {"results": results})
    for quick in (True, False):
        throwaway.measure(quick=quick)
        assert read_json(result.path)["results"] == results
    (again,) = throwaway.measure(replace=True).results.values()
    assert any("track_ratio" in name for name in again.points)


def test_a_point_with_failures_is_measured_again(throwaway):
    throwaway.commit("start", highway={"broken": 1})
    measured = throwaway.measure()
    assert any("highway" in name for name in measured.failed)
    assert throwaway.measure().failed == measured.failed  # measured, and not only looked up


def test_a_configuration_that_is_not_committed_is_no_copy_without_git(throwaway):
    throwaway.git("init", "-q")
    with pytest.raises(BadInput, match="not committed yet"):
        throwaway.measure()


def test_a_new_file_is_a_change_and_another_projects_checkout_is_not_ours(throwaway):
    throwaway.commit("start")
    throwaway.git("config", "status.showUntrackedFiles", "no")
    assert not is_dirty(throwaway.root)
    throwaway.block("mine")
    assert is_dirty(throwaway.root)
    copy = throwaway.root / "reports/copy"
    copy.mkdir(parents=True)
    shutil.copyfile(throwaway.root / "asv.conf.json", copy / "asv.conf.json")
    assert has_git(throwaway.root)
    assert not has_git(copy)


def test_a_checkout_of_another_owner_is_refused_with_the_cure(tmp_path, monkeypatch):
    git = tmp_path / "git"
    git.write_text('#!/bin/sh\nprintf "fatal: detected dubious ownership\\n\\n\\tgit config x\\n" >&2; exit 128\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(BadInput, match="dubious ownership; git config x"):
        has_git(tmp_path)


def test_every_accepted_rise_has_its_reason():
    text = (Path(__file__).resolve().parents[2] / "asv.conf.json").read_text()
    lines = text[text.index('"regressions_first_commits"') :].splitlines()[1:]
    for before, line in itertools.pairwise(lines):
        if re.match(r'\s*"', line):
            assert before.strip().startswith("//"), line
