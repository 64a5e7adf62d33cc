"""x-transformers: its ``Encoder`` with torch's fused attention, ReLU and the norm before each branch.

Its norms and the maps of its attention have no bias. Ours are 0 at the start, so the outputs are equal; the few
additions are in our time alone.
"""

from torch import nn

from highway_bench.network import Stack
from highway_bench.peers.base import copy_into, joins_of, register_peer


@register_peer(
    "x-transformers",
    block="pre-norm",
    family="transformer",
    summary="x_transformers.Encoder with fused attention",
    source="https://github.com/lucidrains/x-transformers",
    package="x-transformers",
)
def x_transformers_encoder(ours: Stack) -> nn.Module:
    """A layer for each pair of our connections, then the final norm."""
    from x_transformers import Encoder

    attentions, branches = joins_of(ours)[::2], joins_of(ours)[1::2]
    heads = attentions[0].transform.heads
    width, inner = branches[0].transform[0].in_features, branches[0].transform[0].out_features
    theirs: nn.Module = Encoder(
        dim=width,
        depth=len(attentions),
        heads=heads,
        attn_dim_head=width // heads,
        attn_flash=True,
        ff_mult=inner / width,
        ff_custom_activation=nn.ReLU(),
    )
    maps = iter(module for module in theirs.modules() if isinstance(module, nn.Linear))
    for attention, branch in zip(attentions, branches, strict=True):
        for weight in (*attention.transform.inward.weight.chunk(3), attention.transform.outward.weight):
            copy_into(next(maps).weight, weight)
        for part in (branch.transform[0], branch.transform[2]):
            made = next(maps)
            copy_into(made.weight, part.weight)
            copy_into(made.bias, part.bias)
    return theirs
