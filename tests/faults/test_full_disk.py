"""A disk that is really full or read-only, a small tmpfs: the run ends with a reason, the store is sound, and the run
goes on once there is space."""

import subprocess

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.runner import run_cells
from highway_bench.results import DiskError, Store
from tests.faults.scale import note
from tests.inline_engine import cell_of


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fake_cells(number, log):
    return [cell_of(depth=depth, recipe={"log": str(log)}) for depth in range(1, 1 + number)]


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def test_a_disk_that_fills(small_disk, tmp_path, fakes):
    cells = fake_cells(199, tmp_path / "log")
    with Store(small_disk / "s.sqlite") as store, pytest.raises(DiskError, match=r"full.*stored before is safe"):
        run_cells(cells, store, workers=2, plugins=[fakes])
    with Store(small_disk / "s.sqlite", read_only=True) as store:
        assert store.problems() == []
        done = len(store.digests())
    assert 0 < done < len(cells)
    remount(small_disk, "size=64m")
    with Store(small_disk / "s.sqlite") as store:
        summary = run_cells(cells, store, workers=2, plugins=[fakes])
        assert (summary.stored, summary.measured, summary.counts) == (done, len(cells) - done, {"ok": len(cells)})
    note("full disk", cells=len(cells), before_it_was_full=done)


def test_a_folder_that_is_read_only(small_disk, tmp_path, fakes):
    """Its store can be read; a run into it is refused in one line, before anything is measured."""
    cells = fake_cells(4, tmp_path / "log")
    with Store(small_disk / "s.sqlite") as store:
        run_cells(cells[:2], store, workers=1, plugins=[fakes])
    remount(small_disk, "ro")
    for name in ("s.sqlite", "new.sqlite", "new/s.sqlite"):
        with pytest.raises(BadInput, match=f"{name}: Read-only"):
            Store(small_disk / name)
    with Store(small_disk / "s.sqlite", read_only=True) as store:
        assert len(store.digests()) == 2
        assert store.problems() == []
    remount(small_disk, "rw")
    with Store(small_disk / "s.sqlite") as store:
        summary = run_cells(cells, store, workers=1, plugins=[fakes])
    assert (summary.stored, summary.measured) == (2, 2)
    note("read-only folder", cells=len(cells))
