"""The table of series and the processes that measure it: names, cells, real values of small cells."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from highway_bench.blocks import blocks
from highway_bench.families import families
from highway_bench.history.paths import Paths
from highway_bench.history.suite import measuring
from highway_bench.history.suite.benchmarks import VERSION, value_for_asv
from highway_bench.history.suite.measuring import STEPS, TRAINING, SeriesKey, add, log_loss, precise
from highway_bench.history.suite.process import CellLacking, PackageProcess, RequestFailed
from highway_bench.history.suite.requests import PHASE, Requests, sizes_of
from highway_bench.history.suite.series import SERIES, HistoryCell, Judged, Suite
from highway_bench.measure.clock import ALL_CAPPED, Stopwatch
from tests.combinations import can_join

PROJECT = Path(__file__).resolve().parents[2]
BENCHES = PROJECT / "benches/history"
SMALL = Suite(core=("highway", "plain"), families=("dense",))


@pytest.fixture(scope="module")
def suite():
    return Paths.of(PROJECT).suite()


def test_the_suite_has_the_registered_blocks_and_families(suite):
    ours = [
        name
        for name in blocks.names()
        if blocks.module_of(name).startswith("highway_bench.blocks.") and blocks.get(name).group != "control"
        if can_join(name, suite.stacked)
    ]
    assert sorted(suite.core + suite.others) == sorted(ours)
    assert suite.families == tuple(sorted(name for name in families if families.get(name).group == "core"))
    assert suite.core == tuple(sorted(name for name in ours if blocks.get(name).group == "core"))
    assert set(suite.timed) <= set(suite.families)
    (ratio,) = [series for series in SERIES if series.judged is Judged.TIMED]
    assert len(list(suite.cells(ratio, quick=True))) <= 30  # which the gate times


def test_a_name_stands_for_its_series_and_cell(suite):
    names = suite.names
    assert names["Families.track_ratio('plain', 'conv')"][1] == HistoryCell("plain", "conv", 4)
    assert names["Depths.track_peak_bytes('plain', 50)"] == (
        next(series for series in SERIES if series.name == "peak_bytes"),
        HistoryCell("plain", "dense", 50),
    )
    other = Suite(core=("a",), families=("dense",), others=("b",), deep="dense")
    assert other.names["Others.track_ratio('b')"][1] == HistoryCell("b", "dense", 10)
    assert "Families.track_log_loss('plain', 'dense')" not in names


def test_benchmarks_import_neither_torch_nor_the_installed_package():
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from history import blocks as b; "
        "print(json.dumps([[k for k, v in vars(b).items() if isinstance(v, type) and k[0] != '_'], "
        "[n for n in ('torch', 'numpy', 'highway_bench') if n in sys.modules]]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(BENCHES.parent)], capture_output=True, text=True, check=True
    )
    classes, imported = json.loads(done.stdout)
    assert {"Families", "Depths"} <= set(classes)
    assert not imported
    assert sorted(path.name for path in BENCHES.glob("*.py")) == ["__init__.py", "blocks.py"]  # asv imports all


@pytest.fixture(scope="module")
def process():
    with PackageProcess([str(PROJECT), *sys.path], "cpu", 0) as one:
        yield one


def test_a_process_measures_this_tree(process):
    found = process.ask("ratios", blocks=["plain", "none"], family="dense", depth=2, samples=3, seconds=0, seed=0)
    assert found["plain"].keys() == {"ratio", "seconds"}
    assert 0.1 < found["plain"]["ratio"] < 10
    assert found["plain"]["seconds"] > 0
    assert found["none"] is None
    counts = process.ask("counts", block="plain", family="dense", depth=2)
    assert counts.keys() == {"operator_calls", "kernel_launches", "flop", "bytes_moved"}
    assert counts == process.ask("counts", block="plain", family="dense", depth=2)
    assert counts["flop"] == 2 * 2 * 3 * 128**3 - 2 * 128**3  # three products a layer, the first without its input's
    process.ask("prepare", block="plain", family="dense", depth=2)
    seconds, wall = process.ask("step")
    assert seconds > 0
    assert wall > 0


class FakeGpu:
    """A GPU that takes a second for each step, and whose clock is always capped for the same reasons."""

    unread = None

    def __init__(self, *caps: str) -> None:
        self.reasons = frozenset(caps)

    def seconds(self, launch: Callable[[], object], wall: float) -> float:
        launch()
        return 1.0

    def clock_rate(self) -> float:
        return 1e9

    def caps(self) -> frozenset[str]:
        return self.reasons


def test_a_gpu_has_times_of_its_own_and_rounds_under_a_capped_clock_have_none():
    requests = Requests("cpu")

    def asked(**watch):
        requests.watch = Stopwatch(time.perf_counter, **watch)
        return requests.ratios(blocks=["plain", "none"], family="dense", depth=1, samples=3, seconds=0.0, seed=0)

    found = asked(gpu=FakeGpu())["plain"]
    assert found["gpu_seconds"] == 1.0 != found["seconds"]
    assert asked(gpu=FakeGpu("heat")) == {"plain": f"{ALL_CAPPED} (heat)", "none": None}
    assert isinstance(asked(delay=itertools.count().__next__)["plain"], dict)  # disturbed by other programs


def test_what_a_package_lacks_or_fails_at_is_told_apart(process):
    with pytest.raises(CellLacking, match="nothing"):
        process.ask("counts", block="nothing", family="dense", depth=2)
    with pytest.raises(RequestFailed, match=r"ValueError|BadInput"):
        process.ask("counts", block="plain", family="dense", depth=-1)


def test_a_process_that_measures_something_else_fails(tmp_path):
    with (
        PackageProcess([str(PROJECT), *sys.path], "cpu", 0, tmp_path) as one,
        pytest.raises(RequestFailed, match="imported from elsewhere"),
    ):
        one.ask("prepare", block="plain", family="dense", depth=2)


def test_a_process_that_dies_fails_one_request(capfd):
    with PackageProcess([str(PROJECT), *sys.path], "cpu", 0) as one:
        one._stop()
        one.process = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.exit(7)"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(RequestFailed, match="status 7"):
            one.ask("step")
        assert one.process is None  # and the next request starts another


class Planted:
    """Answers as a process would, without one."""

    started: ClassVar[list[int]] = []

    def __init__(self, path, device: str, core: int, tree=None) -> None:
        self.started.append(core)
        self.core = core

    def __enter__(self) -> Planted:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def ask(self, request: str, **fields):
        if request == "ratios":
            spread = 0.2 if fields["depth"] == 50 else 0.001
            highway = {"ratio": 2 + spread * self.core, "seconds": 1e-3}
            return {"highway": highway, "plain": "RuntimeError: planted"}
        if fields["block"] == "plain":
            raise CellLacking("plain")
        if request == "counts":
            return {"operator_calls": 4, "kernel_launches": 3, "flop": 2, "bytes_moved": 1}
        return {
            "peak": 5,
            "saved_activations": math.inf,
            "slowdown": 2.5,
            "final_loss": None,
            "steps_to_threshold": None,
        }


def test_a_point_has_the_values_of_its_table(monkeypatch):
    monkeypatch.setattr(measuring, "PackageProcess", Planted)
    Planted.started = []
    quick, full = (measuring.measure_point(SMALL, "cpu", quick=quick) for quick in (True, False))
    assert Planted.started[:7] == [0, 1, 2, 3, 4, 5, 0]  # three, three more for what is not precise, and the counts
    deep = HistoryCell("highway", "dense", 50)
    assert len(quick[SeriesKey("ratio", deep)]) == 6
    assert len(quick[SeriesKey("ratio", HistoryCell("highway", "dense", 10))]) == 3
    assert quick[SeriesKey("ratio", HistoryCell("plain", "dense", 10))] == "RuntimeError: planted"
    assert quick[SeriesKey("flop", deep)] == [2]
    assert quick[SeriesKey("saved_bytes", deep)] == []  # not finite
    assert SeriesKey("seconds", deep) not in quick
    assert full[SeriesKey("seconds", deep)][0] == 1e-3
    assert full[SeriesKey("gpu_seconds", deep)] == []  # on a CPU
    assert full[SeriesKey("slowdown", HistoryCell("highway", "dense", 100))] == [2.5]
    assert full[SeriesKey("log_loss", deep)] == [9.0] * 5
    for values, is_quick in ((quick, True), (full, False)):
        expected = {SeriesKey(series.name, cell) for series in SERIES for cell in SMALL.cells(series, quick=is_quick)}
        assert values.keys() == expected


def test_values_for_asv():
    key = SeriesKey("ratio", HistoryCell("a", "b", 1))
    assert value_for_asv({key: [1.0, 2.0]}, key) == {"samples": [1.0, 2.0], "number": 1}
    assert value_for_asv({key: [1.0]}, key) == 1.0
    assert math.isnan(value_for_asv({}, key))
    with pytest.raises(RuntimeError, match="why"):
        value_for_asv({key: "why"}, key)
    values = {key: "why"}
    add(values, key.cell, ["ratio"], {"ratio": 1.0})
    assert values[key] == "why"  # a failure stays
    enough = {key: [1.0] * measuring.PROCESSES}
    add(enough, key.cell, ["ratio"], "why")
    assert enough[key] == [1.0] * measuring.PROCESSES  # except where there are enough processes without it


def test_precision_and_losses():
    assert precise([[1.0, 1.001, 1.002], "failed", []])
    assert not precise([[1.0, 1.1, 1.2]])
    assert log_loss(1e-6) == 0
    assert log_loss(None) == log_loss(1e9) == 9


def test_a_change_of_what_is_measured_needs_another_version():
    """Whoever changes one of these decides whether old values may stand beside new ones, and raises VERSION if not."""
    meaning = repr(
        ([tuple(one)[:1] + tuple(one)[2:4] for one in SERIES], TRAINING, STEPS, PHASE, sizes_of("dense", "cpu"))
    )
    assert (VERSION, hashlib.sha256(meaning.encode()).hexdigest()[:16]) == ("1", "25061ad4048ed59d")
