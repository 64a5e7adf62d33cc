"""Gates: what a trained network's gates do layer by layer, how much each layer changes the stream, and the lesion.

The network is trained as ``trainability`` trains it, with the same metrics. It is then evaluated over the whole
training set in evaluation mode (arXiv:1507.06228, §4), without steps of padding. Layers are the block's connections,
counted from 1; a stem is not counted. The gate is the first one of a block, which is the transform gate T where there
is one. A layer has values of gates if it has a gate, and a lesion if it carries its input; the change of the stream is
measured in every layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.analysis.gate_statistics import Activity, ExampleSparsity, sparsity
from highway_bench.analysis.hooks import forward_hooks
from highway_bench.analysis.lesion import carried_path, cut_out
from highway_bench.analysis.signal import unpadded
from highway_bench.cell import Cell
from highway_bench.data import Split
from highway_bench.data.base import TargetKind
from highway_bench.families.parts import Concatenation, FusedMaps, Maps
from highway_bench.network import Stack, unpadded_steps
from highway_bench.success.judging import Judgement
from highway_bench.tasks.architecture_network import started_network
from highway_bench.tasks.base import CellCost, register_task
from highway_bench.tasks.from_cell import cell_dtype
from highway_bench.tasks.measurement import Measurement, Metric
from highway_bench.tasks.trainability import Trainability, TrainingWork
from highway_bench.training.evaluation import evaluate
from highway_bench.training.recipe import Recipe

LESION_STEPS = 8  # the cost of one lesion in training steps of the network: an evaluation of 4,000 items

GateMaps = Maps | FusedMaps


@register_task
class GatesTask(Trainability):
    """Gate biases, gate activity, change of the stream and lesion curve of a trained network, by layer."""

    name = "gates"
    version = "2"
    section = "gates"
    metrics = (
        *Trainability.metrics,
        Metric(
            "intact_loss", "nat", "lower", label="training loss", hint="after training, over the whole training set"
        ),
        Metric(
            "intact_error",
            "1",
            "lower",
            label="training error",
            hint="after training, over the whole training set",
            percent=True,
        ),
        Metric(
            "sparsity_one",
            "1",
            label="sparsity for one",
            hint="Hoyer's, of all gates for one item: 0 where equal, 1 where one is on",
        ),
        Metric("sparsity_average", "1", label="sparsity on average", hint="Hoyer's, of the gates' means over items"),
        Metric("gate_bias_start", "1", label="gate bias, start", hint="mean over units"),
        Metric("gate_bias_end", "1", label="gate bias, end", hint="mean over units"),
        Metric("gate_activity", "1", label="mean T", hint="of the transform gate over items and units", percent=True),
        Metric("gates_shut", "1", label="gates shut", hint="units whose mean T over items is below 0.05", percent=True),
        Metric(
            "gates_full",
            "1",
            label="shortcuts closed",
            hint="units and items with T > 0.95, where C = 1 − T < 0.05",
            percent=True,
        ),
        Metric(
            "gates_open_one",
            "1",
            label="open for one",
            hint="units with T > 0.5 for one item, the mean over items",
            percent=True,
        ),
        Metric(
            "gates_open_average",
            "1",
            label="open on average",
            hint="units whose mean T over items is above 0.5",
            percent=True,
        ),
        Metric(
            "gates_open_some",
            "1",
            label="open for some",
            hint="units with T > 0.5 for an item in a hundred or more",
            percent=True,
        ),
        Metric(
            "gate_class_spread",
            "1",
            label="class spread",
            hint="standard deviation of T's class means, the mean over units",
        ),
        Metric("stream_change", "1", label="‖Δx‖ / ‖x‖", hint="how much a layer changes its input"),
        Metric("lesion_loss", "nat", "lower", label="loss without it", hint="training loss with this layer cut out"),
        Metric(
            "lesion_error",
            "1",
            "lower",
            label="error without it",
            hint="training error with this layer cut out",
            percent=True,
        ),
    )

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """The trials of the search, which are cells of the task ``trainability``."""
        return super().needs(_trainability_cell(cell))

    def resolve(self, cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        return super().resolve(_trainability_cell(cell), results).but(task=self.name)

    def cost(self, cell: Cell) -> CellCost:
        """The cost of training, and of one evaluation a layer."""
        training, steps = super().cost(cell), int(cell.recipe.get("steps", Recipe.steps))
        return replace(training, seconds=training.seconds * (1 + LESION_STEPS * cell.depth / steps))

    def results(self, work: TrainingWork, cell: Cell, run: Judgement) -> Iterator[Measurement]:
        yield from super().results(work, cell, run)
        if run.final is None:  # it diverged: its weights are not finite
            return
        network, split, kind = work.training.network, work.data.train, work.dataset.target_kind
        record = NetworkRecord.of(network, split, kind)
        for metric, value in record.network_values().items():
            yield Measurement(metric=metric, value=value)
        start = started_network(cell).to(cell_dtype(cell))  # built again: the trained one may be from a checkpoint
        yield from measurements_by_layer("gate_bias_start", gate_biases(start))
        yield from measurements_by_layer("gate_bias_end", gate_biases(network))
        for metric, values in record.layer_values().items():
            yield from measurements_by_layer(metric, values)
        for metric, values in lesions(network, split, kind).items():
            yield from measurements_by_layer(metric, values)


def measurements_by_layer(metric: str, values: Mapping[int, float | None]) -> Iterator[Measurement]:
    """A metric's values by layer; a value that is not finite becomes ``None``."""
    for layer, value in values.items():
        finite = value if value is not None and math.isfinite(value) else None
        yield Measurement(metric=metric, value=finite, axis="layer", index=layer)


