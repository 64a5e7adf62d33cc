"""Predicted costs: the memory of a cell's step and the seconds of its training, from steps of shallow networks.

The shallow networks have the cell's own width and batch, so the prediction knows every block, every family and a user's
layer. The peak of live bytes is a line in the depth; where each connection reads all layers before it, it is a
parabola. A closed form (``network_bytes``) is the first guess: it takes no time, and is a factor of up to 4.7 off.

The update of a timed step is p ← p − ηg in place, whatever the recipe's optimiser: updates are a small share of a step,
and the first optimiser of a process imports torch's compiler, which takes two seconds.
"""

from __future__ import annotations

import time
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from highway_bench.cell import Cell
from highway_bench.data import DataSet, Split
from highway_bench.measure.device import in_threads
from highway_bench.measure.memory import measure_memory
from highway_bench.measure.precision import TF32
from highway_bench.tasks._step import StackStep
from highway_bench.tasks.architecture_network import cell_network
from highway_bench.tasks.base import tasks
from highway_bench.tasks.from_cell import cell_dataset, cell_family, cell_spec, network_bytes, positions_of
from highway_bench.tasks.memory import Memory
from highway_bench.training.evaluation import device_and_dtype, loss_of, to_device
from highway_bench.training.recipe import Recipe

DEPTHS: Final = (4, 8, 12)  # equally spaced; a cell of at most the last depth is measured itself
LEAST_PEAK: Final = 1 / 3
"""The peak is at least this share of the closed form, with a margin on what was measured (0.37)."""
MOST_PEAK: Final = 6.0
"""The peak is at most this many times the closed form, with a margin on what was measured (4.7, of several streams)."""
DEEPEST: Final = 10**9
TIMED: Final = (8, 24)  # depths, which give a line; a cell of at most the last one is timed itself
WARM_UP: Final = 2  # first steps at each depth, which set up the process
ROUNDS: Final = 5  # steps after these; their median counts
RATE: Final = 1e-4  # of an update: the steps are those of a network near its start
SETUP: Final = 0.1  # seconds of a run besides its steps: data, network


class StepBytes(NamedTuple):
    """The peak of live bytes in a step, and the bytes saved for its backward pass."""

    peak: int
    saved: int


@dataclass(frozen=True)
class PeakByDepth:
    """The peak bytes of a step at each depth, from the steps at ``DEPTHS``.

    The last two give a line. It is bent to a parabola where each layer saves more than the one before, at the three
    depths. The bend of the peak alone proves nothing: a peak moves from one moment of the step to another.
    """

    steps: tuple[StepBytes, StepBytes, StepBytes]

    def at(self, depth: int) -> int:
        """The bytes at ``depth``."""
        first, middle, last = self.steps
        bend = max(0, min(last.peak - 2 * middle.peak + first.peak, last.saved - 2 * middle.saved + first.saved))
        further = (depth - DEPTHS[2]) / (DEPTHS[2] - DEPTHS[1])
        return round(last.peak + further * (last.peak - middle.peak) + bend * further * (further + 1) / 2)

    def depth_in(self, available: float) -> int:
        """The largest depth whose step ``available`` bytes hold; 0 for none."""
        return bisect_right(range(1, DEEPEST), available, key=self.at)


def peak_by_depth(cell: Cell) -> PeakByDepth:
    """The peak bytes of a step of ``cell`` at each depth. Three shallow networks run.

    Raises what building and running them raises: ``Skip``, ``BadInput``, or an error of a user's layer.
    """
    first, middle, last = (step_bytes(cell.but(depth=depth)) for depth in DEPTHS)
    return PeakByDepth((first, middle, last))


def predicted_bytes(cell: Cell) -> int:
    """The bytes that measuring ``cell`` takes, without those of the process and its libraries.

    It is the closed form of the cell's task, such as that of several networks which train as one, corrected by the
    step's predicted peak. Published networks (``layout``) have fixed depths and keep the closed form. Raises as
    ``peak_by_depth`` does.
    """
    needed = tasks.get(cell.task).cost(cell).bytes
    if not needed or cell.recipe.get("layout") is not None:
        return needed
    peak = step_bytes(cell).peak if cell.depth <= DEPTHS[-1] else peak_by_depth(cell).at(cell.depth)
    return round(needed * peak / network_bytes(cell))


