"""What trains, in words: the finding of a figure or a table on one contest."""

from __future__ import annotations

import pandas as pd

from highway_bench.report.format import listed
from highway_bench.success.ladder import STALLS, TRAINS


def what_trains(part: pd.DataFrame, blocks: list[str]) -> str:
    """The blocks that train at the deepest depth judged; ``part`` are a contest's rows of the trainability table."""
    judged = part[part["verdict"].isin([TRAINS, STALLS])]
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
