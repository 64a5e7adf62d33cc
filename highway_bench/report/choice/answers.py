"""``answers``: the wide table of the committed rows and of a store."""

from __future__ import annotations

import pandas as pd

from highway_bench.frames.results import Results, Source, open_results
from highway_bench.report.choice.joined import joined
from highway_bench.report.choice.known import known_answers, known_finals


def answers(store: Source | Results | None = None) -> pd.DataFrame:
    """How well each connection trains, and its cost: a row for each kind of layer, data set, depth and start.

    The committed rows (``source`` is ``known``) and, with ``store``, a path or rows, those that it has (``here``). What
    it repeats under an equal protocol is no row of its own: ``repeated`` says whether it agrees. ``costs`` are this
    machine's in the columns that it timed.

    ``highway_bench.report.choice.columns.COLUMNS`` explains the columns, ``attrs["units"]`` has the units, and
    columns ``…_low`` and ``…_high`` bound the column of that name. Connections are compared where they train, at equal
    ``kind``, ``data``, ``protocol`` and ``depth``, seed by seed; the intervals of differences are corrected by Holm.

    Raises ``NothingMeasured`` for a store without rows and ``BadInput`` for one that cannot be read.

    >>> import highway_bench as hb
    >>> table = hb.answers()
    >>> table.loc[table["outcome"].eq("trains"), "kind"].nunique() > 4
    True
    """
    known = known_answers()
    if store is None:
        return known
    return joined(known, known_finals(), store if isinstance(store, Results) else open_results(store))
