"""A disk that is really full, a small tmpfs: the run ends with a reason, the store is sound, and the run goes on."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.execution.runner import run_cells
from highway_bench.results import DiskError, Store
from highway_bench.tasks import tasks

FAKES = Path(__file__).parents[1] / "execution"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here: that takes root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The plug-in with the fake tasks of the runner's tests."""
    monkeypatch.syspath_prepend(str(FAKES))
    before = set(tasks.names())
    importlib.import_module("runner_fakes")
    yield "runner_fakes"
    for name in set(tasks.names()) - before:
        tasks.unregister(name)
    sys.modules.pop("runner_fakes", None)


def test_a_disk_that_fills(small_disk: Path, tmp_path: Path, fakes: str) -> None:
    recipe = {"log": str(tmp_path / "log"), "do": "measure"}
    shared = {"task": "fake", "block": "plain", "family": "dense", "width": 8, "nominal_width": 8}
    cells = [Cell(depth=depth, recipe=recipe, **shared) for depth in range(1, 200)]
    with Store(small_disk / "s.sqlite") as store, pytest.raises(DiskError, match=r"full.*stored before is safe"):
        run_cells(cells, store, workers=2, plugins=[fakes])
    with Store(small_disk / "s.sqlite", read_only=True) as store:
        assert store.problems() == []
        done = len(store.digests())
    assert 0 < done < len(cells)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with Store(small_disk / "s.sqlite") as store:
        summary = run_cells(cells, store, workers=2, plugins=[fakes])
        assert (summary.stored, summary.measured, summary.counts) == (done, len(cells) - done, {"ok": len(cells)})
