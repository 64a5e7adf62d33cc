"""A plug-in: pre-norm under another name, with other random weights at the same seed. No test may tell them apart."""

import torch

from highway_bench.blocks import register_control
from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH
from highway_bench.blocks.pre_norm import PreNorm
from highway_bench.families import Site


@register_control(
    "pre-norm-copy",
    equation="y = x + H(norm(x)), norm after the last layer",
    source="this project",
    summary="pre-norm, drawn again",
    norms=1,
    leave_norms=1,
    starts=(PUBLISHED, SCALED_BRANCH),
)
class PreNormCopy(PreNorm):
    """Pre-norm whose connections each draw a number before their weights."""

    def __init__(self, site: Site) -> None:
        torch.rand(1)
        super().__init__(site)
