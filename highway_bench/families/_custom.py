"""A user's own layer as a family: any factory of shape-preserving modules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, get_args

import torch
from torch import Tensor, nn

from highway_bench.by_value import MAIN, name_of, place_of, reference_to
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families._site import Kind, Site, shape_of
from highway_bench.families.base import Family, Transform, families
from highway_bench.families.own_layer import (
    MAKE_INPUTS,
    Adapted,
    Factory,
    called,
    check_factory,
    fill_lazy,
    further_inputs,
    reason,
    without_dropout,
)
from highway_bench.families.probing import (
    POSITIONS,
    WIDTHS,
    LayerProbe,
    Positions,
    Traits,
    input_fault,
    least_width,
    named,
    part_parameters,
    traits_of,
    width_fault,
)
from highway_bench.measure.flops import count_flops
from highway_bench.registry import imported_function, reference_of
from highway_bench.terminal import prints_to_stderr

AnyLayer = str | Family | Factory
"""A family's name or ``module:factory``, a family, or a function from a width to a module."""

OPTIONS = ("kind", "vmap", "copy_input", "dropout")


class LayerCalls:
    """The calls of a factory for one layer of a network: its parts are of the same call, so what they share stays
    shared. A part that is built twice is of two calls."""

    def __init__(self) -> None:
        self.unused: list[dict[int, nn.Module]] = []

    def part(self, number: int, factory: Factory, width: int, name: str) -> nn.Module:
        """The module of this ``number``, from 1 on."""
        for call in self.unused:
            if number in call:
                return call.pop(number)
        modules = called(factory, width, name)
        self.unused.append(dict(enumerate(modules, start=1)))
        return self.unused[-1].pop(number)


