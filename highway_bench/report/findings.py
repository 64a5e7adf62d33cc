"""What trains, in words: the finding of a figure or a table on one contest."""

from __future__ import annotations

from typing import Final

import pandas as pd

from highway_bench.report.format import counted, listed
from highway_bench.report.rows import rows_of
from highway_bench.report.tables.trainability import not_judged, surely_fails
from highway_bench.success.ladder import JUDGED, TRAINS

NAMED: Final = 3
"""The largest number of connections that a finding names as not training; more are counted."""


def what_trains(part: pd.DataFrame, blocks: list[str]) -> str:
    """The blocks that train at the deepest depth judged, and how many of those that train at the depth before were not
    judged there; ``part`` are a contest's rows of the trainability table."""
    judged = part[part["verdict"].isin(JUDGED)]
    left = not_judged(part, int(judged["depth"].max())) if len(judged) else []
    finding = _what_trains(judged, blocks, "that was judged " if left else "")
    if not left:
        return finding
    others = counted(len(left), "connection")
    return f"{finding}; {others} that trained at the depth before {'were' if len(left) > 1 else 'was'} not judged there"


def _what_trains(judged: pd.DataFrame, blocks: list[str], which: str = "") -> str:
    if judged.empty:
        return "not enough seeds for a verdict at any depth"
    deepest = int(judged["depth"].max())
    here = {cell["block"]: cell for cell in rows_of(judged[judged["depth"] == deepest])}
    trained = [block for block in blocks if block in here and here[block]["verdict"] == TRAINS]
    rest = [block for block in blocks if block in here and block not in trained]
    unsure = [block for block in rest if not surely_fails(here[block])]
    train = "train" if len(trained) > 1 else "trains"
    if trained and not rest:
        who = f"all {len(trained)} connections" if len(trained) == len(blocks) > 1 else listed(trained)
        return f"{who} {train} at depth {deepest:,}, the deepest judged"
    if trained:
        if min(len(trained), len(rest)) > NAMED:
            return f"at depth {deepest:,} {len(trained)} of {len(trained) + len(rest)} connections train"
        surely = [block for block in rest if block not in unsure]
        parts = [f"at depth {deepest:,} {listed(trained)} {train}", *_do_not(surely), *_do_not(unsure, "perhaps ")]
        return "; ".join(parts)
    depths = judged.loc[judged["verdict"] == TRAINS, "depth"]
    who = (
        f"{rest[0]}, the only connection tried, does not train" if len(blocks) == 1 else f"no connection {which}trains"
    )
    return f"{who} {f'beyond depth {int(depths.max()):,}' if len(depths) else 'at any depth tried'}"


def _do_not(blocks: list[str], perhaps: str = "") -> list[str]:
    """That ``blocks`` do not train; nothing where there are none."""
    others = listed(blocks) if len(blocks) <= NAMED else f"{len(blocks)} others"
    return [f"{perhaps}{others} {'do' if len(blocks) > 1 else 'does'} not"] if blocks else []
