"""The lecture's network: an image's pixels are the input of layers of as many units, without a plain layer before
them."""

from __future__ import annotations

import math

from torch import nn

from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.errors import BadInput
from highway_bench.network import Stage, check_depth
from highway_bench.stem_head import Incompatible, linear


@register_architecture(
    "stemless",
    summary="pixels → layers of as many units → an affine map",
    source="a lecture's highway network of 20 × 784 units on MNIST",
)
class Stemless(Architecture):
    """x₀ = the flattened input, whose length is the width; then ``depth`` layers with the block and an affine map.

    20 highway layers of 784 units and ten classes have 20 · 2 · (784² + 784) + 784 · 10 + 10 = 24,625,450 parameters.
    """

    inputs = (1, 28, 28)
    outputs = 10

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_depth(spec.depth)
        pixels = math.prod(spec.inputs)
        if spec.family.kind != "vector" or len(spec.inputs) != 3:
            raise Incompatible(
                f"the stemless architecture takes families of vectors on images, not {spec.family.name!r} on inputs of "
                f"shape {spec.inputs}"
            )
        if spec.width != pixels:
            raise BadInput(
                f"the stemless architecture has no layer that changes {pixels} inputs into {spec.width}: "
                f"its width is {pixels}, so match=width"
            )
        body = spec.body([Stage(spec.depth, spec.width)])
        return nn.Sequential(nn.Flatten(), body, linear(spec.width, spec.outputs))
