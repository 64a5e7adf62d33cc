"""What a connection costs next to pre-norm, and how much sooner it gets to the same loss.

The costs are the time of a training step and the bytes that a layer saves. The steps that pre-norm needs for a
connection's held-out loss come from whole schedules of pre-norm. Those to its final loss come from curves of training
losses: a winner's learning rate has not decayed when it gets there, so the steps saved are a lower bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.frames.results import Results
from highway_bench.frames.rows import groups, mapped, recipe_of, rows_of, samples_of, start_of, without_start
from highway_bench.frames.trainability import ANYWHERE, held_out
from highway_bench.measure.paired import BySeed
from highway_bench.measure.schedules import LossBySteps, mean_error
from highway_bench.measure.statistics import ratio_over_processes, t_interval
from highway_bench.report.choice.columns import HERE, RANKED, REFERENCE, WideRow, bounds, of_interval
from highway_bench.results.schema import OUTCOMES

ALIKE: Final = ("family_label", "device", "dtype", "match")
"""Columns in which a cost must equal the contest whose connections it is of."""
IN_TURN: Final = ("run_id", "machine", "threads", "nominal_width", "batch_size", "seq_len")
"""Columns that are equal for steps that were timed in turn."""
PHASE: Final = "train-step"
SECONDS: Final = ("step_ratio", "seconds_saved", "less_time")
TIMES: Final = tuple(f"{name}{bound}" for name in SECONDS for bound in ("", "_low", "_high"))
"""Columns that follow from timed steps."""
SCHEDULE: Final = ("steps", "warm_up", "verdict")
"""Words of a recipe that differ between whole schedules of several lengths."""


class Costs:
    """The timed steps and the counted bytes of ``results``."""

    def __init__(self, results: Results) -> None:
        times = results.step_times()
        if len(times):
            in_turn = times["paired"].astype(str).str.contains('"process"')  # version 0.2 timed each step by itself
            times = times[times["mode"].eq("eager") & times["phase"].eq(PHASE) & times["samples"].notna() & in_turn]
        self.times = times
        sizes = results.memory()
        self.sizes = sizes[sizes["saved_per_layer"].notna()]

    def add_to(self, rows: Sequence[WideRow], contest: Mapping[str, Any]) -> None:
        """Add ``step_ratio``, ``bytes``, ``seconds_saved`` and ``less_time`` to ``rows``, of one contest and depth."""
        if not rows:
            return
        steps, sizes = (_best_group(table, contest, rows[0]["depth"]) for table in (self.times, self.sizes))
        ratios = _ratios(steps)
        starts = {cell["block"]: cell["start"] or start_of(cell["block"]) for cell in rows_of(steps)}
        of_bytes = {cell["block"]: cell["saved_per_layer"] for cell in rows_of(sizes)}
        for row in rows:
            named = (row["label"], row["connection"])
            row["bytes"] = next((of_bytes[name] for name in named if name in of_bytes), row.get("bytes", math.nan))
            timed = next((name for name in named if name in ratios), None)
            if timed is not None:
                row |= bounds("step_ratio", *ratios[timed])
                row |= {"timed_start": starts[timed], "timed_on": steps["machine"].iloc[0]}
                add_seconds(row)

    def replace(self, rows: Sequence[WideRow], contest: Mapping[str, Any]) -> list[str]:
        """Give ``rows``, of one column of the wide table, the costs that were measured here, if any were at the
        contest's width and batch; else leave all as they are. Returns the connections of which there is no row."""
        steps = _best_group(self.times, contest, rows[0]["depth"])
        ratios = _ratios(steps) if len(steps) else {}
        alike = all(steps[name].eq(contest[name]).all() for name in ("nominal_width", "batch_size"))
        if len(ratios) < 2 or not alike:  # the reference itself has a ratio
            return []
        for row in rows:
            row |= dict.fromkeys(TIMES, math.nan) | {"timed_start": None, "timed_on": None, "costs": HERE}
        self.add_to(rows, contest)
        return sorted(set(map(without_start, ratios)) - {row["connection"] for row in rows})


