"""What tests of blocks share: blocks that are registered for one test only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from highway_bench.blocks import Block, blocks, register_block


@pytest.fixture
def registered() -> Iterator[Callable[..., str]]:
    """Registers a block class under a name until the test ends, and gives the name."""
    names: list[str] = []

    def register(name: str, cls: type[Block], **about: Any) -> str:
        register_block(name, **{"equation": "", "source": "", "summary": "", **about})(cls)
        names.append(name)
        return name

    yield register
    for name in names:
        blocks.unregister(name)
