"""Family: what the transform H is, and what goes with it — gates, norms, the carried path, widths, costs.

A block joins a layer's input with H; it asks the site's family for every part it needs, so that each block runs in
each family. ``Family`` is what a network is built of layer by layer; ``Transform`` is a family with one H, the thing
a ``Site`` points to. A family of several joins a layer (``transformer``) lists its transforms as ``sublayers``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from highway_bench.errors import BadInput
from highway_bench.families._init import Init, init_gate_
from highway_bench.registry import Registry

Kind = Literal["vector", "image", "sequence"]
Change = Literal["plain", "pad", "subsample"]
CHANGES: tuple[Change, ...] = ("plain", "pad", "subsample")

FEATURE_AXIS: dict[Kind, int] = {"vector": -1, "sequence": -1, "image": -3}
EXAMPLE_STEPS = 32  # steps of an example sequence where none are asked for
EXAMPLE_SIDE = 16  # pixels a side of an example image


@dataclass(frozen=True)
class Gate:
    """A gate that a block asks for: σ of an affine map of x, whose bias says how open it starts.

    ``bias`` is the starting bias, or ``auto``: −max(1, ln L) for a gate that lets H through, so that the carried path
    of a coupled stack of L joins keeps about 1/e of its input; its negative for one that ``carries``.
    """

    bias: float | Literal["auto"] = "auto"
    carries: bool = False

    def __post_init__(self) -> None:
        told = isinstance(self.bias, int | float) and not isinstance(self.bias, bool) and math.isfinite(self.bias)
        if self.bias != "auto" and not told:
            raise BadInput(f"a gate's bias is a number or auto, not {self.bias!r}")

    def start(self, site: Site) -> float:
        """The bias's value at ``site``."""
        if self.bias != "auto":
            return float(self.bias)
        closed = -max(1.0, math.log(site.joins))
        return -closed if self.carries else closed


@dataclass(frozen=True)
class Site:
    """Where a connection stands: its family and width, and its place in the stack.

    ``layer`` counts from 0 up to ``depth`` − 1, ``sublayer`` from 1 to ``sublayers``. ``in_width`` and ``stride``
    differ from ``width`` and 1 only at a layer that changes dimension; ``change`` says how its carried path does that.
    """

    family: Transform
    width: int
    layer: int = 0
    depth: int = 1
    sublayer: int = 1
    sublayers: int = 1
    in_width: int = 0  # 0: the same as width
    stride: int = 1
    change: Change = "pad"

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_width", self.in_width or self.width)

    @property
    def joins(self) -> int:
        """Connections in the whole stack: layers × sublayers."""
        return self.depth * self.sublayers

    @property
    def keeps_shape(self) -> bool:
        """Whether input and output have the same shape here."""
        return self.in_width == self.width and self.stride == 1


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """A stack's layers: one or more transforms, each joined by the block. Fields are the family's options."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    inits: ClassVar[tuple[Init, ...]] = ("default", "scaled-branch", "orthogonal")
    vmap: ClassVar[bool] = True  # torch.func.vmap has rules for everything in it
    one_graph: ClassVar[bool] = True  # torch.compile makes one graph of it, with nothing left to eager code
    order_blind: ClassVar[bool] = False  # a sequence needs position codes, for H itself sees none

    init: Init = "default"

    def __post_init__(self) -> None:
        hints = option_types(type(self))
        for item in fields(self):
            choices = self.inits if item.name == "init" else get_args(hints[item.name])
            self._check_option(item.name, hints[item.name], choices)

    def _check_option(self, option: str, hint: Any, choices: tuple[Any, ...]) -> None:
        """Raise ``BadInput`` for a value that an option of this type cannot have; other types are not looked at."""
        value = getattr(self, option)
        if get_origin(hint) is Literal and value not in choices:
            raise BadInput(f"family {self.name!r} has no {option} {value!r}; it has {', '.join(map(str, choices))}")
        if hint is bool and not isinstance(value, bool):
            raise BadInput(f"family {self.name!r}: {option} is true or false, not {value!r}")
        if hint is int and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise BadInput(f"family {self.name!r}: {option} must be a whole number, 1 or more, not {value!r}")

    @property
    @abstractmethod
    def sublayers(self) -> tuple[Transform, ...]:
        """The transforms of a layer, in order; the block joins each of them."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults: with the name, they make this family again."""
        values = ((item, getattr(self, item.name)) for item in fields(self))
        return {item.name: value for item, value in values if value != item.default}

    @property
    def feature_axis(self) -> int:
        """Axis of the features, counted from the end."""
        return FEATURE_AXIS[self.kind]

    @property
    def width_step(self) -> int:
        """Widths must be multiples of this."""
        return 1

    def check_width(self, width: int) -> None:
        """Raise ``BadInput`` for a width that this family cannot have."""
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
        if width % self.width_step:
            raise BadInput(f"family {self.name!r} needs a width that {self.width_step} divides, not {width}")

    def positions(self, seq_len: int | None = None) -> int:
        """Places of an example item at which the features stand: 1, steps, or pixels."""
        if self.kind == "sequence":
            return seq_len or EXAMPLE_STEPS
        return 1 if self.kind == "vector" else EXAMPLE_SIDE**2

    def example(self, batch: int, width: int, *, seq_len: int | None = None,
                generator: torch.Generator | None = None) -> Tensor:
        """A standard-normal input: (batch, width), (batch, steps, width) or (batch, width, side, side)."""
        shape: dict[Kind, tuple[int, ...]] = {
            "vector": (batch, width),
            "sequence": (batch, seq_len or EXAMPLE_STEPS, width),
            "image": (batch, width, EXAMPLE_SIDE, EXAMPLE_SIDE),
        }
        return torch.randn(shape[self.kind], generator=generator)

    def norm(self, features: int) -> nn.Module:
        """A norm over the features, with gain and bias: 2 × ``features`` parameters."""
        return nn.LayerNorm(features)

    def norm_parameters(self, width: int) -> int:
        """Parameters of one norm."""
        return 2 * width


