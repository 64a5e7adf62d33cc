"""The convolutional layer of the highway paper: H and its gates have the same kernel size and receptive field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import nn

from highway_bench.errors import BadInput
from highway_bench.families._site import Gate, Site
from highway_bench.families.base import Transform, register_family
from highway_bench.families.init import Activation, activation_function, activation_module, init_map_
from highway_bench.families.parts import FusedMaps, init_gates_

Norm = Literal["layer", "batch"]


@dataclass(frozen=True, kw_only=True)
class ImageTransform(Transform):
    """The base of convolutional families: images (batch, width, side, side), an odd kernel and a kind of norm.

    ``norm_kind`` is ``layer`` or ``batch``. ``layer`` normalises over features and pixels of one item, so an item's
    result does not depend on its batch.
    """

    kind = "image"

    activation: Activation = "relu"
    kernel: int = 3
    norm_kind: Norm = "layer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise BadInput(f"family {self.name!r} needs an odd kernel, which preserves the size; not {self.kernel}")

    def norm(self, features: int) -> nn.Module:
        return nn.BatchNorm2d(features) if self.norm_kind == "batch" else super().norm(features)

    def carry(self, site: Site) -> nn.Module:
        """As in every family; ``project`` is a 1×1 convolution without bias and a norm (arXiv:1512.03385, option B)."""
        if site.keeps_shape or site.change != "project":
            return super().carry(site)
        projection = nn.Conv2d(site.in_width, site.width, kernel_size=1, stride=site.stride, bias=False)
        init_map_(projection.weight, "identity", "default")
        return nn.Sequential(projection, self.norm(site.width))

    def convolution(self, inputs: int, outputs: int, stride: int = 1, *, bias: bool = True) -> nn.Conv2d:
        """A convolution whose zero-padding preserves the size (divided by ``stride``); a bias starts at 0."""
        module = nn.Conv2d(inputs, outputs, self.kernel, stride=stride, padding=self.kernel // 2, bias=bias)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
        return module


@register_family(
    "conv", transform="H(x) = g(W ∗ x + b)", summary="one 3×3 convolution, then ReLU", source="arXiv:1507.06228, §2.2"
)
@dataclass(frozen=True, kw_only=True)
class Conv(ImageTransform):
    """H(x) = g(W ∗ x + b). H and all gates are slices of one convolution, so gates have H's receptive field."""

    order = 3

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        return nn.Sequential(self._product(site, (), gain), activation_module(self.activation))

    def maps(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        product = self._product(site, gates)
        return FusedMaps(product, activation_function(self.activation), len(gates), self.feature_axis)

    def transform_parameters(self, width: int) -> int:
        return self.kernel**2 * width * width + width

    def transform_flops(self, width: int, positions: int) -> int:
        return 2 * self.kernel**2 * width * width * positions

    def gate_parameters(self, width: int) -> int:
        return self.transform_parameters(width)

    def gate_flops(self, width: int, positions: int) -> int:
        return self.transform_flops(width, positions)

    def _product(self, site: Site, gates: Sequence[Gate], gain: float = 1.0) -> nn.Conv2d:
        product = self.convolution(site.in_width, (1 + len(gates)) * site.width, site.stride)
        init_map_(product.weight.data[: site.width], self.activation, self.init, gain=self.last_gain(site, gain))
        init_gates_(product, site, gates, skip=1)
        return product
