"""Share of seeds that train, against depth: a panel a block, with Wilson bands."""

from __future__ import annotations

from typing import Any

import pandas as pd

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    log_axis,
    panels,
    settings,
    shown,
)
from highway_bench.report.format import listed
from highway_bench.report.rows import prepared
from highway_bench.report.style import Look, looks
from highway_bench.report.tables.labels import contest_text
from highway_bench.report.tables.trainability import contests, trainability_table
from highway_bench.success import STALLS, TRAINABLE, TRAINS

MOST_LEVEL = 5  # depths whose labels have room side by side under a panel


def success_rate(rows: pd.DataFrame) -> list[Picture]:
    """A picture a contest."""
    table = trainability_table(prepared(rows))
    look = looks(prepared(rows)["label"])
    pictures = [
        _picture(f"success-{number}", contest, part[part["n"] > 0], look)
        for number, (contest, part) in enumerate(contests(table), start=1)
        if (part["n"] > 0).any()
    ]
    if not pictures:
        raise NothingToShow("success against depth needs the trainability task with verdicts")
    return pictures


def _picture(name: str, contest: dict[str, Any], part: pd.DataFrame, look: dict[str, Look]) -> Picture:
    blocks = [block for block in look if (part["block"] == block).any()]
    depths = sorted(part["depth"].unique())
    counts = sorted(set(part["n"]))
    told: list[str] = []
    with settings():
        figure, axes = panels(len(blocks), 3, 1.45, sharex=True, sharey=True)
        for panel, block in zip(axes, blocks, strict=True):
            rungs = part[part["block"] == block].sort_values("depth")
            rate = rungs["k"] / rungs["n"]
            style = look[block]
            panel.fill_between(
                rungs["depth"], rungs["rate_low"], rungs["rate_high"], color=style.colour, alpha=0.18, linewidth=0
            )
            panel.vlines(
                rungs["depth"], rungs["rate_low"], rungs["rate_high"], color=style.colour, linewidth=1.0, alpha=0.6
            )
            panel.plot(
                rungs["depth"], rate, color=style.colour, marker=style.marker, linestyle=style.dash, clip_on=False
            )
            panel.axhline(TRAINABLE, color="#555555", linewidth=0.8, linestyle=":")
            for depth, k, n in zip(rungs["depth"], rungs["k"], rungs["n"], strict=True):
                panel.annotate(
                    f"{k}" if len(counts) == 1 else f"{k}/{n}",  # rungs of a long ladder stand close
                    (depth, k / n),
                    xytext=(0, -11 if k / n > 0.5 else 6),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7.5,
                )
                told.append(f"{block} at depth {depth}: {k} of {n}")
            panel.set_title(shown(block, 22), color=style.colour if block != "plain" else "black", loc="left")
            panel.set_ylim(-0.06, 1.06)
            panel.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        for panel in axes:
            panel.set_xlim(depths[0] / 1.35, depths[-1] * 1.35)
            log_axis(panel, "x", at=depths)
            if len(depths) > MOST_LEVEL:
                panel.tick_params(axis="x", labelrotation=90)
        figure.supxlabel("depth, layers (log)", fontsize=9)
        figure.supylabel("share of seeds", fontsize=9)
        title = f"{contest['family_label']}: {_finding(part, blocks)}"
        head(figure, title)
    numbers = f"of {counts[0]} seeds" if len(counts) == 1 else "of those run"
    caption = (
        f"{contest_text(contest)}. Numbers: seeds that succeed, {numbers}; bands: Wilson 95 % intervals; "
        f"dotted: the rule, {TRAINABLE:.0%} of seeds."
    )
    return Picture(name, title, f"Success rate by depth, a panel a block. {joined(told, 60)}", caption, figure)


def _finding(part: pd.DataFrame, blocks: list[str]) -> str:
    judged = part[part["verdict"].isin([TRAINS, STALLS])]
    if judged.empty:
        return "not enough seeds for a verdict at any depth"
    deepest = int(judged["depth"].max())
    here = judged[judged["depth"] == deepest].set_index("block")["verdict"].to_dict()
    trained, rest = ([block for block in blocks if here.get(block) == verdict] for verdict in (TRAINS, STALLS))
    train = "train" if len(trained) > 1 else "trains"
    if trained and not rest:
        who = f"all {len(trained)} blocks" if len(trained) == len(blocks) > 1 else listed(trained)
        return f"{who} {train} at depth {deepest:,}, the deepest judged"
    if trained:
        return f"at depth {deepest:,} {listed(trained)} {train}; {listed(rest)} {'do' if len(rest) > 1 else 'does'} not"
    depths = judged.loc[judged["verdict"] == TRAINS, "depth"]
    return f"no block trains {f'beyond depth {int(depths.max()):,}' if len(depths) else 'at any depth tried'}"
