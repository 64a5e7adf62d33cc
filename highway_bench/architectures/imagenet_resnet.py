"""The plain and residual networks of ImageNet with 18 and 34 layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from highway_bench.architectures._parts import check_images, check_stages, normed_stem
from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.families import Change
from highway_bench.network import Stage
from highway_bench.stem_head import MeanOver, linear

STAGES: Mapping[int, tuple[int, ...]] = {8: (2, 2, 2, 2), 16: (3, 4, 6, 3)}  # pairs of convolutions in each stage


@register_architecture(
    "imagenet-resnet",
    summary="7×7 convolution, max pool → 4 stages of w to 8w features → mean → classes",
    source="arXiv:1512.03385, table 1",
)
class ImageNetResNet(Architecture):
    """A 7×7 convolution of stride 2, batch norm, ReLU and a 3×3 max pool of stride 2; four stages of layers with the
    block, of w, 2w, 4w and 8w features (w = 64), with the image's side halved before each of the last three; the mean
    over pixels; an affine map.

    ``depth`` counts pairs of convolutions: 8 make 18 layers, 16 make 34. The carried path pads with zeros (option A);
    with the block ``plain``, the network has the same parameters and multiply-adds. As in ``cifar-resnet``, no ReLU
    follows the sum.
    """

    inputs = (3, 224, 224)
    outputs = 1000
    change: ClassVar[Change] = "pad"

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_images(self.name, spec.family, spec.inputs, 17)
        check_stages(self.name, spec.depth, list(STAGES))
        stages = [
            Stage(layers, spec.width * 2**index, 2 if index else 1) for index, layers in enumerate(STAGES[spec.depth])
        ]
        body = spec.body(stages, self.change)
        stem = [*normed_stem(spec.inputs[0], spec.width, kernel=7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)]
        return nn.Sequential(*stem, body, MeanOver(-2, -1), linear(stages[-1].width, spec.outputs))


@register_architecture(
    "imagenet-resnet-b",
    summary="imagenet-resnet with a projection on the carried path",
    source="arXiv:1512.03385, table 3",
)
class ImageNetResNetB(ImageNetResNet):
    """``imagenet-resnet`` with a 1×1 convolution and a norm on the carried path where the shape changes (option B)."""

    change = "project"
