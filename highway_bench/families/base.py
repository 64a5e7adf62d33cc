"""Family: what the transform H is, with its gates, norms, carried path, widths and costs.

A block connects a layer's input with H. It takes every part that it needs from the site's family, so that each block
runs in each family. ``Family`` describes the layers of a network; ``Transform`` is a family with one H, and is the
``family`` of a ``Site``. A family with several transforms a layer (``transformer``) lists them as ``sublayers``.
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
from highway_bench.families._site import FEATURE_AXIS, Gate, Kind, Site, shape_of
from highway_bench.families.init import Init, init_map_
from highway_bench.families.parts import Carry, FixedScale, Maps, PositionRms, init_gates_
from highway_bench.registry import FIRST_VERSION, Registry

FamilyGroup = Literal["core", "variant"]

EXAMPLE_STEPS = 32  # steps of an example sequence, by default
FEW_STEPS = 5  # of a small example
EXAMPLE_SIDE = 16  # pixels a side of an example image


@dataclass(frozen=True)
class TrainCost:
    """What a training step of one layer costs on one CPU core: ``layer_seconds`` at the profiles' sizes, or its FLOP at
    ``flop_rate`` FLOP/s if that is longer. A guess for other sizes and on a GPU."""

    layer_seconds: float
    flop_rate: float | None = None


KIND_COSTS: dict[Kind, TrainCost] = {
    "vector": TrainCost(layer_seconds=5e-4),
    "image": TrainCost(layer_seconds=5e-3),
    "sequence": TrainCost(layer_seconds=5e-3),
}

KIND_YARDSTICKS: dict[Kind, str] = {"vector": "linear", "image": "convolution", "sequence": "attention"}


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """The layers of a stack: one or more transforms, each connected by the block. Fields are the family's options."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    inits: ClassVar[tuple[Init, ...]] = get_args(Init)
    vmap: ClassVar[bool] = True  # torch.func.vmap has rules for everything in it
    trains_alone: ClassVar[bool] = False  # a recipe that asks for a population of it is refused
    one_graph: ClassVar[bool] = True  # torch.compile compiles it into one graph, without eager code
    order_blind: ClassVar[bool] = False  # H ignores the order of steps, so a sequence needs position codes
    order: ClassVar[int | None] = None  # rank in lists; families without one come last, by name
    version: ClassVar[str] = FIRST_VERSION  # raised when its numbers change
    dtype: ClassVar[str | None] = None  # of its parameters, where a user's layer has one of its own
    own_cost: ClassVar[TrainCost | None] = None  # where it differs from KIND_COSTS
    own_yardstick: ClassVar[str | None] = None  # where it differs from KIND_YARDSTICKS

    init: Init = "default"

    def __post_init__(self) -> None:
        hints = option_types(type(self))
        for item in fields(self):
            choices = self.inits if item.name == "init" else get_args(hints[item.name])
            self._check_option(item.name, hints[item.name], choices)

    def _check_option(self, option: str, hint: Any, choices: tuple[Any, ...]) -> None:
        """Raise ``BadInput`` for a value that an option of this type cannot have; only literals, bool and int are
        checked."""
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
        """The transforms of a layer, in order; each has a connection of its own."""

    def one_layer(self) -> tuple[Transform, ...]:
        """The transforms of one layer of a network, each to be built once: they may share modules."""
        return self.sublayers

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is done with its layer that a reader of its rows must know, in words that follow its name."""
        return ()

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults; ``make_family(name, **options)`` builds this family again."""
        values = ((item, getattr(self, item.name)) for item in fields(self))
        return {item.name: value for item, value in values if value != item.default}

    @property
    def train_cost(self) -> TrainCost:
        """What a training step of a layer costs."""
        return self.own_cost or KIND_COSTS[self.kind]

    @property
    def yardstick(self) -> str:
        """The yard-stick (see ``measure.yardsticks``) whose work is most like a layer's."""
        return self.own_yardstick or KIND_YARDSTICKS[self.kind]

    @property
    def feature_axis(self) -> int:
        """Axis of the features, counted from the end."""
        return FEATURE_AXIS[self.kind]

    @property
    def width_step(self) -> int:
        """The number that every width is a multiple of."""
        return 1

    def check_width(self, width: int) -> None:
        """Raise ``BadInput`` for a width that this family cannot have."""
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
        if width % self.width_step:
            raise BadInput(f"family {self.name!r} needs a width that {self.width_step} divides, not {width}")

    def nearest_width(self, width: int) -> int:
        """The width next to ``width`` that a user's layer takes. Other families refuse a width that does not fit."""
        return width

    def nearest_length(self, length: int) -> int:
        """``length``, or one that a user's layer of sequences takes."""
        return length

    def input_fault(self, width: int, positions: Sequence[int]) -> str | None:
        """Why a user's layer takes no input of these ``positions`` (steps; or height and width), in words; ``None``
        where it does."""
        return None

    def positions(self, seq_len: int | None = None) -> int:
        """How many positions of an example item have features: 1, its steps, or its pixels."""
        return math.prod(self.example_positions(seq_len))

    def example_positions(self, seq_len: int | None = None) -> tuple[int, ...]:
        """The steps of an example item, the height and width of an example image, or none. A user's layer that takes
        no such item has one of another size."""
        if self.kind == "sequence":
            return (seq_len or EXAMPLE_STEPS,)
        return () if self.kind == "vector" else (EXAMPLE_SIDE, EXAMPLE_SIDE)

    def example(
        self, batch: int, width: int, *, seq_len: int | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """A standard-normal input: (batch, width), (batch, steps, width) or (batch, width, side, side)."""
        return torch.randn(shape_of(self.kind, width, self.example_positions(seq_len), batch), generator=generator)

    def small_example(self, batch: int, width: int, *, generator: torch.Generator | None = None) -> Tensor:
        """An example of few positions, on which a stack is tried."""
        return self.example(batch, width, seq_len=FEW_STEPS, generator=generator)

    def norm(self, features: int) -> nn.Module:
        """A norm over the features, and the pixels of an image, with gain and bias: 2 × ``features`` parameters."""
        return nn.GroupNorm(1, features) if self.kind == "image" else nn.LayerNorm(features)

    def norm_parameters(self, width: int) -> int:
        """Parameters of one norm."""
        return 2 * width

    def affine(self, inputs: int, outputs: int, *, bias: bool = True) -> nn.Module:
        """A position-wise affine map of a block's own, (…, inputs, …) → (…, outputs, …) on the feature axis.

        Its weights are Glorot's and its bias is 0: ``inputs`` × ``outputs`` parameters, and ``outputs`` more.
        """
        module: nn.Linear | nn.Conv2d
        if self.kind == "image":
            module = nn.Conv2d(inputs, outputs, kernel_size=1, bias=bias)
        else:
            module = nn.Linear(inputs, outputs, bias=bias)
        init_map_(module.weight, "identity", "default")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
        return module

    def rms(self, features: int) -> nn.Module:
        """A root-mean-square norm over the features of each position, with ``features`` parameters."""
        return PositionRms(features, self.feature_axis)


@cache
def option_types(cls: type[Family]) -> dict[str, Any]:
    """The annotated types of a family's fields."""
    return get_type_hints(cls)


@dataclass(frozen=True, kw_only=True)
class Transform(Family):
    """A family with one transform H a layer. Subclasses define H and its costs.

    A gate is a position-wise affine map of x; all gates of a site are one product. Affine families override ``maps`` to
    compute H in the same product.
    """

    @property
    def sublayers(self) -> tuple[Transform, ...]:
        return (self,)

    @abstractmethod
    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        """H: (…, in_width, …) → (…, width, …) on the feature axis; ``stride`` divides the sides of an image.

        ``gain`` multiplies the initial weights of H's last map, ``inner_gain`` those of its other maps but queries and
        keys. An H without such maps is multiplied by the constant ``gain``.
        """

    def last_gain(self, site: Site, gain: float = 1.0) -> float:
        """``gain`` of H's last map, times 1/√L if that is the family's init."""
        return gain / math.sqrt(site.joins) if self.init == "scaled-branch" else gain

    def scaled(self, transform: nn.Module, site: Site, gain: float) -> nn.Module:
        """An H whose maps cannot be scaled, times the constant ``last_gain``."""
        factor = self.last_gain(site, gain)
        return transform if factor == 1 else FixedScale(transform, factor)

    def maps(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        """One module for (H(x), a₁, …), where aᵢ is the pre-activation of gate i with its bias, of H's shape."""
        return Maps(self.transform(site), self._gate_map(site, gates), len(gates), self.feature_axis)

    def carry(self, site: Site) -> nn.Module:
        """The carried path: the identity where shapes agree, else as ``site.change`` says (see ``Carry``)."""
        return nn.Identity() if site.keeps_shape else Carry(site, self.kind)

    @abstractmethod
    def transform_parameters(self, width: int) -> int:
        """Parameters of H, in closed form."""

    @abstractmethod
    def transform_flops(self, width: int, positions: int) -> int:
        """FLOP of H for one item forward: matrix products only, two for a multiply-add."""

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
            module = nn.Linear(site.in_width, out)
        init_gates_(module, site, gates)
        return module


@dataclass(frozen=True)
class FamilySpec:
    """A family's registry entry.

    ``group`` decides who measures it. ``core``: every profile, and the history. ``variant``, another family with other
    defaults: only where a grid or a selection names it in full.
    """

    name: str
    transform: str  # H as an equation
    summary: str
    source: str
    cls: type[Family]
    group: FamilyGroup = "core"

    @property
    def kind(self) -> Kind:
        """The input of its layers: vectors, images or sequences."""
        return self.cls.kind

    @property
    def version(self) -> str:
        """Raised when its numbers change."""
        return self.cls.version

    @property
    def order(self) -> int | None:
        """Its rank in lists; families without one come last, by name."""
        return self.cls.order

    @property
    def options(self) -> dict[str, Any]:
        """Option names and defaults."""
        return {item.name: item.default for item in fields(self.cls)}


families: Registry[FamilySpec] = Registry("family", package="highway_bench.families", group="highway_bench.families")

F = TypeVar("F", bound=type[Family])


def register_family(
    name: str, *, transform: str, summary: str, source: str, group: FamilyGroup = "core"
) -> Callable[[F], F]:
    """Class decorator: register a family. ``name``, the texts and the group must be literals.

    ``transform`` is H as an equation, ``source`` the paper and its equation, ``summary`` a few words.
    """

    def register(cls: F) -> F:
        cls.name = name
        families.register(name, FamilySpec(name, transform, summary, source, cls, group), module=cls.__module__)
        return cls

    return register
