"""Points go to the machine that measured them; the gate times HEAD on a machine that has none."""

import json
from datetime import UTC, datetime

import pytest

from highway_bench.errors import NothingMeasured
from highway_bench.history.files import MACHINE, read_machine, read_result, read_results, use_present_names
from highway_bench.history.gate import gate
from highway_bench.history.machine import Machine, entry, series_name
from highway_bench.history.measure import moved, stored
from highway_bench.history.verdicts import GateVerdict
from highway_bench.provenance import former_names, machine
from highway_bench.provenance.machine import Processor

OLD, NEW = "cpu-amd-epyc-2c", "cpu-amd-epyc-f26m2-avx512-2c"
BOOT = datetime(2027, 1, 2, tzinfo=UTC)


@pytest.fixture
def epyc(monkeypatch):
    """Stand in for a virtual machine of two cores that was started at ``BOOT``, whose former name was ``OLD``."""
    for module in (machine, former_names):
        monkeypatch.setattr(module, "processor", lambda: Processor("AMD EPYC", "AuthenticAMD", "26", "2", ("avx512f",)))
    monkeypatch.setattr("highway_bench.history.machine.processor", machine.processor)
    monkeypatch.setattr("highway_bench.history.machine.cores", lambda: 2)
    monkeypatch.setattr(former_names, "_booted", BOOT.isoformat)


def at(hours):
    return 1000 * int(BOOT.timestamp() + 3600 * hours)


def test_points_of_version_0_2_are_found_on_the_machine_that_measured_them(epyc, tmp_path, write_point):
    before, after = (
        write_point(tmp_path / OLD, digit * 40, {"blocks.Depths.track_ratio": ([1.0, 2.0], at(hours))})
        for digit, hours in (("a", -1), ("b", 1))
    )
    values = json.loads(after.read_text())["results"]
    assert {one.path: one.machine for one in read_results(tmp_path)} == {before: OLD, after: NEW}
    assert {one.commit[0]: one.is_told_apart for one in read_results(tmp_path)} == {"a": False, "b": True}
    use_present_names(tmp_path)
    assert sorted(path.name for path in (tmp_path / OLD).iterdir()) == [before.name, MACHINE]
    moved = json.loads((tmp_path / NEW / after.name).read_text())
    assert (moved["results"], moved["params"]["machine"]) == (values, NEW)
    assert read_machine(tmp_path / NEW) == entry(NEW, None)


def test_what_is_measured_again_replaces_the_point_of_the_former_name(epyc, tmp_path, write_point):
    rows = {"blocks.Depths.track_ratio": ([1.0, 2.0], at(1))}
    old = write_point(tmp_path / "points" / OLD, "a" * 40, rows, env_name=series_name())
    assert stored(tmp_path / "points", NEW)["a" * 40].path == old
    new = moved(read_result(write_point(tmp_path / "scratch" / NEW, "a" * 40, rows)), tmp_path / "points")
    assert [one.path for one in read_results(tmp_path / "points")] == [new.path]


def test_points_that_are_not_told_apart_are_judged_by_nothing(copy, epyc):
    (folder,) = (one for one in copy.paths.results.iterdir() if one.is_dir())
    for path in folder.rename(copy.paths.results / OLD).glob("*.json"):
        data = json.loads(path.read_text())
        if path.name == MACHINE:
            data = entry(OLD, None) | {"version": 1}
        else:
            data["params"] |= entry(OLD, None)
            for row in data["results"].values():
                row[data["result_columns"].index("started_at")] = at(-1)
        path.write_text(json.dumps(data))
    with pytest.raises(NothingMeasured):
        gate(copy.paths)


@pytest.mark.parametrize(("ratio", "blocks"), [(3.0, set()), (4.5, {"highway"})])
def test_a_machine_without_points_times_head_beside_the_last_good_commit(copy, planted_processes, ratio, blocks):
    good = copy.commits[-1]
    copy.block("new")
    copy.commit("not measured", highway={"ratio": ratio}, new={"ratio": 9.0})
    here = Machine("cpu", entry("cpu-another-2c", None))
    with pytest.raises(NothingMeasured):
        gate(copy.paths)
    report = gate(copy.paths, here)
    assert {one.rise.of.cell.block for one in report.of(GateVerdict.REGRESSION)} == blocks
    assert report.findings == report.of(GateVerdict.REGRESSION)
    assert (report.machines, report.judged > 0) == ([here.name], True)
    assert {one.rise.good for one in report.findings} <= {good}
    assert good[:8] in report.lines[-1]
