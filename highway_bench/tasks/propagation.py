"""Propagation: what an untrained network does to signal and gradient, layer by layer.

Signal and gradient have separate verdicts. A signal **vanishes** at layer l if x_l is the first whose RMS is less than
a hundredth of that of the first layer's input. It **explodes** if the RMS is more than a hundred times that, or not
finite. The same holds for the gradient, from the last layer's output down. A signal that does neither is **healthy**.
In the first training steps, a layer **stands still** if its ‖ΔW‖/‖W‖ is less than a hundredth of the largest one.

A cell without a data set measures the bare stack on a standard-normal input; the loss is the sum of its outputs times
standard-normal weights. A cell with a data set measures the whole network; the loss is the training loss of one batch.
``gain`` in the recipe multiplies every weight matrix of the layers, including those of gates. ``steps``, with a data
set, trains for so many steps. The profiles use float64: deep stacks reach sizes beyond float32, and a verdict is about
the start, not about the dtype. Steps of padding never count.
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
from highway_bench.families.parts import count_parameters
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
from highway_bench.tasks.from_cell import BUDGET_MISMATCH, budget_mismatch, cell_family
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.network_bytes import network_bytes
from highway_bench.tasks.recipe_words import recipe_from, value_of
from highway_bench.training.loop import Training
from highway_bench.training.recipe import POSITIVE, TRAINING, Word

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder

PROFILE_POINTS = 10  # at most this many layers of a profile are stored, equally spaced, besides the first
EXACT = 128  # numbers an item: up to this size the whole Jacobian is computed
LINE = 32  # points on the line between two inputs
PASS, LONGEST_PASS = 6.0, 5e-3  # a pass of a layer in float64: in training steps of that layer, and seconds at most
PROBE_SEED = 500_000  # plus the cell's seed: inputs must not repeat the random numbers of the weights


@register_task
class Propagation(Task):
    """Activations, gradients, gates and correlations of an untrained network, and which layers the first steps move."""

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
        """A bare stack has only the gain. Training words need a recipe with ``steps``, so that they cannot make a cell
        train that otherwise would not."""
        excluded = [*([] if dataset else ON_DATA), *([] if dataset and "steps" in recipe else TRAINING)]
        return {name: word for name, word in self.recipe_words.items() if name not in excluded}

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if trains(cell):
            recipe_from(cell)

    def timeout(self, cell: Cell) -> float:
        return 60.0 + 20.0 * self.cost(cell).seconds

    def cost(self, cell: Cell) -> CellCost:
        """From the cost of a pass: several times that of a training step, as measured on one CPU core. A guess for
        other devices."""
        layer = min(PASS * cell_family(cell).train_cost.layer_seconds, LONGEST_PASS)
        seconds = 0.02 + layer * cell.depth * (1 + 0.3 * int(cell.recipe.get("steps", 0)))
        return CellCost(seconds, network_bytes(cell))

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        return cell_by_cell(cells, self.measure_cell)

    def measure_cell(self, cell: Cell) -> Outcome:
        """The measurements of one cell's untrained network."""
        probe = self.prepare(cell)
        return Outcome(cell, tuple(self.measurements(probe, cell)), probe.params)

    def prepare(self, cell: Cell) -> Probe:
        """The cell's untrained network, and a batch for it. Raises ``Skip`` for a network of several stacks."""
        network = cell_network(cell).train()
        stacks = [part for part in network.modules() if isinstance(part, Stack)]
        if len(stacks) != 1:
            raise Skip(f"signal is followed through one stack of layers, and this network has {len(stacks)}")
        (stack,) = stacks
        connections, sublayers = list(stack.joins), len(cell_family(cell).sublayers)
        layers: list[Layer] = [connections[i : i + sublayers] for i in range(0, len(connections), sublayers)]
        multiply_weights(layers, gain_of(cell))
        generator = torch.Generator().manual_seed(PROBE_SEED + cell.seed)
        training = None if cell.dataset is None else training_of(cell, cell.dataset, network)
        inputs, loss = example_batch(cell, network, generator) if training is None else data_batch(training, generator)
        real = unpadded_steps(network, inputs)
        return Probe(network, stack, layers, inputs, loss, count_parameters(network), real, generator, training)

    def measurements(self, work: Probe, cell: Cell) -> Iterator[Measurement]:
        """Measurements of the untrained network of ``work``, then of its first training steps."""
        with torch.random.fork_rng(devices=[work.inputs.device] if work.inputs.is_cuda else []):
            torch.manual_seed(cell.seed)  # for layers that draw numbers (dropout)
            yield from signal_measurements(work)
            yield from jacobian_measurements(work)
        yield budget_mismatch(cell)
        if work.training is not None and trains(cell):
            yield from update_measurements(work.layers, work.training)


