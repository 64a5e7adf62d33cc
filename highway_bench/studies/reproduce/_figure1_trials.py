"""What the searches of ``figure1`` found: their table, and the figure of the best loss by depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.data import make_dataset
from highway_bench.frames.rows import groups, recipe_of
from highway_bench.measure.statistics import Array
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import crosses, point_with_interval, reference_losses, seed_dots
from highway_bench.report.format import three
from highway_bench.report.style import styles as styles_of
from highway_bench.results.schema import OUTCOMES
from highway_bench.studies.reproduce.quantities import BEST_OF, expected_best, mean
from highway_bench.success.judging import THRESHOLD

ARMS = ("plain", "highway")
CHANCE = make_dataset("mnist-5k").chance_loss  # of the constant predictor; the larger data set's is equal within 0.1 %

Trials = dict[tuple[str, int], Array]
"""(block, depth as the papers count) → final losses by trial; infinite where a trial diverged."""


def losses_by_trial(rows: pd.DataFrame) -> Trials:
    """The final losses of the trials in ``rows`` that ended, in the order of the trials, by block and depth."""
    rows = rows[rows["status"].isin(OUTCOMES)]  # a failed run has rows without a value too
    ended = rows[rows["trial"].notna() & (rows["metric"] == "final_loss") & (rows["axis"] == "")]
    return {
        (arm["block"], arm["depth"] + 1): part.sort_values("trial")["value"].fillna(math.inf).to_numpy(np.float64)
        for arm, part in groups(ended, ("block", "depth"))
    }


def records_of(rows: pd.DataFrame, trials: Trials) -> list[dict[str, Any]]:
    """A row an arm and depth: the best trial, what it was, and the winner's losses on fresh seeds."""
    records, rows = [], rows[rows["status"].isin(OUTCOMES)]
    for (block, depth), losses in trials.items():
        here = rows[(rows["block"] == block) & (rows["depth"] == depth - 1) & (rows["axis"] == "")]
        again = here[here["trial"].isna()]
        fresh = again.loc[again["metric"] == "final_loss", "value"]
        winner = mean("", fresh, unit="×").columns("winner", "winner_")
        if len(fresh) and fresh.isna().any():
            winner["winner"] = math.inf
        best = here[here["trial"].notna() & (here["metric"] == "final_loss")].sort_values("value").iloc[0]
        records.append(
            {
                "block": block,
                "depth": depth,
                "trials": len(losses),
                "best": losses.min(),
                "expected": 10 ** float(expected_best(losses)),
                "diverged": int(np.isinf(losses).sum()),
                "median": float(np.median(losses)),
                "seeds": len(fresh),
                "won": _settings(best),
                "again": sorted(fresh.dropna()),
                "steps": sorted(again.loc[again["metric"] == "steps_to_threshold", "value"].fillna(math.inf)),
                "params": here["params"].max(),
                **winner,
            }
        )
    return sorted(records, key=lambda record: (record["depth"], record["block"]))


def _settings(trial: pd.Series[Any]) -> str:
    """The drawn values of a trial in few words."""
    recipe, gate = recipe_of(trial["recipe"]), recipe_of(trial["block_options"])
    activation = recipe_of(trial["family_options"]).get("activation", "relu")
    parts = [
        f"rate {three(recipe['rate'])}",
        f"momentum {three(recipe['momentum'])}",
        f"decay {three(recipe['decay'])}",
        activation,
    ]
    return ", ".join(parts + ([f"gate bias {three(gate['gate_bias'])}"] if "gate_bias" in gate else []))


def _median_steps(record: column.Record) -> str:
    steps = record["steps"]
    return three(median(steps)) if steps else ""


def shown(records: Sequence[column.Record]) -> column.TextTable:
    columns = [
        column.words("block", "block"),
        column.whole("depth", "layers"),
        column.whole("trials", "trials"),
        column.number("best", "best loss", "nat", "lowest final training loss of the trials: the paper's statistic"),
        column.number("expected", f"best of {BEST_OF}", "nat", "expected: the mean of its log₁₀ over draws of trials"),
        column.number("median", "median loss", "nat", "of all trials; ∞ where half of them diverged"),
        column.whole("diverged", "diverged"),
        column.spread(
            "winner",
            "winner on fresh seeds",
            "winner_low",
            "winner_high",
            "nat",
            "geometric mean of its final losses, 95 % t interval of log10",
        ),
        column.whole("seeds", "seeds"),
        column.computed("steps to threshold", _median_steps, "median of these seeds; ∞: never"),
        column.whole("params", "parameters", "of the whole network; per layer the arms are equal within 0.3 %"),
        column.words("won", "the winner"),
    ]
    return column.shown("figure1", "Best of a random search", pd.DataFrame(records), columns)


def best(records: Sequence[column.Record]) -> Picture:
    """The expected best of 20 trials by depth; at the same position the best trial, and its settings on fresh seeds."""
    styles = styles_of(ARMS)
    depths = sorted({record["depth"] for record in records})
    alt = []
    with settings():
        figure, (axes,) = panels(1, 1, 3.4)
        for number, arm in enumerate(ARMS):
            part = [record for record in records if record["block"] == arm]
            at = [depths.index(record["depth"]) + dodge(number, len(ARMS), 0.12) for record in part]
            style = styles[arm]
            expected = [loss if math.isfinite(loss) else math.nan for loss in (record["expected"] for record in part)]
            lowest = [record["best"] for record in part]
            axes.plot(at, expected, color=style.colour, marker=style.marker, linestyle=style.dash, linewidth=1.2)
            axes.plot(at, lowest, color=style.colour, marker="_", markersize=12, markeredgewidth=1.6, linestyle="")
            for x, row in zip(at, part, strict=True):
                if math.isinf(row["winner"]):
                    crosses(axes, x, style)
                elif row["seeds"]:
                    seed_dots(axes, x, row["again"], style)
                    bounds = (row["winner_low"], row["winner_high"]) if row["seeds"] > 1 else None
                    point_with_interval(axes, x, row["winner"], style, bounds, filled=False, zorder=4)
            alt += [f"{arm}, {row['depth']} layers: {three(row['expected'])}" for row in part]
        reference_losses(axes, CHANCE, THRESHOLD * CHANCE)
        log_axis(axes, "y")
        axes.set_xticks(range(len(depths)), [f"{depth:g}" for depth in depths])
        axes.set_xlabel("layers (not to scale)")
        axes.set_ylabel("final training loss, nat (log)")
        title = f"Best loss of {BEST_OF} trials by depth"
        head(figure, title)
        extra = [
            mark("o", f"expected best of {BEST_OF}"),
            mark("_", "best trial"),
            mark("o", "on fresh seeds", filled=False),
            mark(".", "a seed"),
            *([mark("x", "some seed diverged")] if any(math.isinf(row["winner"]) for row in records) else []),
        ]
        legend(figure, styles, extra, lines=True)
    return Picture(
        "figure1-best",
        title,
        f"Expected best loss of {BEST_OF} trials by depth. {joined(alt)}",
        f"Filled: expected best of {BEST_OF} trials. Dashes: the lowest final loss of all trials. Open: the settings "
        "of that trial on fresh seeds, geometric mean with 95 % t interval of log₁₀. Marks of one arm and depth are at "
        "one position.",
        figure,
    )
