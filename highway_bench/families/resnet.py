"""The residual branch with its batch norms, as in the comparison of highway and residual networks of 2025."""

from __future__ import annotations

from dataclasses import dataclass

from highway_bench.families.base import register_family
from highway_bench.families.conv import Norm
from highway_bench.families.conv_pair import ConvPair, GateDesign


@register_family(
    "resnet",
    transform="H(x) = BN₂(W₂ ∗ g(BN₁(W₁ ∗ x)))",
    summary="two 3×3 convolutions, each with a batch norm, ReLU between",
    source="arXiv:1512.03385, fig. 2, §3.4; gates: R. Srivastava, 2025",
    group="variant",
)
@dataclass(frozen=True, kw_only=True)
class Resnet(ConvPair):
    """H(x) = BN₂(W₂ ∗ g(BN₁(W₁ ∗ x))), where BN is a batch norm: ``conv-pair`` with other defaults.

    A gate is σ(BN₄(W₄ ∗ g(BN₃(W₃ ∗ x)))), and its bias is that of BN₄. Norms of a block are batch norms too. x is
    (batch, width, side, side).

    Training steps normalise by the mean and the variance of their batch. Tests normalise by the running ones, so that
    a prediction does not depend on its batch. Running statistics are state that ``vmap`` would compute once for all
    networks, so no population is trained.
    """

    order = 9
    vmap = False
    trains_alone = True

    branch_norm: bool = True
    norm_kind: Norm = "batch"
    gate: GateDesign = "pair"
