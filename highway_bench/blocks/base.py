"""Block: how a layer's input and its transform H are connected, and the registry of blocks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from torch import nn

from highway_bench.errors import BadInput
from highway_bench.families import Family, Site
from highway_bench.registry import Registry


class Block(nn.Module):
    """One connection. ``__init__(site, **options)`` gets its parts from ``site.family``; ``forward`` shows the
    equation.

    ``forward`` maps state to state. The state is the stream x itself unless ``build_enter`` turns x into another state,
    such as several streams or a history; ``build_leave`` then turns the state back into x. Both run once per network,
    never inside a block: where the dimension changes, a block carries every part of its state. A plain layer between
    stages is the only exception. It takes x, so ``build_leave`` runs before it, at a site that is not the ``last``, and
    ``build_enter`` runs again after it.
    """

    spec: ClassVar[BlockSpec]

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        """The module that turns the stream into the state that the blocks carry, before the first of them."""
        return nn.Identity()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        """The module that turns the state back into the stream, after the last block."""
        return nn.Identity()


@dataclass(frozen=True)
class BlockSpec:
    """A block's registry entry: all that tests, command line, history and report need to know of it.

    ``gates`` and ``norms`` count what one connection takes from its family, ``leave_norms`` what ``build_leave`` takes
    after the last layer. ``extra_parameters(width, connections)`` counts a whole stack's parameters beyond these.
    Together they are the closed form that tests compare the built network with. ``baseline`` marks the block that
    others are compared with. ``core`` marks the blocks that the history measures over its whole grid. ``control`` marks
    a block that serves one experiment as a control: profiles and the history measure it only where it is named.
    ``order`` ranks blocks in print; blocks without one come last, by name. ``options`` are a variant's option values.
    """

    name: str
    equation: str
    source: str
    summary: str
    cls: type[Block]
    gates: int = 0
    norms: int = 0
    leave_norms: int = 0
    extra_parameters: Callable[[int, int], int] | None = None
    order: int | None = None
    core: bool = False
    control: bool = False
    baseline: bool = False
    vmap: bool = True
    compile: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def layer_parameters(self, family: Family, width: int) -> int:
        """Parameters of one layer at ``width``, in closed form."""
        return sum(
            part.transform_parameters(width)
            + self.gates * part.gate_parameters(width)
            + self.norms * part.norm_parameters(width)
            for part in family.sublayers
        )

    def stack_parameters(self, family: Family, width: int, depth: int) -> int:
        """Parameters of a whole stack, including those of ``build_leave``."""
        extra = self.extra_parameters(width, depth * len(family.sublayers)) if self.extra_parameters else 0
        return depth * self.layer_parameters(family, width) + self.leave_norms * family.norm_parameters(width) + extra

    def layer_flops(self, family: Family, width: int, positions: int) -> int:
        """FLOP of one layer for one item, forward. Matrix products only; a multiply-add is two."""
        return sum(
            part.transform_flops(width, positions) + self.gates * part.gate_flops(width, positions)
            for part in family.sublayers
        )

    def join(self, site: Site, options: Mapping[str, Any]) -> Block:
        """One connection at ``site``."""
        make: Callable[..., Block] = self.cls
        return make(site, **options)

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options of the block's constructor."""
        parameters = inspect.signature(self.cls.__init__).parameters.values()
        return tuple(one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``BadInput`` for an option that the block's constructor does not have."""
        unknown = sorted(options.keys() - set(self.option_names))
        if unknown:
            has = f"it has {', '.join(self.option_names)}" if self.option_names else "it has none"
            raise BadInput(f"block {self.name!r} has no option {', '.join(unknown)}; {has}")


blocks: Registry[BlockSpec] = Registry("block", package="highway_bench.blocks", group="highway_bench.blocks")

B = TypeVar("B", bound=type[Block])


def register_block(name: str, **about: Any) -> Callable[[B], B]:
    """Class decorator: register a block. ``about`` are the fields of ``BlockSpec``, as literals.

    ``equation``, ``source`` and ``summary`` are required. Names must be literals, so that they can be read without
    importing torch.
    """

    def register(cls: B) -> B:
        cls.spec = BlockSpec(name=name, cls=cls, **about)
        blocks.register(name, cls.spec, module=cls.__module__)
        return cls

    return register


def register_control(name: str, **about: Any) -> Callable[[B], B]:
    """``register_block`` for a control of one experiment.

    A control is built, checked and listed like other blocks, but no profile measures it unless it is named. The history
    finds blocks by the decorator's name in the source, so it skips controls.
    """
    return register_block(name, control=True, **about)


def register_variant(name: str, cls: type[Block], *, summary: str, **options: Any) -> None:
    """Register a block again under another name and with other ``options``, without a new class."""
    base = cls.spec
    base.check_options(options)
    about = {item: getattr(base, item) for item in BlockSpec.__dataclass_fields__}
    about |= {"name": name, "summary": summary, "options": {**base.options, **options}}
    about |= {"baseline": False, "core": False}
    blocks.register(name, BlockSpec(**about), module=cls.__module__)