def _trainability_cell(cell: Cell) -> Cell:
    return cell.but(task=Trainability.name)


def layer_positions(network: nn.Module) -> list[tuple[nn.ModuleList, int]]:
    """Every layer of ``network`` in the order of the forward pass, as the module list that has it and its index."""
    stacks = [module for module in network.modules() if isinstance(module, Stack)]
    return [(stack.joins, index) for stack in stacks for index in range(len(stack.joins))]


def gates_of(network: nn.Module) -> dict[int, GateMaps]:
    """By layer, the module that computes the gates' pre-activations; layers without gates are left out."""
    gates = {}
    for layer, (modules, index) in enumerate(layer_positions(network), start=1):
        maps = next((part for part in modules[index].modules() if isinstance(part, GateMaps)), None)
        if maps is not None:
            gates[layer] = maps
    return gates


def gate_biases(network: nn.Module) -> dict[int, float]:
    """By layer, the mean of the first gate's bias."""
    return {layer: float(gate_bias(maps).mean()) for layer, maps in gates_of(network).items()}


def gate_bias(maps: GateMaps) -> Tensor:
    """The first gate's bias, (units,): a slice of the product that all maps share, or else the last bias of the gate's
    own map, which may end in a norm."""
    if isinstance(maps, FusedMaps):
        return last_bias(maps.product).chunk(1 + maps.gates)[1]
    if isinstance(maps.gate, Concatenation):
        return last_bias(maps.gate.parts[0])
    return last_bias(maps.gate).chunk(maps.gates)[0]


def last_bias(module: nn.Module) -> Tensor:
    """The last bias among the parameters of ``module``, in their order."""
    return [value for name, value in module.named_parameters() if name.rpartition(".")[2] == "bias"][-1].detach()


