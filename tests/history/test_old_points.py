"""Old points stay: after a new block, a comment or another order, each point is still shown under its own block."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import highway_bench.history.measure as measuring
from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.families import families
from highway_bench.history.files import read_result, read_results, result_paths
from highway_bench.history.git import has_git, is_dirty
from highway_bench.history.measure import measure_range
from highway_bench.history.publish import publish
from highway_bench.history.record import record

BENCHES = Path(__file__).resolve().parents[2] / "benches/history"


def graph(html: Path, name: str) -> list:
    """The points of a benchmark's graph on the page, as asv wrote them: [revision, values by combination]."""
    (path,) = html.glob(f"graphs/arch-*/**/{name}.json")  # next to graphs/summary, the mean over all combinations
    return json.loads(path.read_text())


def test_a_block_that_sorts_first_leaves_old_points_alone(throwaway) -> None:
    for _ in range(2):
        throwaway.commit("same")
        throwaway.measure()
    before = {result.path.name: result.points for result in read_results(throwaway.paths.results)}
    throwaway.block("aaa")
    benches = throwaway.root / "benches/history/blocks.py"
    text = benches.read_text()
    benches.write_text(text.replace("    def time_step(", "    # a comment in the benchmark\n    def time_step("))
    throwaway.commit("a block that sorts first", aaa={"peak": 7000})
    throwaway.measure()

    html = publish(throwaway.paths, scripts=False).html
    index = json.loads((html / "index.json").read_text())
    names = index["benchmarks"]["blocks.Families.track_peak_bytes"]["params"][0]
    assert names == ["'aaa'", "'highway'", "'plain'"]
    assert [values for _, values in graph(html, "blocks.Families.track_peak_bytes")] == [
        [None, 2000, 1000],
        [None, 2000, 1000],
        [7000, 2000, 1000],
    ]
    for name, points in before.items():
        assert read_result(throwaway.paths.results / throwaway.machine.name / name).points == points
    steps = [values for _, values in graph(html, "blocks.Depths.time_step")]
    assert [value is None for value in steps[0][:3]] == [True] * 3  # aaa, at a commit before it
    assert steps[0][3] > 1.5 * steps[0][6]  # highway's step is twice plain's, and so it is listed


def test_a_range_is_built_and_feeds_the_same_line(throwaway) -> None:
    entrance = throwaway.root / "highway_bench/asv_api.py"
    text = entrance.read_text()
    throwaway.commit("start")
    entrance.unlink()
    old = throwaway.commit("predates the entrance")
    earlier = entrance.with_name("door.py")  # as the first commits call it
    earlier.write_text(text)
    (throwaway.root / "README.md").unlink()
    broken = throwaway.commit("does not build")
    throwaway.write("README.md", "A stand-in.\n")
    good = throwaway.commit("good")
    earlier.rename(entrance)
    head = throwaway.commit("measured as a checkout", plain={"peak": 1234})
    here = throwaway.measure()

    measured = measure_range(throwaway.paths, throwaway.machine, "HEAD")
    assert measured.lines == ["1 of 1 commits have a point already"]
    measured = measure_range(throwaway.paths, throwaway.machine, "HEAD~4..HEAD")
    assert set(measured.results) == {good, head}
    assert measured.without == [
        f"{old[:8]}: n/a, the commit predates the benchmarks",
        f"{broken[:8]}: n/a, the commit does not build or import",
    ]
    # The commit's own package was measured, not the checkout's, and both ways have the same identity.
    assert measured.results[good].points["blocks.Families.track_peak_bytes('plain', 'dense')"].value == 1000
    built, checkout = measured.results[good].data, here.results[head].data
    assert (built["params"], built["requirements"], built["python"], built["env_name"]) == (
        checkout["params"],
        checkout["requirements"],
        checkout["python"],
        checkout["env_name"],
    )
    assert str(throwaway.root) not in json.dumps([built, checkout])
    assert not throwaway.git("status", "--porcelain")  # the written files do not make the tree dirty

    done = record(throwaway.paths, throwaway.machine.name)
    assert sorted(done.added) == sorted([good[:8], head[:8]])
    throwaway.commit("recorded")
    assert record(throwaway.paths, throwaway.machine.name).added == []
    shutil.rmtree(throwaway.paths.working)  # a fresh clone shows the recorded history
    assert len(graph(publish(throwaway.paths, scripts=False).html, "blocks.Families.track_peak_bytes")) == 2
    assert len(result_paths(throwaway.paths.recorded / throwaway.machine.name)) == 2


