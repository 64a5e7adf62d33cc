"""A recurrent network: one layer with the block, applied at every step of a series to its own last output."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.blocks import Block
from highway_bench.errors import BadInput
from highway_bench.families import Site
from highway_bench.families.base import Transform
from highway_bench.network import check_depth
from highway_bench.stem_head import Incompatible, ScalarAnswer, linear


class Recurrence(nn.Module):
    """(batch, steps, features) → (batch, width − features): the state h after the last step.

    At step t the layer B maps z = (h_(t−1), x_t) to (h_t, rest), with h_0 = 0. The rest, as long as x_t, is dropped. In
    a plain layer h_t = g(W z + b), the recurrence of Elman. A block with a shortcut carries h_(t−1) to h_t.
    """

    def __init__(self, layer: nn.Module, state: int) -> None:
        super().__init__()
        self.layer = layer
        self.state = state

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.state)
        for step in x.unbind(1):
            h = self.layer(torch.cat((h, step), dim=-1))[..., : self.state]
        return h


@register_architecture(
    "through-time",
    summary="one layer that is applied at every step of a series; its output is read at the last step",
    source="Elman 1990; shortcuts through time: arXiv:1607.03474, arXiv:1603.03116",
)
class ThroughTime(Architecture):
    """A series x_1 … x_T → one layer, T times → an affine map of its last state.

    Unrolled over time it is a network of T layers with shared weights, so ``depth`` is T. A gate bias that depends on
    the depth then depends on the length of the series. Blocks with a map before the first layer or after the
    last one, such as a final norm, are refused.
    """

    inputs = (100, 2)
    outputs = 1

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_depth(spec.depth)
        family = spec.family
        if not isinstance(family, Transform) or family.kind != "vector" or len(spec.inputs) != 2:
            raise Incompatible(
                f"the through-time architecture takes families of vectors on series, not {family.name!r} on inputs of "
                f"shape {spec.inputs}"
            )
        own = [vars(cls) for cls in spec.block.cls.__mro__ if cls not in Block.__mro__]
        if any("build_enter" in names or "build_leave" in names for names in own):
            raise Incompatible(f"block {spec.block.name!r} changes the stream before the first layer or after the last")
        steps, features = spec.inputs
        if spec.depth != steps:
            raise BadInput(f"a series of {steps} steps unrolls to {steps} layers, so its depth is not {spec.depth}")
        if spec.width <= features:
            raise BadInput(f"a width of {spec.width} has no room for a state and {features} inputs")
        layer = spec.block.join(Site(family, spec.width, depth=steps), spec.options)
        squeeze = [ScalarAnswer()] if spec.outputs == 1 else []
        head = linear(spec.width - features, spec.outputs)
        return nn.Sequential(Recurrence(layer, spec.width - features), head, *squeeze)
