"""A user's own layer as a family: any factory of shape-preserving modules."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, get_args

import torch
from torch import nn

from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families._site import FEATURE_AXIS, Kind, Site
from highway_bench.families.base import Family, Transform, families
from highway_bench.families.parts import count_parameters
from highway_bench.families.seeding import seeded
from highway_bench.measure.flops import count_flops

Factory = Callable[[int], nn.Module | Sequence[nn.Module]]
"""From a width to the transform of a layer, or to its transforms in order."""

PROBE_WIDTH = 64
PROBE: dict[Kind, tuple[int, ...]] = {  # shapes of small inputs, without the feature axis
    "vector": (2,),
    "sequence": (2, 5),
    "image": (2, 7, 7),
}


@dataclass(frozen=True, kw_only=True)
class CustomFamily(Transform):
    """H(x) = factory(width)(x), where the factory's modules preserve the shape. Gates are position-wise affine maps."""

    inits = ("default", "scaled-branch")

    factory: Factory
    part: int = 1  # which of the factory's modules, where it returns several

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        if not site.keeps_shape:
            raise BadInput(
                f"family {self.name!r} preserves the shape; it cannot change {site.in_width} into {site.width}"
            )
        return self.scaled(self.module(site.width), site, gain)

    def module(self, width: int) -> nn.Module:
        """The factory's module at ``width``, or its part of them."""
        return build_modules(self.factory, width, self.name)[self.part - 1]

    @property
    def width_step(self) -> int:
        """The least width that the factory accepts. Its multiples are divisible by heads and groups too."""
        return least_width(self)

    def check_width(self, width: int) -> None:
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
        change = shape_change(self.module(width), width, self.kind)
        if change is not None:
            raise BadInput(f"family {self.name!r} must preserve the shape of its input; at width {width} {change}")

    def transform_parameters(self, width: int) -> int:
        return count_parameters(self.module(width))

    def transform_flops(self, width: int, positions: int) -> int:
        module = self.module(width)
        side = math.isqrt(positions)  # of an image of so many pixels
        shape: dict[Kind, tuple[int, ...]] = {
            "vector": (1, width),
            "sequence": (1, positions, width),
            "image": (1, width, side, positions // side),
        }
        with torch.no_grad():
            return count_flops(lambda: module(torch.zeros(shape[self.kind])))


@dataclass(frozen=True, kw_only=True)
class CustomLayer(Family):
    """Several transforms a layer: the modules of ``factory(width)`` in order, each with a connection of its own."""

    inits = CustomFamily.inits

    factory: Factory

    @cached_property
    def sublayers(self) -> tuple[Transform, ...]:
        parts = range(1, part_count(self.factory, self.name) + 1)
        made = (_custom_class(CustomFamily, f"{self.name}[{part}]", self.kind, self.vmap) for part in parts)
        return tuple(
            cls(factory=self.factory, part=part, init=self.init) for part, cls in zip(parts, made, strict=True)
        )

    @property
    def width_step(self) -> int:
        """The least width that every part accepts."""
        return math.lcm(*(part.width_step for part in self.sublayers))

    def check_width(self, width: int) -> None:
        for part in self.sublayers:
            part.check_width(width)


def family(factory: Factory, *, kind: Kind | None = None, vmap: bool = False) -> Family:
    """A family whose transform is ``factory(width)``, any module that preserves the shape of its input.

    A factory may also return a list of such modules: the transforms of a layer, in order, each of which gets a
    connection of its own.

    ``kind`` is its input: ``vector`` (batch, width), ``sequence`` (batch, steps, width) or ``image`` (batch, width,
    side, side). By default it is the first of these whose shape the module preserves at width 64 without mixing the
    items of a batch. ``vmap`` declares that ``torch.func.vmap`` can run the module. The family's name is
    ``module:factory``, from which a worker process imports it.

    Raises ``BadInput`` for a factory that fails or whose module changes the shape, and for an unknown kind.

    >>> hb.family(lambda width: nn.Sequential(nn.Linear(width, width), nn.Tanh()))
    """
    name = f"{factory.__module__}:{getattr(factory, '__qualname__', type(factory).__qualname__)}"
    if kind is None:
        kind = guess_kind(factory, name)
    if kind not in get_args(Kind):
        raise BadInput(f"family {name!r} has no kind {kind!r}; it has {', '.join(get_args(Kind))}")
    if not isinstance(vmap, bool):
        raise BadInput(f"family {name!r}: vmap is true or false, not {vmap!r}")
    base: type[CustomFamily | CustomLayer] = CustomFamily if part_count(factory, name) == 1 else CustomLayer
    built: Family = _custom_class(base, name, kind, vmap)(factory=factory)
    return built


@cache
def _custom_class(base: type[Any], name: str, kind: Kind, vmap: bool) -> type[Any]:
    """The class with a custom family's name, kind and options. It is cached, so families of one factory are equal."""
    options = {"kind": kind} | ({"vmap": True} if vmap else {})
    return type(base.__name__, (base,), {"name": name, "kind": kind, "vmap": vmap, "options": options})


@cache
def part_count(factory: Factory, name: str) -> int:
    """How many modules the factory returns, at the first width that it accepts."""
    first: BadInput | None = None
    for width in (PROBE_WIDTH, *range(1, PROBE_WIDTH)):
        try:
            return len(build_modules(factory, width, name))
        except BadInput as refused:
            first = first or refused
    assert first is not None
    raise first


def guess_kind(factory: Factory, name: str, width: int = PROBE_WIDTH) -> Kind:
    """The first input kind whose shape each module of ``factory(width)`` preserves without mixing a batch's items.

    Mixing is checked because attention and an LSTM read (batch, width) as one sequence of ``batch`` steps. Where no
    kind fits, raises ``BadInput`` with the result of each.
    """
    modules = build_modules(factory, width, name)
    changes = {kind: first_fault(modules, width, kind) for kind in PROBE}
    for kind, change in changes.items():
        if change is None:
            return kind
    reasons = "; ".join(f"{kind}: {change}" for kind, change in changes.items())
    raise BadInput(f"family {name!r} must preserve the shape of its input ({reasons})")


def first_fault(modules: Iterable[nn.Module], width: int, kind: Kind) -> str | None:
    """How one of ``modules`` changes the shape of an input of this kind, or mixes items; ``None`` if none does."""
    faults = (shape_change(module, width, kind) or mixing(module, width, kind) for module in modules)
    return next((fault for fault in faults if fault is not None), None)


def shape_change(module: nn.Module, width: int, kind: Kind) -> str | None:
    """How ``module`` changes the shape of an input of this kind, in words; ``None`` if it preserves the shape."""
    shape = probe_shape(width, kind)
    try:
        with torch.no_grad():
            y = module(torch.zeros(shape))
    except USER_ERRORS as error:  # a user's module may raise anything on an unsuitable shape
        return f"{tuple(shape)} raises {type(error).__name__}"
    if not isinstance(y, torch.Tensor):
        return f"{tuple(shape)} gives a {type(y).__name__}, not a tensor"
    return None if y.shape == torch.Size(shape) else f"{tuple(shape)} becomes {tuple(y.shape)}"


def mixing(module: nn.Module, width: int, kind: Kind) -> str | None:
    """How ``module`` mixes the items of a batch in evaluation mode, in words; ``None`` if it does not."""
    shape = probe_shape(width, kind)
    with seeded(0), torch.no_grad():
        x = torch.randn(shape)
        changed = torch.cat([torch.randn(shape)[:1], x[1:]])
        outputs = []
        for batch in (x, changed):
            with seeded(1):  # so that random layers draw the same numbers for both batches
                outputs.append(copy.deepcopy(module).eval()(batch)[1:])
    same = torch.allclose(outputs[0], outputs[1], rtol=1e-3, atol=1e-5)
    return None if same else f"{tuple(shape)} mixes the items of the batch"


def probe_shape(width: int, kind: Kind) -> list[int]:
    """The shape of a small input of this kind."""
    shape = list(PROBE[kind])
    shape.insert(len(shape) + 1 + FEATURE_AXIS[kind], width)
    return shape


@cache
def least_width(family: CustomFamily) -> int:
    """The least width at which the family's module preserves the shape; 1 where none up to the probe's does."""
    for width in range(1, PROBE_WIDTH + 1):
        try:
            if shape_change(family.module(width), width, family.kind) is None:
                return width
        except BadInput:  # the factory refuses this width; a larger one may work
            continue
    return 1


def build_modules(factory: Factory, width: int, name: str) -> tuple[nn.Module, ...]:
    """The modules of ``factory(width)``; raises ``BadInput`` where the factory raises or returns anything else."""
    try:
        result = factory(width)
    except USER_ERRORS as error:  # the user's code may raise anything
        raise BadInput(f"family {name!r}: its factory raised {type(error).__name__}: {error}") from error
    several = isinstance(result, list | tuple | nn.ModuleList) and len(result) > 0
    modules: tuple[Any, ...] = tuple(result) if several else (result,)  # type: ignore[arg-type]
    for module in modules:
        if not isinstance(module, nn.Module):
            raise BadInput(
                f"family {name!r}: its factory must return an nn.Module or a list of them, "
                f"not a {type(module).__name__}"
            )
    return modules


def make_family(name: str, **options: Any) -> Family:
    """The family called ``name``, or of the factory ``module:factory``, with ``options``.

    Raises ``BadInput`` for an unknown name (with near names), an unknown option, or a factory that cannot be imported.
    """
    if ":" in name:
        unknown = options.keys() - {"kind", "vmap"}
        if unknown:
            raise BadInput(f"family {name!r} takes the options kind and vmap, not {', '.join(sorted(unknown))}")
        return family(import_factory(name), **options)
    spec = families.get(name)
    unknown = options.keys() - spec.options.keys()
    if unknown:
        raise BadInput(f"family {name!r} has no option {', '.join(sorted(unknown))}; it has {', '.join(spec.options)}")
    return spec.cls(**options)


def import_factory(reference: str) -> Factory:
    """The object that ``module:attribute`` names; raises ``BadInput`` where it is missing or cannot be called."""
    module_name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except USER_ERRORS as error:  # the user's code
        reason = f"{type(error).__name__}: {error}"
        raise BadInput(f"cannot import {module_name!r} for family {reference!r}: {reason}") from error
    try:
        factory: Factory = attrgetter(attribute)(module)
    except AttributeError:
        raise BadInput(f"module {module_name!r} has no {attribute!r}, which family {reference!r} names") from None
    if not callable(factory):
        raise BadInput(f"family {reference!r} is no factory: it cannot be called with a width")
    return factory