@dataclass
class NetworkRecord:
    """What one pass over a split records: loss and accuracy, and by layer the gates' activity and the stream's
    change."""

    sparsity_one: ExampleSparsity
    classes: Tensor | None
    real: Tensor | None = None  # of the current batch, (items, steps): False at padding
    gates: dict[int, Activity] = field(default_factory=dict)
    moved: dict[int, float] = field(default_factory=dict)  # Σ‖x after − x before‖² over all items
    before: dict[int, float] = field(default_factory=dict)  # Σ‖x before‖²
    loss: float = math.nan
    accuracy: float | None = None

    @classmethod
    def of(cls, network: nn.Module, split: Split, kind: TargetKind) -> NetworkRecord:
        """The record of ``network`` over ``split``."""
        record = cls(ExampleSparsity(len(split.inputs)), split.targets if kind == "class" else None)
        maps = gates_of(network)
        axes = {layer: module.axis for layer, module in maps.items()}

        def batch(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            record.real = unpadded_steps(network, inputs[0])

        def gate(layer: int, _x: Tensor, output: tuple[Tensor, ...]) -> None:
            record.add_gate(layer, output[1].sigmoid().movedim(axes[layer], -1))

        layers = {layer: modules[index] for layer, (modules, index) in enumerate(layer_positions(network), start=1)}
        hooks = forward_hooks(maps, gate), forward_hooks(layers, record.add_layer)
        with network.register_forward_pre_hook(batch), hooks[0], hooks[1]:
            record.loss, record.accuracy = evaluate(network, split, kind)
        return record

    def add_gate(self, layer: int, values: Tensor) -> None:
        """Add one layer's gate values of the next items: (items, …, units)."""
        values = values.reshape(len(values), -1, values.shape[-1])
        self.gates.setdefault(layer, Activity(self.classes)).add(values, self.real)
        self.sparsity_one.add(layer, values, self.real)

    def add_layer(self, layer: int, x: Any, y: Any) -> None:
        """Add the stream of the next items before and after one layer.

        Adds nothing where these are no two tensors of one shape.
        """
        if torch.is_tensor(x) and torch.is_tensor(y) and x.shape == y.shape:
            change, before = (unpadded(part, self.real).double().square().sum() for part in (y - x, x))
            self.moved[layer] = self.moved.get(layer, 0.0) + float(change)
            self.before[layer] = self.before.get(layer, 0.0) + float(before)

    def network_values(self) -> dict[str, float | None]:
        """By metric, the value of the whole network."""
        loss = self.loss if math.isfinite(self.loss) else None
        intact = {"intact_loss": loss, "intact_error": _error(self.accuracy)}
        if not self.gates:
            return intact
        means = torch.cat([gate.mean().cpu() for gate in self.gates.values()])
        return {**intact, "sparsity_one": self.sparsity_one.mean(), "sparsity_average": float(sparsity(means))}

    def layer_values(self) -> dict[str, dict[int, float | None]]:
        """By metric, the value of each layer."""
        gates = self.gates.items()
        return {
            "gate_activity": {layer: float(gate.mean().mean()) for layer, gate in gates},
            "gates_shut": {layer: gate.shut() for layer, gate in gates},
            "gates_full": {layer: gate.full() for layer, gate in gates},
            "gates_open_one": {layer: gate.open_for_one() for layer, gate in gates},
            "gates_open_average": {layer: gate.open_on_average() for layer, gate in gates},
            "gates_open_some": {layer: gate.open_for_some() for layer, gate in gates},
            "gate_class_spread": {layer: gate.class_spread() for layer, gate in gates if self.classes is not None},
            "stream_change": {
                layer: math.sqrt(moved / self.before[layer]) if self.before[layer] else None
                for layer, moved in self.moved.items()
            },
        }


def lesions(network: nn.Module, split: Split, kind: TargetKind) -> dict[str, dict[int, float | None]]:
    """By metric and layer, loss and error over ``split`` without that layer; layers that carry nothing are left out."""
    values: dict[str, dict[int, float | None]] = {"lesion_loss": {}, "lesion_error": {}}
    for layer, (modules, index) in enumerate(layer_positions(network), start=1):
        if carried_path(modules[index]) is not None:
            with cut_out(modules, index):
                evaluation = evaluate(network, split, kind)
            values["lesion_loss"][layer] = evaluation.loss
            if kind != "scalar":
                values["lesion_error"][layer] = _error(evaluation.accuracy)
    return values


def _error(accuracy: float | None) -> float | None:
    return None if accuracy is None else 1 - accuracy
