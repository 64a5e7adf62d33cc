"""The wide table: a row for each kind of layer, data set, depth, connection and start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any, Final

import pandas as pd

from highway_bench.frames.results import Results
from highway_bench.frames.rows import CONTEST, groups, recipe_of, rows_of, start_of, without_start
from highway_bench.frames.trainability import ANYWHERE, by_seed, held_out
from highway_bench.measure.paired import UNDECIDED, BySeed, compare, ranked
from highway_bench.measure.statistics import t_interval
from highway_bench.report.choice.columns import (
    BEHIND,
    BEST,
    EQUAL_BITS,
    EQUAL_SHARE,
    HERE,
    IDENTITY,
    NOT_SEPARATED,
    RANKED,
    REFERENCE,
    WideRow,
    bounds,
    of_interval,
    typed,
)
from highway_bench.report.choice.costs import Costs, Curves, Schedules
from highway_bench.report.labels import protocol_of
from highway_bench.results.schema import OUTCOMES, Status
from highway_bench.success.ladder import DIVERGES, FAILS, NOT_RUN, SLOW, TRAINS

OUTCOME_WORDS: Final = (TRAINS, SLOW, FAILS, DIVERGES, NOT_RUN)
LOG_EQUAL: Final = math.log1p(EQUAL_SHARE)


@lru_cache(maxsize=2)
def wide_table(results: Results, source: str = HERE) -> pd.DataFrame:
    """The wide table of ``results``, made once; ``choice.columns`` has its columns.

    A connection whose tuning runs were its last has a row without losses. Connections are compared where they train.
    """
    runs, curves, schedules = results.training_runs(), Curves(results), Schedules(results)
    costs = Costs(results)
    records: list[WideRow] = []
    for contest, rungs in results.contests():
        own = _alike(runs, contest)
        for depth in sorted(set(rungs["depth"])):
            here = rungs[rungs["depth"].eq(depth) & rungs["n"].gt(0)]
            ended = own[own["depth"].eq(depth) & own["status"].isin(OUTCOMES)]
            found = [_row(contest, rung, ended[ended["block"].eq(rung["block"])]) for rung in rows_of(here)]
            by_label = {row["label"]: ended[ended["block"].eq(row["label"])] for row in found}
            scores = {label: values for label, own in by_label.items() if (values := held_out(own))}
            losses = {label: values for label, own in by_label.items() if (values := log_losses(own))}
            in_bits = "test_bits" in ended and bool(ended["test_bits"].notna().any())
            within = add_differences(found, scores, losses, in_bits=in_bits)
            schedules.add_to(found, contest, scores, within)
            curves.add_to(found, ended)
            costs.add_to(found, contest)
            records += found
    records += _only_tuned(results, {tuple(row[name] for name in IDENTITY) for row in records})
    return typed([row | {"source": source, "costs": source} for row in records])


def _alike(runs: pd.DataFrame, contest: Mapping[str, Any]) -> pd.DataFrame:
    """The runs of one contest."""
    return next((part for setting, part in groups(runs, CONTEST) if setting == contest), runs.iloc[:0])


def _identity(contest: Mapping[str, Any], rung: Mapping[str, Any]) -> WideRow:
    start = rung["start"]
    return {
        "kind": contest["family_label"],
        "data": contest["dataset"],
        "depth": rung["depth"],
        "connection": without_start(rung["block"]),
        "start": start if isinstance(start, str) and start else start_of(rung["block"]),
        "protocol": protocol_of(contest),
        "plain_width": contest["nominal_width"],
        "optimiser": recipe_of(contest["recipe"]).get("optimiser"),
        "batch": contest["batch_size"],
    }


def _row(contest: Mapping[str, Any], rung: Mapping[str, Any], runs: pd.DataFrame) -> WideRow:
    """What was measured of one connection alone."""
    return _identity(contest, rung) | {
        "label": rung["block"],
        "outcome": rung["verdict"] if rung["verdict"] in OUTCOME_WORDS else UNDECIDED,
        "trains": rung["k"],
        "seeds": rung["n"],
        **bounds("trains_share", rung["k"] / rung["n"], rung["rate_low"], rung["rate_high"]),
        **bounds("loss", rung["final_loss"], rung["loss_low"], rung["loss_high"]),
        **{name: rung[name] for name in ("rate", "edge", "width", "params")},
        "steps": recipe_of(contest["recipe"]).get("steps"),
        **of_runs(runs),
    }


def of_runs(runs: pd.DataFrame) -> WideRow:
    """What final trainings say whatever the verdict on them: held-out loss and accuracy, machines and commits."""
    row: WideRow = {
        "machine": ", ".join(sorted(set(runs["ran_on"]))),
        "commit": ", ".join(sorted({str(commit)[:8] for commit in runs["commit"].dropna()})),
    }
    for name, values in (("held_out", held_out(runs)), ("accuracy", by_seed(runs, "test_accuracy"))):
        row |= of_interval(name, t_interval(values.values())) if values else {}
    clipped = {name: min(max(row[name], 0.0), 1.0) for name in row if name.startswith("accuracy")}  # NaN stays
    return row | clipped


def log_losses(runs: pd.DataFrame) -> dict[int, float]:
    """The logarithm of each seed's training loss; a loss of 0 has none."""
    return {seed: math.log(loss) for seed, loss in by_seed(runs, "final_loss").items() if loss > 0}


