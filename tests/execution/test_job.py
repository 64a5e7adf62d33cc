"""A job that goes to another machine, and the result that a worker returns: a line of JSON for each; and the identity
of the worker's machine, which it gives without starting CUDA."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from highway_bench.execution.job import CellResult, Job
from highway_bench.execution.worker import _identity_of
from highway_bench.provenance import Identity
from highway_bench.provenance.machine import cores, host, torch_version
from highway_bench.results.schema import Status
from highway_bench.source import Fingerprint
from highway_bench.tasks import Measurement
from tests.inline_engine import cell_of, job_of

MEASUREMENTS = (
    Measurement(metric="time", value=2.0, low=1.0, high=3.0, samples=[1.0, None, 3.0]),
    Measurement(metric="loss", value=None, axis="step", index=4.0, status=Status.DIVERGED, message="‖x‖ is no number"),
)


@pytest.mark.parametrize(
    "result",
    [
        CellResult(index=3, status=Status.DIVERGED, params=7, flops_per_item=2.5, measurements=MEASUREMENTS),
        CellResult(index=0, status=Status.CRASHED, message="gone", seconds=1.5),
    ],
)
def test_a_result_is_the_same_after_a_round_trip(result):
    assert result.line().count("\n") == 1
    again = CellResult.of_line(result.line())
    assert again == result
    assert isinstance(again.status, Status)
    assert all(isinstance(one.status, Status) for one in again.measurements)


def test_a_number_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        CellResult(index=0, status=Status.OK, measurements=(Measurement(metric="loss", value=float("nan")),)).line()


def test_a_job_is_the_same_after_a_round_trip():
    cell = cell_of("trainability", block_options={"gate_bias": -1.5}, recipe={"lr": 0.1 + 0.2, "name": "‖x‖\n\u2028"})
    job = job_of(
        cell,
        cell.but(seed=1),
        timeouts=(1.5, 2.0),
        plugins=("mine",),
        bytes=2**40,
        checkpoints=Path("store.sqlite.checkpoints"),
        sources={"mine": Fingerprint("0a", "1b")},
    )
    again = Job.of_line(job.line())
    assert "\n" not in job.line()
    assert again == replace(job, checkpoints=None)
    assert isinstance(again.sources["mine"], Fingerprint)


def broken(device):
    raise RuntimeError("CUDA error: device-side assert triggered")


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [
        ({"is_initialized": lambda: True, "get_device_name": lambda device: f"NVIDIA {device}"}, "NVIDIA cuda:1"),
        ({"is_initialized": lambda: False, "get_device_name": broken}, None),
        ({"is_initialized": lambda: True, "get_device_name": broken}, None),
    ],
)
def test_a_gpu(monkeypatch, cuda, expected):
    torch_version()  # read before torch is replaced
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(**cuda)))
    machine = f"nvidia-cuda-1_{host()}-{cores()}c"
    assert _identity_of("cuda:1") == (expected and Identity(machine, expected, torch_version()))
