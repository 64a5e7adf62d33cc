"""Blocks in families, as the tests that run over both registries take them.

A core block is tested in every family, and a control, a variant of a block that is tested, in one family of vectors.
All other blocks, a newly registered one included, are tested in one family of vectors and one of sequences, and in
``conv`` where the test is about images or a change of dimension. A block that needs a transform is tested in those that
have it.
"""

import pytest

from highway_bench.blocks import blocks
from highway_bench.families import families, make_family
from highway_bench.tasks import tasks

CORE = [name for name in blocks if blocks.get(name).group == "core"]
TASKS = [name for name in tasks if tasks.module_of(name).startswith("highway_bench.tasks.")]
MODERN = [name for name in blocks if blocks.get(name).group == "modern"]
FEW = ("dense", "transformer")
IMAGES = [name for name in families if families.get(name).kind == "image"]


def families_of(block, *also):
    """The families in which ``block`` is tested: all for a core block, one for a control; else ``FEW`` and ``also``."""
    is_control = blocks.get(block).group == "control"
    chosen = families.names() if block in CORE else FEW[:1] if is_control else [*FEW, *also]
    return [name for name in chosen if can_join(block, name)]


def can_join(block, family):
    """Whether ``family`` has the transform that ``block`` needs."""
    return blocks.get(block).refusal(make_family(family)) is None


IN_DENSE = [name for name in blocks if can_join(name, "dense")]


def combinations(*also, of=None):
    """Parameter sets (block, family): every block in its ``families_of``, or in those among ``of``."""
    return [
        pytest.param(block, family, id=f"{block}-in-{family}")
        for block in blocks
        for family in families_of(block, *also)
        if of is None or family in of
    ]
