"""Blocks: how a layer's input and transform are connected. One block per file; ``blocks`` is the registry."""

from highway_bench.blocks.base import (
    PUBLISHED,
    SCALED_BRANCH,
    Block,
    BlockGroup,
    BlockSpec,
    Start,
    blocks,
    register_block,
    register_control,
    register_variant,
    scalar_names,
)

__all__ = [
    "PUBLISHED",
    "SCALED_BRANCH",
    "Block",
    "BlockGroup",
    "BlockSpec",
    "Start",
    "blocks",
    "register_block",
    "register_control",
    "register_variant",
    "scalar_names",
]
