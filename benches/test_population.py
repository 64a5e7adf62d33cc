"""Trials in one population, compared with one at a time and with the loop that a user would write.

    nox -s step -- benches/test_population.py

The network has 50 layers × 50 units (49 highway layers after the first). It trains on batches of 100 of MNIST-5k by SGD
with momentum. On a CPU, the first two ways run as trials do in this project: in one worker process a core, each with
one thread. Their samples are taken in turn in each worker. The user's loop (a linear layer each for H and T, torch's
default optimiser, eager) runs alone on the machine, with torch's default threads. On a CUDA device everything runs in
one process.

``extra_info`` has trials of 500 steps a minute, on the whole machine, and the ratios with their intervals over rounds.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Any, NamedTuple

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor, nn

from highway_bench.data import make_dataset
from highway_bench.measure.clock import Budget, Stopwatch, take_turns
from highway_bench.measure.device import synchronise
from highway_bench.measure.statistics import paired_ratio
from highway_bench.network import build
from highway_bench.tasks.from_cell import default_device
from highway_bench.tasks.populations import MEMBERS_ON_CPU
from highway_bench.training.loop import FINITE_EVERY, Training
from highway_bench.training.population import Population
from highway_bench.training.recipe import Recipe

STEPS = 500  # of a whole trial
BATCH = 100
ENDLESS = 100_000  # steps of a recipe that never ends while it is timed


class Size(NamedTuple):
    """The size of the network, and the number of timed rounds."""

    depth: int
    width: int
    rounds: int


FULL, REDUCED = Size(49, 50, 7), Size(2, 8, 1)


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


def together_and_alone(trials: int, size: Size, device: str) -> dict[str, list[float]]:
    """Samples of the seconds of one trial's step, in a population and alone. A sample has 25 steps; ways take turns."""
    torch.set_num_threads(1)
    dataset = make_dataset("mnist-5k")
    train = dataset.load().train

    def member(seed: int) -> Training:
        network = build("highway", "dense", width=size.width, depth=size.depth, dataset=dataset, seed=seed).to(device)
        return Training(network, train, "class", Recipe(rate=0.01, decay=1.0, steps=ENDLESS), BATCH, seed)

    # A core trains its populations one after the other, so the time of one is enough.
    members = trials if device == "cuda" else min(trials, MEMBERS_ON_CPU)
    population, alone = Population([member(seed) for seed in range(members)]), member(0)

    def one_by_one() -> None:
        for _ in range(FINITE_EVERY):
            alone.step()

    timed = take_turns(
        {"population": population.run_chunk, "alone": one_by_one}, budget(size), watch=Stopwatch.of(device, 1)
    ).seconds
    steps = {"population": members * FINITE_EVERY, "alone": FINITE_EVERY}
    return {way: [seconds / steps[way] for seconds in samples] for way, samples in timed.items()}


def plain_loop(size: Size, device: str) -> list[float]:
    """Samples of the seconds of one trial's step in the loop that a user would write."""
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

    return [
        seconds / FINITE_EVERY
        for seconds in take_turns({"loop": steps}, budget(size), watch=Stopwatch.of(device, 1)).seconds["loop"]
    ]


def measured(trials: int, size: Size, device: str) -> dict[str, Any]:
    """Trials a minute of the three ways, and the ratios between them."""
    if device == "cuda":
        lanes = 1
        workers = [together_and_alone(trials, size, device)]
        by_user = plain_loop(size, device)
    else:
        lanes = len(os.sched_getaffinity(0))
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(lanes, mp_context=spawn) as pool:
            workers = list(pool.map(together_and_alone, [trials] * lanes, [size] * lanes, [device] * lanes))
        limits = {name: os.environ.pop(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ}
        try:
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                by_user = pool.submit(plain_loop, size, device).result()
        finally:
            os.environ |= limits
    population, alone = ([one for worker in workers for one in worker[way]] for way in ("population", "alone"))
    middle = {"population": median(population) / lanes, "one by one": median(alone) / lanes, "user's": median(by_user)}
    ratio = paired_ratio(alone, population)
    return {
        "device": device,
        "trials": trials,
        "workers": lanes,
        "trials a minute": {way: 60.0 / (STEPS * seconds) for way, seconds in middle.items()},
        "population / one by one": str(ratio),
        "population / user's loop": middle["user's"] / middle["population"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("trials", [8, 32, 64])
def test_population(benchmark: BenchmarkFixture, trials: int) -> None:
    benchmark.group = "trials of 50 layers × 50 units"
    if benchmark.disabled and trials > 8:
        pytest.skip("without timing, 8 trials run the same code")
    size = REDUCED if benchmark.disabled else FULL
    benchmark.extra_info |= benchmark.pedantic(measured, (trials, size, default_device()), rounds=1)
