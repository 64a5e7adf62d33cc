"""Predicted seconds: how long a training takes on this machine, from timed steps of shallow networks."""

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
from highway_bench.tasks.predicted_peak import batch_of, recipe_of
from highway_bench.training.loop import Training

TIMED: Final = (8, 24)  # depths, which give a line; a cell of at most the last one is timed itself
WARM_UP: Final = 2  # first steps at each depth, which set up the process
ROUNDS: Final = 5  # steps after these; their median counts
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
        data = batch_of(dataset, cell.batch_size)
        network, recipe = cell_network(cell), recipe_of(cell)
        training = Training(network, data, dataset.target_kind, recipe, cell.batch_size, cell.seed)
        times = []
        for _ in range(WARM_UP + ROUNDS):
            start = time.perf_counter()
            training.step()
            times.append(time.perf_counter() - start)
    return median(times[WARM_UP:])
