"""Bad input: one clear line each, and nothing that was stored is lost or rewritten."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import measure
from highway_bench.history.files import MACHINE, result_paths
from highway_bench.history.gate import gate
from highway_bench.history.importing import import_results
from highway_bench.history.machine import check_clash, entry, rounded_gib, this_machine
from highway_bench.history.measure import measure_here
from highway_bench.history.paths import Paths
from highway_bench.history.publish import publish
from highway_bench.history.scripts import use_own_scripts
from highway_bench.provenance.git import git


@pytest.fixture
def paths(planted, tmp_path: Path) -> Paths:
    """A copy of ``planted``."""
    shutil.copytree(planted.root, tmp_path / "copy")
    return Paths.of(tmp_path / "copy")


def stored(paths: Paths) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths.results.rglob("*.json")}


def test_a_shallow_clone(planted, tmp_path: Path) -> None:
    planted.git("clone", "-q", "--depth", "1", f"file://{planted.root}", str(tmp_path / "shallow"))
    with pytest.raises(BadInput, match=r"shallow.*unshallow"):
        publish(Paths.of(tmp_path / "shallow"))


def test_a_missing_machine_entry(paths: Paths, planted, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(paths.results / planted.machine.name, folder)
    (folder / MACHINE).unlink()
    before = stored(paths)
    with pytest.raises(BadInput, match=r"machine\.json"):
        import_results(paths, folder)
    assert stored(paths) == before
    (paths.results / planted.machine.name / MACHINE).unlink()
    with pytest.raises(BadInput, match=r"machine\.json"):
        gate(paths)


def test_two_machines_of_one_name(paths: Paths, planted) -> None:
    other = dict(planted.machine.entry) | {"gpu": "NVIDIA H100"}
    with pytest.raises(BadInput, match="two machines need two names"):
        check_clash(other, paths.results)
    with pytest.raises(BadInput, match="--machine"):
        measure_here(paths, replace(planted.machine, entry=other))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[: len(text) // 2], "cut short"),
        (lambda text: "[" * 200_000, "no complete JSON file"),
        (lambda text: json.dumps(json.loads(text) | {"version": 99}), "schema 99, newer than"),
    ],
)
def test_broken_files_are_named_and_nothing_is_lost(paths: Paths, planted, spoil, message) -> None:
    path = result_paths(paths.results / planted.machine.name)[0]
    path.write_text(spoil(path.read_text()))
    before = stored(paths)
    with pytest.raises(BadInput, match=message) as error:
        gate(paths)
    assert "\n" not in str(error.value)
    assert stored(paths) == before


def test_a_checkout_is_not_another_commit(planted) -> None:
    with pytest.raises(BadInput, match="this checkout is not"):
        measure_here(planted.paths, planted.machine, commit="HEAD~1")


def test_a_folder_that_cannot_be_written_is_refused_before_measuring(
    planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "asv_run", lambda *_: pytest.fail("measured"))
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot write"):
        measure_here(planted.paths, planted.machine, out=tmp_path / "file")
    with pytest.raises(BadInput, match="cannot write"):
        measure_here(planted.paths, planted.machine, out=Path("/proc"))  # it is there, and not even root writes it


def test_a_working_folder_that_cannot_be_written_is_one_line(paths: Paths, planted) -> None:
    shutil.rmtree(paths.working, ignore_errors=True)
    paths.working.touch()
    with pytest.raises(BadInput, match=r"cannot write .*\.working"):
        measure_here(paths, planted.machine)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not an object of settings"),
        (
            '{"project": "mine", "repo": ".", "results_dir": 3}',
            "must give as text: benchmark_dir, env_dir, results_dir, html_dir$",
        ),
    ],
)
def test_an_incomplete_configuration_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "asv.conf.json").write_text(text)
    with pytest.raises(BadInput, match=message):
        Paths.of(tmp_path).configuration()


def test_devices_that_are_not_here() -> None:
    with pytest.raises(BadInput, match="cpu or cuda, not 'tpu'"):
        this_machine("tpu", "standin")
    if not torch.cuda.is_available():
        with pytest.raises(BadInput, match="has no device 'cuda'") as error:
            this_machine("cuda")
        assert "highway_bench" not in str(error.value)


def test_a_machine_is_no_path(paths: Paths, planted, tmp_path: Path) -> None:
    source = tmp_path / "box"
    shutil.copytree(paths.results / planted.machine.name, source)
    machine = json.loads((source / MACHINE).read_text())
    (source / MACHINE).write_text(json.dumps(machine | {"machine": "../elsewhere"}))
    with pytest.raises(BadInput, match="names no machine"):
        import_results(paths, source)


@pytest.mark.parametrize("name", ["../elsewhere", "\x13¹" * 120])
def test_an_environment_that_can_be_no_file_is_refused(paths: Paths, planted, tmp_path: Path, name: str) -> None:
    source = tmp_path / "box"
    shutil.copytree(paths.results / planted.machine.name, source)
    path, *others = result_paths(source)
    for other in others:
        other.unlink()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"env_name": name}))
    with pytest.raises(BadInput, match="which is no file name"):
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
    assert "stored already" in again.lines[0]
    aside = git(paths.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "HEAD^{tree}", "-m", "aside")
    assert "first-parent" in import_results(paths, source.parent, aside).lines[0]
    data["results"]["blocks.Families.track_peak_bytes"][0][0] = 1
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="stored already"):
        import_results(paths, source.parent, planted.commits[-1])
    assert publish(paths, scripts=False).machines == [planted.machine.name, "h100"]


def test_without_git_the_commit_is_given(throwaway, tmp_path: Path) -> None:
    throwaway.commit("start")
    shutil.rmtree(throwaway.root / ".git")
    measured = measure_here(throwaway.paths, throwaway.machine, out=tmp_path / "out")
    (result,) = measured.results.values()
    assert result.commit == "0" * 40
    assert result.points["blocks.Families.track_peak_bytes('plain', 'dense')"].value == 1000


def test_nothing_to_show(throwaway) -> None:
    throwaway.commit("start")
    with pytest.raises(NothingMeasured):
        publish(throwaway.paths)
    with pytest.raises(BadInput, match=r"asv\.conf\.json"):
        Paths.of(throwaway.root / "benches")
    throwaway.write("benches/history/blocks.py", "")
    with pytest.raises(BadInput, match=r"no module in .* has a SUITE"):
        throwaway.paths.suite()


def test_pages_without_npm_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert use_own_scripts(tmp_path, tmp_path / "keep") == "npm is not installed"


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
