"""Propagation: what a network's start does to signal and gradient, layer by layer, before anything is learnt.

Verdicts, forward and backward apart: a signal **vanishes** at layer l if the RMS of x_l is the first to be less than a
hundredth of that of the first layer's input, and **explodes** if it is more than a hundred times that, or no finite
number; a gradient likewise, from the last layer's output down. What does neither is **healthy**. Of the first training
steps: a layer **stands still** if its ‖ΔW‖/‖W‖ is less than a hundredth of that of the layer that moves most.

A cell without a data set measures the bare stack on a standard-normal input, for the sum of its outputs under random
standard-normal weights; one with a data set the whole network, for the training loss of one batch. ``gain`` in the
recipe multiplies every weight matrix of the layers, the gates' too; ``steps``, with a data set, trains that long. The
profiles ask for float64: deep stacks reach sizes that float32 does not hold, and a verdict is to be the start's. Steps
of padding count nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from highway_bench.analysis.conditioning import gains, jacobian, line_gradients, neighbour_correlation, spectrum
from highway_bench.analysis.depth_scale import depth_scale
from highway_bench.analysis.gate_state import GateState, gate_state
from highway_bench.analysis.hooks import forward_hooks
from highway_bench.analysis.signal import FACTOR, Layer, departure, unpadded, weights
from highway_bench.cell import Cell
from highway_bench.network import Stack, unpadded_steps
from highway_bench.results.schema import Status
from highway_bench.tasks._probe import (
    Probe,
    data_batch,
    example_batch,
    multiply_weights,
    take_batch_statistics,
    training_of,
)
from highway_bench.tasks.architecture_network import ON_DATA, cell_network
from highway_bench.tasks.base import CellCost, Skip, Task, cell_by_cell, register_task
from highway_bench.tasks.from_cell import BUDGET_MISMATCH, budget_mismatch, cell_family, count_parameters
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.network_bytes import network_bytes
from highway_bench.tasks.recipe_words import recipe_from, value_of
from highway_bench.training.loop import Training
from highway_bench.training.recipe import POSITIVE, TRAINING, Word

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder

STRETCHES = 10  # equal stretches of layers at whose ends a profile is stored; every layer up to this depth
EXACT = 128  # numbers an item up to which its Jacobian is taken whole
LINE = 32  # points on the line between two inputs
PASS, LONGEST_PASS = 6.0, 5e-3  # a pass of a layer in float64: in training steps of it, and seconds at most
PROBE_SEED = 500_000  # plus the cell's: inputs must not repeat the numbers that the weights were drawn from


@register_task
class Propagation(Task):
    """What the start does to activations, gradients, gates and correlations, and which layers first steps move."""

    name = "propagation"
    version = "2"
    section = "propagation"
    coordinates = ("seed", "dataset")
    recipe_words: Mapping[str, Word] = {
        "gain": POSITIVE.meaning("What every weight matrix of the layers is multiplied by at the start."),
        **ON_DATA,
        **TRAINING,
    }
    metrics = (
        Metric("activation", "1", label="RMS of x"),  # by layer
        Metric("gradient", "1", label="RMS of dL/dx"),
        Metric("weight_gradient", "1", label="RMS of dL/dW"),
        Metric("correlation", "1", label="cosine of two inputs"),
        Metric("update", "1", label="‖ΔW‖ / ‖W‖", hint="of the first steps of training"),
        Metric("gate_mean", "1", label="mean T"),  # by layer and over all
        Metric("gate_sum", "1", label="T + C"),
        Metric("gate_saturation", "1", label="saturated gates", percent=True),
        Metric("activation_ratio", "1", label="signal ×"),
        Metric("gradient_ratio", "1", label="gradient ÷"),
        Metric("weight_gradient_ratio", "1", label="weight gradient ÷"),
        Metric("signal_vanishes_at", "layer"),
        Metric("signal_explodes_at", "layer"),
        Metric("gradient_vanishes_at", "layer"),
        Metric("gradient_explodes_at", "layer"),
        Metric("depth_scale", "layer", label="ξ"),
        Metric("jacobian_largest", "1", label="largest s"),
        Metric("jacobian_smallest", "1", label="smallest s"),
        Metric("jacobian_spread", "1", label="log₁₀ s"),
        Metric("jacobian_rank", "1", label="rank of J"),
        Metric("jacobian_gain", "1", label="‖J‖²/d"),
        Metric("gradient_correlation", "1", label="shattering"),
        Metric("still_layers", "layer", label="layers that stand still"),
        Metric("still_first", "layer", label="first that stands still"),
        Metric("still_last", "layer", label="last that stands still"),
        BUDGET_MISMATCH,
    )

    def words_for(self, recipe: Mapping[str, Any], dataset: str | None) -> Mapping[str, Word]:
        """Of a bare stack the gain alone. How to train is a word of cells that train: it does not make others train."""
        without = [*([] if dataset else ON_DATA), *([] if dataset and "steps" in recipe else TRAINING)]
        return {name: word for name, word in self.recipe_words.items() if name not in without}

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if trains(cell):
            recipe_from(cell)

    def timeout(self, cell: Cell) -> float:
        return 60.0 + 20.0 * self.cost(cell).seconds

    def cost(self, cell: Cell) -> CellCost:
        """From the cost of a pass, which was several times that of a training step on one CPU core and is a guess
        elsewhere."""
        layer = min(PASS * cell_family(cell).train_cost.layer_seconds, LONGEST_PASS)
        seconds = 0.02 + layer * cell.depth * (1 + 0.3 * int(cell.recipe.get("steps", 0)))
        return CellCost(seconds, network_bytes(cell))

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        return cell_by_cell(cells, self.measure_cell)

    def measure_cell(self, cell: Cell) -> Outcome:
        """What one cell's start does."""
        probe = self.prepare(cell)
        return Outcome(cell, tuple(self.measurements(probe, cell)), probe.params)

    def prepare(self, cell: Cell) -> Probe:
        """The cell's network at its start, and a batch for it."""
        network = cell_network(cell).train()
        stacks = [part for part in network.modules() if isinstance(part, Stack)]
        if len(stacks) != 1:
            raise Skip(f"signal is followed through one stack of layers, and this network has {len(stacks)}")
        (stack,) = stacks
        joins, a_layer = list(stack.joins), len(cell_family(cell).sublayers)
        layers: list[Layer] = [joins[first : first + a_layer] for first in range(0, len(joins), a_layer)]
        multiply_weights(layers, gain_of(cell))
        generator = torch.Generator().manual_seed(PROBE_SEED + cell.seed)
        training = None if cell.dataset is None else training_of(cell, cell.dataset, network)
        inputs, loss = example_batch(cell, network, generator) if training is None else data_batch(training, generator)
        real = unpadded_steps(network, inputs)
        return Probe(network, stack, layers, inputs, loss, count_parameters(network), real, generator, training)

    def measurements(self, work: Probe, cell: Cell) -> Iterator[Measurement]:
        """What passes through ``work`` show, then what its first steps move."""
        with torch.random.fork_rng(devices=[work.inputs.device] if work.inputs.is_cuda else []):
            torch.manual_seed(cell.seed)  # what layers draw (dropout)
            yield from passing(work)
            yield from stretching(work)
        yield budget_mismatch(cell)
        if work.training is not None and trains(cell):
            yield from moving(work.layers, work.training)


