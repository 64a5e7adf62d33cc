"""The layers of a trained network: their gates' biases, one pass over a split, and the network without each of them.

The lesion curve is that of arXiv:1507.06228, §4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.analysis.gate_statistics import Activity, ExampleSparsity, sparsity
from highway_bench.analysis.hooks import carried_path, cut_out, forward_hooks
from highway_bench.analysis.signal import unpadded
from highway_bench.data import Split
from highway_bench.data.base import TargetKind
from highway_bench.families.parts import Concatenation, FusedMaps, Maps, OwnGate
from highway_bench.network import Stack, unpadded_steps
from highway_bench.training.evaluation import Evaluation, evaluate

GateMaps = Maps | FusedMaps | OwnGate


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
    if isinstance(maps, OwnGate):
        return maps.bias.detach()
    if isinstance(maps, FusedMaps):
        return last_bias(maps.product).chunk(1 + maps.gates)[1]
    if isinstance(maps.gate, Concatenation):
        return last_bias(maps.gate.parts[0])
    return last_bias(maps.gate).chunk(maps.gates)[0]


def preactivations(output: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gates' pre-activations in the output of a module of gates, in which H(x) may come first."""
    return output[1:] if isinstance(output, tuple) else (output,)


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


def lesions(network: nn.Module, split: Split, kind: TargetKind) -> dict[str, dict[int, float | None]]:
    """By metric and layer, loss and error over ``split`` without that layer; layers that carry nothing are left out."""
    values: dict[str, dict[int, float | None]] = {"lesion_loss": {}, "lesion_error": {}}
    for layer, (modules, index) in enumerate(layer_positions(network), start=1):
        if carried_path(modules[index]) is not None:
            with cut_out(modules, index):
                evaluation = evaluate(network, split, kind)
            values["lesion_loss"][layer] = evaluation.loss
            if kind != "scalar":
                values["lesion_error"][layer] = evaluation.error
    return values
