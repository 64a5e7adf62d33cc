"""A GPU is read in a process of its own, since reading it in this process would initialise CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.plan.checks import check_selection
from highway_bench.plan.selection import Selection
from highway_bench.provenance import Identity, identity
from highway_bench.provenance.free_memory import Gpu, free_bytes, gpu
from highway_bench.provenance.machine import cores, host
from highway_bench.studies.reproduce import running as reproducing
from highway_bench.studies.reproduce.request import Request

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
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine with a GPU: the file has a word for each process that read it, and this process must not."""

    def refuse(*_: object) -> object:
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


def test_a_gpu_is_read_once_in_a_run(log: Path) -> None:
    assert gpu("cuda") == Gpu("NVIDIA H200", 2**30, 2**29, bfloat16=False, tf32=False)
    assert free_bytes("cuda") == 2**29
    name = f"nvidia-h200_{host()}-{cores()}c"  # the host launches the kernels
    assert identity("cuda") == Identity(name, "NVIDIA H200", torch.__version__)
    for dtype in ("bfloat16", "tf32"):
        with pytest.raises(BadInput, match=f"^this GPU lacks {dtype}$"):
            check_selection(Selection.of(device="cuda", dtype=dtype))
    with pytest.raises(BadInput, match=r"about 2.0 GiB at once, and the GPU has 461 MiB free"):
        reproducing.check_memory("figure1", Request(device="cuda"), 2 * 2**30)
    assert log.read_text() == "read "


@pytest.mark.gpu
def test_what_is_read_is_what_torch_says() -> None:
    about = torch.cuda.get_device_properties("cuda")
    bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    _, memory = torch.cuda.mem_get_info()
    read = gpu("cuda")
    assert read == Gpu(about.name, memory, read.free, bfloat16, about.major >= 8)
    assert 0 < read.free <= memory
