"""The model of a report: a store's rows and runs, and every table that is derived from them, each computed once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from highway_bench.report.derived import Derived, once
from highway_bench.report.tables import (
    conflicts,
    counts,
    failures,
    frontier,
    gates,
    memory,
    propagation,
    step_times,
    summary,
    trainability,
)
from highway_bench.report.tables.answer import Answer, answer
from highway_bench.report.tables.by_axis import by_axis
from highway_bench.report.tables.conflicts import ConflictingVerdict
from highway_bench.report.tables.trainability import Contests
from highway_bench.results.store import Store

Source = pd.DataFrame | Store | str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Results(Derived):
    """The newest rows of each cell of a store, with its runs, and the tables that are derived from them.

    ``rows`` may be given as a store has them or prepared already; ``rows`` of the result are prepared (see
    ``prepared``). ``about`` is what the runs say of blocks, families, tasks and metrics.

    A table is computed at the first call; every call returns a copy. ``frame.attrs["units"]`` maps each column of
    numbers to its unit: ``"1"`` for counts, ratios and shares. Missing numbers are NaN, and no number is rounded.
    ``block`` and ``family_label`` are names with their options. Columns that end in ``_low`` and ``_high`` are the
    bounds of the column that they are named after: a 95 % interval where nothing else is said.

    Raises ``NothingMeasured`` for a frame without rows and ``BadInput`` for one that lacks columns of the schema.
    """

    @once
    def answer(self) -> list[Answer]:
        """Sentences: one a depth of every contest with verdicts; one a depth, phase and mode on the cost of blocks
        without a verdict; then what qualifies them."""
        return answer(self.contests(), self.training_runs(), self.ratios(), self.conflicting_verdicts(), self.about)

    @once
    def summary(self) -> pd.DataFrame:
        """A row a block of every contest with verdicts, and a row a block and setting of costs without a verdict.

        Columns: those of ``frontier``; ``verdict``, ``final_loss``, ``seconds_to_threshold``, ``training_seconds``,
        ``params`` and ``edge_rate`` at ``at_depth``, the deepest depth at which some block trains (the shallowest where
        none does); ``edge_rate`` is the tuned rate where it is the largest or smallest of those tried and the block
        trains with any seed. ``step_ratio`` is the step time over the yard-stick's and ``bytes_per_layer`` what a layer
        keeps, of cells measured alike at the depth nearest to ``at_depth``; ``ratio_depth``, ``ratio_width``,
        ``ratio_batch`` and ``bytes_…`` are their sizes, ``ratio_from`` the phase that was timed, and ``ratio_gap`` the
        reason why there is no ratio.
        """
        table = summary.summary_table(self.contests(), self.frontier(), self.ratios(), self.memory(), self.about)
        return self.with_units(table, "trainability", training_seconds="s", bytes_per_layer="B", edge_rate="1")

    @once
    def frontier(self) -> pd.DataFrame:
        """A row a contest and block: how deep the block trains.

        Columns: those of the contest; ``l_max`` with ``l_max_censored`` (``left``: below the shallowest depth,
        ``right``: the ladder ended first); ``l50`` with its interval and ``l50_censored``; ``area`` under success
        against log depth, a share; ``provisional``: fewer than ten seeds; ``limited``: other steps give another
        frontier. NaN where seeds are too few or no run finished.
        """
        return self.with_units(frontier.frontier_table(self.contests(), self.about), "trainability")

    @once
    def contests(self) -> Contests:
        """``trainability`` contest by contest, those with verdicts only: what is equal, and the rows."""
        return trainability.contests(self.trainability())

    @once
    def trainability(self) -> pd.DataFrame:
        """A row a block and depth of each contest (networks that differ in block, depth and seed alone).

        Columns: the contest's, ``block``, ``depth``, ``width``, ``params``; ``k`` successes of ``n`` finished runs with
        the Wilson interval ``rate_low``, ``rate_high`` of their share; ``diverged``, ``stalled``, ``unfinished`` and
        ``skipped`` runs; ``verdict`` and ``provisional``; ``final_loss``, the geometric mean over seeds with its t
        interval (where a run diverged the median with it as infinite, without interval); medians over seeds of
        ``steps_to_threshold``, ``seconds_to_threshold`` (a miss is infinite), ``rate`` and ``step_seconds`` (none where
        networks were trained together); means of ``train_accuracy``, ``test_loss`` and ``test_accuracy``; ``seeds`` and
        ``messages``; ``rate_at_edge``: the rate was tuned and is the largest or smallest of those tried.
        """
        table = trainability.trainability_table(self.training_runs(), self.about)
        return self.with_units(table, "trainability", rate_low="1", rate_high="1", loss_low="nat", loss_high="nat")

    @once
    def training_runs(self) -> pd.DataFrame:
        """A row a training run, trials of a search left out: its cell, metrics, ``status`` and ``message``."""
        return self.with_units(trainability.training_runs(self.rows), "trainability")

    @once
    def trials(self) -> pd.DataFrame:
        """A row a trial of a learning-rate search, with the columns of ``training_runs``; ``rate`` is the one tried."""
        return self.with_units(trainability.trials(self.rows), "trainability")

    @once
    def conflicting_verdicts(self) -> list[ConflictingVerdict]:
        """Blocks that train from one start, or with one kind of branch, and not with another."""
        return conflicts.conflicting_verdicts(self.contests(), self.about)

    @once
    def ratios(self) -> pd.DataFrame:
        """``step_times`` with one row a block and setting: the one that sentences and figures quote.

        Of several like cells, which differ in their recipe or seed, it is one that has a ratio, or else one that was
        timed; of these the one of most samples, and of equals the last one measured.
        """
        return self.with_units(step_times.quoted_ratios(self.step_times()), "throughput", **STEP_UNITS)

    @once
    def step_times(self) -> pd.DataFrame:
        """A row a timed cell, the yard-stick first within each comparison; failed ones have a status and no numbers.

        Columns: the setting, ``block``, ``width``, ``params`` and the task's metrics; ``step_time`` is the median of
        ``n`` samples, ``step_low`` and ``step_high`` their p10 and p90, as are those of ``roofline_share`` and
        ``slowdown`` (NaN where the step is faster than the roofline). ``ratio`` is the step time over the yard-stick's
        with its interval, only where the two were sampled in turn and often enough; else ``ratio_gap`` is the reason.
        ``noise`` is the least relative difference that the samples could show, A against A.
        """
        return self.with_units(step_times.step_times(self.rows, self.about), "throughput", **STEP_UNITS)

    @once
    def device_rates(self) -> pd.DataFrame:
        """A row a device, precision and number of threads: the median of ``n`` measured ``matmul_rate``, ``conv_rate``
        and ``copy_rate``, with the least and the largest of several as bounds."""
        return self.with_units(step_times.device_rates(self.rows), "throughput")

    @once
    def memory(self) -> pd.DataFrame:
        """A row a cell whose memory was counted, the yard-stick first within each comparison: the setting, ``block``,
        the task's metrics, and ``layer_ratio``, bytes a layer over the yard-stick's."""
        return self.with_units(memory.memory_table(self.rows, self.about), "memory", layer_ratio="1")

    @once
    def propagation(self) -> pd.DataFrame:
        """A row a block and setting at the start of training, over seeds.

        Columns: the setting, ``gain``, ``steps``, ``block``, ``n`` seeds; the verdicts ``signal`` and ``gradient`` of
        most seeds (``mixed`` in a tie), ``…_agree`` the seeds that share it, and the median, least and largest layer
        from which it holds; the median of each size with the least and largest as bounds.
        """
        return self.with_units(propagation.propagation_table(self.starts(), self.about), "propagation", **START_UNITS)

    @once
    def starts(self) -> pd.DataFrame:
        """A row a start (one seed) with the task's metrics, ``gain`` of the weights, ``steps`` (NaN where it was not
        trained), and the verdicts ``signal`` and ``gradient`` with the layers from which they hold."""
        return self.with_units(propagation.starts(self.rows), "propagation", **START_UNITS)

    @once
    def first_steps(self) -> pd.DataFrame:
        """A row a block and setting whose first steps were trained: medians over ``n`` seeds of ``still_layers``,
        ``still_first`` and ``still_last`` with the least and largest as bounds; ``update_least`` and ``update_most``,
        the smallest and the largest layer's ‖ΔW‖/‖W‖; ``diverged`` seeds."""
        table = propagation.first_steps(self.starts(), self.rows, self.about)
        return self.with_units(table, "propagation", rate="1")

    @once
    def layer_sizes(self, metric: str) -> pd.DataFrame:
        """A row a block, setting and ``layer`` of ``activation`` or ``gradient``, relative to the first layer's input
        or to the last layer's output: ``middle``, ``low`` and ``high`` are the median, least and largest over ``n``
        seeds. Sizes of 0, and those that are not finite, have no row."""
        return self.with_units(propagation.layer_sizes(self.rows, metric), "propagation", middle="1", low="1", high="1")

    @once
    def gates(self) -> pd.DataFrame:
        """A row a block and depth of each contest: ``n`` trained networks of which ``k`` succeed, means of what was
        measured over them and their layers, and of the mean lesion curve the largest rise of the loss,
        ``lesion_most``, and its layer, ``lesion_at``."""
        table = gates.gates_table(self.trained_networks(), self.trained_layers(), self.about)
        return self.with_units(table, "gates", lesion_most="nat", lesion_at="layer")

    @once
    def trained_networks(self) -> pd.DataFrame:
        """A row a trained network: its contest, ``depth``, ``label``, ``seed``, ``digest`` and scalars."""
        return self.with_units(gates.networks(self.rows), "gates")

    @once
    def trained_layers(self) -> pd.DataFrame:
        """A row a trained network and ``layer``, counted from 1: its gates, the stream's change, and what cutting the
        layer out changes, ``lesion_loss_change`` (nat) and ``lesion_error_change`` (share of the training items)."""
        return self.with_units(gates.layers(self.rows), "gates", lesion_loss_change="nat", lesion_error_change="1")

    @once
    def counts(self) -> pd.DataFrame:
        """A row a network whose ``parameters`` and ``multiply_adds`` were counted, the yard-stick first;
        ``adds_ratio`` is the multiply-adds over the yard-stick's."""
        return self.with_units(counts.counts_table(self.rows, self.about), "cost", adds_ratio="1")

    @once
    def failures(self) -> pd.DataFrame:
        """Failed and skipped cells, failures first, with the number of ``cells`` alike in all other columns.

        Stalled and diverged runs are outcomes and have no row. A cell that has a result, and later failed or was
        skipped, has a row that says so.
        """
        return self.with_units(failures.failures_table(self.rows), "")

    @once
    def by_axis(self, task: str) -> dict[str, pd.DataFrame]:
        """What a task stored by layer, step or epoch, a table an axis: a row a setting and ``index``, with ``n``
        networks and the median over them of every metric. Trials of a search are left out, and most points of a long
        axis."""
        tables = by_axis(self.rows, task, self.about)
        return {axis: self.with_units(table, task, index=axis) for axis, table in tables.items()}


STEP_UNITS: Mapping[str, str] = {"step_low": "s", "step_high": "s", "ratio": "1", "noise": "1"}
START_UNITS: Mapping[str, str] = {
    f"{way}{bound}": "layer" for way in ("signal", "gradient") for bound in ("_at", "_low", "_high")
}


def open_results(source: Source) -> Results:
    """The results of a store, a store's path, or a frame of its rows (of which no run is known).

    Nothing stays open, and the store may be one that a run is still filling. Raises ``NothingMeasured`` where there are
    no rows and ``BadInput`` where the store cannot be read.

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
