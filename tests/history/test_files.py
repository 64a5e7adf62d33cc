"""Files that come from elsewhere are checked when read: one line names each that asv would not write so."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import measure
from highway_bench.history.files import MACHINE, read_machine, read_result, result_paths
from highway_bench.history.gate import gate
from highway_bench.history.machine import check_clash, entry, rounded_gib, this_machine
from highway_bench.history.measure import measure_here
from highway_bench.history.paths import Paths
from highway_bench.history.points import import_results
from highway_bench.history.publish import publish
from highway_bench.history.scripts import use_own_scripts

COMMIT = "a" * 40


@pytest.fixture
def box(copy, tmp_path):
    """The folder of a machine that was brought here, with one point."""
    folder = shutil.copytree(copy.paths.results / copy.machine.name, tmp_path / "box" / "h100")
    for path in result_paths(folder)[1:]:
        path.unlink()
    return folder


def stored(paths):
    return {path.name: path.read_bytes() for path in paths.results.rglob("*.json")}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"results": []}, r"its results is \[\]"),
        ({"params": {}}, "machine"),
        ({"result_columns": None}, "its result_columns is None"),
        ({"result_columns": [["result"]], "results": {"b": [[1.0]]}}, ""),
        ({"commit_hash": 1}, "its commit_hash is 1"),
        ({"results": {"b": None}}, ""),
        ({"results": {"b": [[1.0], 3]}}, ""),
        ({"results": {"b": [[1.0], [[3]]]}}, ""),
        ({"results": {"b": [[1.0], [["x", "y"]]]}}, ""),  # one value for two combinations of parameters
        ({"results": {"b": [["fast"], [["x"]]]}}, "fast"),
        ({"results": {"b": [[10**400], [["x"]]]}}, ""),  # which no float holds
        ({"results": {"b": [[1.0], [["x"]], "1", "today"]}}, ""),
    ],
)
def test_a_file_of_another_shape_is_one_line(write_point, tmp_path, fields, named):
    path = write_point(tmp_path / "box", COMMIT, {}, **fields)
    with pytest.raises(BadInput, match=f"result file of asv: .*{named}") as error:
        read_result(path)
    assert "\n" not in str(error.value)


def test_what_a_file_lacks_is_named(write_point, tmp_path):
    path = write_point(tmp_path / "box", COMMIT, {})
    data = json.loads(path.read_text())
    del data["env_name"]
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="it lacks env_name"):
        read_result(path)
    for name in (3, "../elsewhere"):  # a machine's name is a folder's
        (path.parent / MACHINE).write_text(json.dumps({"version": 1, "machine": name}))
        with pytest.raises(BadInput, match="names no machine"):
            read_machine(path.parent, renamed=True)


def test_a_benchmark_that_failed_as_a_whole_failed_everywhere(write_point, tmp_path):
    """asv writes one null for such a benchmark, for example if its set-up crashes."""
    result = read_result(write_point(tmp_path / "box", COMMIT, {"b.time": (None, 1), "b.loss": ([None, 2.0], 1)}))
    assert result.failures == ["b.time('plain')", "b.time('highway')", "b.loss('plain')"]
    assert result.points.keys() == {"b.loss('highway')"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[: len(text) // 2], "cut short"),
        (lambda text: "[" * 200_000, "no complete JSON file"),
        (lambda text: json.dumps(json.loads(text) | {"version": 99}), "schema 99, newer than"),
    ],
)
def test_a_broken_file_is_named_and_nothing_is_lost(copy, spoil, message):
    path = result_paths(copy.paths.results / copy.machine.name)[0]
    path.write_text(spoil(path.read_text()))
    before = stored(copy.paths)
    with pytest.raises(BadInput, match=message) as error:
        gate(copy.paths)
    assert "\n" not in str(error.value)
    assert stored(copy.paths) == before


def test_a_missing_machine_entry(copy, box):
    before = stored(copy.paths)
    (box / MACHINE).unlink()
    with pytest.raises(BadInput, match=r"machine\.json"):
        import_results(copy.paths, box)
    assert stored(copy.paths) == before
    (copy.paths.results / copy.machine.name / MACHINE).unlink()
    with pytest.raises(BadInput, match=r"machine\.json"):
        gate(copy.paths)


def test_two_machines_of_one_name(copy):
    other = dict(copy.machine.entry) | {"gpu": "NVIDIA H100"}
    with pytest.raises(BadInput, match="two names"):
        check_clash(other, copy.paths.results)
    with pytest.raises(BadInput, match="--machine"):
        measure_here(copy.paths, replace(copy.machine, entry=other))


@pytest.mark.parametrize("name", ["../elsewhere", "\x13¹" * 120])
def test_an_environment_that_can_be_no_file_is_refused(copy, box, name):
    (path,) = result_paths(box)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"env_name": name}))
    with pytest.raises(BadInput, match="no file name"):
        import_results(copy.paths, box)


def test_import_gives_a_folder_its_commit_and_overwrites_nothing(copy, box):
    (path,), machine = result_paths(box), entry("h100", "NVIDIA H100")
    (box / MACHINE).write_text(json.dumps(machine | {"version": 1}))
    data = json.loads(path.read_text())
    data |= {"commit_hash": "0" * 40, "params": data["params"] | machine}
    path.write_text(json.dumps(data))
    head, folder = copy.commits[-1], box.parent
    with pytest.raises(BadInput, match="--commit"):
        import_results(copy.paths, folder)
    with pytest.raises(BadInput, match="no commit 'nowhere'"):
        import_results(copy.paths, folder, "nowhere")
    (target,) = import_results(copy.paths, folder, head).written
    assert target.parent.name == "h100"
    assert target.name.startswith(head[:8])
    again = import_results(copy.paths, folder, head)
    assert not again.written
    assert "stored already" in again.lines[0]
    aside = copy.git("commit-tree", "HEAD^{tree}", "-m", "aside")
    assert "first-parent" in import_results(copy.paths, folder, aside).lines[0]
    data["results"]["blocks.Families.track_peak_bytes"][0][0] = 1
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="stored already"):
        import_results(copy.paths, folder, head)
    assert publish(copy.paths, scripts=False).machines == [copy.machine.name, "h100"]


def test_checkouts_that_cannot_be_measured_or_published(planted, tmp_path):
    with pytest.raises(BadInput, match="this checkout is not"):
        measure_here(planted.paths, planted.machine, commit="HEAD~1")
    planted.git("clone", "-q", "--depth", "1", f"file://{planted.root}", str(tmp_path / "shallow"))
    with pytest.raises(BadInput, match=r"shallow.*unshallow"):
        publish(Paths.of(tmp_path / "shallow"))


def test_a_folder_that_cannot_be_written_is_refused_before_measuring(copy, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "asv_run", lambda *_: pytest.fail("measured"))
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", Path("/proc")):  # which is there, and not even root writes it
        with pytest.raises(BadInput, match="cannot write"):
            measure_here(copy.paths, copy.machine, out=out)
    shutil.rmtree(copy.paths.working, ignore_errors=True)
    copy.paths.working.touch()
    with pytest.raises(BadInput, match=r"cannot write .*\.working"):
        measure_here(copy.paths, copy.machine)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not an object"),
        ('{"project": "mine", "repo": ".", "results_dir": 3}', "env_dir, results_dir, html_dir$"),
    ],
)
def test_an_incomplete_configuration_is_one_line(tmp_path, text, message):
    (tmp_path / "asv.conf.json").write_text(text)
    with pytest.raises(BadInput, match=message):
        Paths.of(tmp_path).configuration()


def test_without_git_the_commit_is_given(throwaway, tmp_path):
    throwaway.commit("start")
    shutil.rmtree(throwaway.root / ".git")
    (result,) = measure_here(throwaway.paths, throwaway.machine, out=tmp_path / "out").results.values()
    assert result.commit == "0" * 40
    assert result.points["blocks.Families.track_peak_bytes('plain', 'dense')"].value == 1000


def test_nothing_to_show(throwaway, tmp_path, monkeypatch):
    throwaway.commit("start")
    with pytest.raises(NothingMeasured):
        publish(throwaway.paths)
    with pytest.raises(BadInput, match=r"asv\.conf\.json"):
        Paths.of(throwaway.root / "benches")
    throwaway.write("benches/history/blocks.py", "")
    with pytest.raises(BadInput, match="SUITE"):
        throwaway.paths.suite()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert use_own_scripts(tmp_path, tmp_path / "keep") == "npm is not installed"


def test_this_machine_has_what_its_entry_says():
    with pytest.raises(BadInput, match="'tpu'"):
        this_machine("tpu", "standin")
    if not torch.cuda.is_available():
        with pytest.raises(BadInput, match="'cuda'"):
            this_machine("cuda")
    assert entry("cpu-x", None)["gpu"] == "none"
    with pytest.raises(BadInput, match="machine name"):
        entry("../elsewhere", None)
    gib = 2**30
    sizes = [rounded_gib(int(size * gib)) for size in (7.6, 8, 125.4, 125.7)]
    assert sizes == [8, 8, 128, 128]
