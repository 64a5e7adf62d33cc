"""A user's own layer as a family: any factory of shape-preserving modules."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
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

PROBE: dict[Kind, tuple[int, ...]] = {  # shapes of small inputs, without the feature axis
    "vector": (2,),
    "sequence": (2, 5),
    "image": (2, 7, 7),
}


@dataclass(frozen=True, kw_only=True)
class CustomFamily(Transform):
    """H(x) = factory(width)(x), where the factory's modules preserve the shape. Gates are position-wise affine maps."""

    inits = ("default",)

    factory: Callable[[int], nn.Module]

    def transform(self, site: Site) -> nn.Module:
        if not site.keeps_shape:
            raise BadInput(
                f"family {self.name!r} preserves the shape; it cannot change {site.in_width} into {site.width}"
            )
        return build_module(self.factory, site.width, self.name)

    @property
    def width_step(self) -> int:
        """The least width that the factory accepts. Its multiples are divisible by heads and groups too."""
        return least_width(self.factory, self.kind, self.name)

    def check_width(self, width: int) -> None:
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
        change = shape_change(build_module(self.factory, width, self.name), width, self.kind)
        if change is not None:
            raise BadInput(f"family {self.name!r} must preserve the shape of its input; at width {width} {change}")

    def transform_parameters(self, width: int) -> int:
        return count_parameters(build_module(self.factory, width, self.name))

    def transform_flops(self, width: int, positions: int) -> int:
        module = build_module(self.factory, width, self.name)
        side = math.isqrt(positions)  # of an image of so many pixels
        shape: dict[Kind, tuple[int, ...]] = {
            "vector": (1, width),
            "sequence": (1, positions, width),
            "image": (1, width, side, positions // side),
        }
        with torch.no_grad():
            return count_flops(lambda: module(torch.zeros(shape[self.kind])))


def family(factory: Callable[[int], nn.Module], *, kind: Kind | None = None, vmap: bool = False) -> Family:
    """A family whose transform is ``factory(width)``, any module that preserves the shape of its input.

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
    return _custom_class(name, kind, vmap)(factory=factory)


@cache
def _custom_class(name: str, kind: Kind, vmap: bool) -> type[CustomFamily]:
    """The class with a custom family's name, kind and options. It is cached, so families of one factory are equal."""
    options = {"kind": kind} | ({"vmap": True} if vmap else {})
    return type("CustomFamily", (CustomFamily,), {"name": name, "kind": kind, "vmap": vmap, "options": options})


def guess_kind(factory: Callable[[int], nn.Module], name: str, width: int = 64) -> Kind:
    """The first input kind whose shape ``factory(width)`` preserves without mixing the items of a batch.

    Mixing is checked because attention and an LSTM read (batch, width) as one sequence of ``batch`` steps. Where no
    kind fits, raises ``BadInput`` with the result of each.
    """
    module = build_module(factory, width, name)
    changes = {kind: shape_change(module, width, kind) or mixing(module, width, kind) for kind in PROBE}
    for kind, change in changes.items():
        if change is None:
            return kind
    reasons = "; ".join(f"{kind}: {change}" for kind, change in changes.items())
    raise BadInput(f"family {name!r} must preserve the shape of its input ({reasons})")


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
def least_width(factory: Callable[[int], nn.Module], kind: Kind, name: str, *, at_most: int = 64) -> int:
    """The least width at which the factory's module preserves the shape; 1 where none up to ``at_most`` does."""
    for width in range(1, at_most + 1):
        try:
            if shape_change(build_module(factory, width, name), width, kind) is None:
                return width
        except BadInput:  # the factory refuses this width; a larger one may work
            continue
    return 1


def build_module(factory: Callable[[int], nn.Module], width: int, name: str) -> nn.Module:
    """``factory(width)``; raises ``BadInput`` where the factory raises or returns no module."""
    try:
        module = factory(width)
    except USER_ERRORS as error:  # the user's code may raise anything
        raise BadInput(f"family {name!r}: its factory raised {type(error).__name__}: {error}") from error
    if not isinstance(module, nn.Module):
        raise BadInput(f"family {name!r}: its factory must return an nn.Module, not a {type(module).__name__}")
    return module


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


def import_factory(reference: str) -> Callable[[int], nn.Module]:
    """The object that ``module:attribute`` names; raises ``BadInput`` where it is missing or cannot be called."""
    module_name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except USER_ERRORS as error:  # the user's code
        reason = f"{type(error).__name__}: {error}"
        raise BadInput(f"cannot import {module_name!r} for family {reference!r}: {reason}") from error
    try:
        factory: Callable[[int], nn.Module] = attrgetter(attribute)(module)
    except AttributeError:
        raise BadInput(f"module {module_name!r} has no {attribute!r}, which family {reference!r} names") from None
    if not callable(factory):
        raise BadInput(f"family {reference!r} is no factory: it cannot be called with a width")
    return factory
