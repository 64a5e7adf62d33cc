"""Site and gate: where a connection stands, and what it asks its family for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from highway_bench.errors import BadInput

if TYPE_CHECKING:
    from highway_bench.families.base import Transform

Kind = Literal["vector", "image", "sequence"]
Change = Literal["plain", "pad", "subsample", "project"]
CHANGES: tuple[Change, ...] = ("plain", "pad", "subsample", "project")

FEATURE_AXIS: dict[Kind, int] = {"vector": -1, "sequence": -1, "image": -3}


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
    """Where a connection stands: its family and width, and its place among those of the network.

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
        """Connections in the whole network: layers × sublayers."""
        return self.depth * self.sublayers

    @property
    def last(self) -> bool:
        """Whether this is the network's last connection: a final norm stands behind no other."""
        return (self.layer + 1, self.sublayer) == (self.depth, self.sublayers)

    @property
    def keeps_shape(self) -> bool:
        """Whether input and output have the same shape here."""
        return self.in_width == self.width and self.stride == 1
