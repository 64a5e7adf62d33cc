"""Bad input: one clear line each, and nothing that was recorded is lost or rewritten."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import Paths
from highway_bench.history.files import MACHINE, result_paths
from highway_bench.history.importing import import_results
from highway_bench.history.machine import busy, check_clash, entry, rounded_gib, this_machine
from highway_bench.history.measure import measure_here
from highway_bench.history.merge import merge_recorded
from highway_bench.history.publish import publish
from highway_bench.history.record import record
from highway_bench.history.scripts import use_own_scripts
from highway_bench.provenance.git import git


@pytest.fixture(scope="module")
def measured(planted, tmp_path_factory):
    """A copy of ``planted`` with its history recorded and committed."""
    root = tmp_path_factory.mktemp("recorded") / "repository"
    shutil.copytree(planted.root, root)
    record(Paths.of(root), planted.machine.name)
    return root


@pytest.fixture
def paths(measured: Path, tmp_path: Path) -> Paths:
    shutil.copytree(measured, tmp_path / "copy")
    return Paths.of(tmp_path / "copy")


def recorded(paths: Paths) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths.recorded.rglob("*.json")}


def test_a_dirty_tree_is_shown_and_not_recorded(paths: Paths, planted) -> None:
    for folder in (paths.recorded, paths.results):  # else it remains whatever was measured
        (path,) = (folder / planted.machine.name).glob(f"{planted.commits[-1][:8]}-*.json")
        path.unlink()
    before, entrance = recorded(paths), paths.root / "highway_bench/asv_api.py"
    entrance.write_text(entrance.read_text() + "\n# changed\n")
    measured = measure_here(paths, planted.machine, series=["Families.track"])
    assert measured.dirty
    assert measured.folder == paths.uncommitted
    entry_of_it = paths.uncommitted / planted.machine.name / MACHINE
    whole = json.loads(entry_of_it.read_text())
    entry_of_it.write_text("{")
    (entry_of_it.parent / "01234567-cut.json").write_text("{")
    shown = publish(paths, scripts=False)
    assert [line.partition(":")[0] for line in shown.lines] == [
        "rebuilt from the results in its folder",
        "removed; measure it again unless it is recorded",
        "the newest point is of this tree with its uncommitted changes; it is shown, not recorded",
    ]
    assert json.loads((paths.shown / planted.machine.name / MACHINE).read_text()) == whole
    assert record(paths, planted.machine.name).added == []
    assert recorded(paths) == before


def test_a_shallow_clone(planted, tmp_path: Path) -> None:
    planted.git("clone", "-q", "--depth", "1", f"file://{planted.root}", str(tmp_path / "shallow"))
    with pytest.raises(BadInput, match=r"shallow.*unshallow"):
        publish(Paths.of(tmp_path / "shallow"))


def test_a_missing_machine_entry(paths: Paths, planted, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(paths.results / planted.machine.name, folder)
    (folder / MACHINE).unlink()
    before = recorded(paths)
    with pytest.raises(BadInput, match=r"machine\.json"):
        import_results(paths, folder)
    (paths.recorded / planted.machine.name / MACHINE).unlink()
    with pytest.raises(BadInput, match=r"machine\.json"):
        merge_recorded(paths)
    assert before.keys() - recorded(paths).keys() == {MACHINE}


def test_two_machines_of_one_name(paths: Paths, planted) -> None:
    other = dict(planted.machine.entry) | {"gpu": "NVIDIA H100"}
    with pytest.raises(BadInput, match="two machines need two names"):
        check_clash(other, paths.recorded)
    with pytest.raises(BadInput, match="--machine"):
        measure_here(paths, replace(planted.machine, entry=other))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[: len(text) // 2], "cut short"),
        (lambda text: json.dumps(json.loads(text) | {"version": 99}), "schema 99, newer than"),
    ],
)
def test_broken_files_are_named_and_nothing_is_lost(paths: Paths, planted, spoil, message) -> None:
    path = result_paths(paths.recorded / planted.machine.name)[0]
    path.write_text(spoil(path.read_text()))
    before = recorded(paths)
    with pytest.raises(BadInput, match=message) as error:
        merge_recorded(paths)
    assert "\n" not in str(error.value)
    assert recorded(paths) == before


def test_a_checkout_is_not_another_commit(planted) -> None:
    with pytest.raises(BadInput, match="this checkout is not"):
        measure_here(planted.paths, planted.machine, commit="HEAD~1", series=["Families.track"])


def test_devices_that_are_not_here() -> None:
    with pytest.raises(BadInput, match="cpu or cuda, not 'tpu'"):
        this_machine("tpu", "standin")
    if not torch.cuda.is_available():
        with pytest.raises(BadInput, match="has no device 'cuda'") as error:
            this_machine("cuda")
        assert "highway_bench" not in str(error.value)


def test_a_recorded_point_cut_short_is_an_error(paths: Paths, planted) -> None:
    path = result_paths(paths.recorded / planted.machine.name)[0]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadInput, match="cut short"):
        record(paths, planted.machine.name)


def test_a_machine_is_no_path(paths: Paths, planted, tmp_path: Path) -> None:
    source = tmp_path / "box"
    shutil.copytree(paths.results / planted.machine.name, source)
    machine = json.loads((source / MACHINE).read_text())
    (source / MACHINE).write_text(json.dumps(machine | {"machine": "../elsewhere"}))
    with pytest.raises(BadInput, match="names no machine"):
        import_results(paths, source)


def test_import_gives_a_folder_its_commit_and_overwrites_nothing(paths: Paths, planted, tmp_path: Path) -> None:
    source = tmp_path / "box" / "h100"
    shutil.copytree(paths.results / planted.machine.name, source)
    for path in result_paths(source)[1:]:
        path.unlink()
    (path,) = result_paths(source)
    machine = entry("h100", "NVIDIA H100")
    (source / MACHINE).write_text(json.dumps(machine | {"version": 1}))
    data = json.loads(path.read_text())
    data |= {"commit_hash": "0" * 40, "params": data["params"] | machine}
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="--commit"):
        import_results(paths, source.parent)
    with pytest.raises(BadInput, match="no commit 'nowhere'"):
        import_results(paths, source.parent, "nowhere")
    (target,) = import_results(paths, source.parent, planted.commits[-1]).written
    assert target.parent.name == "h100"
    assert target.name.startswith(planted.commits[-1][:8])
    again = import_results(paths, source.parent, planted.commits[-1])
    assert not again.written
    assert "recorded already" in again.lines[0]
    aside = git(paths.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "HEAD^{tree}", "-m", "aside")
    assert "first-parent" in import_results(paths, source.parent, aside).lines[0]
    data["results"]["blocks.Families.track_peak_bytes"][0][0] = 1
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="recorded already"):
        import_results(paths, source.parent, planted.commits[-1])
    assert publish(paths, scripts=False).machines == [planted.machine.name, "h100"]


def test_without_git_the_commit_is_given(throwaway, tmp_path: Path) -> None:
    throwaway.commit("start")
    shutil.rmtree(throwaway.root / ".git")
    measured = measure_here(throwaway.paths, throwaway.machine, out=tmp_path / "out", series=["Families.track"])
    (result,) = measured.results.values()
    assert result.commit == "0" * 40
    assert result.points["blocks.Families.track_peak_bytes('plain', 'dense')"].value == 1000


def test_nothing_to_record_or_to_show(throwaway) -> None:
    throwaway.commit("start")
    with pytest.raises(NothingMeasured):
        record(throwaway.paths, throwaway.machine.name)
    with pytest.raises(NothingMeasured):
        publish(throwaway.paths)
    with pytest.raises(BadInput, match=r"asv\.conf\.json"):
        Paths.of(throwaway.root / "benches")


def test_pages_without_npm_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert use_own_scripts(tmp_path, tmp_path / "keep") == "npm is not installed"


def test_a_busy_machine_gives_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.getloadavg", lambda: (0.1, 9.0, 9.0))
    assert busy() is None
    monkeypatch.setattr("psutil.getloadavg", lambda: (64.5, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    assert busy() == "this machine is busy (load 64.5 on 2 cores): times may have risen for that reason alone"


def test_memory_is_rounded() -> None:
    gib = 2**30
    assert [rounded_gib(size) for size in (int(7.6 * gib), 8 * gib, int(125.4 * gib), int(125.7 * gib))] == [
        8,
        8,
        128,
        128,
    ]


def test_an_entry_always_has_a_gpu() -> None:
    assert entry("cpu-x", None)["gpu"] == "none"
    with pytest.raises(BadInput, match="machine name"):
        entry("../elsewhere", None)
