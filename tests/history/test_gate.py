"""The gate: what was planted is found at its commit, what is harmless is not, and nothing measured never passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from highway_bench.errors import NothingMeasured
from highway_bench.history.files import Point
from highway_bench.history.gate import cell_of, gate
from highway_bench.history.noise import tolerated

BENCHES = Path(__file__).resolve().parents[2] / "benches/history/blocks.py"
TIMED = r"Depths\.time_step\(.*, 10\)"
SLOWER, HEAVIER, WORSE = 4, 5, 6  # which commits of ``planted``


@pytest.fixture(scope="module")
def verdict(planted):
    return gate(planted.layout, window=10, confirm=False)


def commits_of(verdict, kind: str, block: str) -> set[str]:
    return {one.commit for one in verdict.regressions if f".{kind}(" in one.series and f"'{block}'" in one.series}


@pytest.mark.parametrize(("kind", "block", "number"), [
    ("time_step", "highway", SLOWER), ("track_slowdown", "highway", SLOWER), ("track_peak_bytes", "plain", HEAVIER),
    ("track_log_loss", "highway", WORSE), ("track_steps_to_threshold", "highway", WORSE)])
def test_what_was_planted_is_found_at_its_commit(planted, verdict, kind, block, number) -> None:
    assert commits_of(verdict, kind, block) == {planted.commits[number]}


@pytest.mark.parametrize(("kind", "block"), [
    ("time_step", "plain"), ("track_slowdown", "plain"), ("track_saved_bytes", "plain"),
    ("track_peak_bytes", "highway"),
    ("track_log_loss", "plain"), ("track_steps_to_threshold", "plain")])
def test_controls_are_not_flagged(verdict, kind, block) -> None:
    assert not commits_of(verdict, kind, block)


def test_before_and_after_are_told(verdict) -> None:
    series = "blocks.Families.track_peak_bytes('plain', 'dense')"
    (found,) = [one for one in verdict.regressions if one.series == series]
    assert (found.before, found.after, found.tolerated) == (1000, 1008, 0)


def test_a_rerun_confirms_what_is_still_there(planted) -> None:
    found = gate(planted.layout, planted.machine, window=10)
    slower = [one for one in found.regressions if ".Depths.time_step('highway', 10)" in one.series]
    assert [one.commit for one in slower] == [planted.commits[SLOWER]]
    assert slower[0].again > 1.3 * slower[0].before
    assert not found.dismissed


def test_a_window_leaves_old_regressions_out(planted) -> None:
    assert {one.commit for one in gate(planted.layout, window=2, confirm=False).regressions} <= {planted.commits[WORSE]}


def test_the_newest_commit_is_looked_at(throwaway) -> None:
    for _ in range(2):
        throwaway.commit("same")
        throwaway.measure(series=[TIMED])
    assert gate(throwaway.layout, confirm=False).regressions == []
    throwaway.commit("slower at HEAD", plain={"step": 3.0})
    throwaway.measure(series=[TIMED])
    assert {one.commit for one in gate(throwaway.layout, confirm=False).regressions} == {throwaway.commits[-1]}


def test_nothing_measured_at_head_does_not_pass(throwaway) -> None:
    throwaway.commit("start")
    with pytest.raises(NothingMeasured):
        gate(throwaway.layout, confirm=False)
    throwaway.measure(series=[TIMED])
    throwaway.commit("not measured")
    with pytest.raises(NothingMeasured, match="HEAD"):
        gate(throwaway.layout, confirm=False)


def test_thresholds_come_from_noise() -> None:
    flat = [Point(10.0, float("nan"), 1)] * 6
    assert tolerated("b.track_peak_bytes('x')", flat, flat[0]) == 0
    assert tolerated("b.time_step('x')", flat, flat[0]) == pytest.approx(1.0)
    noisy = [Point(value, float("nan"), 1) for value in (10, 12, 9, 12, 10, 13)]
    assert tolerated("b.time_step('x')", noisy, noisy[0]) > 3
    assert tolerated("b.time_step('x')", flat, flat[0], repeated=0.2) > 6
    seeds = [Point(5.0, 0.5, 5)] * 6
    assert tolerated("b.track_log_loss('x')", seeds, seeds[0]) > 3 * 0.5 / 5**0.5


def test_a_series_names_its_cell() -> None:
    """As the benchmarks' own constants say: a re-run measures these cells alone."""
    constants = dict(re.findall(r"^(FAMILY_DEPTH|OTHER_DEPTH) = (\d+)$", BENCHES.read_text(), re.MULTILINE))
    assert cell_of("blocks.Families.time_step('plain', 'conv')") == f"plain|conv|{constants['FAMILY_DEPTH']}"
    assert cell_of("blocks.Depths.time_step('plain', 50)") == "plain|dense|50"
    assert cell_of("blocks.Others.time_step('mine')") == f"mine|dense|{constants['OTHER_DEPTH']}"
