"""The VGG networks of 16 and 19 layers."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from highway_bench.architectures._parts import check_images, check_stages, pooled, rectified_stem
from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.network import Stage
from highway_bench.stem_head import linear, rectified

# Layers with the block → those of each stage. A stage's first convolution changes the width and so has no block,
# except in the last stage, which is as wide as the one before it.
STAGES: Mapping[int, tuple[int, ...]] = {9: (1, 1, 2, 2, 3), 12: (1, 1, 3, 3, 4)}
WIDER = (1, 2, 4, 8, 8)  # stages, in widths of the first
HIDDEN = 64  # widths of the first stage in each hidden layer of the head


@register_architecture(
    "vgg",
    summary="5 stages of 3×3 convolutions with max pools → 3 affine maps",
    source="arXiv:1409.1556, table 1, D and E",
)
class Vgg(Architecture):
    """Five stages of convolutions of w, 2w, 4w, 8w and 8w features (w = 64), a 2×2 max pool after each, then affine
    maps of 64w, 64w and the outputs, with ReLU and dropout between.

    ``depth`` counts the layers that can have a block: 9 in VGG-16, and 12 in VGG-19. The other convolutions change the
    width. With the block ``plain`` and the family ``conv``, these are the published networks.
    """

    inputs = (3, 224, 224)
    outputs = 1000

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_images(self.name, spec.family, spec.inputs, 2 ** len(WIDER))
        check_stages(self.name, spec.depth, list(STAGES))
        stem = rectified_stem(spec.inputs[0], spec.width, kernel=3, padding=1)
        stages = [Stage(layers, spec.width * wider) for layers, wider in zip(STAGES[spec.depth], WIDER, strict=True)]
        body = spec.body(stages)
        _, height, across = (side // 2 ** len(WIDER) for side in spec.inputs)
        features, hidden = stages[-1].width * height * across, HIDDEN * spec.width
        head = [
            nn.Flatten(),
            rectified(nn.Linear(features, hidden)),
            nn.ReLU(),
            nn.Dropout(),
            rectified(nn.Linear(hidden, hidden)),
            nn.ReLU(),
            nn.Dropout(),
            linear(hidden, spec.outputs),
        ]
        return nn.Sequential(stem, *pooled(body, [nn.MaxPool2d(2) for _ in stages]), *head)
