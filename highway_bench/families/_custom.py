"""The user's own layer as a family: any factory of shape-preserving modules."""

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
from highway_bench.measure.flops import count_flops

PROBE: dict[Kind, tuple[int, ...]] = {"vector": (2,), "sequence": (2, 5), "image": (2, 7, 7)}  # without the features


@dataclass(frozen=True, kw_only=True)
class CustomFamily(Transform):
    """H(x) = factory(width)(x), for a factory whose modules keep the shape. Gates are position-wise affine maps."""

    inits = ("default",)

    factory: Callable[[int], nn.Module]

    def transform(self, site: Site) -> nn.Module:
        if not site.keeps_shape:
            raise BadInput(f"family {self.name!r} keeps the shape; it cannot change {site.in_width} into {site.width}")
        return made(self.factory, site.width, self.name)

    @property
    def width_step(self) -> int:
        """The least width that the factory takes: heads and groups divide its multiples as well."""
        return least_width(self.factory, self.kind, self.name)

    def check_width(self, width: int) -> None:
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
        change = shape_change(made(self.factory, width, self.name), width, self.kind)
        if change is not None:
            raise BadInput(f"family {self.name!r} must keep the shape of its input; at width {width} {change}")

    def transform_parameters(self, width: int) -> int:
        return sum(parameter.numel() for parameter in made(self.factory, width, self.name).parameters())

    def transform_flops(self, width: int, positions: int) -> int:
        module = made(self.factory, width, self.name)
        side = math.isqrt(positions)  # of an image of so many pixels
        shape: dict[Kind, tuple[int, ...]] = {
            "vector": (1, width),
            "sequence": (1, positions, width),
            "image": (1, width, side, positions // side),
        }
        with torch.no_grad():
            return count_flops(lambda: module(torch.zeros(shape[self.kind])))


def family(factory: Callable[[int], nn.Module], *, kind: Kind | None = None, vmap: bool = False) -> Family:
    """A family whose transform is ``factory(width)``, any module that keeps the shape of its input.

    ``kind`` is what it takes: ``vector`` (batch, width), ``sequence`` (batch, steps, width) or ``image`` (batch, width,
    side, side); where it is not given, the first of these whose shape the module keeps at width 64, and whose items it
    keeps apart. ``vmap`` says that ``torch.func.vmap`` can run it. The family's name is ``module:factory``, by which a
    worker process finds it again.
    Raises ``BadInput`` for a factory whose module changes the shape.

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
    """The class that carries a custom family's traits; one a name, so that families made of one factory are equal."""
    options = {"kind": kind} | ({"vmap": True} if vmap else {})
    return type("CustomFamily", (CustomFamily,), {"name": name, "kind": kind, "vmap": vmap, "options": options})


def guess_kind(factory: Callable[[int], nn.Module], name: str, width: int = 64) -> Kind:
    """The first input kind whose shape ``factory(width)`` keeps, and whose items it keeps apart: attention and an LSTM
    take (batch, width) for one sequence of ``batch`` steps. ``BadInput`` says what became of each kind."""
    module = made(factory, width, name)
    changes = {kind: shape_change(module, width, kind) or mixing(module, width, kind) for kind in PROBE}
    for kind, change in changes.items():
        if change is None:
            return kind
    told = "; ".join(f"{kind}: {change}" for kind, change in changes.items())
    raise BadInput(f"family {name!r} must keep the shape of its input ({told})")


def shape_change(module: nn.Module, width: int, kind: Kind) -> str | None:
    """What ``module`` does to the shape of an input of this kind; ``None`` if it keeps it."""
    shape = probe_shape(width, kind)
    try:
        with torch.no_grad():
            y = module(torch.zeros(shape))
    except USER_ERRORS as error:  # whatever a user's module raises on a shape it is not made for
        return f"{tuple(shape)} raises {type(error).__name__}"
    if not isinstance(y, torch.Tensor):
        return f"{tuple(shape)} gives a {type(y).__name__}, not a tensor"
    return None if y.shape == torch.Size(shape) else f"{tuple(shape)} becomes {tuple(y.shape)}"


def mixing(module: nn.Module, width: int, kind: Kind) -> str | None:
    """Whether an item's output hangs on the other item of its batch, in evaluation mode; ``None`` if it does not."""
    shape = probe_shape(width, kind)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        x = torch.randn(shape)
        changed = torch.cat([torch.randn(shape)[:1], x[1:]])
        outputs = []
        for batch in (x, changed):
            torch.manual_seed(1)  # a layer that draws numbers draws the same
            outputs.append(copy.deepcopy(module).eval()(batch)[1:])
    same = torch.allclose(outputs[0], outputs[1], rtol=1e-3, atol=1e-5)
    return None if same else f"{tuple(shape)} mixes the items of the batch"


def probe_shape(width: int, kind: Kind) -> list[int]:
    """Shape of a small input of this kind."""
    shape = list(PROBE[kind])
    shape.insert(len(shape) + 1 + FEATURE_AXIS[kind], width)
    return shape


@cache
def least_width(factory: Callable[[int], nn.Module], kind: Kind, name: str, *, at_most: int = 64) -> int:
    """The least width at which ``factory`` gives a module that keeps the shape; 1 where none up to ``at_most`` does."""
    for width in range(1, at_most + 1):
        try:
            if shape_change(made(factory, width, name), width, kind) is None:
                return width
        except BadInput:  # a width that the factory refuses; the next may do
            continue
    return 1


def made(factory: Callable[[int], nn.Module], width: int, name: str) -> nn.Module:
    """``factory(width)``, or ``BadInput`` with what it raised."""
    try:
        module = factory(width)
    except USER_ERRORS as error:  # the user's code: any error is theirs to read
        raise BadInput(f"family {name!r}: its factory raised {type(error).__name__}: {error}") from error
    if not isinstance(module, nn.Module):
        raise BadInput(f"family {name!r}: its factory must return an nn.Module, not a {type(module).__name__}")
    return module


def make_family(name: str, **options: Any) -> Family:
    """The family called ``name``, or made of a factory given as ``module:factory``, with ``options``.

    Raises ``BadInput`` for an unknown name (near ones listed), an unknown option or a factory that cannot be imported.
    """
    if ":" in name:
        unknown = options.keys() - {"kind", "vmap"}
        if unknown:
            raise BadInput(f"family {name!r} takes the options kind and vmap, not {', '.join(sorted(unknown))}")
        return family(imported(name), **options)
    spec = families.get(name)
    unknown = options.keys() - spec.options.keys()
    if unknown:
        raise BadInput(f"family {name!r} has no option {', '.join(sorted(unknown))}; it has {', '.join(spec.options)}")
    return spec.cls(**options)


def imported(reference: str) -> Callable[[int], nn.Module]:
    """What ``module:attribute`` names; ``BadInput`` with the reason where it cannot be had."""
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