def exceeding(cell: Cell, available: float, *, by_closed_form: bool = False) -> int | None:
    """The bytes that measuring ``cell`` takes, if they are more than ``available``; else ``None``.

    Where the closed form is far from ``available``, it decides. Otherwise shallow networks run, unless even these may
    not fit; then, and with ``by_closed_form``, the cell is given the benefit of the doubt. Raises as ``peak_by_depth``
    does.
    """
    needed = tasks.get(cell.task).cost(cell).bytes
    if LEAST_PEAK * needed > available:
        return needed
    shallow = cell.but(depth=min(cell.depth, DEPTHS[-1]))
    fits = MOST_PEAK * needed <= available
    if fits or by_closed_form or network_bytes(shallow) > LEAST_PEAK * available:
        return None
    predicted = predicted_bytes(cell)
    return predicted if predicted > available else None


def prediction_flops(cell: Cell) -> float:
    """FLOP of the steps that a prediction for ``cell`` runs, roughly: matrix products, two for a multiply-add."""
    family = cell_family(cell)
    layer = cell_spec(cell).layer_flops(family, cell.width, positions_of(family, cell)) * cell.batch_size
    return 3.0 * STEPS * min(cell.depth, sum(DEPTHS)) * layer


STEPS: Final = 6  # of each shallow network: some are timed, and forward passes are counted apart


def step_bytes(cell: Cell) -> StepBytes:
    """The bytes of a step of ``cell``'s network, measured: in its phase on an example, or in training on a batch like
    those of its data set.

    On a CPU, unless this process uses the GPU already.
    """
    if cell.device.startswith("cuda") and not torch.cuda.is_initialized():
        cell = cell.but(device="cpu", dtype="float32" if cell.dtype == TF32 else cell.dtype)
    dataset = cell_dataset(cell)
    drawn = [cell.device] if cell.device.startswith("cuda") else []
    with in_threads(cell.threads), torch.random.fork_rng(devices=drawn), warnings.catch_warnings():  # dropout draws
        # A layer that exists only during the forward pass: the tracker counts its tensors, and misses its name only.
        warnings.filterwarnings("ignore", message="Module is None")
        return stack_bytes(cell) if dataset is None else training_bytes(cell, dataset)


def stack_bytes(cell: Cell) -> StepBytes:
    """As the task ``memory`` measures them."""
    one = cell.but(task=Memory.name, mode="eager", phase=cell.phase or "train-step", recipe={})
    values = {each.metric: each.value for each in Memory().measurements(StackStep(one), one)}
    return StepBytes(*(round(values[name] or 0) for name in ("peak", "saved_activations")))


def training_bytes(cell: Cell, dataset: DataSet) -> StepBytes:
    """Of a training step on a batch of random items without padding."""
    network, inputs, targets = network_and_batch(cell, dataset)
    report = measure_memory(
        network,
        lambda: loss_of(network(inputs), targets, dataset.target_kind),
        optimiser=recipe_of(cell).optimiser_for(network),
        inputs=(inputs, targets),
    )
    return StepBytes(report.peak, report.saved_activations)


def recipe_of(cell: Cell) -> Recipe:
    """The cell's optimiser, under a default learning rate: that of the cell may be one to be tuned."""
    return Recipe(**{word: cell.recipe[word] for word in OPTIMISERS if word in cell.recipe})


OPTIMISERS: Final = ("optimiser", "momentum")  # the words of a recipe on which a step's cost depends


def network_and_batch(cell: Cell, dataset: DataSet) -> tuple[nn.Module, Tensor, Tensor]:
    """The cell's network in training, and random inputs and targets for it."""
    network = cell_network(cell).train()
    inputs, targets = (to_device(part, *device_and_dtype(network)) for part in batch_of(dataset, cell.batch_size))
    return network, inputs, targets


def batch_of(dataset: DataSet, items: int) -> Split:
    """Random items in the shapes of ``dataset``, whose files are not read."""
    shape = (items, *dataset.input_shape)
    if dataset.input_kind == "tokens":
        assert dataset.vocabulary is not None
        inputs = torch.randint(1, dataset.vocabulary, shape)  # 0 is padding
    else:
        inputs = torch.rand(shape)
    if dataset.target_kind in ("scalar", "label"):
        return Split(inputs, torch.rand(items))
    return Split(inputs, torch.randint(dataset.outputs, shape[:2] if dataset.target_kind == "token" else (items,)))


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
        network, inputs, targets = network_and_batch(cell, dataset)
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
