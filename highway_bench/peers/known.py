"""The registry with every peer of this package."""

from highway_bench.peers import (  # each module registers its peer
    fused_map,
    keras_functional,
    sequential,
    stacked_lstm,
    transformer_encoder,
    two_linear_maps,
    x_transformers_encoder,
)
from highway_bench.peers.base import peers

__all__ = [
    "fused_map",
    "keras_functional",
    "peers",
    "sequential",
    "stacked_lstm",
    "transformer_encoder",
    "two_linear_maps",
    "x_transformers_encoder",
]
