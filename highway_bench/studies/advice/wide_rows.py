"""Rows of the wide table that an advice gives: its layer as one more kind, judged as the advice judges it."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.frames.results import Results
from highway_bench.frames.rows import STARTED, TUNED, recipe_of, rows_of, without_start
from highway_bench.measure.paired import UNDECIDED
from highway_bench.measure.statistics import t_interval, wilson
from highway_bench.report.choice.columns import BEHIND, BEST, HERE, LEARNS, NOT_SEPARATED, WideRow, bounds, of_interval
from highway_bench.report.choice.costs import Curves, add_seconds
from highway_bench.report.choice.ranking import LayerKind
from highway_bench.report.choice.table import add_differences, held_out, log_losses, of_runs
from highway_bench.report.labels import protocol_of
from highway_bench.studies.advice.answer import Advice, ConnectionResult
from highway_bench.studies.advice.learning import Learning
from highway_bench.studies.advice.request import FINAL_SEEDS
from highway_bench.success.ladder import DIVERGES, FAILS, NOT_RUN, TRAINS

OUTCOMES: Final = {
    Learning.TRAINS: TRAINS,
    Learning.LEARNS: LEARNS,
    Learning.UNSTABLE: DIVERGES,
    Learning.STALLS: FAILS,
    Learning.DIVERGES: DIVERGES,
    Learning.FAILED: UNDECIDED,
}


def wide_rows(advice: Advice, results: Results) -> tuple[LayerKind, list[WideRow]]:
    """The kind that is the layer of ``advice`` under its name, and a row for each connection and start.

    ``results`` are those of its store. Losses are those of the finals, so what did not reach these has none. Places by
    training loss are the advice's own, so that page and answer agree.
    """
    runs = results.training_runs().sort_values("seed", kind="stable")
    finals, contest = runs[runs["seed"].ge(FINAL_SEEDS)], rows_of(runs)[-1]
    recipe = canonical({**recipe_of(contest["recipe"]), "rate": TUNED})
    timed = f", steps timed at {advice.timed_depth} layers" * (advice.timed_depth != advice.about["depth"])
    setting = {
        "kind": contest["family_label"],
        "data": contest["dataset"],
        "depth": advice.about["depth"],
        "protocol": f"{protocol_of({**contest, 'recipe': recipe})}, within {advice.about['minutes']:g} minutes{timed}",
        "plain_width": contest["nominal_width"],
        "batch": contest["batch_size"],
        "source": HERE,
        "costs": HERE,
        "timed_on": contest["ran_on"],
    }
    of_each = [_finals_of(one, finals) for one in advice.results]
    rows = [setting | _row(one, own) for one, own in zip(advice.results, of_each, strict=True)]
    by_label = {row["label"]: own for row, own in zip(rows, of_each, strict=True)}
    scores = {label: values for label, own in by_label.items() if (values := held_out(own))}
    losses = {label: values for label, own in by_label.items() if (values := log_losses(own))}
    in_bits = "test_bits" in finals and bool(finals["test_bits"].notna().any())
    add_differences(rows, scores, losses, in_bits=in_bits)
    Curves(results).add_to(rows, pd.concat(of_each))
    for row, one in zip(rows, advice.results, strict=True):
        add_seconds(row)
        row |= _judged(advice, one)
    name = advice.about["layer"].rpartition(":")[2]
    return LayerKind("advice", f"{name}, this advice", setting["kind"], setting["data"], (), setting["protocol"]), rows


def _finals_of(one: ConnectionResult, finals: pd.DataFrame) -> pd.DataFrame:
    """The runs of a connection that count: those at its better rate."""
    block, start = one.connection
    named = finals["block"].map(without_start).eq(block) & finals["start"].eq(start)
    return finals[named & finals["rate"].eq(one.rate or math.nan)]


def _row(one: ConnectionResult, finals: pd.DataFrame) -> WideRow:
    """What was measured of one connection alone."""
    block, start = one.connection
    row: WideRow = {
        "label": next(iter(finals["block"]), STARTED.join(one.connection)),
        "connection": block,
        "start": start,
        "outcome": DIVERGES if one.learning == Learning.DIVERGES else NOT_RUN,
        "trains": 0,
        "seeds": 0,
        **bounds("step_ratio", one.cost.ratio, one.cost.low, one.cost.high),
        "bytes": one.cost.saved,
        "width": one.width,
    }
    if finals.empty:
        return row
    losses, n = log_losses(finals), one.runs
    if len(losses) == n:
        row |= of_interval("loss", t_interval(losses.values()), math.exp)
    return row | {
        "outcome": OUTCOMES[one.learning],
        "trains": one.succeeded,
        "seeds": n,
        **bounds("trains_share", one.succeeded / n, *wilson(one.succeeded, n)),
        "rate": one.rate,
        "params": finals["params"].max(),
        "steps": one.steps,
        **of_runs(finals),
    }


def _judged(advice: Advice, one: ConnectionResult) -> WideRow:
    """The place of a connection by training loss, and how far it is behind, as the advice has them."""
    behind = advice.behind(one.connection)
    if behind is None:
        return {"loss_place": BEST} if one.connection == advice.quality.best else {}
    ratio = bounds("loss_behind", 1 + behind.difference, 1 + behind.low, 1 + behind.high)
    return ratio | {"loss_place": BEHIND if behind.worse else NOT_SEPARATED}
