"""What the data sets of digits have in common: grey square images, ten classes."""

from __future__ import annotations

from typing import ClassVar, Literal

from highway_bench.data.base import DataSet


class DigitImages(DataSet):
    """Images (1, side, side) of the digits 0 to 9."""

    side: ClassVar[int]

    @property
    def input_kind(self) -> Literal["image"]:
        return "image"

    @property
    def target_kind(self) -> Literal["class"]:
        return "class"

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (1, self.side, self.side)

    @property
    def outputs(self) -> int:
        return 10
