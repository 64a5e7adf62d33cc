"""Training runs and trials, the verdict on each depth and block over its seeds, and the depths to which a block trains.

The frontier is read from a ladder of depths: L_max, L50 and the area under the success rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.frames.cells import by_cell
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import CONTEST, TUNED, common_value, groups, of_task, recipe_of, rows_of
from highway_bench.measure.statistics import log10_interval, wilson
from highway_bench.results.schema import FAILURES, OUTCOMES, Status
from highway_bench.success.ladder import (
    DIVERGES,
    FAILS,
    FULL_SEEDS,
    JUDGED,
    NO_VERDICT,
    RATE,
    SLOW,
    TIMES_CHANCE,
    TOO_FEW_SEEDS,
    TRAINS,
    Success,
    area_under_success,
    l50,
    l_max,
    verdict,
)
from highway_bench.success.rates import Fresh, chosen_rate, next_lower, wants_lower

METRICS = (
    "final_loss",
    "success",
    "steps_to_threshold",
    "seconds_to_threshold",
    "train_accuracy",
    "test_loss",
    "test_bits",
    "test_accuracy",
    "success_loss",
    "rate",
    "step_seconds",
    "together",
    "budget_mismatch",
)
MEASURED: Final = ("start", "block_options", "family_options")
"""What was measured under a block's label."""
ANYWHERE: Final = tuple(name for name in CONTEST if name not in ("machine", "machine_label"))
"""Columns that are equal within a contest whose runs were made on several machines."""
FRONTIER: Final = (
    "start",
    "shallowest",
    "l_max",
    "l_max_censored",
    "l50",
    "l50_low",
    "l50_high",
    "l50_censored",
    "area",
    "provisional",
    "limited",
)


def training_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.training_runs``."""
    frame = of_task(rows, "trainability")
    return one_contest_across_machines(by_cell(frame[frame["trial"].isna()], METRICS, further=["other_rates"]))


def trials(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.trials``."""
    frame = of_task(rows, "trainability")
    return one_contest_across_machines(by_cell(frame[frame["trial"].notna()], METRICS))


def held_out(runs: pd.DataFrame) -> dict[int, float]:
    """The held-out loss of each seed: bits a byte on text, else nat."""
    return by_seed(runs, "test_bits") or by_seed(runs, "test_loss")


def by_seed(runs: pd.DataFrame, column: str) -> dict[int, float]:
    """What is known of a column by seed."""
    known = runs[runs[column].notna()] if column in runs else runs.iloc[:0]
    return {int(seed): float(value) for seed, value in zip(known["seed"], known[column], strict=True)}


def one_contest_across_machines(runs: pd.DataFrame) -> pd.DataFrame:
    """``runs`` with the column ``ran_on``, the machine of each; ``machine`` is that of the contest.

    Losses belong to no machine. If the runs of a contest were made on several machines and none of them twice, they
    stay one contest, on the machine of most runs. If some were made on several machines, contests stay apart.
    """
    runs = runs.assign(ran_on=runs["machine"])
    for _, part in groups(runs, ANYWHERE):
        if len(set(part["machine"])) > 1 and not part.duplicated(["block", "depth", "seed", "trial"]).any():
            runs.loc[part.index, "machine"] = part["machine"].mode().iloc[0]
            runs.loc[part.index, "machine_label"] = ""
    return runs


