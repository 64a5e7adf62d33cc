"""Block: how a layer's input and its transform H are connected, and the registry of blocks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, TypeVar

from torch import nn

from highway_bench.cell import StartName
from highway_bench.errors import BadInput, UnknownName
from highway_bench.families import Family, Init, Site
from highway_bench.families.parts import DirectParts
from highway_bench.registry import FIRST_VERSION, Registry

OPTIONS = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
"""The kinds of parameters that are a block's options."""

BlockGroup = Literal["core", "modern", "control", "own"]
"""Which profiles and which histories measure a block: see ``BlockSpec``."""

EvidenceKind = Literal["paper", "code", "secondary", "ours"]
"""Where an equation and its start are from: the paper or the authors' code, independent public code, other papers'
descriptions, or a choice of this project."""

InitState = Literal["identity", "near-identity", "base", "mean", "mix"]
"""What a stack does at its start: it passes its input on; nearly so; it equals ``pre-norm``; it averages its branches;
or none of these."""


class Block(DirectParts):
    """One connection. ``__init__(site, **options)`` gets its parts from ``site.family``; ``forward`` shows the
    equation.

    ``forward`` maps state to state. The state is the stream x itself unless ``build_enter`` turns x into another state,
    such as several streams or a history; ``build_leave`` then turns the state back into x. Both run once per network,
    never inside a block: where the dimension changes, a block carries every part of its state. A plain layer between
    stages is the only exception. It takes x, so ``build_leave`` runs before it, at a site that is not the ``last``, and
    ``build_enter`` runs again after it.
    """

    spec: ClassVar[BlockSpec]

    def scalars(self) -> Iterable[nn.Parameter]:
        """Scalars or vectors that multiply the stream itself, layer after layer. They train at a hundredth of the
        learning rate and, as all scalars and vectors, without weight decay."""
        return ()

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        """The module that turns the stream into the state that the blocks carry, before the first of them."""
        return nn.Identity()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        """The module that turns the state back into the stream, after the last block."""
        return nn.Identity()


def scalar_names(network: nn.Module) -> frozenset[str]:
    """The names of the parameters that the blocks of ``network`` call ``scalars``."""
    found = {id(one) for part in network.modules() if isinstance(part, Block) for one in part.scalars()}
    return frozenset(name for name, parameter in network.named_parameters() if id(parameter) in found)


@dataclass(frozen=True)
class Start:
    """How a block begins: ``options`` of the block and the ``init`` of its family's maps; ``about`` says how."""

    name: StartName
    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    init: Init = "default"


PUBLISHED = Start("published", "as in its source")
SCALED_BRANCH = Start("depth-aware", "last map ÷ √L", init="scaled-branch")