def trains(cell: Cell) -> bool:
    """Whether the cell's network is also trained for a few steps."""
    return cell.dataset is not None and bool(cell.recipe.get("steps"))


def gain_of(cell: Cell) -> float:
    """What the recipe multiplies weights by, 1 where it does not say; raises ``BadInput`` for no positive number."""
    return float(value_of(cell, "gain", 1.0))


def passing(work: Probe) -> Iterator[Measurement]:
    """What one pass, forward and back, shows: sizes, their verdicts, correlations and gates."""
    depth, gated = len(work.layers), work.gated()
    opened: list[list[GateState]] = [[] for _ in work.layers]
    layer_of = [layer for layer, parts in enumerate(gated) for _ in parts]
    maps = dict(enumerate(part for parts in gated for part in parts))

    def note(key: int, _: Tensor, output: tuple[Tensor, ...]) -> None:
        opened[layer_of[key]].append(gate_state([unpadded(gate, work.real) for gate in output[1:]]))

    with forward_hooks(maps, note):
        found = work.profile()
    yield told("activation_ratio", quotient(found.activation[-1], found.activation[0]))
    yield told("gradient_ratio", quotient(found.gradient[0], found.gradient[-1]))
    yield told("weight_gradient_ratio", quotient(found.weight_gradient[0], found.weight_gradient[-1]))
    signal, gradient = departure(found.activation), departure(found.gradient[::-1])
    for way in ("vanishes", "explodes"):
        above = getattr(gradient, way)  # layers above the place, for the gradient starts at the top
        yield Measurement(metric=f"signal_{way}_at", value=getattr(signal, way))
        yield Measurement(metric=f"gradient_{way}_at", value=None if above is None else depth - above)
    scale = depth_scale(found.correlation)
    yield Measurement(metric="depth_scale", value=scale, message=None if scale else "no exponential decay to be seen")
    for layer in places(depth):
        yield told("activation", found.activation[layer], layer)
        yield told("gradient", found.gradient[layer], layer)
        yield told("correlation", found.correlation[layer], layer)
    for layer in places(depth, 1):
        yield told("weight_gradient", found.weight_gradient[layer - 1], layer)
    yield from opening([state for states in opened for state in states])
    for layer in places(depth, 1):
        yield from opening(opened[layer - 1], layer)