def trainability_table(runs: pd.DataFrame, trials: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.trainability``, from those of ``Results.training_runs`` and ``Results.trials``.

    Trainings of more steps, whose recipe is else the same and gives no verdict, say which connections are slow.
    """
    anywhere = [*ANYWHERE, "block", "depth"]  # a rate may have been chosen on another machine
    tuning = {tuple(setting.values()): part for setting, part in groups(trials, anywhere)}
    records = []
    for setting, part in groups(runs, [*CONTEST, "block", "depth"]):
        key = tuple(setting[name] for name in anywhere)
        records.append(_rung(setting, part, tuning.get(key, trials.iloc[:0]), about.chance_loss(setting["dataset"])))
    _mark_slow(records)
    columns = [
        *CONTEST,
        "block",
        *MEASURED,
        "depth",
        "width",
        "params",
        "budget_mismatch",
        "k",
        "n",
        "rate_low",
        "rate_high",
        "diverged",
        "stalled",
        "unfinished",
        "skipped",
        "verdict",
        "provisional",
        *(name for name in METRICS if name not in ("success", "together", "budget_mismatch")),
        "loss_low",
        "loss_high",
        "seeds",
        "messages",
        "edge",
    ]
    table = pd.DataFrame(records, columns=columns)
    return about.in_order(table, (*CONTEST, "depth", "block"))


Contests = list[tuple[dict[str, Any], pd.DataFrame]]
"""For each contest, the values of the columns ``CONTEST``, and its rows."""


def contests(table: pd.DataFrame) -> Contests:
    """The contests with verdicts in the trainability ``table``."""
    return [(contest, part) for contest, part in groups(table, CONTEST) if gives_verdicts(contest["recipe"])]


def gives_verdicts(recipe: object) -> bool:
    """Whether a recipe gives verdicts. That of a single short loss curve does not."""
    return bool(recipe_of(recipe).get("verdict", True))


def _mark_slow(records: list[dict[str, Any]]) -> None:
    """Mark what fails as slow where it trains in more steps."""

    def key(record: Mapping[str, Any]) -> tuple[Any, ...]:
        alike = [record[name] for name in (*ANYWHERE, "block", "depth") if name != "recipe"]
        words = {name: word for name, word in recipe_of(record["recipe"]).items() if name not in ("steps", "verdict")}
        return (*alike, canonical(words))

    longer = {
        key(one): recipe_of(one["recipe"]).get("steps", 0)
        for one in records
        if one["verdict"] == NO_VERDICT and verdict(one["k"], one["n"], one["unfinished"]) == TRAINS
    }
    for record in records:
        if record["verdict"] == FAILS and longer.get(key(record), 0) > recipe_of(record["recipe"]).get("steps", 0):
            record["verdict"] = SLOW


def _rung(setting: dict[str, Any], part: pd.DataFrame, tuning: pd.DataFrame, chance_loss: float) -> dict[str, Any]:
    """The row of one block and depth: ``part`` has its runs, ``tuning`` the trials with a like recipe."""
    cells = rows_of(part)
    count = Counter(cell["status"] for cell in cells)
    unfinished = sum(count[status] for status in FAILURES)
    ran = [cell for cell in cells if cell["status"] in OUTCOMES]
    n, k = len(ran), sum(cell["success"] == 1 for cell in ran)
    low, high = wilson(k, n) if n else (math.nan, math.nan)
    loss, loss_low, loss_high = _loss(ran)
    outcome = verdict(k, n, unfinished, count[Status.DIVERGED]) if gives_verdicts(setting["recipe"]) else NO_VERDICT
    record = {
        **setting,
        **{name: common_value(part[name]) for name in MEASURED},
        "budget_mismatch": part["budget_mismatch"].max(),
        "width": part["width"].max(),
        "params": part["params"].max(),
        "k": k,
        "n": n,
        "rate_low": low,
        "rate_high": high,
        "diverged": count[Status.DIVERGED],
        "stalled": count[Status.STALLED],
        "unfinished": unfinished,
        "skipped": count[Status.SKIPPED],
        "verdict": outcome,
        "provisional": outcome in JUDGED and n < FULL_SEEDS,
        "final_loss": loss,
        "loss_low": loss_low,
        "loss_high": loss_high,
        "seeds": sorted(cell["seed"] for cell in ran),
        "messages": "; ".join(sorted({cell["message"] for cell in cells if cell["message"]})),
    }
    timed = [cell for cell in ran if cell["ran_on"] == cell["machine"]]
    for name, runs in (("steps_to_threshold", ran), ("seconds_to_threshold", timed)):
        record[name] = _middle([math.inf if math.isnan(cell[name]) else cell[name] for cell in runs])
    for name, runs in (("rate", ran), ("step_seconds", timed)):
        record[name] = _middle([cell[name] for cell in runs if not math.isnan(cell[name])])
    if any(cell["together"] > 1 for cell in ran):
        record["step_seconds"] = math.nan
        if math.isfinite(record["seconds_to_threshold"]):  # infinite: no run reached it, which stays true
            record["seconds_to_threshold"] = math.nan
    for name in ("train_accuracy", "test_loss", "test_bits", "test_accuracy", "success_loss"):
        values = [cell[name] for cell in ran if not math.isnan(cell[name])]
        record[name] = math.fsum(values) / len(values) if values else math.nan
    recipe = recipe_of(setting["recipe"])
    record["edge"] = edge(record["rate"], recipe.get("rates") or set(tuning["rate"]))
    if outcome in (FAILS, DIVERGES) and recipe.get("rate") == TUNED and len(tuning):
        rates = {record["rate"], *part["other_rates"].iloc[0]}
        if not _rates_to_run(tuning, Fresh(k, count[Status.DIVERGED], n)) <= rates:
            return record | {"verdict": RATE, "provisional": False}
    learnt = [cell["test_accuracy"] for cell in ran if cell["success"] != 1]
    learnt = [0.0 if math.isnan(accuracy) else accuracy for accuracy in learnt]
    if outcome == FAILS and fmean(learnt) >= TIMES_CHANCE * math.exp(-chance_loss):  # of classes of equal size
        record["verdict"] = SLOW
    return record


def _rates_to_run(tuning: pd.DataFrame, fresh: Fresh) -> set[float | None]:
    """The learning rates at which fresh seeds must have run before a connection fails.

    ``tuning`` are its tuning runs, ``fresh`` its runs at the rate that counts.
    """
    tuning, seeds = tuning[tuning["rate"].notna()], set(tuning["seed"])
    if tuning.groupby("rate")["seed"].nunique().max() != len(seeds):  # no rate has all of them here
        return set()
    losses = dict(zip(zip(tuning["rate"], tuning["seed"], strict=True), tuning["final_loss"], strict=True))
    chosen = chosen_rate(losses, seeds)
    lower = next_lower(chosen)
    tuned = tuning.loc[tuning["rate"] == lower, "success"].eq(1)
    return {chosen, lower} if lower is not None and wants_lower(fresh, tuned.tolist()) else {chosen}


def edge(rate: float, rates: Collection[float]) -> str:
    """``lowest`` or ``highest`` if ``rate`` is that of the tried ``rates``: a better one may lie beyond. Else empty."""
    if not rates:
        return ""
    return "lowest" if rate == min(rates) else "highest" if rate == max(rates) else ""


def _middle(values: list[float]) -> float:
    return median(values) if values else math.nan


def _loss(ran: list[dict[str, Any]]) -> tuple[float, float, float]:
    losses = [math.inf if cell["status"] == Status.DIVERGED else cell["final_loss"] for cell in ran]
    losses = [loss for loss in losses if not math.isnan(loss)]
    if not losses or not all(0 < loss < math.inf for loss in losses):
        return _middle(losses), math.nan, math.nan
    interval = log10_interval(losses)
    return interval.value, interval.low, interval.high


def frontier_table(contests: Contests, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.frontier``."""
    records = [
        {**contest, "block": block, **_frontier(part, block)}
        for contest, part in contests
        for block in about.block_order(part["block"])
    ]
    return _limited(pd.DataFrame(records, columns=[*CONTEST, "block", *FRONTIER]))


def _limited(table: pd.DataFrame) -> pd.DataFrame:
    """Mark a frontier as ``limited`` by the budget if it differs in the same contest with another number of steps."""
    recipes = table["recipe"].map(recipe_of)
    rest = recipes.map(lambda recipe: canonical({name: value for name, value in recipe.items() if name != "steps"}))
    keys = [*(name for name in CONTEST if name != "recipe"), "block"]
    for _, part in table.assign(rest=rest, steps=recipes.map(lambda recipe: recipe.get("steps"))).groupby(
        [*keys, "rest"], dropna=False
    ):
        frontiers = part[["l_max", "l_max_censored"]].drop_duplicates()
        table.loc[part.index, "limited"] = len(set(part["steps"])) > 1 and len(frontiers) > 1
    return table


def _frontier(part: pd.DataFrame, block: str) -> dict[str, Any]:
    """The frontier of ``block``, from the rows ``part`` of the trainability table.

    For ``l_max`` an unfinished run counts as a failure. All NaN if seeds are too few or no run finished.
    """
    rungs = part[(part["block"] == block) & (part["n"] + part["unfinished"] > 0)]
    nothing = dict.fromkeys(FRONTIER, math.nan) | {
        "start": common_value(part.loc[part["block"] == block, "start"]),
        "l_max_censored": "",
        "l50_censored": "",
        "provisional": False,
        "limited": False,
    }
    if not rungs["n"].any() or rungs["verdict"].isin([TOO_FEW_SEEDS, NO_VERDICT]).any():
        return nothing
    cells = [{name: int(cell[name]) for name in ("depth", "k", "n", "unfinished")} for cell in rows_of(rungs)]
    rule = l_max({cell["depth"]: (cell["k"], cell["n"] + cell["unfinished"]) for cell in cells})
    success = {cell["depth"]: (cell["k"], cell["n"]) for cell in cells if cell["n"]}
    fit = l50(success)
    return nothing | {
        "shallowest": float(rule.shallowest),
        "l_max": math.nan if rule.value is None else float(rule.value),
        "l_max_censored": rule.censored or "",
        "l50": fit.value,
        "l50_low": fit.low,
        "l50_high": fit.high,
        "l50_censored": fit.censored or "",
        "area": _area(success, [int(depth) for depth in part["depth"].unique()]),
        "provisional": rule.provisional,
    }


def _area(success: Success, ladder: Sequence[int]) -> float:
    """The area under the success rate over the whole ``ladder``, so that blocks are comparable.

    If no seed trained at the deepest depth tried, greater depths count as failures too; otherwise the area is NaN.
    """
    deepest = max(success)
    untried = {depth: (0, 1) for depth in ladder if depth > deepest}
    return math.nan if untried and success[deepest][0] else area_under_success({**success, **untried})
