"""The model of a report: the rows and runs of a store, and every derived table, each computed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import pandas as pd

from highway_bench.frames import cells, gates, propagation, trainability
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import Runs, of_task, prepared
from highway_bench.frames.trainability import Contests
from highway_bench.results.store import Store

P = ParamSpec("P")
T = TypeVar("T")
Source = pd.DataFrame | Store | str | os.PathLike[str]
SIZES: Final = {
    "depth": "layer",
    "at_depth": "layer",
    "l_max": "layer",
    "shallowest": "layer",
    "l50": "layer",
    "layer": "layer",
    "steps": "step",
}
"""Units of columns that occur in several tables. Those of a single table are arguments of ``with_units``."""
STEP_UNITS: Mapping[str, str] = {"step_low": "s", "step_high": "s", "ratio": "1"}
START_UNITS: Mapping[str, str] = {
    f"{way}{bound}": "layer" for way in ("signal", "gradient") for bound in ("_at", "_low", "_high")
}


def once(compute: Callable[Concatenate[Results, P], T]) -> Callable[Concatenate[Results, P], T]:
    """Decorator: cache a method's value at the first call and return a copy, so that no caller changes the cache."""

    def method(self: Results, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (compute.__name__, *args, *kwargs.values())
        if key not in self._values:
            self._values[key] = compute(self, *args, **kwargs)
        value: Any = self._values[key]
        # pandas copies the columns of a shallow copy when they are written.
        copied: Any = value.copy(deep=False) if isinstance(value, pd.DataFrame) else deepcopy(value)
        return copied  # type: ignore[no-any-return]

    update_wrapper(method, compute)
    return method


@dataclass(frozen=True, eq=False)
class Results:
    """The newest rows of each cell of a store, the store's runs, and the tables derived from them.

    ``rows`` are those of a store, or rows that ``prepared`` returned; the attribute ``rows`` has the latter form.
    ``about`` has the runs' descriptions of blocks, families, tasks and metrics.

    Each table is computed at the first call; every call returns a copy. ``frame.attrs["units"]`` maps each column of
    numbers to its unit, ``"1"`` for counts, ratios and shares. Missing numbers are NaN, and no number is rounded.
    ``block`` and ``family_label`` are names with their options. Columns ``…_low`` and ``…_high`` are the bounds of the
    column of that name, by default a 95 % interval.

    Raises ``NothingMeasured`` for a frame without rows and ``BadInput`` for a frame without the schema's columns.
    """

    rows: pd.DataFrame
    runs: Runs = field(default_factory=dict)
    about: Descriptions = field(init=False, repr=False)
    _values: dict[Hashable, Any] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", prepared(self.rows, self.runs))
        object.__setattr__(self, "about", Descriptions(self.runs))

    @once
    def frontier(self) -> pd.DataFrame:
        """One row per contest and block: the depths to which the block trains.

        Columns: those of the contest; the ``start``; the ``shallowest`` depth tried; ``l_max``, NaN where it was not
        reached, with ``l_max_censored`` (``left``: below the shallowest depth,
        ``right``: beyond the deepest depth tried); ``l50`` with its interval and ``l50_censored``; ``area`` under
        success against log depth, a share; ``provisional``: more seeds may change L_max; ``limited``: another number
        of steps gives another frontier. NaN if seeds are too few or no run finished.
        """
        return self.with_units(trainability.frontier_table(self.contests(), self.about), "trainability")

    @once
    def contests(self) -> Contests:
        """The contests with verdicts: for each, the values that its rows share, and its rows of ``trainability``."""
        return trainability.contests(self.trainability())

    @once
    def trainability(self) -> pd.DataFrame:
        """One row per contest, block and depth. Networks of one contest differ only in block, depth and seed.

        Columns: the contest's, ``block``, ``start``, ``block_options``, ``family_options``, ``depth``, ``width``,
        ``params``, ``budget_mismatch``; ``k`` successes of ``n`` finished runs with
        the Wilson interval ``rate_low``, ``rate_high`` of their share; the numbers of ``diverged``, ``stalled``,
        ``unfinished`` and ``skipped`` runs; ``verdict`` and ``provisional``; ``final_loss``, the geometric mean over
        seeds with its t interval (if a run diverged: the median with that run as infinite, without interval); medians
        over seeds of ``steps_to_threshold``, ``seconds_to_threshold`` (infinite for a run that never reached it),
        ``rate`` and ``step_seconds`` (NaN if networks were trained as one); means of ``train_accuracy``, ``test_loss``,
        ``test_bits``, ``test_accuracy`` and ``success_loss``; ``seeds`` and ``messages``; ``edge``: ``lowest`` or
        ``highest`` if the rate was tuned and is that of those tried, otherwise empty.
        """
        table = trainability.trainability_table(self.training_runs(), self.trials(), self.about)
        return self.with_units(table, "trainability", rate_low="1", rate_high="1", loss_low="nat", loss_high="nat")

    @once
    def training_runs(self) -> pd.DataFrame:
        """One row per training run, without the trials of a search: its cell, metrics, ``status`` and ``message``.

        ``ran_on`` is the machine of the run, ``machine`` that of its contest, which may have runs of several machines.
        """
        return self.with_units(trainability.training_runs(self.of_task("trainability")), "trainability")

    @once
    def trials(self) -> pd.DataFrame:
        """One row per trial of a learning-rate search, with the columns of ``training_runs``."""
        return self.with_units(trainability.trials(self.of_task("trainability")), "trainability")

    @once
    def ratios(self) -> pd.DataFrame:
        """``step_times`` with one row per block and setting, which sentences and figures quote.

        Several cells of one setting differ in recipe or seed. Cells with a ratio take precedence over cells with a step
        time alone, then those with more samples, then the newest.
        """
        return self.with_units(cells.quoted_ratios(self.step_times()), "throughput", **STEP_UNITS)

    @once
    def step_times(self) -> pd.DataFrame:
        """One row per timed cell, the baseline first within each comparison. Failed cells have only a status.

        Columns: the setting, ``block``, ``width``, ``params`` and the task's metrics; ``step_time`` is the median of
        ``n`` samples; ``step_low`` and ``step_high`` are their p10 and p90, and so are the bounds of ``roofline_share``
        and ``slowdown`` (NaN if the step is faster than the roofline). ``ratio`` is the step time over the baseline's
        with its interval over processes; without an interval, ``ratio_gap`` is the reason. ``waited`` is the share of
        the wall time in which the step waited for a core, ``disturbed`` the number of rounds left out for it.
        """
        return self.with_units(cells.step_times(self.of_task("throughput"), self.about), "throughput", **STEP_UNITS)

    @once
    def memory(self) -> pd.DataFrame:
        """One row per cell of the memory task, the baseline first within each comparison: the setting, ``block``, the
        task's metrics, and ``layer_ratio``, bytes per layer over the baseline's."""
        return self.with_units(cells.memory_table(self.of_task("memory"), self.about), "memory", layer_ratio="1")

    @once
    def propagation(self) -> pd.DataFrame:
        """One row per block and setting at initialisation, over seeds.

        Columns: the setting, ``gain``, ``steps``, ``block``, ``n`` seeds; the verdicts ``signal`` and ``gradient`` of
        most seeds (``mixed`` in a tie), with ``…_agree``, the number of these seeds, and ``…_at``, the median layer
        from which the verdict holds; the median of each size. All bounds are the least and the largest over seeds.
        """
        return self.with_units(propagation.propagation_table(self.starts(), self.about), "propagation", **START_UNITS)

    @once
    def starts(self) -> pd.DataFrame:
        """One row per initialised network: the task's metrics, the ``gain`` of its weights, its training ``steps`` (NaN
        if it was not trained), and the verdicts ``signal`` and ``gradient`` with the layers from which they hold."""
        return self.with_units(propagation.starts(self.of_task("propagation")), "propagation", **START_UNITS)

    @once
    def first_steps(self) -> pd.DataFrame:
        """One row per block and setting with a few training steps: medians over ``n`` seeds of ``still_layers``,
        ``still_first`` and ``still_last`` with the least and largest as bounds; ``update_least`` and ``update_most``,
        the smallest and the largest ‖ΔW‖/‖W‖ of a layer; the number of ``diverged`` seeds."""
        table = propagation.first_steps(self.starts(), self.of_task("propagation"), self.about)
        return self.with_units(table, "propagation", rate="1")

    @once
    def layer_sizes(self, metric: str) -> pd.DataFrame:
        """One row per block, setting and ``layer``: the size of ``metric`` relative to its origin, as ``middle``,
        ``low`` and ``high``, the median, least and largest over ``n`` seeds.

        ``metric`` is ``activation``, relative to the first layer's input, or ``gradient``, relative to the last layer's
        output. Sizes that are 0 or not finite have no row.
        """
        return self.with_units(
            propagation.layer_sizes(self.of_task("propagation"), metric), "propagation", middle="1", low="1", high="1"
        )

    @once
    def gates(self) -> pd.DataFrame:
        """One row per contest, block, start and depth: ``k`` of ``n`` trained networks that succeed. Of these alone:
        the means of their metrics over networks and layers (the geometric mean of ``final_loss``), and the largest rise
        of the mean lesion curve, ``lesion_most`` (nat), at layer ``lesion_at``."""
        table = gates.gates_table(self.trained_networks(), self.trained_layers(), self.about)
        return self.with_units(table, "gates", lesion_most="nat", lesion_at="layer")

    @once
    def trained_networks(self) -> pd.DataFrame:
        """One row per trained network: its contest, ``depth``, ``label``, ``seed``, ``digest`` and scalars."""
        return self.with_units(gates.networks(self.of_task("gates")), "gates")

    @once
    def trained_layers(self) -> pd.DataFrame:
        """One row per trained network and ``layer``, counted from 1: its gates, its change of the stream, and the
        effect of its lesion, ``lesion_loss_change`` (nat) and ``lesion_error_change`` (share of training items)."""
        return self.with_units(
            gates.layers(self.of_task("gates")), "gates", lesion_loss_change="nat", lesion_error_change="1"
        )

    @once
    def counts(self) -> pd.DataFrame:
        """One row per network of the cost task, the baseline first: ``parameters``, ``multiply_adds``, and
        ``adds_ratio``, the multiply-adds over the baseline's."""
        return self.with_units(cells.counts_table(self.of_task("cost"), self.about), "cost", adds_ratio="1")

    @once
    def failures(self) -> pd.DataFrame:
        """Failed and skipped cells, failures first; ``cells`` counts those that are equal in all other columns.

        Stalled and diverged runs are outcomes, not failures. A cell that has a result and failed or was skipped later
        has a row with a remark.
        """
        return self.with_units(cells.failures_table(self.rows), "")

    @once
    def of_task(self, task: str) -> pd.DataFrame:
        """The prepared rows of one task."""
        return of_task(self.rows, task)

    def with_units(self, table: pd.DataFrame, task: str, **own: str) -> pd.DataFrame:
        """Set ``table.attrs["units"]``, the unit of every column of numbers by name, and return ``table``.

        The unit is that in ``own``, of the metric of ``task`` with that name, or in ``SIZES``. A column ``…_low`` or
        ``…_high`` has the unit of the column that it bounds. Any other column has the unit ``1``.
        """
        metrics = {**self._metric_units(task), **own}
        units: dict[str, str] = {}
        for name in map(str, table.columns):
            if pd.api.types.is_bool_dtype(table[name]) or not pd.api.types.is_numeric_dtype(table[name]):
                continue
            base = name.removesuffix("_low").removesuffix("_high")
            units[name] = next((known[key] for key in (name, base) for known in (metrics, SIZES) if key in known), "1")
        table.attrs["units"] = units
        return table

    @once
    def _metric_units(self, task: str) -> Mapping[str, str]:
        """The unit of every metric of ``task``, from its rows or else from the runs' descriptions."""
        described = self.about.tasks.get(task, {}).get("metrics") or {}
        stored = self.of_task(task)[["metric", "unit"]].dropna().drop_duplicates("metric")
        return {name: entry["unit"] for name, entry in described.items() if entry.get("unit")} | dict(stored.to_numpy())


def open_results(source: Source) -> Results:
    """The results of a store, of the store at a path, or of a frame of rows, which has no runs.

    The store is closed again, and a run may be writing to it. Raises ``NothingMeasured`` if there are no rows and
    ``BadInput`` if the store cannot be read.

    >>> import highway_bench as hb
    >>> ratios = hb.open_results("reports/smoke.sqlite").ratios()  # doctest: +SKIP
    >>> ratios.attrs["units"]["step_time"]  # doctest: +SKIP
    's'
    """
    if isinstance(source, pd.DataFrame):
        return Results(source)
    if isinstance(source, Store):
        return Results(source.frame(), source.runs())
    with Store(source, read_only=True) as store:
        return Results(store.frame(), store.runs())
