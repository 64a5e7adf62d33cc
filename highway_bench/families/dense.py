"""The dense layer of the highway paper's Figure 1: one affine map and a non-linearity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from highway_bench.families._site import Gate, Site
from highway_bench.families.base import TrainCost, Transform, register_family
from highway_bench.families.init import Activation, activation_function, init_map_
from highway_bench.families.parts import ActivatedLinear, FusedMaps, init_gates_


@register_family(
    "dense", transform="H(x) = g(Wx + b)", summary="one affine map, then ReLU", source="arXiv:1505.00387, eq. 1"
)
@dataclass(frozen=True, kw_only=True)
class Dense(Transform):
    """H(x) = g(Wx + b) on vectors (…, width). H and all gates are slices of one matrix product."""

    kind = "vector"
    order = 1
    own_cost = TrainCost(layer_seconds=2e-4, flop_rate=5e10)

    activation: Activation = "relu"

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        product = ActivatedLinear(site.in_width, site.width, activation_function(self.activation))
        self._init(product, site, (), gain)
        return product

    def maps(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        product = nn.Linear(site.in_width, (1 + len(gates)) * site.width)
        self._init(product, site, gates)
        return FusedMaps(product, activation_function(self.activation), len(gates), self.feature_axis)

    def transform_parameters(self, width: int) -> int:
        return width * width + width

    def transform_flops(self, width: int, positions: int) -> int:
        return 2 * width * width * positions

    def _init(self, product: nn.Linear, site: Site, gates: Sequence[Gate], gain: float = 1.0) -> None:
        """Initialise the slice of H, then those of the gates."""
        init_map_(product.weight.data[: site.width], self.activation, self.init, gain=self.last_gain(site, gain))
        nn.init.zeros_(product.bias.data[: site.width])
        init_gates_(product, site, gates, skip=1)
