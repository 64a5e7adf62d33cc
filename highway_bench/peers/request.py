"""Request: the options of a comparison with peers, each declared once. Importing it does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from highway_bench.cell import MODES, Phase
from highway_bench.options import by_name, check_options, several, single

DEVICES = ("cpu", "cuda")
PHASES: tuple[Phase, ...] = ("forward-backward", "forward")


@dataclass(frozen=True, kw_only=True)
class PeerRequest:
    """What is compared. By default every peer at its family's sizes, forward and backward, eager and compiled.

    ``device`` is by default cuda if there is a GPU. Raises ``BadInput`` for an unknown name, or a number below its
    minimum.
    """

    peer: tuple[str, ...] = several("Only these peers, by name or pattern; by default all.")
    width: tuple[int, ...] = several("Only these widths.", minimum=1)
    depth: int | None = single("Layers.", minimum=1)
    batch_size: int | None = single("Items per step.", minimum=1)
    phase: tuple[str, ...] = several("The steps, by default the first of these", choices=PHASES)
    mode: tuple[str, ...] = several("Execution modes, by default the first two of these", choices=MODES)
    device: str | None = single("The device, by default cuda if there is a GPU", choices=DEVICES)
    threads: int | None = single("Threads of a step; by default one, which is pinned to a core.", minimum=1)
    recipe: Mapping[str, Any] = by_name("Sampling words: seconds=1, samples=40, processes=5, precision=0.02, limit=60.")

    @classmethod
    def of(cls, **words: Any) -> PeerRequest:
        """The request of these values. ``None`` is the default, and a list counts as several values."""
        given = {name: value for name, value in words.items() if value is not None}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
        }
        return cls(**values)

    def __post_init__(self) -> None:
        check_options(self)