def costs_of(results: Results) -> pd.DataFrame:
    """What connections cost, trained or not: a row for each ``kind``, the family with its options, ``depth`` and
    ``connection``, at the start of the lower ratio, with ``step_ratio`` and its bounds, ``bytes``, and ``bytes_ratio``
    to pre-norm's. Starts differ in weights alone. Of two ratios that differ by chance, the lower is a bit too low."""
    found = Costs(results)
    cells = pd.concat([table[[*ALIKE, "depth", "block"]] for table in (found.times, found.sizes)])
    columns = ["kind", "depth", "step_ratio", "step_ratio_low", "step_ratio_high", "bytes"]
    most: dict[tuple[str, int], pd.DataFrame] = {}
    for setting, part in groups(cells, [*ALIKE, "depth"]):
        where = setting["family_label"], setting["depth"]
        rows: list[WideRow] = [
            {"kind": where[0], "depth": where[1], "connection": without_start(label), "label": label}
            for label in dict.fromkeys(part["block"])
        ]
        found.add_to(rows, {"nominal_width": None, "batch_size": None} | setting)
        order = dict.fromkeys(row["connection"] for row in rows)
        own = pd.DataFrame(rows).reindex(columns=["connection", *columns]).sort_values("step_ratio", kind="stable")
        own = own.groupby("connection").first().loc[list(order)].reset_index()
        if len(own) > len(most.get(where, ())):
            reference = own.loc[own["connection"].eq(REFERENCE), "bytes"]
            most[where] = own.assign(bytes_ratio=own["bytes"] / (reference.iloc[0] if len(reference) else math.nan))
    none = pd.DataFrame(columns=["connection", *columns, "bytes_ratio"])
    return pd.concat(most.values(), ignore_index=True) if most else none


def _best_group(table: pd.DataFrame, contest: Mapping[str, Any], depth: int) -> pd.DataFrame:
    """The cells of ``table`` in a contest's setting at one depth that were measured together: those of the most
    connections, then of the nearest width and batch, then the newest."""
    own = table[table["depth"].eq(depth)] if len(table) else table
    for name in ALIKE:
        own = own[own[name].eq(contest[name])] if len(own) and name in contest else own

    def merit(setting: Mapping[str, Any], part: pd.DataFrame) -> tuple[Any, ...]:
        away = (abs((setting[name] or 0) - (contest[name] or 0)) for name in ("nominal_width", "batch_size"))
        return part["block"].nunique(), *(-one for one in away), -(setting["threads"] or 0), part["time_utc"].max()

    parts = [(merit(setting, part), part) for setting, part in groups(own, IN_TURN)] if len(own) else []
    return max(parts, key=lambda one: one[0])[1] if parts else own.iloc[:0]


