"""Site and gate: the position of a connection in its network, and the gates that it requests of its family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from highway_bench.errors import BadInput

if TYPE_CHECKING:
    from highway_bench.families.base import Transform

Kind = Literal["vector", "image", "sequence"]
Change = Literal["plain", "pad", "subsample", "project"]
CHANGES: tuple[Change, ...] = ("plain", "pad", "subsample", "project")

InitialBias = float | Literal["auto", "published"]

FEATURE_AXIS: dict[Kind, int] = {"vector": -1, "sequence": -1, "image": -3}


def shape_of(kind: Kind, width: int, positions: Sequence[int], batch: int = 2) -> tuple[int, ...]:
    """The shape of an input: ``positions`` are the steps of a sequence, the height and width of an image, or none."""
    shape = [batch, *positions]
    shape.insert(len(shape) + 1 + FEATURE_AXIS[kind], width)
    return tuple(shape)


@dataclass(frozen=True)
class Gate:
    """A gate of a block: σ of an affine map of x. The bias decides how open the gate is at the start.

    ``bias`` is the starting bias. ``auto`` is −max(1, ln L) for a gate on H, so that the carried path of a coupled
    stack of L connections passes about 1/e of its input. ``published`` is −2 or, in families of images, −max(1, D/10)
    for D layers: the biases of arXiv:1507.06228 at 10, 20 and 30 convolutional layers, continued in a line. For a gate
    that ``carries`` both have the other sign. Raises ``BadInput`` for any other bias that is no finite number.
    """

    bias: InitialBias = "auto"
    carries: bool = False

    def __post_init__(self) -> None:
        number = isinstance(self.bias, int | float) and not isinstance(self.bias, bool) and math.isfinite(self.bias)
        if self.bias not in ("auto", "published") and not number:
            raise BadInput(f"a gate's bias is a number, auto or published, not {self.bias!r}")

    def start(self, site: Site) -> float:
        """The value of the bias at ``site``."""
        if self.bias == "auto":
            closed = -max(1.0, math.log(site.joins))
        elif self.bias == "published":
            closed = -max(1.0, site.depth / 10) if site.family.kind == "image" else -2.0
        else:
            return float(self.bias)
        return -closed if self.carries else closed


@dataclass(frozen=True)
class Site:
    """The position of a connection: its family and width, and its layer and sublayer in the network.

    ``layer`` counts from 0 up to ``depth`` − 1, ``sublayer`` from 1 to ``sublayers``. ``in_width`` and ``stride``
    differ from ``width`` and 1 only at a layer that changes dimension; ``change`` is how its carried path does that.
    ``first`` is the layer at which the block's state began: 0, or the first one after a plain layer between stages.
    Raises ``BadInput`` for a stride other than 1 in a family without pixels.
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
    first: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_width", self.in_width or self.width)
        if self.stride != 1 and self.family.kind != "image":
            raise BadInput(f"family {self.family.name!r} has no pixels, so its stride is 1, not {self.stride}")

    @property
    def index(self) -> int:
        """l, the number of the connection in the whole network, from 1 to L."""
        return self.layer * self.sublayers + self.sublayer

    @property
    def joins(self) -> int:
        """L, the number of connections in the whole network: layers × sublayers."""
        return self.depth * self.sublayers

    @property
    def begins(self) -> bool:
        """Whether this is the first connection that gets the block's state."""
        return (self.layer, self.sublayer) == (self.first, 1)

    @property
    def last(self) -> bool:
        """Whether this is the network's last connection, the only one that a final norm follows."""
        return (self.layer + 1, self.sublayer) == (self.depth, self.sublayers)

    @property
    def keeps_shape(self) -> bool:
        """Whether input and output have the same shape here."""
        return self.in_width == self.width and self.stride == 1
