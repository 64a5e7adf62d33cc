"""Two affine maps with a non-linearity between them: a branch without a final activation, as in residual papers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from highway_bench.families._site import Site
from highway_bench.families.base import TrainCost, Transform, register_family
from highway_bench.families.init import Activation, Init, activation_module, init_map_


@register_family(
    "dense-pair",
    transform="H(x) = W₂ g(W₁x + b₁) + b₂",
    summary="two affine maps, ReLU between",
    source="arXiv:1512.03385, eq. 1",
)
@dataclass(frozen=True, kw_only=True)
class DensePair(Transform):
    """H(x) = W₂ g(W₁x + b₁) + b₂ on vectors (…, width); both maps have the layer's width."""

    kind = "vector"
    order = 2
    own_cost = TrainCost(layer_seconds=3e-4)

    activation: Activation = "relu"

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        gains = inner_gain, self.last_gain(site, gain)
        return affine_pair(site.in_width, site.width, site.width, self.activation, self.init, gains)

    def transform_parameters(self, width: int) -> int:
        return 2 * (width * width + width)

    def transform_flops(self, width: int, positions: int) -> int:
        return 4 * width * width * positions


def affine_pair(
    inputs: int, inner: int, outputs: int, activation: Activation, init: Init, gains: tuple[float, float]
) -> nn.Sequential:
    """Affine map, ``activation``, affine map, with weights by ``init`` times ``gains``; (…, inputs) → (…, outputs)."""
    first, second = nn.Linear(inputs, inner), nn.Linear(inner, outputs)
    init_map_(first.weight, activation, init, gain=gains[0])
    init_map_(second.weight, "identity", init, gain=gains[1])
    nn.init.zeros_(first.bias)
    nn.init.zeros_(second.bias)
    return nn.Sequential(first, activation_module(activation), second)