def trains(cell: Cell) -> bool:
    """Whether the cell also trains its network for a few steps."""
    return cell.dataset is not None and bool(cell.recipe.get("steps"))


def gain_of(cell: Cell) -> float:
    """The recipe's factor of the weights, 1 by default; raises ``BadInput`` where it is no positive number."""
    return float(value_of(cell, "gain", 1.0))


def signal_measurements(work: Probe) -> Iterator[Measurement]:
    """From one forward and backward pass: sizes of signal and gradient, their verdicts, correlations and gates."""
    depth, gated = len(work.layers), work.gated_maps()
    gates: list[list[GateState]] = [[] for _ in work.layers]
    layer_of = [layer for layer, parts in enumerate(gated) for _ in parts]
    maps = dict(enumerate(part for parts in gated for part in parts))

    def note(key: int, _: Tensor, output: tuple[Tensor, ...]) -> None:
        gates[layer_of[key]].append(gate_state([unpadded(gate, work.real) for gate in output[1:]]))

    with forward_hooks(maps, note):
        profile = work.profile()
    yield measurement("activation_ratio", quotient(profile.activation[-1], profile.activation[0]))
    yield measurement("gradient_ratio", quotient(profile.gradient[0], profile.gradient[-1]))
    yield measurement("weight_gradient_ratio", quotient(profile.weight_gradient[0], profile.weight_gradient[-1]))
    signal, gradient = departure(profile.activation), departure(profile.gradient[::-1])
    for way in ("vanishes", "explodes"):
        above = getattr(gradient, way)  # counted from the last layer, where the gradient starts
        yield Measurement(metric=f"signal_{way}_at", value=getattr(signal, way))
        yield Measurement(metric=f"gradient_{way}_at", value=None if above is None else depth - above)
    scale = depth_scale(profile.correlation)
    message = None if scale else "the correlation shows no exponential decay"
    yield Measurement(metric="depth_scale", value=scale, message=message)
    for layer in profiled_layers(depth):
        yield measurement("activation", profile.activation[layer], layer)
        yield measurement("gradient", profile.gradient[layer], layer)
        yield measurement("correlation", profile.correlation[layer], layer)
    for layer in profiled_layers(depth, 1):
        yield measurement("weight_gradient", profile.weight_gradient[layer - 1], layer)
    yield from gate_measurements([state for states in gates for state in states])
    for layer in profiled_layers(depth, 1):
        yield from gate_measurements(gates[layer - 1], layer)


def gate_measurements(states: Sequence[GateState], layer: int | None = None) -> Iterator[Measurement]:
    """The mean of the first gate (a highway's T), the sum of all gates' means where there are several (T + C of a free
    carry gate), and the saturated share."""
    if states:
        yield measurement("gate_mean", fmean(state.means[0] for state in states), layer)
        if len(states[0].means) > 1:
            yield measurement("gate_sum", fmean(sum(state.means) for state in states), layer)
        yield measurement("gate_saturation", fmean(state.saturated for state in states), layer)


