"""The transformer's position-wise feed-forward branch: width → 4 × width → width."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from highway_bench.families._site import Site
from highway_bench.families.base import Transform, register_family
from highway_bench.families.dense_pair import affine_pair
from highway_bench.families.init import Activation


@register_family(
    "mlp",
    transform="H(x) = W₂ g(W₁x + b₁) + b₂, inner width 4d",
    summary="feed-forward branch, ReLU",
    source="arXiv:1706.03762, eq. 2",
)
@dataclass(frozen=True, kw_only=True)
class Mlp(Transform):
    """H(x) = W₂ g(W₁x + b₁) + b₂ with W₁ of shape (expansion × width, width), at every position of (…, width)."""

    kind = "vector"
    order = 6

    activation: Activation = "relu"
    expansion: int = 4

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        inner = self.expansion * site.width
        gains = inner_gain, self.last_gain(site, gain)
        return affine_pair(site.in_width, inner, site.width, self.activation, self.init, gains)

    def transform_parameters(self, width: int) -> int:
        inner = self.expansion * width
        return 2 * width * inner + inner + width

    def transform_flops(self, width: int, positions: int) -> int:
        return 4 * width * self.expansion * width * positions
