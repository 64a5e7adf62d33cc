"""The convolutional highway network of MNIST: thin and deep, with an affine map of the last pixels as its head."""

from __future__ import annotations

from torch import nn

from highway_bench.architectures._parts import check_images, pooled, rectified_stem
from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.errors import BadInput
from highway_bench.network import Stage
from highway_bench.stem_head import linear

STAGES = 3
KERNEL = 5


@register_architecture(
    "conv-highway",
    summary="5×5 convolution → 3 stages of layers, each with a max pool → affine map",
    source="arXiv:1507.06228, table 1",
)
class ConvHighway(Architecture):
    """A 5×5 convolution of ``width`` features without padding, and ReLU; ``depth`` layers with the block; an affine
    map.

    These layers form three stages of equal depth; where three does not divide ``depth``, the later ones are deeper by
    one. A max pool follows each stage: 3×3 of stride 2 after the first two, 2×2 after the last. Images of 28 pixels
    a side thus have 24, 12 and 6 in the stages and 3 after the last pool. Eight layers are split 2, 3 and 3, as in the
    authors' own example, which also has dropout at each pool; this network has none. The papers also count the first
    and the last layer: 8 of their 10 layers have a block.

    Highway layers of 3×3 convolutions have 26w + 8 · 2 · (9w² + w) + 90w + 10 parameters: 38,986 for w = 16 and 151,690
    for w = 32.
    """

    inputs = (1, 28, 28)
    outputs = 10

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_images(self.name, spec.family, spec.inputs, KERNEL + 2**STAGES - 1)
        if spec.depth < STAGES:
            raise BadInput(
                f"the {self.name} architecture has a layer with the block in each of its {STAGES} stages, "
                f"so its depth is {STAGES} or more, not {spec.depth}"
            )
        stem = rectified_stem(spec.inputs[0], spec.width, kernel=KERNEL, padding=0)
        stages = [Stage((spec.depth + index) // STAGES, spec.width) for index in range(STAGES)]
        body = spec.body(stages)
        pools = [nn.MaxPool2d(3, stride=2, ceil_mode=True), nn.MaxPool2d(3, stride=2, ceil_mode=True), nn.MaxPool2d(2)]
        pixels = 1
        for side in spec.inputs[1:]:
            pixels *= side_after(side)
        return nn.Sequential(stem, *pooled(body, pools), nn.Flatten(), linear(pixels * spec.width, spec.outputs))


def side_after(side: int) -> int:
    """Pixels a side after the first convolution and the three pools."""
    side -= KERNEL - 1
    for _ in range(2):
        side = -(-(side - 3) // 2) + 1
    return side // 2
