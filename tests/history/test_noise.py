"""A against A: how much a series varies when nothing changes, stored by machine."""

from __future__ import annotations

import math

import pytest

import highway_bench.history.noise as noises
from highway_bench.errors import BadInput
from highway_bench.history.files import write_json
from highway_bench.history.noise import known_noise, measure_noise, recorded_noise


def test_a_series_has_its_own_noise_and_no_less_than_its_benchmarks(throwaway) -> None:
    spreads = {"b.time_step('x')": (0.1, 2), "b.time_step('y')": (0.01, 4), "b.track_slowdown('x')": (0.02, 2)}
    write_json(throwaway.paths.noise / "m.json", {"schema": noises.SCHEMA, "spreads": spreads})
    together = math.sqrt((2 * 0.1**2 + 4 * 0.01**2) / 6)
    assert known_noise(throwaway.paths, "m") == pytest.approx(
        {"b.time_step('x')": 0.1, "b.time_step('y')": together, "b.track_slowdown('x')": 0.02}
    )
    assert known_noise(throwaway.paths, "never measured") == {}


def test_noise_is_measured_and_pooled_with_what_was_recorded(throwaway) -> None:
    throwaway.commit("start")
    same, deep = "blocks.Depths.track_log_loss('plain', 10)", "blocks.Depths.track_log_loss('plain', 100)"
    path = throwaway.paths.noise / f"{throwaway.machine.name}.json"
    write_json(path, {"schema": noises.SCHEMA, "spreads": {same: (0.2, 3), deep: (0.5, 2)}})
    spreads = measure_noise(throwaway.paths, throwaway.machine, 2)
    assert 0 < spreads["blocks.Depths.track_slowdown('plain', 10)"].sd < 0.05  # one in a hundred, as planted
    assert spreads[same] == (0, 1)  # the same seeds
    assert not any("_bytes" in series for series in spreads)
    recorded = recorded_noise(throwaway.paths, throwaway.machine.name)
    assert recorded == spreads | {same: (pytest.approx(math.sqrt(3 / 4) * 0.2), 4), deep: (0.5, 2)}
    assert not throwaway.paths.results.exists()  # no point of the history
    write_json(path, {"schema": 99})
    with pytest.raises(BadInput, match="schema 99"):
        measure_noise(throwaway.paths, throwaway.machine, 2)
    with pytest.raises(BadInput, match="two runs"):
        measure_noise(throwaway.paths, throwaway.machine, 1)
