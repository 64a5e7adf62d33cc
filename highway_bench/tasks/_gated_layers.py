"""The layers of a network, and the biases of their gates, read out of its modules."""

from __future__ import annotations

from torch import Tensor, nn

from highway_bench.families.parts import Concatenation, FusedMaps, Maps, OwnGate
from highway_bench.network import Stack

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
