"""``answers``: the wide table of the committed rows and of a store."""

from __future__ import annotations

import pandas as pd

from highway_bench.report.choice.columns import typed
from highway_bench.report.choice.known import known_answers
from highway_bench.report.choice.table import wide_table
from highway_bench.report.results import Results, Source, open_results
from highway_bench.report.rows import rows_of


def answers(store: Source | Results | None = None) -> pd.DataFrame:
    """How well each connection trains, and its cost: a row for each kind of layer, data set, depth and start.

    The committed rows (``source`` is ``known``) and, with ``store``, a path or rows, those that it has (``here``).
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
    here = wide_table(store if isinstance(store, Results) else open_results(store))
    return typed([*rows_of(known), *rows_of(here)])
