"""Propagation: what an untrained network does to signal and gradient, layer by layer.

Signal and gradient have separate verdicts. A signal **vanishes** at layer l if x_l is the first whose RMS is less than
a hundredth of that of the first layer's input. It **explodes** if the RMS is more than a hundred times that, or not
finite. The same holds for the gradient, from the last layer's output down. A signal that does neither is **in range**.
In the first training steps, a layer **stands still** if its ‖ΔW‖/‖W‖ is less than a hundredth of the largest one.

A cell without a data set measures the bare stack on a standard-normal input; the loss is the sum of its outputs times
standard-normal weights. A cell with a data set measures the whole network; the loss is the training loss of one batch.
``gain`` in the recipe multiplies every weight matrix of the layers, including those of gates. ``steps``, with a data
set, trains for so many steps. The profiles use float64: deep stacks reach sizes beyond float32, and a verdict is about
the start, not about the dtype. Steps of padding never count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from highway_bench.analysis.signal import Layer
from highway_bench.cell import Cell
from highway_bench.families.parts import count_parameters
from highway_bench.network import Stack, unpadded_steps
from highway_bench.tasks._layer_measurements import jacobian_measurements, signal_measurements, update_measurements
from highway_bench.tasks._probe import Probe, data_batch, example_batch, multiply_weights, training_of
from highway_bench.tasks.architecture_network import ON_DATA, cell_network
from highway_bench.tasks.base import CellCost, Skip, Task, register_task, value_of
from highway_bench.tasks.from_cell import BUDGET_MISMATCH, budget_mismatch, cell_family, network_bytes, recipe_from
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.training.recipe import TRAINING
from highway_bench.words import POSITIVE, Word

PASS, LONGEST_PASS = 6.0, 5e-3  # a pass of a layer in float64: in training steps of that layer, and seconds at most
PROBE_SEED = 500_000  # plus the cell's seed: inputs must not repeat the random numbers of the weights


@register_task
class Propagation(Task):
    """Activations, gradients, gates and correlations of an untrained network, and which layers the first steps move."""

    name = "propagation"
    version = "2"
    coordinates = ("start", "seed", "dataset")
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
        Metric("stream_change", "1", label="‖Δx‖ / ‖x‖", hint="how much a layer changes its input"),
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
