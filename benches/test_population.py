"""Trials in one population, compared with one at a time and with the loop that a user would write.

    nox -s step -- benches/test_population.py

The network has 50 layers × 50 units (49 highway layers after the first). It trains on batches of 100 of MNIST-5k by SGD
with momentum. On a CPU, the first two ways run as trials do in this project: in one worker process a core, each with
one thread. Their samples are taken in turn in each worker. The user's loop (a linear layer each for H and T, torch's
default optimiser, eager) runs alone on the machine, with torch's default threads. All of it is repeated, on a CPU in
new processes. On a CUDA device everything runs in one process, and a population of convolutions is timed as well.

On a CPU, the matrix products of the population's highway layers are timed alone too, in turn with the first two ways.
Their share of a step is what no faster arithmetic between them could save.

``extra_info`` has trials of 500 steps a minute, on the whole machine, and the ratios with their intervals, over workers
for one by one and the products, and over repetitions for the user's loop.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Any, NamedTuple

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor, nn

from highway_bench.data import make_dataset
from highway_bench.measure.clock import Budget, take_turns
from highway_bench.measure.device import release, synchronise
from highway_bench.measure.gpu_watch import stopwatch_of
from highway_bench.measure.precision import repeatable
from highway_bench.measure.statistics import ratio_over_processes
from highway_bench.network import build
from highway_bench.tasks.from_cell import default_device
from highway_bench.tasks.training_cells import MEMBERS_ON_CPU
from highway_bench.training.loop import FINITE_EVERY, Training
from highway_bench.training.population import Population
from highway_bench.training.recipe import Recipe

STEPS = 500  # of a whole trial
BATCH = 100
ENDLESS = 100_000  # steps of a recipe that never ends while it is timed


class Size(NamedTuple):
    """The family and size of the network, the number of timed rounds, and how often all of it is repeated."""

    family: str
    depth: int
    width: int
    rounds: int
    repetitions: int


FULL, REDUCED = Size("dense", 49, 50, 5, 3), Size("dense", 2, 8, 1, 1)
CONVOLUTIONS = Size("conv", 9, 16, 5, 3)


class Sampled(NamedTuple):
    """Samples of the seconds of one trial's step, by way, and the number of rounds that a capped clock disturbed."""

    seconds: dict[str, list[float]]
    capped: int


class PlainLoopLayer(nn.Module):
    """A highway layer with separate linear layers for H and T."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -3.0)

    def forward(self, x: Tensor) -> Tensor:
        t = torch.sigmoid(self.gate(x))
        return torch.relu(self.transform(x)) * t + x * (1 - t)


def budget(size: Size) -> Budget:
    return Budget(min_samples=size.rounds, min_seconds=0.0, warmup_samples=1, warmup_seconds=0.0, max_seconds=3600.0)


def together_and_alone(trials: int, size: Size, device: str) -> Sampled:
    """One trial's step in a population and alone, with the kernels of a training. A sample has 25 steps; ways take
    turns."""
    torch.set_num_threads(1)
    dataset = make_dataset("mnist-5k")
    train = dataset.load().train

    def member(seed: int) -> Training:
        network = build("highway", size.family, width=size.width, depth=size.depth, dataset=dataset, seed=seed)
        recipe = Recipe(rate=0.01, decay=1.0, steps=ENDLESS)
        return Training(network.to(device), train, "class", recipe, BATCH, seed)

    # A core trains its populations one after the other, so the time of one is enough.
    members = trials if device == "cuda" else min(trials, MEMBERS_ON_CPU)
    population, alone = Population([member(seed) for seed in range(members)]), member(0)

    def one_by_one() -> None:
        for _ in range(FINITE_EVERY):
            alone.step()

    ways = {"population": population.run_chunk, "alone": one_by_one}
    if device == "cpu" and size.family == "dense":
        ways["products"] = products(members, size)
    with repeatable(torch.device(device)):
        timed = take_turns(ways, budget(size), watch=stopwatch_of(device, 1))
    population.graphed_steps.clear()  # a graph refers to its population, and keeps its memory until then
    steps = {"population": members * FINITE_EVERY, "alone": FINITE_EVERY, "products": members * FINITE_EVERY}
    return Sampled(
        {way: [seconds / steps[way] for seconds in samples] for way, samples in timed.seconds.items()}, timed.capped
    )


def products(members: int, size: Size) -> Callable[[], object]:
    """The matrix products of a population's highway layers: y, the gradient of x and that of W, for every layer."""
    x = torch.randn(members, BATCH, size.width)
    gradient = torch.randn(members, BATCH, 2 * size.width)  # of H and T
    weights = [torch.randn(members, 2 * size.width, size.width) for _ in range(size.depth)]

    def steps() -> None:
        for weight in weights * FINITE_EVERY:
            torch.bmm(x, weight.mT)
            torch.bmm(gradient, weight)
            torch.bmm(gradient.mT, x)

    return steps


