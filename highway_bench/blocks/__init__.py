"""Blocks: how layers are joined. One connection a file; ``blocks`` is the registry."""

from highway_bench.blocks.base import Block, BlockSpec, blocks, register_block, register_control, register_variant

__all__ = ["Block", "BlockSpec", "blocks", "register_block", "register_control", "register_variant"]
