"""Space: what a search draws its trials from, one prior a hyper-parameter.

The two spaces of Figure 1 are this project's choice, for the paper gives no ranges: rate and momentum cover the winners
of a hand search, ``decay`` is the last rate over the first, and a gate's bias starts between −10 and −1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from highway_bench.cell import canonical
from highway_bench.errors import BadInput, UnknownName


@dataclass(frozen=True)
class Uniform:
    """Every number from ``low`` to ``high`` is as likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def about(self) -> dict[str, Any]:
        return {"uniform": [self.low, self.high]}


@dataclass(frozen=True)
class LogUniform:
    """The logarithm is uniform from ``low`` to ``high``, both above 0."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_range(self.low, self.high)
        if not self.low > 0:
            raise BadInput(f"a log-uniform prior needs bounds above 0, not {self.low:g}")

    @property
    def about(self) -> dict[str, Any]:
        return {"log-uniform": [self.low, self.high]}


@dataclass(frozen=True)
class Choice:
    """Every one of ``options`` is as likely."""

    options: tuple[str | int | float | bool, ...]

    def __post_init__(self) -> None:
        if not self.options:
            raise BadInput("a choice needs at least one option")
        if len(set(self.options)) < len(self.options):
            raise BadInput(f"a choice lists an option twice: {', '.join(map(str, self.options))}")

    @property
    def about(self) -> dict[str, Any]:
        return {"choice": list(self.options)}


Prior = Uniform | LogUniform | Choice


@dataclass(frozen=True)
class Space:
    """A prior for every hyper-parameter that is searched."""

    priors: Mapping[str, Prior]

    def __post_init__(self) -> None:
        if not self.priors:
            raise BadInput("a search space needs at least one hyper-parameter")

    @property
    def key(self) -> str:
        """Canonical JSON: equal spaces give equal text."""
        return canonical({name: prior.about for name, prior in self.priors.items()})


class Streams(NamedTuple):
    """The spaces of one search: what every arm draws from, and what only gated blocks draw besides, from a stream of
    their own, so that the shared numbers of a trial are the same in each arm."""

    shared: Space
    gates: Space


def check_range(low: float, high: float) -> None:
    """Raise ``BadInput`` for a range that is not finite, is empty, or runs backwards."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise BadInput(f"a prior needs finite bounds, not {low:g} and {high:g}")
    if not low < high:
        raise BadInput(f"the range from {low:g} to {high:g} is {'empty' if low == high else 'inverted'}")


FIGURE_1 = Space(
    {
        "rate": LogUniform(1e-3, 1.0),
        "momentum": Uniform(0.5, 0.99),
        "decay": LogUniform(1e-3, 1.0),
        "activation": Choice(("relu", "tanh")),
    }
)
FIGURE_1_GATES = Space({"gate_bias": Uniform(-10.0, -1.0)})

SPACES: Mapping[str, Streams] = {"figure-1": Streams(FIGURE_1, FIGURE_1_GATES)}


def get_space(name: str) -> Streams:
    """The spaces called ``name``; raises ``UnknownName`` with near names."""
    try:
        return SPACES[name]
    except (KeyError, TypeError):
        raise UnknownName("search space", str(name), SPACES) from None