def test_a_quick_run_preserves_the_values_of_a_full_one(throwaway) -> None:
    """asv writes n/a over a selected value that is not measured, so a quick run must not select it."""
    throwaway.commit("start")
    everything = [r"track_", r"Others|Families\.time_step\('plain'"]
    (full,) = throwaway.measure(series=everything, quick=False).results.values()
    before = dict(full.points)
    assert {
        "blocks.Depths.track_log_loss('plain', 100)",
        "blocks.Depths.track_peak_bytes('plain', 100)",
        "blocks.Families.time_step('plain', 'dense')",
    } <= before.keys()
    (quick,) = throwaway.measure(series=[]).results.values()
    assert before.keys() <= quick.points.keys()
    deep = "blocks.Depths.track_log_loss('plain', 100)"
    assert quick.points[deep] == before[deep]
    assert "blocks.Depths.time_step('plain', 50)" in quick.points  # and measures its own


def test_a_full_range_measures_commits_that_have_only_a_quick_point(throwaway, monkeypatch: pytest.MonkeyPatch) -> None:
    throwaway.commit("start")
    throwaway.measure(series=["Families.track"])
    quick_runs: list[bool] = []
    monkeypatch.setattr(measuring, "_asv_run", lambda paths, machine, words, quick, *_: quick_runs.append(quick))
    for quick in (True, False):
        measure_range(throwaway.paths, throwaway.machine, "HEAD", quick=quick)
    assert quick_runs == [False]
    monkeypatch.undo()
    throwaway.measure(series=["Families.time_step"], quick=False)
    assert measure_range(throwaway.paths, throwaway.machine, "HEAD", quick=False).lines == [
        "1 of 1 commits have a point already"
    ]


def test_benchmarks_name_the_registered_blocks_and_families_without_torch() -> None:
    """The benchmarks' names are the registries', and importing them loads no torch."""
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from history import cells as b; "
        "print(json.dumps([list(b.BLOCKS), b.FAMILIES, b.CORE, 'torch' in sys.modules, "
        "'highway_bench' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(BENCHES.parent)], capture_output=True, text=True, check=True)
    names, kinds, core, torch, package = json.loads(done.stdout)
    ours = [
        name
        for name in blocks.names()
        if blocks.module_of(name).startswith("highway_bench.blocks.") and not blocks.get(name).control
    ]
    assert names == sorted(ours)
    assert kinds == sorted(families.names())
    assert core == sorted(name for name in ours if blocks.get(name).core)
    assert not torch
    assert not package


def test_only_benchmarks_are_in_asvs_folder() -> None:
    assert sorted(path.name for path in BENCHES.glob("*.py")) == ["__init__.py", "blocks.py", "cells.py"]


def test_versions_are_pinned_by_hand() -> None:
    assert re.search(r'^VERSION = "\d+"', (BENCHES / "blocks.py").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["highway_bench", "highway_bench.history.asv_plugin"])
def test_package_of_the_plugin_is_free_of_torch(name: str) -> None:
    code = f"import {name}, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tree_that_changes_while_it_is_measured_gives_an_uncommitted_point(throwaway, monkeypatch) -> None:
    throwaway.commit("start")
    (path,) = (result.path for result in throwaway.measure(series=["Depths.track_peak"]).results.values())
    before, data = path.read_bytes(), json.loads(path.read_bytes())

    def overwrite(*_) -> None:
        path.write_text(
            json.dumps(
                data | {"results": {name: [[7.0] * len(row[0]), *row[1:]] for name, row in data["results"].items()}}
            )
        )
        throwaway.write("highway_bench/asv_api.py", "changed = True")

    monkeypatch.setattr(measuring, "_asv_run", overwrite)
    measured = throwaway.measure()
    assert measured.dirty
    assert any("was changed while" in line for line in measured.lines)
    assert {point.value for result in measured.results.values() for point in result.points.values()} == {7}
    assert measured.folder == throwaway.paths.uncommitted
    assert path.read_bytes() == before


def test_a_commit_that_no_longer_builds_keeps_its_point(throwaway, monkeypatch) -> None:
    throwaway.commit("start")
    (path,) = (result.path for result in throwaway.measure(series=["Depths.track_peak"]).results.values())
    before, data = path.read_bytes(), json.loads(path.read_bytes())
    failed = json.dumps(data | {"results": {name: [None, *row[1:]] for name, row in data["results"].items()}})
    monkeypatch.setattr(measuring, "_asv_run", lambda *_: path.write_text(failed))
    with pytest.raises(NothingMeasured, match="does not build"):
        measure_range(throwaway.paths, throwaway.machine, "HEAD", again=True)
    assert path.read_bytes() == before
    throwaway.write("benches/history/blocks.py", "")
    with pytest.raises(BadInput, match="uncommitted changes in benches/history"):
        measure_range(throwaway.paths, throwaway.machine, "HEAD", again=True)


def test_a_new_file_is_a_change_and_another_projects_checkout_is_not_ours(throwaway) -> None:
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
