"""asv's benchmarks of a suite, which look up the values of a point that is measured as a whole."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from .measuring import SeriesKey, Values, measure_point
from .series import Group, Series, Suite

VERSION = "1"  # raise it only when the meaning of the values changes: a new version starts every series again
MOST_SECONDS = 3600


def benchmarks(suite: Suite) -> dict[str, type]:
    """The classes for asv by name: put them into the globals of a module in asv's folder of benchmarks.

    Environment variables: ``HIGHWAY_BENCH_HISTORY=quick`` leaves out the expensive values, which are n/a then;
    ``HIGHWAY_BENCH_HISTORY_DEVICE`` is cpu (the default) or cuda.
    """

    def point() -> Values:
        """Measured once a commit: asv hands the result to every benchmark."""
        quick = os.environ.get("HIGHWAY_BENCH_HISTORY") == "quick"
        return measure_point(suite, os.environ.get("HIGHWAY_BENCH_HISTORY_DEVICE") or "cpu", quick=quick)

    point.timeout = MOST_SECONDS  # type: ignore[attr-defined]
    return {group.name: _class(group, point) for group in suite.groups}


def _class(group: Group, point: Callable[[], Values]) -> type:
    members: dict[str, Any] = {series.benchmark: _look_up(group, series) for series in group.series}
    return type(
        group.name,
        (),
        members
        | {
            "__doc__": group.meaning,
            "params": [list(values) for values in group.axes.values()],
            "param_names": list(group.axes),
            "version": VERSION,
            "timeout": 60,
            "setup_cache": staticmethod(point),
        },
    )


def _look_up(group: Group, series: Series) -> Callable[..., Any]:
    def track(self: object, values: Values, *where: Any) -> Any:
        return value_for_asv(values, SeriesKey(series.name, group.cell(where)))

    track.unit = series.unit  # type: ignore[attr-defined]
    track.pretty_name = f"{series.title} · {group.label}"  # type: ignore[attr-defined]
    return track


def value_for_asv(values: Values, key: SeriesKey) -> Any:
    """The value of ``key`` for asv: samples, of which it records the median and the interval, one number, or NaN for
    n/a. Raises ``RuntimeError`` with the stored message where the measurement failed."""
    samples = values.get(key, [])
    if isinstance(samples, str):
        raise RuntimeError(samples)
    return {"samples": samples, "number": 1} if len(samples) > 1 else samples[0] if samples else math.nan
