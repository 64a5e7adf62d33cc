"""What the random searches of ``figure1`` found: their table, and the figure of the best loss by depth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.data import make_dataset
from highway_bench.frames.rows import groups, recipe_of
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.format import three
from highway_bench.results.schema import OUTCOMES
from highway_bench.studies.reproduce import drawing
from highway_bench.studies.reproduce.arms import columns
from highway_bench.studies.reproduce.quantities import BEST_OF, expected_best, mean
from highway_bench.success.judging import THRESHOLD

ARMS = ("plain", "highway")
ArmKey = tuple[str, int]
"""Block and layers of an arm, as the papers count them."""
Searches = Mapping[ArmKey, column.Record]
"""What the search of each arm found, by ``searched``."""


def searched(rows: pd.DataFrame) -> dict[ArmKey, column.Record]:
    """A row of the table by arm: the final ``losses`` of the trials that ended, in their order (infinite where one
    diverged), what the best one was, and the losses and steps of the winner on fresh seeds."""
    rows = rows[rows["status"].isin(OUTCOMES) & rows["axis"].eq("")]  # a failed run has rows without a value too
    found: dict[ArmKey, column.Record] = {}
    for arm, own in groups(rows, ("depth", "block")):
        again = own[own["trial"].isna()]
        trials = own[own["trial"].notna() & own["metric"].eq("final_loss")].sort_values("trial")
        if trials.empty:
            continue
        losses = trials["value"].fillna(math.inf).to_numpy(np.float64)
        fresh = again.loc[again["metric"] == "final_loss", "value"]
        winner = mean("", fresh, unit="×").columns("winner", "winner_")
        steps = again.loc[again["metric"] == "steps_to_threshold", "value"].fillna(math.inf)
        found[arm["block"], arm["depth"] + 1] = {
            "block": arm["block"],
            "depth": arm["depth"] + 1,
            "losses": losses,
            "trials": len(losses),
            "best": float(losses.min()),
            "expected": 10 ** float(expected_best(losses)),
            "diverged": int(np.isinf(losses).sum()),
            "median": float(np.median(losses)),
            "seeds": len(fresh),
            "won": _settings(trials.sort_values("value").iloc[0]),
            "again": sorted(fresh.dropna()),
            "steps": sorted(steps),
            "params": own["params"].max(),
            **winner,
            **({"winner": math.inf} if fresh.isna().any() else {}),
        }
    return dict(sorted(found.items(), key=lambda one: (one[0][1], one[0][0])))


def _settings(trial: pd.Series[Any]) -> str:
    """The drawn values of a trial in few words."""
    recipe, gate = recipe_of(trial["recipe"]), recipe_of(trial["block_options"])
    parts = [f"{name} {three(recipe[name])}" for name in ("rate", "momentum", "decay")]
    parts.append(recipe_of(trial["family_options"]).get("activation", "relu"))
    return ", ".join(parts + ([f"gate bias {three(gate['gate_bias'])}"] if "gate_bias" in gate else []))


def table_of(searches: Searches) -> column.TextTable:
    shown = [
        *columns("block", "depth"),
        column.whole("trials", "trials"),
        column.number("best", "best loss", "nat", "lowest final training loss of the trials: the paper's statistic"),
        column.number("expected", f"best of {BEST_OF}", "nat", "expected: the mean of its log₁₀ over draws of trials"),
        column.number("median", "median loss", "nat", "of all trials; ∞ where half of them diverged"),
        *columns("diverged"),
        column.spread(
            "winner",
            "winner on fresh seeds",
            "winner_low",
            "winner_high",
            "nat",
            "geometric mean of its final losses, 95 % t interval of log10",
        ),
        column.whole("seeds", "seeds"),
        column.computed(
            "steps to threshold",
            lambda record: three(median(record["steps"])) if record["steps"] else "",
            "median of these seeds; ∞: never",
        ),
        column.whole("params", "parameters", "of the whole network; per layer the arms are equal within 0.3 %"),
        column.words("won", "the winner"),
    ]
    return column.shown("figure1", "Best of a random search", pd.DataFrame(list(searches.values())), shown)


def picture_of(searches: Searches) -> Picture:
    """The expected best of 20 trials by depth; at the same position the best trial, and its settings on fresh seeds."""
    styles, mark = drawing.styles(ARMS), drawing.mark
    depths = sorted({depth for _, depth in searches})
    title = f"Best loss of {BEST_OF} trials by depth"
    extra = [
        mark("o", f"expected best of {BEST_OF}"),
        mark("_", "best trial"),
        mark("o", "on fresh seeds", filled=False),
        mark(".", "a seed"),
        *([mark("x", "some seed diverged")] if any(math.isinf(one["winner"]) for one in searches.values()) else []),
    ]
    alt = []
    with drawing.sheet(title, 3.4, styles, extra) as sheet:
        (axes,) = sheet.axes
        for number, arm in enumerate(ARMS):
            style, part = styles[arm], [one for (block, _), one in searches.items() if block == arm]
            at = [depths.index(one["depth"]) + drawing.dodge(number, len(ARMS), 0.12) for one in part]
            expected = [one["expected"] if math.isfinite(one["expected"]) else math.nan for one in part]
            axes.plot(at, expected, color=style.colour, marker=style.marker, linestyle=style.dash, linewidth=1.2)
            lowest = [one["best"] for one in part]
            axes.plot(at, lowest, color=style.colour, marker="_", markersize=12, markeredgewidth=1.6, linestyle="")
            for x, one in zip(at, part, strict=True):
                if math.isinf(one["winner"]):
                    drawing.crosses(axes, x, style)
                elif one["seeds"]:
                    drawing.seed_dots(axes, x, one["again"], style)
                    bounds = (one["winner_low"], one["winner_high"]) if one["seeds"] > 1 else None
                    drawing.point_with_interval(axes, x, one["winner"], style, bounds, filled=False, zorder=4)
                alt.append(f"{arm}, {one['depth']} layers: {three(one['expected'])}")
        chance = make_dataset("mnist-5k").chance_loss  # the larger data set's is equal within 0.1 %
        drawing.reference_losses(axes, chance, THRESHOLD * chance)
        drawing.log_axis(axes, "y")
        axes.set_xticks(range(len(depths)), [f"{depth:g}" for depth in depths])
        axes.set_xlabel("layers (not to scale)")
        axes.set_ylabel("final training loss, nat (log)")
    return sheet.picture(
        "figure1-best",
        f"Expected best loss of {BEST_OF} trials by depth. {drawing.joined(alt)}",
        f"Filled: expected best of {BEST_OF} trials. Dashes: the lowest final loss of all trials. Open: the settings "
        "of that trial on fresh seeds, geometric mean with 95 % t interval of log₁₀. Marks of one arm and depth are at "
        "one position.",
    )
