"""Block: how a layer's input and its transform H are joined, and the registry of blocks."""

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
    """One join. ``__init__(site, **options)`` asks ``site.family`` for its parts; ``forward`` shows the equation.

    ``forward`` takes and gives the state, which is the stream x itself unless ``build_enter`` makes another of it:
    several streams, or a history. ``build_leave`` then gives x back. Both run once a network, never inside a block: at
    a change of dimension a block carries every part of its state. Only where a plain layer stands between stages, which
    takes x, is the state closed before it, at a site that is not the ``last``, and opened again behind it.
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
    """A block's registry entry: what the tests, the command line, the history and the report need to know of it.

    ``gates`` and ``norms`` count what one join asks its family for, ``leave_norms`` what the network's end
    does; ``extra_parameters(width, joins)`` counts a whole stack's parameters beyond these. They are the closed form
    that tests hold the built network against. ``yardstick`` marks the block that others are compared with, ``core``
    those that the history follows over its whole grid, and ``control`` one that an experiment compares its subject
    with: no profile or history takes it unasked. ``options`` are a variant's.
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
    core: bool = False
    control: bool = False
    yardstick: bool = False
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
        """Parameters of a whole stack, what ``leave`` adds included."""
        extra = self.extra_parameters(width, depth * len(family.sublayers)) if self.extra_parameters else 0
        return depth * self.layer_parameters(family, width) + self.leave_norms * family.norm_parameters(width) + extra

    def layer_flops(self, family: Family, width: int, positions: int) -> int:
        """FLOP of one layer for one item, forward: matrix products only, a multiply-add is two."""
        return sum(
            part.transform_flops(width, positions) + self.gates * part.gate_flops(width, positions)
            for part in family.sublayers
        )

    def join(self, site: Site, options: Mapping[str, Any]) -> Block:
        """One join at ``site``."""
        make: Callable[..., Block] = self.cls
        return make(site, **options)

    @property
    def option_names(self) -> tuple[str, ...]:
        """Options of the block's constructor."""
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
    """Class decorator: put a block into the registry. ``about`` are the fields of ``BlockSpec``, as literals.

    ``equation``, ``source`` and ``summary`` are required. Names must be literals, so that they can be read without
    importing torch.
    """

    def register(cls: B) -> B:
        cls.spec = BlockSpec(name=name, cls=cls, **about)
        blocks.register(name, cls.spec, place=cls.__module__)
        return cls

    return register


def register_control(name: str, **about: Any) -> Callable[[B], B]:
    """``register_block`` for a control of one experiment: built, checked and listed as others are, but measured only
    where it is asked for by name. A word of its own, so that the history, which reads names from the source, follows
    it no more than a profile does.
    """
    return register_block(name, control=True, **about)


def register_variant(name: str, cls: type[Block], *, summary: str, **options: Any) -> None:
    """Register a block again under another name and with other ``options``: a row, not a new class."""
    base = cls.spec
    base.check_options(options)
    about = {item: getattr(base, item) for item in BlockSpec.__dataclass_fields__}
    about |= {"name": name, "summary": summary, "options": {**base.options, **options}}
    about |= {"yardstick": False, "core": False}
    blocks.register(name, BlockSpec(**about), place=cls.__module__)
