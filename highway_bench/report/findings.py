"""What trains, in words: the finding of a figure or a table on one contest."""

from __future__ import annotations

import pandas as pd

from highway_bench.report.format import listed
from highway_bench.report.tables.trainability import not_yet_judged
from highway_bench.success.ladder import STALLS, TRAINS


def what_trains(part: pd.DataFrame, blocks: list[str]) -> str:
    """The blocks that train at the deepest depth judged; ``part`` are a contest's rows of the trainability table.

    A depth is not judged as long as blocks that train at the depth before have too few runs there.
    """
    judged = part[part["verdict"].isin([TRAINS, STALLS])]
    for depth in sorted(map(int, judged["depth"].unique())):
        if waiting := not_yet_judged(part, depth):
            finding = _what_trains(judged[judged["depth"] < depth], blocks)
            are = "are" if len(waiting) > 1 else "is"
            return f"{finding}; {len(waiting)} of those that train {are} still to be judged at depth {depth:,}"
    return _what_trains(judged, blocks)


def _what_trains(judged: pd.DataFrame, blocks: list[str]) -> str:
    if judged.empty:
        return "not enough seeds for a verdict at any depth"
    deepest = int(judged["depth"].max())
    here = judged[judged["depth"] == deepest].set_index("block")["verdict"].to_dict()
    trained, rest = ([block for block in blocks if here.get(block) == verdict] for verdict in (TRAINS, STALLS))
    train = "train" if len(trained) > 1 else "trains"
    if trained and not rest:
        who = f"all {len(trained)} connections" if len(trained) == len(blocks) > 1 else listed(trained)
        return f"{who} {train} at depth {deepest:,}, the deepest judged"
    if trained:
        return f"at depth {deepest:,} {listed(trained)} {train}; {listed(rest)} {'do' if len(rest) > 1 else 'does'} not"
    depths = judged.loc[judged["verdict"] == TRAINS, "depth"]
    who = f"{rest[0]}, the only connection tried, does not train" if len(blocks) == 1 else "no connection trains"
    return f"{who} {f'beyond depth {int(depths.max()):,}' if len(depths) else 'at any depth tried'}"
