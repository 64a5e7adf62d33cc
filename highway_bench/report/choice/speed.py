"""Steps to pre-norm's final loss, from the stored curves of training losses.

A winner's curve has not decayed its learning rate when it gets there, so the steps saved are a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.measure.statistics import t_interval


class Curves:
    """The stored curves of the training runs of ``results``: steps and losses by digest of the run."""

    def __init__(self, results: Results) -> None:
        rows = results.of_task("trainability")
        rows = rows[rows["metric"].eq("loss") & rows["axis"].eq("step") & rows["trial"].isna()]
        keys = ["family_label", "dataset", "recipe", "nominal_width", "match", "batch_size", "depth", "label", "seed"]
        self._keys = keys
        self._curves = {key: part.sort_values("index") for key, part in rows.groupby(keys, dropna=False, sort=False)}

    def add_to(self, rows: Sequence[dict[str, Any]], runs: pd.DataFrame) -> None:
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
                logs = t_interval(map(math.log, reached))
                bounds = (math.exp(value) for value in (logs.value, logs.low, logs.high))
                row |= dict(zip(("steps_saved", "steps_saved_low", "steps_saved_high"), bounds, strict=True))

    def _saved(self, run: Mapping[str, Any], loss: float) -> float | None:
        """All steps of a run over those until its curve is at ``loss``; ``None`` if it never is."""
        names = ("block" if name == "label" else name for name in self._keys)
        curve = self._curves.get(tuple(run[name] for name in names))
        if curve is None or not math.isfinite(loss):
            return None
        there = curve.loc[curve["value"].le(loss), "index"]
        return float(curve["index"].max() / there.iloc[0]) if len(there) else None