@dataclass(frozen=True)
class BlockSpec:
    """A block's registry entry: all that tests, command line, history and report need to know of it.

    ``gates`` and ``norms`` count what one connection takes from its family, ``leave_norms`` what ``build_leave`` takes
    after the last layer. ``extra_parameters(family, width, joins)`` counts the parameters beyond these of a stack of
    ``joins`` connections, ``extra_flops`` in the same way the FLOP of its matrix products for one position; a fourth
    argument gets the number of positions. Together they are the closed form that tests compare the built network with,
    and by which widths are matched.

    ``starts`` are the ways in which the block may begin, at most two; the first is that of its default options.
    ``evidence`` says where the equation and its start are from, ``init_state`` what the first start makes of a stack.
    ``sublayers`` is the least number of transforms a layer with which the block differs from all others.
    ``needs`` names a family whose transform must be among those of a layer, such as ``attention``; ``families`` are the
    names, with wildcards, of those that the block is for. With a ``width_step`` of k, a k-th of each width is one that
    the family takes. Plans leave out other families and widths, and say so.

    ``group`` decides who measures it. ``core``: every profile, and the history over its whole grid. ``modern``: the
    profiles that name this group, and other profiles where it is selected. ``control``, a control of one experiment
    or a variant: only where it is named in full. ``own``, of other packages: every profile.

    ``baseline`` marks the block that others are compared with. ``order`` ranks blocks in print; blocks without one come
    last, by name. ``options`` are a variant's option values. ``version`` is raised when the block's numbers change.
    """

    name: str
    equation: str
    source: str
    summary: str
    cls: type[Block]
    gates: int = 0
    norms: int = 0
    leave_norms: int = 0
    extra_parameters: Callable[[Family, int, int], int] | None = None
    extra_flops: Callable[..., int] | None = None
    starts: tuple[Start, ...] = (PUBLISHED,)
    evidence: EvidenceKind = "ours"
    init_state: InitState = "mix"
    sublayers: int = 1
    needs: str | None = None
    families: tuple[str, ...] = ("*",)
    width_step: int = 1
    order: int | None = None
    group: BlockGroup = "own"
    baseline: bool = False
    vmap: bool = True
    compile: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = FIRST_VERSION

    def layer_parameters(self, family: Family, width: int) -> int:
        """Parameters of one layer at ``width``, in closed form. Where layers differ, those of the second one."""
        return self._maps_and_norms(family, width) + _of_one_layer(self.extra_parameters, family, width)

    def _maps_and_norms(self, family: Family, width: int) -> int:
        return sum(
            part.transform_parameters(width)
            + self.gates * part.gate_parameters(width)
            + self.norms * part.norm_parameters(width)
            for part in family.sublayers
        )

    def stack_parameters(self, family: Family, width: int, depth: int) -> int:
        """Parameters of a whole stack, including those of ``build_leave``."""
        extra = self.extra_parameters(family, width, depth * len(family.sublayers)) if self.extra_parameters else 0
        return depth * self._maps_and_norms(family, width) + self.leave_norms * family.norm_parameters(width) + extra

    def layer_flops(self, family: Family, width: int, positions: int) -> int:
        """FLOP of one layer for one item, forward. Matrix products only; a multiply-add is two. Where layers differ,
        those of the second one."""
        maps = sum(
            part.transform_flops(width, positions) + self.gates * part.gate_flops(width, positions)
            for part in family.sublayers
        )
        return maps + positions * _of_one_layer(self.extra_flops, family, width, positions)

    def step(self, family: Family) -> int:
        """The number that the block's widths in ``family`` are multiples of."""
        return self.width_step * family.width_step

    def refusal(self, family: Family, width: int | None = None) -> str | None:
        """Why the block cannot join ``family``, or not at ``width``, in a few words; ``None`` where it can."""
        if not any(fnmatchcase(family.name, one) for one in self.families):
            return f"it is for families {', '.join(self.families)}"
        if self.needs is not None and all(part.name != self.needs for part in family.sublayers):
            return f"it needs the transform of family {self.needs!r}"
        if self.width_step > 1 and width is not None and width % self.step(family):
            return f"it needs a width that {self.step(family)} divides, not {width}"
        return None

    def check_family(self, family: Family, width: int | None = None, error: type[BadInput] = BadInput) -> None:
        """Raise ``error`` for a family, or a width in it, that the block cannot have."""
        if (refusal := self.refusal(family, width)) is not None:
            raise error(f"block {self.name!r} cannot join {family.name!r}: {refusal}")

    def start(self, name: str) -> Start:
        """The start called ``name``; raises ``UnknownName`` for one that the block does not have."""
        known: dict[str, Start] = {start.name: start for start in self.starts}
        if name not in known:
            raise UnknownName(f"start of block {self.name!r}", name, known)
        return known[name]

    def join(self, site: Site, options: Mapping[str, Any]) -> Block:
        """One connection at ``site``."""
        make: Callable[..., Block] = self.cls
        return make(site, **options)

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options of the block's constructor: its parameters after the site."""
        _, _, *parameters = inspect.signature(self.cls.__init__).parameters.values()
        return tuple(one.name for one in parameters if one.kind in OPTIONS)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``BadInput`` for an option that the block's constructor does not have."""
        unknown = sorted(options.keys() - set(self.option_names))
        if unknown:
            has = f"it has {', '.join(self.option_names)}" if self.option_names else "it has none"
            raise BadInput(f"block {self.name!r} has no option {', '.join(unknown)}; {has}")


def _of_one_layer(count: Callable[..., int] | None, family: Family, width: int, *more: int) -> int:
    """What ``count`` grows by from one layer to two; it gets ``more`` where it takes that."""
    if count is None:
        return 0
    joins, more = len(family.sublayers), more[: len(inspect.signature(count).parameters) - 3]
    return count(family, width, 2 * joins, *more) - count(family, width, joins, *more)


blocks: Registry[BlockSpec] = Registry("block", package="highway_bench.blocks", group="highway_bench.blocks")

B = TypeVar("B", bound=type[Block])


def register_block(name: str, **about: Any) -> Callable[[B], B]:
    """Class decorator: register a block. ``about`` are the fields of ``BlockSpec``, as literals.

    ``equation``, ``source`` and ``summary`` are required. Names must be literals, so that they can be read without
    importing torch.
    """

    def register(cls: B) -> B:
        given: Any = cls  # of whoever decorates without types
        if not (isinstance(given, type) and issubclass(given, Block)):
            raise BadInput(f"block {name!r} must be a subclass of highway_bench.Block, not {given!r}")
        lacking = [word for word in ("equation", "source", "summary") if word not in about]
        if lacking:
            raise BadInput(f"block {name!r} needs {', '.join(lacking)}, in its decorator")
        cls.spec = BlockSpec(name=name, cls=cls, **about)
        blocks.register(name, cls.spec, module=cls.__module__)
        return cls

    return register


def register_control(name: str, **about: Any) -> Callable[[B], B]:
    """``register_block`` for a control of one experiment.

    A control is built, checked and listed like other blocks, but no profile measures it unless it is named. The history
    finds blocks by the decorator's name in the source, so it skips controls.
    """
    return register_block(name, group="control", **about)


def register_variant(
    name: str, cls: type[Block], *, summary: str, about: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """Register a block again under another name and with other ``options``, without a new class.

    ``about`` are further fields of ``BlockSpec`` that differ from the block's.
    """
    base = cls.spec
    base.check_options(options)
    changes: dict[str, Any] = {"group": "own", "baseline": False, "order": None, **(about or {})}
    changes |= {"name": name, "summary": summary, "options": {**base.options, **options}}
    blocks.register(name, replace(base, **changes), module=cls.__module__)
