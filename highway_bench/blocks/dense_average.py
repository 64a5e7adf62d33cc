"""DenseFormer's average: each layer's output is a learned weighted sum of all outputs before it."""

from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import FirstThen, Twice, final_norm, weighted_sum
from highway_bench.blocks.base import SCALED_BRANCH, Block, Start, register_block
from highway_bench.families import Family, Site


def _weights(family: Family, width: int, joins: int) -> int:
    layers = joins // len(family.sublayers)
    return layers * (layers + 3) // 2


@register_block(
    "dense-average",
    equation="x_l = y_(l−1) + H(norm(y_(l−1))), y_l = Σ_(j ≤ l) a_lj x_j, norm after the last layer",
    source="arXiv:2402.02622",
    summary="learned average over all layers",
    norms=1,
    leave_norms=1,
    extra_parameters=_weights,
    starts=(Start("published", "a one-hot: each layer passes on its own output"), SCALED_BRANCH),
    evidence="paper",
    init_state="base",
    group="modern",
    order=18,
)
class DenseAverage(Block):
    """x_l = y_(l−1) + H(norm(y_(l−1))) for each transform of layer l; then y_l = Σ_(j ≤ l) a_lj x_j.

    The a_lj are learned scalars. The state is y and all x_j so far; x₀ is the input of the first layer. At the start
    the stack equals ``pre-norm``.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carried_path = site.family.carry(site)  # not ``carry``: a cut-out layer's state would lack an output
        own = torch.tensor([0.0] * (site.layer - site.first + 1) + [1.0])
        self.weights = nn.Parameter(own) if site.sublayer == site.sublayers else None

    def forward(self, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        y = self.carried_path(state[0]) + self.transform(self.norm(state[0]))
        history = tuple(self.carried_path(x) for x in state[1:])
        if self.weights is None:
            return (y, *history)
        history = (*history, y)
        return (weighted_sum(self.weights, history), *history)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Twice()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return FirstThen(final_norm(site))
