"""Architecture: a published network's stem, stages and head.

``network.build`` puts layers between the stem and the head that suit the data. An architecture is a published network
with its own stem, stages and head; the cell still chooses the block and the family of its layers. A cell names its
architecture in its recipe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import nn

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.families import Change, Family
from highway_bench.families.seeding import seeded
from highway_bench.network import Stage, all_options, build_body
from highway_bench.registry import Registry


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """What a cell leaves to choose in an architecture: the block with its options, the family, sizes and shapes.

    ``width`` is the width of the first stage, ``depth`` the number of layers with the block in all stages.
    """

    block: BlockSpec
    family: Family
    width: int
    depth: int
    options: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: int

    def body(self, stages: Sequence[Stage], change: Change = "plain", in_width: int | None = None) -> nn.Module:
        """The layers with the block, in ``stages``; ``change`` says how the carried path changes its shape."""
        return build_body(self.block, self.family, stages, change, self.options, in_width=in_width)


class Architecture(ABC):
    """A published network around its layers. ``inputs`` and ``outputs`` are the published ones; costs are counted for
    them."""

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    inputs: ClassVar[tuple[int, ...]]  # one item, without the batch
    outputs: ClassVar[int]

    @abstractmethod
    def network(self, spec: NetworkSpec) -> nn.Module:
        """The whole network: (batch, *``spec.inputs``) → (batch, ``spec.outputs``).

        Raises ``BadInput`` for a depth or a width that the architecture does not support, and ``Incompatible`` for a
        family or inputs.
        """

    def build(
        self,
        block: str,
        family: Family,
        *,
        width: int,
        depth: int,
        options: Mapping[str, Any] | None = None,
        inputs: tuple[int, ...] | None = None,
        outputs: int | None = None,
        seed: int | None = None,
    ) -> nn.Module:
        """``network`` for a block's name, by default with the published inputs and outputs.

        ``seed``, if given, is set before anything is built; torch's random state is restored afterwards.
        """
        block_spec = blocks.get(block)
        family.check_width(width)
        spec = NetworkSpec(
            block=block_spec,
            family=family,
            width=width,
            depth=depth,
            options=all_options(block_spec, options),
            inputs=inputs or self.inputs,
            outputs=self.outputs if outputs is None else outputs,
        )
        with seeded(seed):
            return self.network(spec)


architectures: Registry[Architecture] = Registry("architecture", package="highway_bench.architectures")

L = TypeVar("L", bound=type[Architecture])


def register_architecture(name: str, *, summary: str, source: str) -> Callable[[L], L]:
    """Class decorator: register one instance of an architecture."""

    def register(cls: L) -> L:
        cls.name, cls.summary, cls.source = name, summary, source
        architectures.register(name, cls(), module=cls.__module__)
        return cls

    return register
