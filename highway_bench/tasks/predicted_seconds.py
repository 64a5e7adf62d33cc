"""Predicted seconds: how long a training takes on this machine, from timed steps of shallow networks.

The update of a timed step is p ← p − ηg in place, whatever the recipe's optimiser: updates are a small share of a step,
and the first optimiser of a process imports torch's compiler, which takes two seconds.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Final

import torch

from highway_bench.cell import Cell
from highway_bench.data import DataSet
from highway_bench.measure.device import in_threads
from highway_bench.tasks.architecture_network import cell_network
from highway_bench.tasks.base import tasks
from highway_bench.tasks.from_cell import cell_dataset
from highway_bench.tasks.predicted_peak import batch_of
from highway_bench.training.evaluation import device_and_dtype, loss_of, to_device

TIMED: Final = (8, 24)  # depths, which give a line; a cell of at most the last one is timed itself
WARM_UP: Final = 2  # first steps at each depth, which set up the process
ROUNDS: Final = 5  # steps after these; their median counts
RATE: Final = 1e-4  # of an update: the steps are those of a network near its start
SETUP: Final = 0.1  # seconds of a run besides its steps: data, network


def predicted_seconds(cell: Cell) -> float:
    """Seconds of measuring ``cell`` in a worker that has started: by its steps if it ``is_timed``, else by the closed
    form of its task.

    Evaluations do not count. Raises what building and training a shallow network raises.
    """
    dataset = cell_dataset(cell)
    if dataset is None or not is_timed(cell):
        return tasks.get(cell.task).cost(cell).seconds
    step = step_seconds(cell.but(depth=min(cell.depth, TIMED[1])), dataset)
    if cell.depth > TIMED[1]:
        layer = (step - step_seconds(cell.but(depth=TIMED[0]), dataset)) / (TIMED[1] - TIMED[0])
        step += (cell.depth - TIMED[1]) * max(0.0, layer)
    return SETUP + int(cell.recipe["steps"]) * step


def is_timed(cell: Cell) -> bool:
    """Whether the time of ``cell`` is that of training steps on a CPU, one network after another."""
    recipe = cell.recipe
    return cell.device == "cpu" and "steps" in recipe and recipe.get("layout") is None and cell.dataset is not None


def step_seconds(cell: Cell, dataset: DataSet) -> float:
    """Seconds of a training step of ``cell`` in its number of threads, on this machine as busy as it is."""
    with in_threads(cell.threads), torch.random.fork_rng(devices=[]):
        network = cell_network(cell).train()
        inputs, targets = (to_device(part, *device_and_dtype(network)) for part in batch_of(dataset, cell.batch_size))
        times = []
        for _ in range(WARM_UP + ROUNDS):
            start = time.perf_counter()
            network.zero_grad(set_to_none=True)
            loss_of(network(inputs), targets, dataset.target_kind).backward()
            with torch.no_grad():
                for parameter in network.parameters():
                    if parameter.grad is not None:
                        parameter.sub_(parameter.grad, alpha=RATE)
            times.append(time.perf_counter() - start)
    return median(times[WARM_UP:])