@dataclass(frozen=True, kw_only=True)
class OwnFamily(Family):
    """What the families of users' layers have in common: everything is found by running the layer."""

    inits = ("default", "scaled-branch")
    one_graph = False  # a user's layer may need eager code
    traits: ClassVar[Traits]
    copies: ClassVar[bool]

    factory: Factory

    @property
    def width_step(self) -> int:
        """The least width that the layer takes. Its multiples are divisible by heads and groups too."""
        return least_width(self.factory, self.name, self.kind)

    @property
    def remarks(self) -> tuple[str, ...]:
        traits = self.traits
        named_dtype = named(traits.dtype) if traits.dtype else ""
        said = {
            "its dropout or stochastic depth is set to 0": traits.dropout > 0,
            "it writes to its input, so that every connection gives it a copy": self.copies,
            f"its parameters are {named_dtype}, and so is all else of its networks": traits.dtype,
            "it returns several outputs, and the first is used": traits.several,
            "make_inputs gives it the inputs after the first": traits.further,
        }
        return tuple(remark for remark, is_so in said.items() if is_so)

    def nearest_width(self, width: int) -> int:
        if width < 1 or self.width_fault(width) is None:
            return width
        step = self.width_step
        regular = sorted(range(step, 2 * width + step, step), key=lambda one: abs(one - width))
        others = sorted({*WIDTHS, *range(1, min(2 * width, WIDTHS[0]))}, key=lambda one: abs(one - width))
        return next((one for one in (*regular[:3], *others) if self.width_fault(one) is None), width)

    def example_positions(self, seq_len: int | None = None) -> tuple[int, ...]:
        positions = super().example_positions(seq_len)
        return positions if seq_len or self._takes(self.traits.width, positions) else self.traits.positions

    def nearest_length(self, length: int) -> int:
        known = (length, *(one for (one,) in POSITIONS["sequence"]), *self.traits.positions)
        every = sorted(known, key=lambda one: abs(one - length))
        return next((one for one in every if self._takes(self.traits.width, (one,))), length)

    def width_fault(self, width: int) -> str | None:
        """Why the layer takes no input of ``width``; ``None`` where it does."""
        return width_fault(self.factory, self.name, self.kind, width)

    def check_width(self, width: int) -> None:
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
        fault = self.width_fault(width)
        if fault is not None:
            nearest = self.nearest_width(width)
            cure = f"; the nearest width that fits is {nearest}" if nearest != width else ""
            raise BadInput(
                f"family {self.name!r} must preserve the shape of its input; at width {width} {fault}{cure} "
                f"({place_of(self.factory)})"
            )

    def input_fault(self, width: int, positions: Sequence[int]) -> str | None:
        fault = input_fault(self.factory, self.name, self.kind, width, tuple(positions))
        if fault is None:
            return None
        sizes = [
            one for one in dict.fromkeys((self.traits.positions, *POSITIONS[self.kind])) if self._takes(width, one)
        ]
        return f"{fault}; it takes {', '.join('×'.join(map(str, one)) for one in sizes)}" if sizes else fault

    def _takes(self, width: int, positions: Positions) -> bool:
        return input_fault(self.factory, self.name, self.kind, width, positions) is None

    def example(
        self, batch: int, width: int, *, seq_len: int | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        x = super().example(batch, width, seq_len=seq_len, generator=generator)
        return x if self.traits.dtype is None else x.to(self.traits.dtype)

    def small_example(self, batch: int, width: int, *, generator: torch.Generator | None = None) -> Tensor:
        shape = shape_of(self.kind, width, self.traits.positions, batch)
        return torch.randn(shape, generator=generator).to(self.traits.dtype or torch.float32)


@dataclass(frozen=True, kw_only=True)
class CustomFamily(OwnFamily, Transform):
    """H(x) = factory(width)(x), where the factory's modules preserve the shape. Gates are position-wise affine maps."""

    part: int = 1  # which of the factory's modules, where it returns several
    calls: LayerCalls | None = field(default=None, compare=False, repr=False)  # of the layer that it is a part of

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        if not site.keeps_shape:
            raise BadInput(
                f"family {self.name!r} preserves the shape; it cannot change {site.in_width} into {site.width}"
            )
        return self.scaled(self.module(site.width), site, gain)

    def module(self, width: int) -> nn.Module:
        """The factory's module at ``width``, or its part of them."""
        calls = self.calls or LayerCalls()
        return self._adapted(calls.part(self.part, self.factory, width, self.name), width)

    def _adapted(self, module: nn.Module, width: int) -> nn.Module:
        """``module`` with one input and one output, and without dropout and lazy parameters."""
        without_dropout([module])
        further = further_inputs(module, self.factory, width, self.kind) if self.traits.further else None
        if self.copies or self.traits.several or further is not None:
            module = Adapted(module, copies=self.copies, further=further)
        fill_lazy([module], shape_of(self.kind, width, self.traits.positions))
        return module

    def transform_parameters(self, width: int) -> int:
        """Parameters of H, less those that an earlier part of the layer shares with it."""
        probe = LayerProbe(self.factory, self.name, width, self.kind, self.traits.positions)
        return part_parameters(probe)[self.part - 1]

    def transform_flops(self, width: int, positions: int) -> int:
        module = self.module(width)
        side = math.isqrt(positions)  # of an image of so many pixels
        sizes: dict[Kind, Positions] = {
            "vector": (),
            "sequence": (positions,),
            "image": (side, positions // side),
        }
        x = torch.zeros(shape_of(self.kind, width, sizes[self.kind], batch=1), dtype=self.traits.dtype)
        try:
            with prints_to_stderr(), torch.no_grad():
                return count_flops(lambda: module(x))
        except USER_ERRORS as error:
            raise BadInput(f"family {self.name!r}: {tuple(x.shape)} raises {reason(error)}") from error


@dataclass(frozen=True, kw_only=True)
class CustomLayer(OwnFamily):
    """Several transforms a layer: the modules of ``factory(width)`` in order, each with a connection of its own."""

    @cached_property
    def sublayers(self) -> tuple[CustomFamily, ...]:
        numbers = range(1, self.traits.parts + 1)
        made = (
            _custom_class(CustomFamily, f"{self.name}[{part}]", self.vmap, self.traits, self.copies) for part in numbers
        )
        return tuple(
            cls(factory=self.factory, part=part, init=self.init) for part, cls in zip(numbers, made, strict=True)
        )

    def one_layer(self) -> tuple[Transform, ...]:
        calls = LayerCalls()
        return tuple(replace(part, calls=calls) for part in self.sublayers)


def family(
    factory: Factory,
    *,
    kind: Kind | None = None,
    vmap: bool = False,
    copy_input: bool = False,
    dropout: float = 0,
    name: str | None = None,
) -> Family:
    """A family whose transform is ``factory(width)``, any module that preserves the shape of its input.

    A factory may also return a list of such modules: the transforms of a layer, in order, each of which gets a
    connection of its own.

    ``kind`` is its input: ``vector`` (batch, width), ``sequence`` (batch, steps, width) or ``image`` (batch, width,
    side, side). By default it is the first of these whose shape the module preserves without mixing the items of a
    batch. ``vmap`` declares that ``torch.func.vmap`` can run the module. With ``copy_input`` the module gets a copy of
    its input; one that is found to write to it always does. ``dropout`` is 0: that of the module is switched off.

    The family's name is ``module:factory``, by which worker processes import it. What they cannot import (of a
    notebook or a script, a lambda, a partial) travels by value: its name is ``__main__:name-digits``, with its own name
    or the ``name`` given, and six digits of a hash of what it does.

    A module whose ``forward`` needs further inputs gets those of a function ``make_inputs(width, batch)`` of the
    factory's module. Of several outputs the first one counts. Parameters that all have another dtype than float32 give
    the whole network theirs.

    Raises ``BadInput`` for a factory that fails or whose module changes the shape, and for an unknown kind.

    >>> hb.family(lambda width: nn.Sequential(nn.Linear(width, width), nn.Tanh()))
    """
    check_factory(factory)
    reference = reference_to(factory, name, near=(MAKE_INPUTS,))
    return _family_called(reference, factory, kind=kind, vmap=vmap, copy_input=copy_input, dropout=dropout)


def _family_called(
    name: str,
    factory: Factory,
    *,
    kind: Kind | None = None,
    vmap: Any = False,
    copy_input: Any = False,
    dropout: Any = 0,
) -> Family:
    if kind is not None and kind not in get_args(Kind):
        raise BadInput(f"family {name!r} has no kind {kind!r}; it has {', '.join(get_args(Kind))}")
    for option, value in (("vmap", vmap), ("copy_input", copy_input)):
        if not isinstance(value, bool):
            raise BadInput(f"family {name!r}: {option} is true or false, not {value!r}")
    if dropout != 0:
        raise BadInput(f"family {name!r}: dropout is 0 where connections are compared, not {dropout!r}")
    traits = traits_of(factory, name, kind)
    base: type[OwnFamily] = CustomFamily if traits.parts == 1 else CustomLayer
    built: Family = _custom_class(base, name, vmap, traits, copy_input or traits.writes)(factory=factory)
    return built


@cache
def _custom_class(base: type[Any], name: str, vmap: bool, traits: Traits, copies: bool) -> type[Any]:
    """The class with a custom family's name, traits and options. It is cached, so families of one factory are equal.

    What was found and changes the layer is an option too, so that every row says it.
    """
    options = {
        "kind": traits.kind,
        **({"vmap": True} if vmap else {}),
        **({"copy_input": True} if copies else {}),
        **({"dropout": 0} if traits.dropout else {}),
    }
    declared = {
        "name": name,
        "kind": traits.kind,
        "vmap": vmap,
        "dtype": named(traits.dtype) if traits.dtype else None,
        "traits": traits,
        "copies": copies,
        "options": options,
    }
    return type(base.__name__, (base,), declared)


def as_family(given: AnyLayer, **options: Any) -> Family:
    """The family that ``given`` is, names, or makes as a factory, with ``options``.

    One of a notebook's gets the name of what it is now: a cell that it reaches may have been run again.
    """
    if isinstance(given, str):
        return make_family(given, **options)
    if not isinstance(given, Family):
        check_options(name_of(given), options)
        return family(given, **options)
    if isinstance(given, OwnFamily):
        check_options(given.name, options)
    if isinstance(given, OwnFamily) and (options or given.name.startswith(f"{MAIN}:")):
        name = given.name.partition(":")[2].rpartition("-")[0]
        own = name if given.name.startswith(f"{MAIN}:") and name != name_of(given.factory) else None
        return replace(family(given.factory, name=own, **{**given.options, **options}), init=given.init)
    if options:
        raise BadInput("family_options go with a family's name; a family object has its options already")
    return given


def check_options(name: str, options: Iterable[str]) -> None:
    """Raise ``BadInput`` for an option that a user's family does not have."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise BadInput(
            f"family {name!r} takes the options {', '.join(OPTIONS)}, not {', '.join(unknown)}; a function binds those "
            f"of the layer itself: lambda width: Layer(width, {unknown[0]}=…)"
        )


def make_family(name: str, **options: Any) -> Family:
    """The family called ``name``, or of the factory ``module:factory`` or ``FILE.py:factory``, with ``options``.

    An entry point may name such a factory, if it is a class.

    Raises ``BadInput`` for an unknown name (with near names), an unknown option, or a factory that cannot be imported.
    """
    name = name if ":" in name else families.alias_of(name)
    if ":" in name:
        check_options(name, options)
        reference = reference_of(name)
        return _family_called(reference, imported_function(reference, "family"), **options)
    spec = families.get(name)
    unknown = options.keys() - spec.options.keys()
    if unknown:
        raise BadInput(f"family {name!r} has no option {', '.join(sorted(unknown))}; it has {', '.join(spec.options)}")
    return spec.cls(**options)


def select_families(*patterns: str) -> list[str]:
    """The names of registered families that match ``patterns`` (shell wildcards), and users' own as they are."""
    given = [one if ":" in one else families.alias_of(one) for one in patterns]
    return [name for one in given for name in ([one] if ":" in one else families.select(one))]
