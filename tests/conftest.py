"""What every test may rely on: fixed seeds, one thread, and resources that are either there or skipped with a reason.

torch is not imported here, so that tests of the torch-free parts start at once.
"""

import os
import random
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import settings

SEED = 1505_00387
WORKER_BYTES = 2 * 2**30  # of a pytest-xdist worker, with the processes that its tests start
MOST_WORKERS = 8  # with more, the run lasts as long as its longest file

# Before anything imports torch, and for worker processes too: two cores shared by many tests are quickest so.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # repeatable products; read at the first one
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and tables are as wide as it says

# Same examples in every run; a slow machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def repeatable():
    """Seed every generator before each test, and set torch back to one thread where it is loaded."""
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 (what libraries draw from when given no generator)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(SEED)
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def only_the_packages_own():
    """After each test, unregister what reproductions load as plug-ins; other tests list all that is registered."""
    yield
    for name in ("bilstm", "bilstm_carry", "lecture"):
        module = sys.modules.get(f"highway_bench.published_code.{name}")
        if module is not None:
            module.unregister()


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data that HIGHWAY_BENCH_DATA names; the test is skipped where it names none."""
    name = os.environ.get("HIGHWAY_BENCH_DATA")
    if not name:
        pytest.skip("HIGHWAY_BENCH_DATA names no folder of real data")
    folder = Path(name).resolve()
    assert folder.is_dir(), f"HIGHWAY_BENCH_DATA names {folder}, which is no folder"
    return folder


@pytest.fixture
def module_of(tmp_path, monkeypatch, request):
    """Writes a module that can be imported; its name is unique, because Python caches modules."""

    def write(text):
        name = f"module_{abs(hash(request.node.nodeid))}"
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        return name

    return write


def pytest_runtest_setup(item):
    """Skip tests marked ``gpu`` where torch sees no CUDA device."""
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Workers of ``-n auto``: one a core, as far as memory goes; none on one core."""
    fit = min(len(os.sched_getaffinity(0)), psutil.virtual_memory().available // WORKER_BYTES, MOST_WORKERS)
    return int(fit) if fit > 1 else 0
