"""asv's benchmarks of every block. Lower is better everywhere, and every value is finite; ``cells`` measures them.

This module must not import torch: asv's fork server has it loaded when it forks.
"""

from __future__ import annotations

import math
from typing import Any

from .cells import CORE, DEPTHS, FAMILIES, FAMILY_DEPTH, ONLY, OTHER_DEPTH, OTHERS, Key, Lacking, measure_commit, steps

VERSION = "1"  # raise it only when the meaning of the values changes: a comment must not cut every line


def look_up(values: dict[Key, list[float] | str], key: Key) -> Any:
    """The value for asv: samples, of which it records the median and the interval; NaN where n/a."""
    samples = values.get(key, [])
    if isinstance(samples, str):
        raise RuntimeError(samples)
    return {"samples": samples, "number": 1} if len(samples) > 1 else samples[0] if samples else math.nan


def shared(unit: str) -> Any:
    """Mark a benchmark as one that looks up what ``measure_commit`` measured, in ``unit``."""

    def mark(function: Any) -> Any:
        function.setup_cache, function.unit = measure_commit, unit
        return function

    return mark


class _Series:
    """The four series of every cell. ``cell`` gives the block, family and depth of a benchmark's parameters."""

    version = VERSION
    timeout = 300
    rounds, number, warmup_time, repeat = 1, 1, 0.02, (5, 30, 0.5)

    def cell(self, *where: Any) -> tuple[str, str, int]:
        raise NotImplementedError

    def setup(self, *given: Any) -> None:
        """Build what ``time_step`` times; the others, whose first argument is the shared values, need nothing.

        asv calls this before every timed call, so that ``number`` must be 1; steps take long enough for that."""
        if given and isinstance(given[0], dict):
            return
        cell = self.cell(*given)
        if ONLY and "|".join(map(str, cell)) not in ONLY:
            raise Lacking("not in this selection")
        steps(*cell)

    def teardown(self, *given: Any) -> None:
        """Undo what a step changed, not timed. asv calls this after a skipped or failed ``setup`` as well."""
        if steps.cache_info().currsize:
            steps(*self.cell(*given)).work.restore()

    def time_step(self, *where: Any) -> None:
        steps(*self.cell(*where)).work.step()

    @shared("time / floor")
    def track_slowdown(self, values: Any, *where: Any) -> Any:
        return look_up(values, ("slowdown", *self.cell(*where)))

    @shared("bytes")
    def track_peak_bytes(self, values: Any, *where: Any) -> Any:
        return look_up(values, ("peak_bytes", *self.cell(*where)))

    @shared("bytes")
    def track_saved_bytes(self, values: Any, *where: Any) -> Any:
        return look_up(values, ("saved_bytes", *self.cell(*where)))


if CORE and FAMILIES:

    class Families(_Series):
        """Every core block in every family, at one depth."""

        params = (CORE, FAMILIES)
        param_names = ("block", "family")

        def cell(self, *where: Any) -> tuple[str, str, int]:
            block, family = where
            return block, family, FAMILY_DEPTH


if CORE:

    class Depths(_Series):
        """Every core block in dense stacks of growing depth: what it costs there, and whether it trains."""

        params = (CORE, DEPTHS)
        param_names = ("block", "depth")

        def cell(self, *where: Any) -> tuple[str, str, int]:
            block, depth = where
            return block, "dense", depth

        @shared("log10(loss / 1e-6 nat)")
        def track_log_loss(self, values: Any, *where: Any) -> Any:
            return look_up(values, ("log_loss", *self.cell(*where)))

        @shared("steps")
        def track_steps_to_threshold(self, values: Any, *where: Any) -> Any:
            return look_up(values, ("steps_to_threshold", *self.cell(*where)))


if OTHERS:

    class Others(_Series):
        """A block that is not core: one family, one depth."""

        params = (OTHERS,)
        param_names = ("block",)

        def cell(self, *where: Any) -> tuple[str, str, int]:
            (block,) = where
            return block, "dense", OTHER_DEPTH
