"""Attention residuals: each branch reads a softmax-weighted mean of all branches before it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm, is_number, weighted_sum
from highway_bench.blocks.base import Block, Start, register_block, register_variant
from highway_bench.errors import BadInput
from highway_bench.families import Site
from highway_bench.families.parts import along, inverse_rms

Sources = tuple[Tensor, ...]  # v₀, the input of the first layer, and the branches' outputs or sums of them


@register_block(
    "attn-residual",
    equation="v_l = H(norm(h_l)), h_l = Σ_(i<l) softmax_i(w_l · rms(v_i)) v_i, one more such mean and a norm after the "
    "last layer",
    source="arXiv:2603.15031, §3",
    summary="attention over all branches",
    norms=1,
    leave_norms=1,
    extra_parameters=lambda family, width, joins: joins * width,
    starts=(Start("published", "w = 0: the mean of all branches"),),
    evidence="paper",
    init_state="mean",
    group="modern",
    order=22,
)
class AttentionResidual(Block):
    """v_l = H(norm(h_l)) with h_l = Σ_(i<l) softmax_i(w_l · rms(v_i)) v_i, with a learned query w_l from l = 2.

    The state is all v_i so far; v₀ is the input of the first layer. The weights are of one position. At the start,
    w = 0, h is the residual stream divided by l, so norms make a stack equal to ``pre-norm``.

    ``blocks`` is the number of runs of connections whose outputs are added up to one v each; 0 keeps all apart.
    """

    def __init__(self, site: Site, *, blocks: int = 0) -> None:
        super().__init__()
        if not is_number(blocks) or blocks != int(blocks) or blocks < 0:
            raise BadInput(f"block 'attn-residual': blocks is a whole number, 0 or more, not {blocks!r}")
        self.mean = DepthAttention(site, site.in_width) if not site.begins else None  # the first has one source
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carried_path = site.family.carry(site)  # not ``carry``: a cut-out layer's state would lack an output
        self.begins = blocks == 0 or (site.index - 1) % math.ceil(site.joins / blocks) == 0

    def forward(self, sources: Sources) -> Sources:
        mean = sources[0] if self.mean is None else self.mean(sources)
        branch = self.transform(self.norm(mean))
        sources = tuple(self.carried_path(one) for one in sources)
        return (*sources, branch) if self.begins else (*sources[:-1], sources[-1] + branch)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return OnlySource()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return nn.Sequential(DepthAttention(site, site.width), final_norm(site))


class OnlySource(nn.Module):
    """x → (x,)."""

    def forward(self, x: Tensor) -> Sources:
        return (x,)


class DepthAttention(nn.Module):
    """Σ_i softmax_i(w · rms(v_i)) v_i with a learned query w, 0 at first; keys are normalised, values are not."""

    def __init__(self, site: Site, features: int) -> None:
        super().__init__()
        self.axis = site.family.feature_axis
        self.query = nn.Parameter(torch.zeros(features))

    def forward(self, sources: Sources) -> Tensor:
        query = along(self.query, self.axis)
        scores = [(one * query).sum(self.axis, keepdim=True) * inverse_rms(one, self.axis) for one in sources]
        return weighted_sum(torch.stack(scores).softmax(0), sources)


register_variant(
    "attn-residual-block",
    AttentionResidual,
    summary="attention over eight sums of branches",
    about={"group": "control"},
    blocks=8,
)
