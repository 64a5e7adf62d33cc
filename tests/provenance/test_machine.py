"""The identity of a machine, and what else kept it busy: differences of the kernel's counters."""

import platform
import time
from subprocess import CompletedProcess

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.provenance import former_names, machine
from highway_bench.provenance.former_names import machine_of
from highway_bench.provenance.machine import Load
from tests.absent_names import PROCESSORS

EPYC = {
    "vendor_id": "AuthenticAMD",
    "cpu family": "26",
    "model": "2",
    "model name": "AMD EPYC",
    "stepping": "1",
    "cache size": "1024 KB",
    "cpu MHz": "2596.094",
    "flags": "fpu sse4_2 avx avx2 avx512f avx512_bf16",
}
ARM = {"Features": "fp asimd sve", "CPU implementer": "0x41", "CPU architecture": "8", "CPU part": "0xd40"}
PROCESSOR = machine.processor.__wrapped__  # not cached


@pytest.fixture
def set_up(monkeypatch, tmp_path):
    """Stand in for a machine with this ``/proc/cpuinfo`` (none if empty), two cores, started on 2027-01-02."""

    def set_up(info, **changes):
        path = tmp_path / "cpuinfo"
        path.unlink(missing_ok=True)
        if info:
            path.write_text("".join(f"{name}\t: {value}\n" for name, value in (info | changes).items()) * 2)
        monkeypatch.setattr(machine, "CPU_INFO", path)
        monkeypatch.setattr(machine, "processor", PROCESSOR)
        monkeypatch.setattr(former_names, "processor", PROCESSOR)
        monkeypatch.setattr(machine, "cores", lambda: 2)
        monkeypatch.setattr(former_names, "_booted", lambda: "2027-01-02T00:00:00+00:00")

    return set_up


def name(gpu=None):
    return machine.identity_with(gpu).machine


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "intel-xeon-e5-2680-v4"),
        ("AMD EPYC 7763 64-Core Processor", "amd-epyc-7763-64-core"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("", "unknown"),
    ],
)
def test_slug(text, expected):
    assert machine.slug(text) == expected


def test_cores_are_those_of_the_affinity(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    assert machine.identity.__wrapped__("cpu").machine.endswith("-3c")


@pytest.mark.parametrize(
    ("info", "gpu", "expected", "shown"),
    [
        (EPYC, None, "cpu-amd-epyc-f26m2-avx512-2c", "AMD EPYC (family 26), 2 cores"),
        (EPYC, "NVIDIA H200", "nvidia-h200_amd-epyc-f26m2-avx512-2c", "NVIDIA H200, AMD EPYC (family 26), 2 cores"),
        (ARM, None, "cpu-aarch64-0x41-m0xd40-sve-2c", "Aarch64 0x41 (model 0xd40), 2 cores"),
        ({}, None, "cpu-aarch64-2c", "Aarch64 (family not recorded), 2 cores"),
    ],
)
def test_names(set_up, monkeypatch, info, gpu, expected, shown):
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    set_up(info)
    assert name(gpu) == expected
    assert machine.labels([expected]) == {expected: shown}


def test_windows_has_the_numbers_in_one_line(set_up, monkeypatch):
    monkeypatch.setattr(platform, "processor", lambda: PROCESSORS["Windows"])
    set_up({})
    assert name() == "cpu-intel64-f6m158-2c"
    assert machine_of("cpu-intel64-family-6-model-158-stepping-10-genuineintel-2c", {}) == name()


@pytest.mark.parametrize("chip", ["M1", "M3", "M3 Pro", "M4 Max"])
def test_apple_chips_are_told_apart(set_up, monkeypatch, chip):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    monkeypatch.setattr(machine.subprocess, "run", lambda command, **_: CompletedProcess(command, 0, f"Apple {chip}"))
    set_up({})
    assert name() == f"cpu-apple-{machine.slug(chip)}-2c"
    assert machine.labels([name()]) == {name(): f"Apple {chip}, 2 cores"}


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"cpu family": "25"}, False),
        ({"model": "17"}, False),
        ({"flags": "fpu avx avx2"}, False),
        ({"vendor_id": "HygonGenuine"}, False),
        ({"stepping": "2", "cache size": "512 KB", "cpu MHz": "3100.0"}, True),
    ],
)
def test_what_makes_another_machine(set_up, changes, same):
    set_up(EPYC)
    first = name()
    set_up(EPYC, **changes)
    assert (name() == first) is same


def test_two_models_of_one_family_are_not_shown_alike():
    assert machine.labels(["cpu-amd-epyc-f25m1-avx2-2c", "cpu-amd-epyc-f25m17-avx512-2c", "mine"]) == {
        "cpu-amd-epyc-f25m1-avx2-2c": "AMD EPYC (family 25, model 1), 2 cores",
        "cpu-amd-epyc-f25m17-avx512-2c": "AMD EPYC (family 25, model 17), 2 cores",
        "mine": "mine",
    }


@pytest.mark.parametrize(
    ("brand", "old", "evidence", "here"),
    [
        ("AMD EPYC", "cpu-amd-epyc-2c", {"started": "2027-01-03T00:00:00+00:00"}, True),
        ("AMD EPYC", "cpu-amd-epyc-2c", {"started": "2027-01-01T00:00:00+00:00"}, False),  # which EPYC it was then?
        ("AMD EPYC", "cpu-amd-epyc-2c", {}, False),
        ("AMD EPYC", "cpu-intel-xeon-2c", {"started": "2027-01-03T00:00:00+00:00"}, False),
        ("AMD EPYC 7763 64-Core Processor", "cpu-amd-epyc-7763-64-core-2c", {}, True),
        ("AMD EPYC", "nvidia-h200-amd-epyc", {"cores": 2}, False),  # the GPU's number is not the processor's
        ("AMD EPYC 7763", "nvidia-h200-amd-epyc-7763", {"cores": 2}, True),
        ("AMD EPYC 7763", "nvidia-h200-amd-epyc-7763", {}, False),
    ],
)
def test_what_is_recorded_under_a_former_name(set_up, brand, old, evidence, here):
    set_up(EPYC, **{"model name": brand})
    now = name(None if old.startswith("cpu-") else "NVIDIA H200")
    assert machine_of(old, evidence) == (now if here else old)
    assert machine_of(now, evidence) == now


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_device_that_is_not_there():
    with pytest.raises(BadInput, match="'cuda'"):
        machine.identity("cuda")


@pytest.mark.gpu
def test_gpu_identity():
    name, gpu, _ = machine.identity("cuda")
    assert gpu == torch.cuda.get_device_name(0)
    assert name == f"{machine.slug(gpu)}_{machine.host()}-{machine.cores()}c"


def test_torchs_version_is_read_without_importing_it():
    assert machine.torch_version() == torch.__version__


def test_pressure_that_the_kernel_does_not_count_is_left_out(tmp_path, monkeypatch):
    """The files exist there and cannot be read; here one of them is a folder."""
    monkeypatch.setattr(machine, "PRESSURE", tmp_path)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "memory").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n")
    before = Load.now()
    assert before.pressure == {"memory": 2.0}
    (tmp_path / "memory").unlink()
    assert before.since().pressure == {}


def test_counters_grow_and_are_printed_as_shares():
    before = Load.now()
    time.sleep(0.01)
    load = before.since()
    assert load.wall >= 0.01
    assert min(load.stolen, *load.pressure.values()) >= 0
    assert str(Load(10.0, 0.0, {"cpu": 5.0})).startswith("meanwhile some program waited for cpu 50")
    assert str(Load(10.0, 1.0, {})).startswith("other virtual machines took ")
