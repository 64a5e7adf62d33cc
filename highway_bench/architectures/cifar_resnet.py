"""The residual networks of CIFAR-10: 6n + 2 layers in three stages."""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from highway_bench.architectures._parts import check_images, normed_stem
from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.errors import BadInput
from highway_bench.families import Change
from highway_bench.network import Stage
from highway_bench.stem_head import MeanOver, linear

STAGES = 3


@register_architecture(
    "cifar-resnet",
    summary="3×3 convolution → 3 stages of w, 2w, 4w features → mean → affine map",
    source="arXiv:1512.03385, §4.2",
)
class CifarResNet(Architecture):
    """A 3×3 convolution, batch norm and ReLU; three stages of ``depth`` / 3 layers each, of w, 2w and 4w
    features, with the image's side halved before the second and third; the mean over pixels; an affine map.

    ``depth`` counts pairs of convolutions: 3n of them make 6n + 2 layers. With batch norms in the pairs, w = 16 and the
    carried path padded with zeros (option A), these are the paper's networks except for the ReLU after each sum, which
    has no parameters: the connection is the block's.
    """

    inputs = (3, 32, 32)
    outputs = 10
    change: ClassVar[Change] = "pad"
    stem_width: ClassVar[int | None] = None  # the first stage's

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_images(self.name, spec.family, spec.inputs, 2 ** (STAGES - 1))
        if spec.depth < STAGES or spec.depth % STAGES:
            raise BadInput(
                f"the {self.name} architecture has {STAGES} stages of equal depth, "
                f"so its depth is a multiple of {STAGES}, not {spec.depth}"
            )
        first = self.stem_width or spec.width
        stages = [Stage(spec.depth // STAGES, spec.width * 2**index, 2 if index else 1) for index in range(STAGES)]
        body = spec.body(stages, self.change, in_width=first)
        return nn.Sequential(
            normed_stem(spec.inputs[0], first, kernel=3), body, MeanOver(-2, -1), linear(stages[-1].width, spec.outputs)
        )


@register_architecture(
    "cifar-resnet-b",
    summary="cifar-resnet with a projection on the carried path, and a stem of 16 features",
    source="R. Srivastava, Weighted skip connections are not harmful for deep nets, 2025",
)
class CifarResNetB(CifarResNet):
    """``cifar-resnet`` with a projection wherever the shape changes (option B), and a stem of 16 features at any width.
    At width 14, with highway layers whose gates are pairs, this is the network of the 2025 comparison."""

    change = "project"
    stem_width = 16
