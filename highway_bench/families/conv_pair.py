"""Two convolutions with a non-linearity between them: the basic branch of a residual network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import nn

from highway_bench.families._site import Gate, Site
from highway_bench.families.base import register_family
from highway_bench.families.conv import ImageTransform
from highway_bench.families.init import Activation, activation_module, init_map_
from highway_bench.families.parts import Concatenation

GateDesign = Literal["pointwise", "pair"]


@register_family(
    "conv-pair",
    transform="H(x) = W₂ ∗ g(W₁ ∗ x + b₁) + b₂",
    summary="two 3×3 convolutions, ReLU between",
    source="arXiv:1512.03385, fig. 2",
)
@dataclass(frozen=True, kw_only=True)
class ConvPair(ImageTransform):
    """H(x) = W₂ ∗ g(W₁ ∗ x + b₁) + b₂; a gate is a 1×1 convolution of x (arXiv:1603.05027, §3).

    With ``branch_norm``, H(x) = norm₂(W₂ ∗ g(norm₁(W₁ ∗ x))): a norm of the family's kind follows each convolution and
    replaces its bias, as published with batch norm (arXiv:1512.03385, §3.4). ``last_activation`` is a non-linearity at
    the end of H.

    ``gate`` is the design of a gate. ``pointwise`` is the 1×1 convolution. ``pair`` is two convolutions of H's kernel,
    each with a norm, and g after the first; the bias of the last norm is the gate's bias (R. Srivastava, "Weighted
    skip connections are not harmful for deep nets", 2025).
    """

    order = 4

    branch_norm: bool = False
    last_activation: Activation = "identity"
    gate: GateDesign = "pointwise"

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        first = self.convolution(site.in_width, site.width, site.stride, bias=not self.branch_norm)
        second = self.convolution(site.width, site.width, bias=not self.branch_norm)
        last_gain = self.last_gain(site, gain)
        init_map_(first.weight, self.activation, self.init, gain=inner_gain)
        init_map_(second.weight, self.last_activation, self.init, gain=last_gain)
        end = [] if self.last_activation == "identity" else [activation_module(self.last_activation)]
        if not self.branch_norm:
            return nn.Sequential(first, activation_module(self.activation), second, *end)
        norms = self.norm(site.width), self.norm(site.width)
        nn.init.constant_(norms[1].weight, last_gain)  # type: ignore[arg-type]  # it cancels the scale of the weights
        return nn.Sequential(first, norms[0], activation_module(self.activation), second, norms[1], *end)

    def transform_parameters(self, width: int) -> int:
        norm_or_bias = self.norm_parameters(width) if self.branch_norm else width
        return 2 * (self.kernel**2 * width * width + norm_or_bias)

    def transform_flops(self, width: int, positions: int) -> int:
        return 4 * self.kernel**2 * width * width * positions

    def gate_parameters(self, width: int) -> int:
        if self.gate == "pointwise":
            return super().gate_parameters(width)
        return 2 * (self.kernel**2 * width * width + self.norm_parameters(width))

    def gate_flops(self, width: int, positions: int) -> int:
        if self.gate == "pointwise":
            return super().gate_flops(width, positions)
        return 4 * self.kernel**2 * width * width * positions

    def _gate_map(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        if self.gate == "pointwise":
            return super()._gate_map(site, gates)
        pairs = [self._gate_pair(site, gate) for gate in gates]
        return pairs[0] if len(pairs) == 1 else Concatenation(pairs, self.feature_axis)

    def _gate_pair(self, site: Site, gate: Gate) -> nn.Module:
        first = self.convolution(site.in_width, site.width, site.stride, bias=False)
        second = self.convolution(site.width, site.width, bias=False)
        init_map_(first.weight, self.activation, "default")
        init_map_(second.weight, "sigmoid", "default")
        last = self.norm(site.width)
        nn.init.constant_(last.bias, gate.start(site))  # type: ignore[arg-type]
        return nn.Sequential(first, self.norm(site.width), activation_module(self.activation), second, last)
