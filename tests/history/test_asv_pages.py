"""asv's pages agree with the gate, show what was measured, and print names of the field."""

import json
from pathlib import Path

import pytest
from asv.step_detect import detect_regressions, detect_steps

from highway_bench.history import WINDOW, git
from highway_bench.history.asv_pages import SCRIPTS, adapt_pages, keep_measured
from highway_bench.history.files import read_json, read_result, write_json
from highway_bench.history.gate import gate
from highway_bench.history.lines import LEVEL, accepted_rises, lines_of, points_of_machines, recent_commits, rises
from highway_bench.history.paths import Paths
from highway_bench.history.publish import publish
from highway_bench.history.verdicts import store_gap

ROOT = Path(__file__).resolve().parents[2]
STEP = "blocks.Depths.track_ratio"
AXES = [["'plain'", "'highway'"], ["10"]]
FLAT = (1.000, 1.004, 0.998, 1.002, 0.999, 1.003)


def planted_points(throwaway, write_point, ratios):
    """A commit for each of highway's ``ratios``, with points of it and of plain, which stays as it is."""
    for number, ratio in enumerate(ratios):
        values = [1.0 + 1e-3 * (number % 3), 2 * ratio]
        row = [values, AXES, "1", 0]
        commit = throwaway.commit("change")
        write_point(throwaway.paths.results / throwaway.machine.name, commit, {}, results={STEP: row})


@pytest.mark.parametrize("rise", [(1.035, 1.07), (1.07, 1.07), (1.035, 1.07, 1.071)])
def test_a_slow_down_of_seven_percent_over_two_commits_is_on_the_page_and_in_the_gate(throwaway, write_point, rise):
    planted_points(throwaway, write_point, [*FLAT, *rise])
    (finding,) = gate(throwaway.paths).findings
    publish(throwaway.paths, scripts=False)
    html = throwaway.paths.html
    (listed,) = read_json(html / "regressions.json")["regressions"]
    assert listed[0] == finding.rise.of.name == f"{STEP}('highway', 10)"
    assert (html / listed[1]).is_file()
    (jump,) = listed[6]
    index = read_json(html / "index.json")
    blamed = [index["revision_to_hash"][str(revision)] for revision in jump[:2]]
    assert blamed == [finding.rise.good, finding.rise.commit]
    assert set(blamed) < set(throwaway.commits[5:8])
    assert jump[3] / jump[2] == pytest.approx(1.07, abs=0.01)
    assert index["names"] == {listed[0]: "step time · highway · dense · 10 layers · 128 × 128"}
    assert index["names"][listed[0]] in (html / "regressions.xml").read_text()


def test_what_the_gate_calls_clean_is_not_on_the_page(throwaway, write_point):
    """A rise of long ago, which asv would list for ever."""
    planted_points(throwaway, write_point, [*FLAT, *[1.07] * (WINDOW + LEVEL + 1)])
    assert not gate(throwaway.paths).findings
    publish(throwaway.paths, scripts=False)
    assert read_json(throwaway.paths.html / "regressions.json") == {"regressions": []}


def test_a_commit_without_a_point_is_labelled_and_the_grid_shows_the_series_that_grew_most(throwaway, write_point):
    planted_points(throwaway, write_point, [1.0, 1.0])
    broken = throwaway.commit("does not import")
    store_gap(throwaway.paths.results / throwaway.machine.name, broken, Exception(f"{broken[:8]} does not import: x"))
    planted_points(throwaway, write_point, [1.2])
    published = publish(throwaway.paths, scripts=False)
    assert published.lines == [f"no point: {broken[:8]} does not import: x"]
    index = read_json(throwaway.paths.html / "index.json")
    assert index["revision_to_hash"][str(index["tags"][f"{broken[:8]} does not import"])] == broken
    graph = json.loads((throwaway.paths.html / f"graphs/summary/{STEP}.json").read_text())
    assert [ratio for _, ratio in graph] == pytest.approx([1.0, 1.001, 1.2], abs=1e-3)


def test_asvs_own_search_finds_nothing_in_the_committed_points_that_the_gate_calls_clean():
    if git.is_shallow(ROOT):
        pytest.skip("a shallow clone")
    paths = Paths.of(ROOT)
    order = git.line_of(ROOT)
    suite, accepted = paths.suite(), accepted_rises(paths, order)
    searched = 0
    for environments in points_of_machines(paths.results, order).values():
        for results in environments:
            lines = lines_of(results, suite, accepted, order)
            proposed = {rise.of for rise in rises(lines, recent_commits(results, WINDOW))}
            for of, line in lines.items():
                searched += 1
                places = [order[commit] for commit, _ in line]
                fitted = detect_steps([point.value for _, point in line])
                steps = [(places[left], places[right - 1] + 1, *rest) for left, right, *rest in fitted]
                *_, jumps = detect_regressions(steps, 0.05)  # asv's threshold
                assert not jumps or of in proposed, of
    assert searched > 100


def test_only_what_has_a_point_is_listed(tmp_path, write_point):
    rows = {
        STEP: [[1.0, None, 3.0, float("nan")], [["'plain'", "'highway'"], ["10", "50"]], "1", 0],
        "blocks.Depths.track_gpu_seconds": [None, [["'plain'", "'highway'"], ["10", "50"]], "1", 0],
    }
    result = read_result(write_point(tmp_path / "box", "a" * 40, {}, results=rows))
    every = {"params": [["'highway'", "'new'", "'plain'"], ["10", "50", "100"]], "param_names": ["block", "depth"]}
    write_json(tmp_path / "benchmarks.json", {"version": 2, **dict.fromkeys((*rows, "blocks.New.track_ratio"), every)})
    keep_measured(tmp_path / "benchmarks.json", [result])
    listed = read_json(tmp_path / "benchmarks.json")
    assert listed.keys() == {"version", STEP}
    assert listed[STEP]["params"] == [["'highway'", "'plain'"], ["10"]]


def test_scripts_of_another_asv_keep_their_names_and_say_so(tmp_path):
    for name, _, _ in SCRIPTS:
        (tmp_path / name).write_text("other")
    assert "internal names" in adapt_pages(tmp_path)
    assert {(tmp_path / name).read_text() for name, _, _ in SCRIPTS} == {"other"}
