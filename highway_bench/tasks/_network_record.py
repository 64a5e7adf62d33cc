"""The record of one pass of a trained network over a split: its loss, and by layer its gates and its stream."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.analysis.gate_statistics import Activity, ExampleSparsity, sparsity
from highway_bench.analysis.hooks import forward_hooks
from highway_bench.analysis.signal import unpadded
from highway_bench.data import Split
from highway_bench.data.base import TargetKind
from highway_bench.network import unpadded_steps
from highway_bench.tasks._gated_layers import gates_of, layer_positions, preactivations
from highway_bench.training.evaluation import Evaluation, evaluate


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
    evaluation: Evaluation = field(default_factory=lambda: Evaluation(math.nan, None))

    @classmethod
    def of(cls, network: nn.Module, split: Split, kind: TargetKind) -> NetworkRecord:
        """The record of ``network`` over ``split``."""
        record = cls(ExampleSparsity(len(split.inputs)), split.targets if kind == "class" else None)
        maps = gates_of(network)
        axes = {layer: module.axis for layer, module in maps.items()}

        def batch(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            record.real = unpadded_steps(network, inputs[0])

        def gate(layer: int, _x: Tensor, output: Tensor | tuple[Tensor, ...]) -> None:
            record.add_gate(layer, preactivations(output)[0].sigmoid().movedim(axes[layer], -1))

        layers = {layer: modules[index] for layer, (modules, index) in enumerate(layer_positions(network), start=1)}
        hooks = forward_hooks(maps, gate), forward_hooks(layers, record.add_layer)
        with network.register_forward_pre_hook(batch), hooks[0], hooks[1]:
            record.evaluation = evaluate(network, split, kind)
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
        loss = self.evaluation.loss if math.isfinite(self.evaluation.loss) else None
        intact = {"intact_loss": loss, "intact_error": self.evaluation.error}
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