@cache
def option_types(cls: type[Family]) -> dict[str, Any]:
    """The types of a family's fields, as they are annotated."""
    return get_type_hints(cls)


@dataclass(frozen=True, kw_only=True)
class Transform(Family):
    """A family with one transform H a layer. Subclasses say what H is and what it costs.

    A gate is a position-wise affine map of x, all gates of a site in one product; affine families override ``maps`` to
    put H into the same product.
    """

    @property
    def sublayers(self) -> tuple[Transform, ...]:
        return (self,)

    @abstractmethod
    def transform(self, site: Site) -> nn.Module:
        """H: (…, in_width, …) → (…, width, …) on the feature axis, places divided by ``stride``."""

    def maps(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        """One module that gives (H(x), a₁, …) with aᵢ the pre-activation of gate i, of H's shape, bias included."""
        return Maps(self.transform(site), self._gate_map(site, gates), len(gates), self.feature_axis)

    def carry(self, site: Site) -> nn.Module:
        """The carried path: nothing where shapes agree, else what ``site.change`` says (see ``Carry``)."""
        return nn.Identity() if site.keeps_shape else Carry(site, self.kind)

    @abstractmethod
    def transform_parameters(self, width: int) -> int:
        """Parameters of H, in closed form."""

    @abstractmethod
    def transform_flops(self, width: int, positions: int) -> int:
        """FLOP of H for one item, forward, matrix products only; a multiply-add is two."""

    def gate_parameters(self, width: int) -> int:
        """Parameters of one gate: a full affine map."""
        return width * width + width

    def gate_flops(self, width: int, positions: int) -> int:
        """FLOP of one gate for one item."""
        return 2 * width * width * positions

    def _gate_map(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        out = len(gates) * site.width
        module: nn.Linear | nn.Conv2d
        if self.kind == "image":
            module = nn.Conv2d(site.in_width, out, kernel_size=1, stride=site.stride)
        else:
            if site.stride != 1:
                raise BadInput(f"family {self.name!r} has no places to stride over")
            module = nn.Linear(site.in_width, out)
        init_gates_(module, site, gates)
        return module


class Maps(nn.Module):
    """H and the gates' pre-activations where H is no affine map: two modules side by side."""

    def __init__(self, transform: nn.Module, gate: nn.Module, gates: int, axis: int) -> None:
        super().__init__()
        self.transform = transform
        self.gate = gate
        self.gates = gates
        self.axis = axis

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.transform(x), *self.gate(x).chunk(self.gates, dim=self.axis)


class FusedMaps(nn.Module):
    """H and the gates' pre-activations in one affine product, whose slices start each as if it stood alone."""

    def __init__(self, product: nn.Linear | nn.Conv2d, activation: nn.Module, gates: int, axis: int) -> None:
        super().__init__()
        self.product = product
        self.activation = activation
        self.gates = gates
        self.axis = axis

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        h, *gates = self.product(x).chunk(1 + self.gates, dim=self.axis)
        return self.activation(h), *gates


def init_gates_(module: nn.Linear | nn.Conv2d, site: Site, gates: Sequence[Gate], *, skip: int = 0) -> None:
    """Start the gates' slices of a fused map, each by its own fan; the first ``skip`` slices are not gates."""
    assert module.bias is not None
    weights, biases = module.weight.data.split(site.width)[skip:], module.bias.data.split(site.width)[skip:]
    for weight, bias, gate in zip(weights, biases, gates, strict=True):
        init_gate_(weight, bias, gate.start(site))


class Carry(nn.Module):
    """A carried path that changes dimension without parameters: every ``stride``-th pixel, then the features.

    ``pad`` appends zeros to the features (arXiv:1512.03385, option A); ``subsample`` keeps evenly spaced ones. Where
    ``change`` is ``plain`` the network puts a plain layer there instead (arXiv:1505.00387, §2.1), and no carry exists.
    """

    kept: Tensor | None  # the places of the features that stay

    def __init__(self, site: Site, kind: Kind) -> None:
        super().__init__()
        grows = site.width - site.in_width
        if site.change == "pad" and grows < 0:
            raise BadInput(f"zero-padding cannot make {site.in_width} features {site.width}; use subsample or plain")
        if site.change == "subsample" and grows > 0:
            raise BadInput(f"sub-sampling cannot make {site.in_width} features {site.width}; use pad or plain")
        if site.stride != 1 and kind != "image":
            raise BadInput(f"a {kind} has no places to stride over")
        self.stride = site.stride
        self.axis = FEATURE_AXIS[kind]
        self.grows = max(grows, 0)
        kept = [place * site.in_width // site.width for place in range(site.width)] if grows < 0 else None
        self.register_buffer("kept", None if kept is None else torch.tensor(kept), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride != 1:
            x = x[..., :: self.stride, :: self.stride]
        if self.kept is not None:
            return x.index_select(self.axis, self.kept)
        return nn.functional.pad(x, (0, 0) * (-1 - self.axis) + (0, self.grows))


@dataclass(frozen=True)
class FamilySpec:
    """A family's registry entry."""

    name: str
    transform: str  # H as an equation
    summary: str
    source: str
    cls: type[Family]

    @property
    def kind(self) -> Kind:
        """What its layers take: vectors, images or sequences."""
        return self.cls.kind

    @property
    def options(self) -> dict[str, Any]:
        """Option names and defaults."""
        return {item.name: item.default for item in fields(self.cls)}


families: Registry[FamilySpec] = Registry("family", package="highway_bench.families", group="highway_bench.families")

F = TypeVar("F", bound=type[Family])


def register_family(name: str, *, transform: str, summary: str, source: str) -> Callable[[F], F]:
    """Class decorator: put a family into the registry. ``name`` and the texts are literals."""

    def register(cls: F) -> F:
        cls.name = name
        families.register(name, FamilySpec(name, transform, summary, source, cls), place=cls.__module__)
        return cls

    return register
