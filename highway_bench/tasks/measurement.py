"""Measurement: one metric's value, from the task through the worker's file to the store's row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from highway_bench.cell import Cell
from highway_bench.results.schema import Status, worst

Better = Literal["lower", "higher", ""]


@dataclass(frozen=True)
class Metric:
    """A quantity that a task reports: its name in the store, its unit and which direction is better.

    ``label`` heads a table's column or an axis, by default the name with spaces. ``hint`` explains the quantity in a
    few words. ``percent`` marks a share that is printed as a percentage.
    """

    name: str
    unit: str
    better: Better = ""
    label: str = field(default="", kw_only=True)
    hint: str = field(default="", kw_only=True)
    percent: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name.replace("_", " "))


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One metric's value. With ``samples``, ``value`` is their median and ``low``/``high`` their p10 and p90.

    ``paired`` has lists as long as ``samples``, by name: what was sampled in the same rounds. ``count`` is the number
    of values behind an estimate that stores no samples. ``axis`` names what ``index`` counts (layer, step, …); it is
    empty for a scalar.
    """

    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    samples: Sequence[float | None] | None = None
    paired: Mapping[str, Sequence[float]] | None = None
    count: int | None = None
    axis: str = ""
    index: float = 0.0
    status: Status = Status.OK
    message: str | None = None

    def finite(self) -> Measurement:
        """This measurement as it is stored: a number that is not finite becomes null, and the message has its value.

        The status ``ok`` then becomes ``failed``. A task that expects such a number sets ``diverged`` itself.
        """
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        odd = [f"{name} is {one:g}" for name, one in numbers.items() if one is not None and not math.isfinite(one)]
        samples = None if self.samples is None else [_finite(sample) for sample in self.samples]
        if samples is not None and None in samples:
            odd.append(f"{samples.count(None)} of {len(samples)} samples are not finite")
        return replace(
            self,
            value=_finite(self.value),
            low=_finite(self.low),
            high=_finite(self.high),
            samples=samples,
            index=float(self.index),
            status=Status.FAILED if odd and self.status == Status.OK else self.status,
            message="; ".join(filter(None, [self.message, *odd])) or None,
        )

    @classmethod
    def of_plain(cls, fields: Mapping[str, Any]) -> Self:
        """The measurement with these ``fields``, as read from JSON."""
        return cls(**{**fields, "status": Status(fields["status"])})


@dataclass(frozen=True)
class Outcome:
    """The outcome of one cell of a group: its measurements, or the error that stopped it."""

    cell: Cell
    measurements: Sequence[Measurement] = ()
    params: int | None = None
    flops_per_item: float | None = None
    error: BaseException | None = None


def deciding(measurements: Sequence[Measurement]) -> Measurement:
    """The measurement whose status is that of the cell."""
    status = worst(one.status for one in measurements)
    return next(one for one in measurements if one.status == status)


def _finite(number: float | None) -> float | None:
    return float(number) if number is not None and math.isfinite(number) else None