def add_differences(
    rows: Sequence[WideRow], scores: Mapping[str, BySeed], losses: Mapping[str, BySeed], *, in_bits: bool
) -> float:
    """Add to ``rows``, of one contest and depth, the differences to pre-norm and to the best of those that train, and
    return the difference of held-out losses within which two are equal.

    ``scores`` are held-out losses and ``losses`` the logarithms of training losses, each by label and seed."""
    trained = [row for row in rows if row["outcome"] in RANKED]
    labels = [row["label"] for row in trained]
    scores, losses = ({label: own[label] for label in labels if label in own} for own in (scores, losses))
    reference = next((label for label in ranked(scores or losses) if without_start(label) == REFERENCE), None)
    for row in rows:
        row["reference"] = reference
    level = fmean(scores[reference].values()) if reference is not None and reference in scores else math.nan
    within = EQUAL_BITS if in_bits else EQUAL_SHARE * level
    _add(trained, scores, reference, "held_out_difference", "held_out_behind", within, lambda value: value)
    _add(trained, losses, reference, "loss_ratio", "loss_behind", LOG_EQUAL, math.exp)
    return within


def _add(
    rows: Sequence[WideRow],
    values: Mapping[str, BySeed],
    reference: str | None,
    difference: str,
    behind: str,
    within: float,
    as_shown: Callable[[float], float],
) -> None:
    """Add the differences of ``values`` to those of ``reference`` and to the best, and their words."""
    stem = difference.rpartition("_")[0]
    to_reference = {}
    if reference is not None and reference in values:
        to_reference = compare(values, reference, equal_within=within)
    best = _best(values)
    to_best = compare(values, best) if best is not None else {}
    for row in rows:
        label = row["label"]
        if label in to_reference:
            row |= of_interval(difference, to_reference[label].difference, as_shown)
            row[f"{stem}_word"] = to_reference[label].word
        if label == best:
            row[f"{stem}_place"] = BEST
        elif label in to_best:
            row |= of_interval(behind, to_best[label].difference, as_shown)
            is_behind = to_best[label].difference.low > 0
            row[f"{stem}_place"] = BEHIND if is_behind else NOT_SEPARATED


def _best(values: Mapping[str, BySeed]) -> str | None:
    """The name of the lowest mean over the seeds that all have."""
    common = set.intersection(*(set(one) for one in values.values())) if values else set()
    shared = {name: {seed: one[seed] for seed in common} for name, one in values.items()} if common else values
    return next(iter(ranked(shared)), None)


def _only_tuned(results: Results, known: set[tuple[Any, ...]]) -> list[WideRow]:
    """Connections of which tuning runs alone were made at a depth: they diverge if all of these did."""
    trials, found = results.trials(), []
    contests = [{name: contest[name] for name in ANYWHERE} for contest, _ in results.contests()]
    for setting, part in groups(trials, [*ANYWHERE, "depth", "block", "start"]):
        contest = {name: setting[name] for name in ANYWHERE}
        row = _identity(contest, setting)
        if contest in contests and tuple(row[name] for name in IDENTITY) not in known:
            diverged = part["status"].eq(Status.DIVERGED).all()
            found.append(row | {"outcome": DIVERGES if diverged else NOT_RUN, "seeds": 0, "trains": 0})
    return found


def finals_of(results: Results) -> pd.DataFrame:
    """The final trainings of ``results`` that give verdicts, a row for each seed: the wide table's identity, ``seed``,
    ``held_out``, ``accuracy``, ``loss`` (NaN where the run diverged) and ``status``."""
    contests, records = [contest for contest, _ in results.contests()], []
    for contest, runs in groups(results.training_runs(), CONTEST):
        if contest not in contests:
            continue
        ended = runs[runs["status"].isin(OUTCOMES)]
        for _, own in ended.groupby(["block", "depth"]):
            scores = held_out(own)
            for run in rows_of(own):
                found = {
                    "held_out": scores.get(run["seed"]),
                    "accuracy": run["test_accuracy"],
                    "loss": run["final_loss"],
                }
                records.append(_identity(contest, run) | {"seed": run["seed"], **found, "status": str(run["status"])})
    table = pd.DataFrame(records, columns=[*IDENTITY, "seed", "held_out", "accuracy", "loss", "status"])
    return table.sort_values([*IDENTITY, "seed"], ignore_index=True)
