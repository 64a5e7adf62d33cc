"""torch's own transformer: ``nn.TransformerEncoder`` with the norm before each branch."""

from torch import nn

from highway_bench.network import Stack
from highway_bench.peers.base import copy_into, joins_of, register_peer


@register_peer(
    "transformer-encoder",
    block="pre-norm",
    family="transformer",
    summary="nn.TransformerEncoder, norm first",
    source="torch.nn.TransformerEncoder",
)
def transformer_encoder(ours: Stack) -> nn.Module:
    """A layer for each pair of our connections, then the final norm."""
    attentions, branches = joins_of(ours)[::2], joins_of(ours)[1::2]
    width, inner = branches[0].transform[0].in_features, branches[0].transform[0].out_features
    layer = nn.TransformerEncoderLayer(
        width, attentions[0].transform.heads, inner, dropout=0.0, activation="relu", batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(layer, len(attentions), norm=nn.LayerNorm(width), enable_nested_tensor=False)
    for made, attention, branch in zip(theirs.layers, attentions, branches, strict=True):
        parts = {
            "self_attn.in_proj_": attention.transform.inward,
            "self_attn.out_proj.": attention.transform.outward,
            "linear1.": branch.transform[0],
            "linear2.": branch.transform[2],
            "norm1.": attention.norm,
            "norm2.": branch.norm,
        }
        for name, part in parts.items():
            copy_into(made.get_parameter(f"{name}weight"), part.weight)
            copy_into(made.get_parameter(f"{name}bias"), part.bias)
    assert theirs.norm is not None
    theirs.norm.load_state_dict(ours.leave.state_dict())
    return theirs