def plain_loop(size: Size, device: str) -> Sampled:
    """One trial's step in the loop that a user would write."""
    train = make_dataset("mnist-5k").load().train
    network = nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, size.width),
        nn.ReLU(),
        *(PlainLoopLayer(size.width) for _ in range(size.depth)),
        nn.Linear(size.width, 10),
    )
    network.to(device)
    inputs, targets = (part.to(device) for part in train)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    def steps() -> None:
        for batch in torch.randperm(len(inputs), device=device).split(BATCH)[:FINITE_EVERY]:
            optimiser.zero_grad()
            loss = loss_of(network(inputs[batch]), targets[batch])
            loss.backward()
            optimiser.step()
            loss.item()
        synchronise(device)

    timed = take_turns({"loop": steps}, budget(size), watch=stopwatch_of(device, 1))
    return Sampled({"loop": [seconds / FINITE_EVERY for seconds in timed.seconds["loop"]]}, timed.capped)


def repetition(trials: int, size: Size, device: str) -> tuple[list[Sampled], Sampled | None]:
    """What each worker sampled, and the user's loop, which is of dense layers."""
    with_loop = size.family == "dense"
    if device == "cuda":
        sampled = together_and_alone(trials, size, device)
        release(device)
        return [sampled], plain_loop(size, device) if with_loop else None
    lanes = len(os.sched_getaffinity(0))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(lanes, mp_context=spawn) as pool:
        workers = list(pool.map(together_and_alone, [trials] * lanes, [size] * lanes, [device] * lanes))
    if not with_loop:
        return workers, None
    limits = {name: os.environ.pop(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ}
    try:
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            return workers, pool.submit(plain_loop, size, device).result()
    finally:
        os.environ |= limits


def measured(trials: int, size: Size, device: str) -> dict[str, Any]:
    """Trials a minute of each way, and the ratios between them."""
    return figures(trials, device, [repetition(trials, size, device) for _ in range(size.repetitions)])


def figures(trials: int, device: str, repetitions: Sequence[tuple[list[Sampled], Sampled | None]]) -> dict[str, Any]:
    """What the repetitions' samples say of a whole machine."""
    workers = [worker for of_workers, _ in repetitions for worker in of_workers]
    loops = [loop for _, loop in repetitions if loop is not None]
    lanes = len(workers) // len(repetitions)
    together, alone = ([one for worker in workers for one in worker.seconds[way]] for way in ("population", "alone"))
    middle = {"population": median(together) / lanes, "one by one": median(alone) / lanes}
    process = [number for number, worker in enumerate(workers) for _ in worker.seconds["alone"]]
    found = {
        "device": device,
        "trials": trials,
        "workers": lanes,
        "rounds with a capped clock": sum(one.capped for one in (*workers, *loops)),
        "population / one by one": str(ratio_over_processes(alone, together, process)),
    }
    if "products" in workers[0].seconds:
        without = [one for worker in workers for one in worker.seconds["products"]]
        found["products' share of a step"] = str(ratio_over_processes(without, together, process))
    if loops:
        middle["user's"] = median(one for loop in loops for one in loop.seconds["loop"])
        by_user = [median(loop.seconds["loop"]) for loop in loops]
        ours = [
            median(one for worker in of_workers for one in worker.seconds["population"]) / lanes
            for of_workers, _ in repetitions
        ]
        found["population / user's loop"] = str(ratio_over_processes(by_user, ours, range(len(loops))))
    return found | {"trials a minute": {way: 60.0 / (STEPS * seconds) for way, seconds in middle.items()}}


@pytest.mark.slow
@pytest.mark.parametrize("trials", [8, 32, 64])
def test_population(benchmark: BenchmarkFixture, trials: int) -> None:
    benchmark.group = "trials of 50 layers × 50 units"
    if benchmark.disabled and trials > 8:
        pytest.skip("without timing, 8 trials run the same code")
    size = REDUCED if benchmark.disabled else FULL
    benchmark.extra_info |= benchmark.pedantic(measured, (trials, size, default_device()), rounds=1)


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="on a CPU, convolutions train one by one")
def test_population_of_convolutions(benchmark: BenchmarkFixture) -> None:
    """``tasks.training_cells`` lets them train together on a GPU; this shows whether that is faster."""
    benchmark.group = "trials of ten convolutions of 16 channels"
    benchmark.extra_info |= benchmark.pedantic(measured, (8, CONVOLUTIONS, "cuda"), rounds=1)
