"""Success by depth of the blocks of a ladder: the table with L50, and the figure of success rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.measure.statistics import wilson
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, panels, settings
from highway_bench.report.figures.drawing import intervals
from highway_bench.report.format import count
from highway_bench.report.style import styles as styles_of
from highway_bench.success.ladder import TRAINABLE, Success, l50
from highway_bench.success.monotone import largest_rise

SuccessByBlock = Mapping[str, Success]
"""Runs that succeed, and runs, by block and layers. The plain first layer counts, as in the papers."""


def successes_of(ended: pd.DataFrame) -> dict[str, Success]:
    """The successes of the runs that ended, by block and layers."""
    return {
        str(block): {
            depth + 1: (int((own["success"] == 1).sum()), len(own))
            for depth in sorted(set(part["depth"].astype(int)))
            for own in [part[part["depth"] == depth]]
        }
        for block, part in ended.groupby("block", sort=False)
    }


def l50_text(success: Success) -> str:
    """L50 in layers, with its interval."""
    return str(l50(success)) if len(success) > 1 else "–"


RISES = 0.05
"""The level at which a rise of success with depth is stated."""


def rise_text(success: Success) -> str:
    """The largest rise of success with depth, with the p value of a success that never rises: "3 of 10 at 20 layers,
    8 of 10 at 200 (monotone over all depths: p = 0.03)"; empty if there is none."""
    rise = largest_rise(success) if success else None
    if rise is None:
        return ""
    ends = [f"{k} of {n}" for k, n in (success[rise.shallow], success[rise.deep])]
    text = f"{ends[0]} at {count(rise.shallow)} layers, {ends[1]} at {count(rise.deep)}"
    text += f" (monotone over all depths: p = {rise.p:.2g})"
    return text if rise.p < RISES else f"{text}, not more than chance gives"


def success_table(successes: SuccessByBlock) -> column.Shown:
    """One row per block: its successes by depth, L50, and where success rises with depth."""
    layers = sorted({depth for success in successes.values() for depth in success})
    records: list[dict[str, Any]] = [
        {"block": block, "l50": l50_text(success), "rise": rise_text(success) or "none"}
        | {str(depth): f"{success[depth][0]} of {success[depth][1]}" for depth in layers if depth in success}
        for block, success in successes.items()
    ]
    columns = [
        column.words("block", "block"),
        *(column.words(str(depth), f"{count(depth)} layers") for depth in layers),
        column.words("l50", "L50", "layers at which half of the runs succeed, with a 95 % bootstrap interval"),
        column.words("rise", "where success rises with depth"),
    ]
    note = (
        "Seeds that train, of those that ended. Success usually falls with depth; the last column names where it rises."
    )
    return column.shown("thousand-success", "Success by depth", pd.DataFrame(records), columns, note=note)


def success_picture(successes: SuccessByBlock) -> Picture:
    """The share of seeds that train against depth: a mark per block and depth with Wilson's interval."""
    styles = styles_of(list(successes))
    layers = sorted({depth for success in successes.values() for depth in success})
    alt = []
    with settings():
        figure, (axes,) = panels(1, 1, 2.8)
        axes.axhline(TRAINABLE, color="#555555", linewidth=0.8, linestyle=":")
        axes.annotate(
            f"trains: {TRAINABLE:.0%}",
            (1.01, TRAINABLE),
            xycoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=7.5,
            color="#555555",
        )
        for number, (block, success) in enumerate(successes.items()):
            known = sorted(success)
            at = [layers.index(depth) + dodge(number, len(successes), 0.2) for depth in known]
            shares = [success[depth][0] / success[depth][1] for depth in known]
            low, high = np.transpose([wilson(*success[depth]) for depth in known])
            style = styles[block]
            axes.plot(at, shares, color=style.colour, marker=style.marker, linestyle=style.dash, zorder=3)
            intervals(axes, at, low, high, style)
            alt += [f"{block}, {depth} layers: {success[depth][0]} of {success[depth][1]}" for depth in known]
        axes.set_xticks(range(len(layers)), [count(depth) for depth in layers])
        axes.set_ylim(-0.06, 1.06)
        axes.set_xlabel("layers (not to scale)")
        axes.set_ylabel("share of seeds that train")
        title = "Share of seeds that train, by depth"
        head(figure, title)
        legend(figure, styles, lines=True)
    runs = sorted({n for success in successes.values() for _, n in success.values()})
    caption = f"Of {' or '.join(map(str, runs))} seeds; bars are Wilson's 95 % intervals. " + " ".join(
        f"Rise with depth, {block}: {rise_text(success) or 'none'}." for block, success in successes.items()
    )
    return Picture("thousand-success", title, f"Success by depth. {joined(alt, 40)}", caption, figure)
