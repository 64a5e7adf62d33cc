"""On a CUDA device: the same numbers as on the CPU, replayed graphs as eager, and memory from the allocator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.tasks import Skip, tasks
from highway_bench.tasks._step import StackStep
from tests.combinations import combinations

pytestmark = pytest.mark.gpu
MakeCell = Callable[..., Cell]


@pytest.mark.parametrize(("block", "family"), combinations("conv"))
def test_forward_and_backward_are_the_cpus(cell: MakeCell, block: str, family: str) -> None:
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
@pytest.mark.parametrize("block", blocks.names())
def test_a_replayed_graph_gives_what_eager_gives(
    cell: MakeCell, block: str, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded phase writes into the same tensors at each replay: note what it gave while it was recorded."""
    given: list[torch.Tensor] = []
    network_of = StackStep._phase

    def noting(self: StackStep, network: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        def noted(x: torch.Tensor) -> torch.Tensor:
            given.append(network(x))
            return given[-1]

        return network_of(self, noted)

    monkeypatch.setattr(StackStep, "_phase", noting)
    work = StackStep(cell("throughput", block, device="cuda", mode="cudagraph", phase=phase))
    recorded = given[-1].detach()
    torch.cuda.synchronize()
    recorded.zero_()
    work.step()
    with torch.no_grad():
        torch.testing.assert_close(recorded, work.network(work.x))


def test_a_replayed_training_step_is_skipped(cell: MakeCell) -> None:
    with pytest.raises(Skip, match="optimiser is not recorded"):
        StackStep(cell("throughput", device="cuda", mode="cudagraph", phase="train-step"))


def test_restoring_puts_the_weights_back(cell: MakeCell) -> None:
    work = StackStep(cell("throughput", device="cuda", phase="train-step"))
    start = [p.detach().clone() for p in work.parameters]
    work.step()
    assert not any(torch.equal(a, b) for a, b in zip(start, work.parameters, strict=True))
    work.restore()
    assert all(torch.equal(a, b) for a, b in zip(start, work.parameters, strict=True))


def test_memory_comes_from_the_allocator(cell: MakeCell) -> None:
    one = cell("memory", "plain", device="cuda", phase="train-step", width=64, depth=3)
    task = tasks.get("memory")
    result = {m.metric: m for m in task.measurements(task.prepare(one), one)}
    assert result["peak"].message == "meter: allocator"
    assert result["parameters"].value == 3 * (64 * 64 + 64) * 4
    assert result["saved_activations"].value == 3 * 4 * 64 * 4


def test_a_network_starts_the_same_on_every_device(cell: MakeCell) -> None:
    here, there = (StackStep(cell("throughput", device=device, seed=3)) for device in ("cpu", "cuda"))
    for cpu, cuda in zip(here.parameters, there.parameters, strict=True):
        assert torch.equal(cpu, cuda.cpu())


def test_training_on_a_gpu(cell: MakeCell) -> None:
    one = cell(
        "trainability", dataset="digits", device="cuda", batch_size=50, width=16, optimiser="adam", rate=0.01, steps=30
    )
    task = tasks.get("trainability")
    work = task.prepare(one)
    list(task.measurements(work, one))
    losses = work.training.history()
    assert losses[-1] < losses[0]
