"""asv's benchmarks of every block; ``cells`` measures them. For every benchmark lower is better and values are finite.

This module must not import torch: asv's fork server imports it before it forks.
"""

from __future__ import annotations

import math
from typing import Any

from .cells import CORE, DEPTHS, FAMILIES, FAMILY_DEPTH, ONLY, OTHER_DEPTH, OTHERS, Key, Lacking, measure_commit, steps

VERSION = "1"  # raise it only when the meaning of the values changes: a new version starts every series again


def value_for_asv(values: dict[Key, list[float] | str], key: Key) -> Any:
    """The value of ``key`` for asv: samples, of which it records the median and the interval, one number, or NaN for
    n/a. Raises ``RuntimeError`` with the stored message where the measurement failed."""
    samples = values.get(key, [])
    if isinstance(samples, str):
        raise RuntimeError(samples)
    return {"samples": samples, "number": 1} if len(samples) > 1 else samples[0] if samples else math.nan


def from_commit(unit: str) -> Any:
    """Decorator: the benchmark reads the values of ``measure_commit``, which asv runs once a commit, in ``unit``."""

    def mark(function: Any) -> Any:
        function.setup_cache, function.unit = measure_commit, unit
        return function

    return mark


class _Series:
    """The four series of every cell. ``cell`` maps a benchmark's parameters to block, family and depth."""

    version = VERSION
    timeout = 300
    rounds, number, warmup_time, repeat = 1, 1, 0.02, (5, 30, 0.5)

    def cell(self, *where: Any) -> tuple[str, str, int]:
        raise NotImplementedError

    def setup(self, *given: Any) -> None:
        """Build the workload of ``time_step``. The other benchmarks, whose first argument is a dict of values, need no
        set-up.

        asv calls this before every sample, so ``number`` must be 1; steps take long enough for that."""
        if given and isinstance(given[0], dict):
            return
        cell = self.cell(*given)
        if ONLY and "|".join(map(str, cell)) not in ONLY:
            raise Lacking("not in this selection")
        steps(*cell)

    def teardown(self, *given: Any) -> None:
        """Undo, untimed, what a step changed. asv also calls this after a skipped or failed ``setup``."""
        if steps.cache_info().currsize:
            steps(*self.cell(*given)).work.restore()

    def time_step(self, *where: Any) -> None:
        steps(*self.cell(*where)).work.step()

    @from_commit("time / floor")
    def track_slowdown(self, values: Any, *where: Any) -> Any:
        return value_for_asv(values, ("slowdown", *self.cell(*where)))

    @from_commit("bytes")
    def track_peak_bytes(self, values: Any, *where: Any) -> Any:
        return value_for_asv(values, ("peak_bytes", *self.cell(*where)))

    @from_commit("bytes")
    def track_saved_bytes(self, values: Any, *where: Any) -> Any:
        return value_for_asv(values, ("saved_bytes", *self.cell(*where)))


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
        """Every core block in dense stacks of growing depth: its cost, and whether it trains."""

        params = (CORE, DEPTHS)
        param_names = ("block", "depth")

        def cell(self, *where: Any) -> tuple[str, str, int]:
            block, depth = where
            return block, "dense", depth

        @from_commit("log10(loss / 1e-6 nat)")
        def track_log_loss(self, values: Any, *where: Any) -> Any:
            return value_for_asv(values, ("log_loss", *self.cell(*where)))

        @from_commit("steps")
        def track_steps_to_threshold(self, values: Any, *where: Any) -> Any:
            return value_for_asv(values, ("steps_to_threshold", *self.cell(*where)))


if OTHERS:

    class Others(_Series):
        """A block that is not core: one family, one depth."""

        params = (OTHERS,)
        param_names = ("block",)

        def cell(self, *where: Any) -> tuple[str, str, int]:
            (block,) = where
            return block, "dense", OTHER_DEPTH