def jacobian_measurements(work: Probe) -> Iterator[Measurement]:
    """How the layers respond to small changes: the Jacobian dx_L/dx₀, and gradients along the line between two inputs.

    Both are computed in evaluation mode, where the items of a batch do not affect each other; batch norms divide by
    this batch's statistics. Padded items are cut to their lengths, and the two items of the line to the shorter one.
    """
    x = work.stream()
    take_batch_statistics(work.network, work.inputs)
    evaluation_mode(work.network)
    parts = work.unpadded_parts(x)
    if max(part[0].numel() for part in parts) <= EXACT:
        yield from spectrum_measurements(jacobian(work.last_stream, parts[0][:1]))
    else:
        each_gain = (gain for part in parts for gain in gains(work.last_stream, part, work.generator))
        yield measurement("jacobian_gain", fmean(each_gain))
    if len(x) > 1:
        start, end = x[:2] if work.real is None else x[:2, : min(part.shape[1] for part in parts[:2])]
        line = line_gradients(work.last_stream, start, end, LINE, work.generator)
        yield measurement("gradient_correlation", neighbour_correlation(line))
    work.network.train()


def evaluation_mode(network: nn.Module) -> None:
    """Put ``network`` into evaluation mode, except recurrent modules without dropout: these give equal numbers in both
    modes, and cuDNN computes their gradients in training mode only."""
    network.eval()
    for part in network.modules():
        if isinstance(part, nn.RNNBase) and part.dropout == 0:
            part.train()


def spectrum_measurements(matrix: Tensor) -> Iterator[Measurement]:
    """Singular values of one item's Jacobian, and their mean square."""
    singular = spectrum(matrix)
    if singular is None:
        for name in ("largest", "smallest", "spread", "rank", "gain"):
            yield Measurement(metric=f"jacobian_{name}", value=None, message="the Jacobian is not finite")
        return
    yield measurement("jacobian_largest", singular.largest)
    yield measurement("jacobian_smallest", singular.smallest)
    yield Measurement(
        metric="jacobian_spread",
        value=singular.spread,
        message=None if singular.spread is not None else f"singular: rank {singular.rank} of {singular.size}",
    )
    yield measurement("jacobian_rank", singular.rank)
    yield measurement("jacobian_gain", singular.mean_square)


def update_measurements(layers: Sequence[Layer], training: Training) -> Iterator[Measurement]:
    """Train, then give ‖ΔW‖/‖W‖ of every layer over the recipe's steps, and which layers stand still."""
    matrices = [weights(layer) for layer in layers]
    before = [[weight.detach().clone() for weight in layer] for layer in matrices]
    training.run()
    losses = training.history()
    finite = math.isfinite(losses[-1])
    status = Status.OK if finite else Status.DIVERGED
    message = None if finite else f"the loss was not finite at step {len(losses)}"
    moved = [movement(old, new) for old, new in zip(before, matrices, strict=True)]
    known = finite and all(map(math.isfinite, moved))
    still = [layer for layer, value in enumerate(moved, start=1) if value < max(moved) / FACTOR] if known else []
    values = {
        "still_layers": len(still) if known else None,
        "still_first": min(still, default=None),
        "still_last": max(still, default=None),
    }
    for metric, value in values.items():
        yield Measurement(metric=metric, value=value, status=status, message=message)
    for layer in profiled_layers(len(layers), 1):
        yield replace(measurement("update", moved[layer - 1], layer), status=status, message=message)


@torch.no_grad()
def movement(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """‖ΔW‖/‖W‖ in the Euclidean norm over all matrices of a layer; NaN for a layer without matrices."""
    changed = sum(float((new - old).double().square().sum()) for old, new in zip(before, after, strict=True))
    started = sum(float(old.double().square().sum()) for old in before)
    return math.sqrt(changed / started) if started else math.nan


def profiled_layers(depth: int, first: int = 0) -> list[int]:
    """The layers whose values are stored: ``first``, ``depth``, and the multiples of a step between them, at most
    ``PROFILE_POINTS`` + 1 in all."""
    step = math.ceil(depth / PROFILE_POINTS)
    return sorted({first, *range(step, depth, step), depth})


def quotient(value: float, start: float) -> float:
    """``value`` divided by ``start``; NaN where ``start`` is 0."""
    return value / start if start else math.nan


def measurement(metric: str, value: float, layer: int | None = None) -> Measurement:
    """A value of the network or of one layer. One that is not finite becomes ``None``, and the message has it."""
    finite = math.isfinite(value)
    return Measurement(
        metric=metric,
        value=value if finite else None,
        axis="" if layer is None else "layer",
        index=layer or 0,
        message=None if finite else f"{metric} is {value:g}",
    )