def _ratios(steps: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """By label: the time of a step over pre-norm's at the same start, or at its first one where that has no such start,
    with its interval, from samples that were taken in turn."""
    cells = {cell["block"]: cell for cell in rows_of(steps)}
    references = {start_of(label): cell for label, cell in cells.items() if without_start(label) == REFERENCE}
    ratios = {}
    for label, cell in cells.items() if references else ():
        reference = references.get(start_of(label), next(iter(references.values())))
        base, process = samples_of(reference["samples"]), json.loads(reference["paired"])["process"]
        own = samples_of(cell["samples"])
        if cell is reference:
            ratios[label] = (1.0, 1.0, 1.0)
        elif len(own) == len(base) and json.loads(cell["paired"])["process"] == process:
            one = ratio_over_processes(own, base, process, wall=json.loads(cell["paired"]).get("wall"))
            if not math.isnan(one.low):
                ratios[label] = (one.value, one.low, one.high)
    return ratios


def add_seconds(row: WideRow) -> None:
    """The ratios of steps over that of a step's time; the errors of both are independent. An open interval stays so."""
    shift, half = math.log(row["step_ratio"]), math.log(row["step_ratio_high"] / row["step_ratio"])
    for steps, seconds in (("steps_saved", "seconds_saved"), ("fewer_steps", "less_time")):
        if math.isnan(row.get(steps, math.nan)):
            continue
        low, value, high = (_log(row[f"{steps}{bound}"]) for bound in ("_low", "", "_high"))
        to_low, to_high = math.hypot(value - low, half), math.hypot(high - value, half)
        row |= bounds(seconds, *map(math.exp, (value - shift, value - shift - to_low, value - shift + to_high)))


def _log(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


class Schedules:
    """The held-out losses of pre-norm after whole schedules of several lengths, by the setting that these share."""

    def __init__(self, results: Results) -> None:
        runs = results.training_runs()
        own = runs[runs["block"].map(without_start).eq(REFERENCE) & runs["status"].isin(OUTCOMES)]
        own = own.assign(recipe=mapped(own["recipe"], _but_steps), steps=mapped(own["recipe"], _steps))
        self.rungs: dict[tuple[Any, ...], dict[int, Sequence[float]]] = {}
        for setting, part in groups(own, [*ANYWHERE, "depth", "block", "steps"]):
            *key, steps = setting.values()
            self.rungs.setdefault(tuple(key), {})[steps] = list(held_out(part).values())

    def add_to(
        self, rows: Sequence[WideRow], contest: Mapping[str, Any], scores: Mapping[str, BySeed], within: float
    ) -> None:
        """Add ``fewer_steps`` and ``steps_by`` to ``rows``, of one contest and depth; ``scores`` are held-out losses by
        label and seed, and ``within`` is how near to a rung a law must come."""
        if not rows:
            return
        alike = {name: contest[name] for name in ANYWHERE} | {"recipe": _but_steps(contest["recipe"])}
        reference = rows[0]["reference"]
        curve = LossBySteps.of(self.rungs.get((*alike.values(), rows[0]["depth"], reference), {}), within=within)
        if curve is None:
            return
        for row in rows:
            losses = scores.get(row["label"], {})
            if row["outcome"] not in RANKED or row["label"] == reference or len(losses) < 2:
                continue
            steps = curve.steps_to(*mean_error(losses.values()))
            row |= bounds("fewer_steps", *(one / row["steps"] for one in (steps.value, steps.low, steps.high)))
            row["steps_by"] = "power law" if curve.law else "interpolated"


def _steps(recipe: object) -> int:
    return int(recipe_of(recipe).get("steps", 0))


def _but_steps(recipe: object) -> str:
    """A recipe without what differs between whole schedules of several lengths."""
    return canonical({name: value for name, value in recipe_of(recipe).items() if name not in SCHEDULE})


class Curves:
    """The stored curves of the training runs of ``results``: steps and losses by digest of the run."""

    def __init__(self, results: Results) -> None:
        rows = results.of_task("trainability")
        rows = rows[rows["metric"].eq("loss") & rows["axis"].eq("step") & rows["trial"].isna()]
        keys = ["family_label", "dataset", "recipe", "nominal_width", "match", "batch_size", "depth", "label", "seed"]
        self._keys = keys
        self._curves = {key: part.sort_values("index") for key, part in rows.groupby(keys, dropna=False, sort=False)}

    def add_to(self, rows: Sequence[WideRow], runs: pd.DataFrame) -> None:
        """Add ``steps_saved`` and ``not_reached`` to ``rows``, of one contest and depth: for each seed, the steps of
        pre-norm over those after which the connection's curve is at pre-norm's final loss."""
        reference = rows[0].get("reference") if rows else None
        if not reference:
            return
        of_reference = runs[runs["block"].eq(reference)]
        final = dict(zip(of_reference["seed"], of_reference["final_loss"], strict=True))
        for row in rows:
            own = runs[runs["block"].eq(row["label"])]
            saved = [self._saved(run, final[run["seed"]]) for run in rows_of(own) if run["seed"] in final]
            reached = [value for value in saved if value is not None]
            row["not_reached"] = len(saved) - len(reached)
            if reached and not row["not_reached"] and row["label"] != reference:
                row |= of_interval("steps_saved", t_interval(map(math.log, reached)), math.exp)

    def _saved(self, run: Mapping[str, Any], loss: float) -> float | None:
        """All steps of a run over those until its curve is at ``loss``; ``None`` if it never is."""
        names = ("block" if name == "label" else name for name in self._keys)
        curve = self._curves.get(tuple(run[name] for name in names))
        if curve is None or not math.isfinite(loss):
            return None
        there = curve.loc[curve["value"].le(loss), "index"]
        return float(curve["index"].max() / there.iloc[0]) if len(there) else None
