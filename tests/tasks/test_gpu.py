"""On a CUDA device: the same numbers as on the CPU, replayed graphs as eager, and memory from the allocator."""

import pytest
import torch

from highway_bench.tasks import tasks
from highway_bench.tasks._step import StackStep
from tests.cells import cell, on_digits, run
from tests.combinations import IN_DENSE, combinations

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("block", "family"), combinations("conv"))
def test_forward_and_backward_are_the_cpus(block, family):
    here, there = (
        StackStep(cell("throughput", block, family, dtype="float64", seq_len=5, device=device))
        for device in ("cpu", "cuda")
    )
    results = []
    for work in (here, there):
        y = work.network(work.x)
        results.append([y, *torch.autograd.grad(y, work.parameters, work.cotangent)])
    for cpu, cuda in zip(*results, strict=True):
        torch.testing.assert_close(cuda.cpu(), cpu, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("phase", ["forward", "forward-backward"])
@pytest.mark.parametrize("block", IN_DENSE)
def test_a_replayed_graph_gives_what_eager_gives(block, phase, monkeypatch):
    """The recorded phase writes into the same tensors at each replay: note what it gave while it was recorded."""
    given = []
    network_of = StackStep._phase

    def noting(self, network):
        def noted(x):
            given.append(network(x))
            return given[-1]

        return network_of(self, noted)

    monkeypatch.setattr(StackStep, "_phase", noting)
    work = StackStep(cell("throughput", block, device="cuda", mode="cudagraph", phase=phase))
    work.step()
    recorded = given[-1].detach()
    torch.cuda.synchronize()
    recorded.zero_()
    work.step()
    with torch.no_grad():
        torch.testing.assert_close(recorded, work.network(work.x))


def test_memory_comes_from_the_allocator():
    one = cell("memory", "plain", device="cuda", phase="train-step", width=64, depth=3)
    result = {m.metric: m for m in run(one)}
    assert result["peak"].message == "meter: allocator"
    assert result["parameter_bytes"].value == 3 * (64 * 64 + 64) * 4
    assert result["saved_activations"].value == 3 * 4 * 64 * 4


def test_a_network_starts_the_same_on_every_device():
    here, there = (StackStep(cell("throughput", device=device, seed=3)) for device in ("cpu", "cuda"))
    for cpu, cuda in zip(here.parameters, there.parameters, strict=True):
        assert torch.equal(cpu, cuda.cpu())


def test_training_on_a_gpu():
    one = on_digits(device="cuda", width=16, optimiser="adam", rate=0.01, steps=30)
    work = tasks.get("trainability").prepare(one)
    measured = {m.metric: m for m in run(one, work)}
    assert measured["final_loss"].message is None  # repeatable
    losses = work.training.history()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("family", ["dense", "conv", "bilstm", "attention"])
def test_tf32_is_in_every_family_and_float32_in_none(family):
    """Products with 10 bits of mantissa err by about 1e-3, those of IEEE float32 by 1e-6. They are so large that the
    libraries choose kernels of TF32."""
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU has no TF32")
    one = cell("throughput", "plain", family, width=256, batch_size=256, seq_len=5, phase="forward")
    results = {}
    for dtype, device in (("float64", "cpu"), ("float32", "cuda"), ("tf32", "cuda")):
        work = StackStep(one.but(dtype=dtype, device=device))
        with torch.no_grad():
            results[dtype] = work.network(work.x).double().cpu()
    scale = results["float64"].abs().max()
    ieee, tf32 = ((results[dtype] - results["float64"]).abs().max() / scale for dtype in ("float32", "tf32"))
    assert ieee < 2e-5
    assert tf32 > 5e-5


def test_a_timed_cell_has_the_times_of_the_gpu():
    one = cell("throughput", device="cuda", width=64, seconds=0.05, samples=5, processes=2, limit=0)
    (outcome,) = tasks.get("throughput").measure([one])
    assert outcome.error is None
    result = {one.metric: one for one in outcome.measurements}
    for name in ("step_time", "gpu_time", "gpu_ratio", "clock_rate", "capped"):
        assert result[name].value is not None, (name, result[name].message)
    assert result["gpu_time"].value < result["step_time"].value
