"""Request: what a user may change of a reproduction. Each option is declared here, once; no torch is imported."""

from __future__ import annotations

from dataclasses import dataclass

from highway_bench.options import check_options, several, single


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks of a reproduction. ``None`` or an empty value leaves a number to the reproduction's scale.

    Raises ``BadInput`` for a number below its minimum.
    """

    scale: str = single("desk (default: a CPU, minutes) or paper (a GPU, hours), where there are both.", default="desk")
    epochs: int | None = single("Epochs to train.", minimum=1)
    steps: int | None = single("Training steps.", minimum=1)
    trials: int | None = single("Trials of a search, for every block and depth.", minimum=1)
    seeds: int | None = single("Seeds of runs that count.", minimum=1)
    depth: tuple[int, ...] = several("Layers as the publication counts them; repeatable.", minimum=1)
    device: str = single("cpu or cuda; by default, cuda where there is one.", default="cpu")

    def __post_init__(self) -> None:
        check_options(self)
