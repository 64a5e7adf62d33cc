"""Request: the options of a reproduction, each declared once. Importing it does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from highway_bench.options import check_options, several, single


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a run of a reproduction. Where one is ``None`` or empty, the reproduction's scale decides.

    ``scale`` is by default the reproduction's first one (``Reproduction.scale_of``). ``device`` is by default cuda if
    torch finds a GPU, else cpu; it is never ``None``. Raises ``BadInput`` for a number below its minimum.
    """

    scale: str | None = single("desk (default: a CPU) or paper (a GPU), if the reproduction has both.")
    epochs: int | None = single("Epochs to train.", minimum=1)
    steps: int | None = single("Training steps.", minimum=1)
    trials: int | None = single("Trials of a search, per block and depth.", minimum=1)
    seeds: int | None = single("Seeds of the final runs.", minimum=1)
    depth: tuple[int, ...] = several("Layers as the publication counts them; repeatable.", minimum=1)
    device: str = single("cpu or cuda; by default cuda if there is a GPU.")

    def __post_init__(self) -> None:
        check_options(self)
        if not self.device:
            from highway_bench.tasks.from_cell import default_device

            object.__setattr__(self, "device", default_device())
