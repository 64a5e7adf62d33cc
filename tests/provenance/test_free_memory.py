"""Free memory: the machine's, or what the tightest limit of a control group leaves; and a GPU's, which is read in a
process of its own, since reading it in this process would initialise CUDA."""

import psutil
import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.plan.checks import check_selection
from highway_bench.plan.selection import Selection
from highway_bench.provenance import Identity, identity
from highway_bench.provenance import free_memory as memory_cgroup
from highway_bench.provenance.free_memory import USABLE, Gpu, free_bytes, gib, gpu, usable_bytes
from highway_bench.provenance.machine import cores, host
from highway_bench.studies.reproduce import running as reproducing
from highway_bench.studies.reproduce.request import Request

MIB = 2**20


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """A machine with 1,000 MiB available, and a folder for its control groups."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1000 * MIB})())
    monkeypatch.setattr(memory_cgroup, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory_cgroup, "MOUNTED", tmp_path)
    return tmp_path


def write(folder, limit, usage, limit_file, usage_file, stat):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit_file).write_text(f"{limit}\n")
    (folder / usage_file).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(stat)


def write_v2(folder, limit, usage, cached=0):
    write(folder, limit, usage, "memory.max", "memory.current", f"anon 5\ninactive_file {cached}\n")


def test_without_limits_it_is_what_the_machine_has(groups):
    assert free_bytes("cpu") == 1000 * MIB  # no file: not Linux
    (groups / "cgroup").write_text("0::/job\n")
    write_v2(groups / "job", "max", 5)
    assert free_bytes("cpu") == 1000 * MIB
    assert usable_bytes("cpu") == int(USABLE * 1000 * MIB)


def test_the_tightest_limit_counts_and_dropped_files_are_free(groups):
    (groups / "cgroup").write_text("0::/user/job\n")
    write_v2(groups / "user", str(500 * MIB), 300 * MIB, cached=50 * MIB)
    write_v2(groups / "user/job", str(400 * MIB), 100 * MIB)
    assert free_bytes("cpu") == 250 * MIB
    write_v2(groups / "user/job", str(400 * MIB), 390 * MIB)
    assert free_bytes("cpu") == 10 * MIB
    write_v2(groups / "user/job", str(400 * MIB), 401 * MIB)
    assert free_bytes("cpu") == 0


def test_version_1(groups):
    (groups / "cgroup").write_text("4:cpu:/job\n3:memory:/job\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    write(groups / "memory/job", str(300 * MIB), 100 * MIB, *names, f"total_inactive_file {20 * MIB}\n")
    assert free_bytes("cpu") == 220 * MIB


@pytest.mark.parametrize(
    ("size", "text"), [(2**30, "1.0 GiB"), (1536 * 2**30, "1,536.0 GiB"), (MIB, "1 MiB"), (-5, "0 MiB")]
)
def test_bytes_in_messages(size, text):
    assert gib(size) == text


FAKE = """
import contextlib, types
open({log!r}, "a").write("read ")
about = types.SimpleNamespace(name="NVIDIA H200", major=7)
cuda = types.SimpleNamespace(
    device=contextlib.nullcontext,
    get_device_properties=lambda _: about,
    is_bf16_supported=lambda **_: False,
    mem_get_info=lambda: (2**29, 2**30),
)
"""


@pytest.fixture
def log(monkeypatch, tmp_path):
    """A machine with a GPU: the file has a word for each process that read it, and this process must not."""

    def refuse(*_):
        raise AssertionError("CUDA is initialised in the process that starts the workers")

    log = tmp_path / "log"
    (tmp_path / "torch.py").write_text(FAKE.format(log=str(log)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in ("get_device_name", "get_device_properties", "is_bf16_supported", "current_device"):
        monkeypatch.setattr(torch.cuda, name, refuse)
    for cached in (gpu, identity):
        cached.cache_clear()
    yield log
    for cached in (gpu, identity):
        cached.cache_clear()


def test_a_gpu_is_read_once_in_a_run(log):
    assert gpu("cuda") == Gpu("NVIDIA H200", 2**30, 2**29, bfloat16=False, tf32=False)
    assert free_bytes("cuda") == 2**29
    name = f"nvidia-h200_{host()}-{cores()}c"  # the host launches the kernels
    assert identity("cuda") == Identity(name, "NVIDIA H200", torch.__version__)
    for dtype in ("bfloat16", "tf32"):
        with pytest.raises(BadInput, match=f"^this GPU lacks {dtype}$"):
            check_selection(Selection.of(device="cuda", dtype=dtype))
    with pytest.raises(BadInput, match="461 MiB"):
        reproducing.check_memory("figure1", Request(device="cuda"), 2 * 2**30)
    assert log.read_text() == "read "


@pytest.mark.gpu
def test_what_is_read_is_what_torch_says():
    about = torch.cuda.get_device_properties("cuda")
    bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    _, memory = torch.cuda.mem_get_info()
    read = gpu("cuda")
    assert read == Gpu(about.name, memory, read.free, bfloat16, about.major >= 8)
    assert 0 < read.free <= memory