def opening(states: Sequence[GateState], layer: int | None = None) -> Iterator[Measurement]:
    """Of these gates: the first one's mean (a highway's T), the sum of all means where there are several (T + C where
    the carry is free), and the share that is saturated."""
    if states:
        yield told("gate_mean", fmean(state.means[0] for state in states), layer)
        if len(states[0].means) > 1:
            yield told("gate_sum", fmean(sum(state.means) for state in states), layer)
        yield told("gate_saturation", fmean(state.saturated for state in states), layer)


def stretching(work: Probe) -> Iterator[Measurement]:
    """What the layers do to small changes: the Jacobian dx_L/dx₀, and gradients along the line between two inputs.

    In evaluation mode, for both need a batch's items to be kept apart; batch norms divide by this batch's statistics.
    Padded items are cut at their own ends, the line's two at the shorter one's.
    """
    x = work.stream()
    take_batch_statistics(work.network, work.inputs)
    evaluation_mode(work.network)
    parts = work.own_steps(x)
    if max(part[0].numel() for part in parts) <= EXACT:
        yield from whole_jacobian(jacobian(work.through, parts[0][:1]))
    else:
        yield told("jacobian_gain", fmean(gain for part in parts for gain in gains(work.through, part, work.generator)))
    if len(x) > 1:
        start, end = x[:2] if work.real is None else x[:2, : min(part.shape[1] for part in parts[:2])]
        line = line_gradients(work.through, start, end, LINE, work.generator)
        yield told("gradient_correlation", neighbour_correlation(line))
    work.network.train()


def evaluation_mode(network: nn.Module) -> None:
    """Put ``network`` into evaluation mode, but for recurrent modules without dropout: both modes give their numbers,
    and cuDNN takes gradients in training mode alone."""
    network.eval()
    for part in network.modules():
        if isinstance(part, nn.RNNBase) and part.dropout == 0:
            part.train()


def whole_jacobian(matrix: Tensor) -> Iterator[Measurement]:
    """Singular values of one item's Jacobian, and their mean square."""
    found = spectrum(matrix)
    if found is None:
        for name in ("largest", "smallest", "spread", "rank", "gain"):
            yield Measurement(metric=f"jacobian_{name}", value=None, message="the Jacobian is not finite")
        return
    yield told("jacobian_largest", found.largest)
    yield told("jacobian_smallest", found.smallest)
    yield Measurement(
        metric="jacobian_spread",
        value=found.spread,
        message=None if found.spread is not None else f"singular: rank {found.rank} of {found.size}",
    )
    yield told("jacobian_rank", found.rank)
    yield told("jacobian_gain", found.mean_square)


def moving(layers: Sequence[Layer], training: Training) -> Iterator[Measurement]:
    """‖ΔW‖/‖W‖ of every layer over the recipe's steps, and which layers stand still."""
    matrices = [weights(layer) for layer in layers]
    before = [[weight.detach().clone() for weight in layer] for layer in matrices]
    training.run()
    losses = training.history()
    ended = math.isfinite(losses[-1])
    status = Status.OK if ended else Status.DIVERGED
    message = None if ended else f"the loss was not finite at step {len(losses)}"
    moved = [movement(old, new) for old, new in zip(before, matrices, strict=True)]
    known = ended and all(map(math.isfinite, moved))
    still = [layer for layer, value in enumerate(moved, start=1) if value < max(moved) / FACTOR] if known else []
    ends = {
        "still_layers": len(still) if known else None,
        "still_first": min(still, default=None),
        "still_last": max(still, default=None),
    }
    for metric, end in ends.items():
        yield Measurement(metric=metric, value=end, status=status, message=message)
    for layer in places(len(layers), 1):
        yield replace(told("update", moved[layer - 1], layer), status=status, message=message)


@torch.no_grad()
def movement(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """‖ΔW‖/‖W‖, Euclidean norms over all matrices of a layer; NaN for a layer without any."""
    changed = sum(float((new - old).double().square().sum()) for old, new in zip(before, after, strict=True))
    started = sum(float(old.double().square().sum()) for old in before)
    return math.sqrt(changed / started) if started else math.nan


def places(depth: int, first: int = 0) -> list[int]:
    """Layers at which a profile is stored: from ``first`` to ``depth`` in at most ``STRETCHES`` equal steps, and both
    ends."""
    step = math.ceil(depth / STRETCHES)
    return sorted({first, *range(step, depth, step), depth})


def quotient(value: float, start: float) -> float:
    """``value`` over ``start``; NaN over nothing."""
    return value / start if start else math.nan


def told(metric: str, value: float, layer: int | None = None) -> Measurement:
    """A value, in all or of one layer; one that is not finite is none, and the remark says what it was."""
    finite = math.isfinite(value)
    return Measurement(
        metric=metric,
        value=value if finite else None,
        axis="" if layer is None else "layer",
        index=layer or 0,
        message=None if finite else f"{metric} is {value:g}",
    )
