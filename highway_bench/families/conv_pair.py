"""Two convolutions with the non-linearity between them: the basic branch of a residual network."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from highway_bench.families._base import register_family
from highway_bench.families._init import activation_module, init_map_
from highway_bench.families._site import Site
from highway_bench.families.conv import ImageTransform


@register_family("conv-pair", transform="H(x) = W₂ ∗ g(W₁ ∗ x + b₁) + b₂", summary="two 3×3 convolutions, ReLU between",
                 source="arXiv:1512.03385, fig. 2")
@dataclass(frozen=True, kw_only=True)
class ConvPair(ImageTransform):
    """H(x) = W₂ ∗ g(W₁ ∗ x + b₁) + b₂; a gate is a 1×1 convolution of x (arXiv:1603.05027, §3)."""

    def transform(self, site: Site) -> nn.Module:
        first = self.convolution(site.in_width, site.width, site.stride)
        second = self.convolution(site.width, site.width)
        init_map_(first.weight, self.activation, self.init)
        init_map_(second.weight, "identity", self.init, joins=site.joins, last=True)
        return nn.Sequential(first, activation_module(self.activation), second)

    def transform_parameters(self, width: int) -> int:
        return 2 * (self.kernel**2 * width * width + width)

    def transform_flops(self, width: int, positions: int) -> int:
        return 4 * self.kernel**2 * width * width * positions
