"""Comparing: what changed between two results, such as before and after an edit."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import pandas as pd

from highway_bench.errors import NothingMeasured
from highway_bench.frames.results import Source, open_results
from highway_bench.frames.rows import groups, without_start
from highway_bench.interactive.measured import NAMES, MeasuredRows
from highway_bench.measure.paired import BETTER, EQUAL, UNDECIDED, WORSE
from highway_bench.measure.paired import compare as judge
from highway_bench.report.choice.columns import EQUAL_BITS
from highway_bench.report.choice.table import LOG_EQUAL
from highway_bench.results.schema import OUTCOMES

SAME: Final = (
    *("task", "family", "dataset", "block", "start", "depth", "nominal_width", "batch_size", "seq_len"),
    *("phase", "mode", "threads", "dtype", "device"),
)
"""What is equal in both; widths may differ, as an edit changes the parameters."""
OF_SEEDS: Final = ("final_loss", "test_loss", "test_bits")
TIMED: Final = ("yardstick_ratio",)
EXACT: Final = ("saved_activations", "parameter_bytes", "peak", "parameters", "multiply_adds")
METRICS: Final = (*OF_SEEDS, *TIMED, *EXACT)
VERSION: Final = re.compile(r"^(__main__:\S*)-[0-9a-f]{6}\b")


def compare(before: MeasuredRows | Source, after: MeasuredRows | Source) -> pd.DataFrame:
    """What of ``before`` is other in ``after``: results of ``hb.run``, or stores. One row per setting and metric.

    ``ratio`` is after over before with its interval, and ``word`` the judgement: better, worse, equal (its interval is
    within ± 2 %, or ± 0.01 bits) or undecided.
    Losses are compared over the seeds that both have, by paired differences of their logarithms; step times as ratios
    to torch's own layers, timed in turn; bytes and counts exactly. Versions of one cell's layer are one family.

    Raises ``NothingMeasured`` where both have no setting in common.
    """
    columns = [*SAME, "metric"]
    later = {repr(setting): part for setting, part in groups(_rows(after), columns)}
    found = [
        setting | values
        for setting, part in groups(_rows(before), columns)
        if repr(setting) in later and (values := _ratio(setting["metric"], part, later[repr(setting)])) is not None
    ]
    if not found:
        raise NothingMeasured("the two results have no setting and metric in common")
    return pd.DataFrame(found).rename(columns=NAMES).dropna(axis=1, how="all")


def _rows(given: MeasuredRows | Source) -> pd.DataFrame:
    rows = given.results.rows if isinstance(given, MeasuredRows) else open_results(given).rows
    judged = rows["metric"].isin(METRICS) & rows["trial"].isna() & rows["status"].isin(list(OUTCOMES))
    rows = rows[judged & rows["axis"].fillna("").eq("")]
    blocks = [without_start(str(name)) for name in rows["label"]]  # of several starts in one result alone
    families = [VERSION.sub(r"\1", str(name)) for name in rows["family_label"]]
    order = list(map(METRICS.index, rows["metric"]))
    return rows.assign(family=families, block=blocks, order=order).sort_values(["order", *SAME], kind="stable")


def _ratio(metric: str, before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any] | None:
    if metric in OF_SEEDS:
        logs = {name: _logs(part) for name, part in (("before", before), ("after", after))}
        if not logs["before"].keys() & logs["after"].keys():
            return None
        equal = EQUAL_BITS / before["value"].mean() if metric == "test_bits" else LOG_EQUAL
        found = judge(logs, "before", equal_within=equal)["after"]
        interval = {"ratio": found.difference.value, "low": found.difference.low, "high": found.difference.high}
        ratios = {name: math.exp(value) for name, value in interval.items()}
        return {**ratios, "n": found.difference.n, "word": found.word}
    first, second = before.iloc[-1], after.iloc[-1]
    if not (first["value"] > 0 and second["value"] > 0):
        return None
    ratio = math.log(second["value"] / first["value"])
    half = 0.0
    if metric in TIMED:
        half = math.hypot(*(math.log(one["high"] / one["value"]) for one in (first, second)))
    low, high = ratio - half, ratio + half
    word = UNDECIDED if math.isnan(half) else BETTER if high < 0 else WORSE if low > 0 else UNDECIDED
    word = EQUAL if metric in EXACT and ratio == 0 else word
    return {"ratio": math.exp(ratio), "low": math.exp(low), "high": math.exp(high), "n": 1, "word": word}


def _logs(part: pd.DataFrame) -> dict[int, float]:
    known = part[part["value"].gt(0)]
    return {int(seed): math.log(value) for seed, value in zip(known["seed"], known["value"], strict=True)}
