"""Shared by the tests of reproductions: the prepared rows of cells with given metrics, and what these say."""

import math

import pandas as pd

from highway_bench.frames.rows import prepared
from highway_bench.results.schema import row
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.request import Request

R, S, U, A, C, N = Verdict  # reproduced, suggestive, undecided, suggestive against, contradicted, not testable


def rows_of(values, **columns):
    """One row per metric. A value that is not finite becomes null, and its run has diverged."""
    rows = []
    for number, (cell, metrics) in enumerate(values.items()):
        for what, value in metrics.items():
            fine = math.isfinite(value)
            metric, axis, index = what if isinstance(what, tuple) else (what, "", None)
            common = {"machine": "m", "time_utc": "2026-01-01", "digest": f"d{number}"}
            common |= {"metric": metric, "axis": axis, "value": value if fine else None}
            rows.append(
                row(**cell.columns(), **common, status="ok" if fine else "diverged") | {"index": index, **columns}
            )
    return prepared(pd.DataFrame(rows))


def followed(study, request, metrics):
    """The ``metrics`` of every cell of a study, and of all that follow from them. The rate 0.1 is the best of those
    that are tried."""
    values = {}

    def measure(cells):
        for cell in cells:
            tried = {"final_loss": 1 + abs(math.log(cell.recipe.get("rate", 0.1) / 0.1)), "success": 1.0}
            values[cell] = tried if cell.trial is not None else {**metrics(cell)}
        ended = {cell: values[cell].items() for cell in cells}
        return {cell: {name: value if math.isfinite(value) else math.nan for name, value in own}
                for cell, own in ended.items()}  # fmt: skip

    study.in_rounds(request, measure)
    return values


def outcome_of(study, metrics, request=None, **columns):
    """What a study concludes where its cells, with all that follow, have these ``metrics``."""
    request = request or Request(device="cpu")
    return study.outcome(rows_of(followed(study, request, metrics), **columns), request)


def verdicts(result, what=""):
    """The verdicts on the claims whose statement has these words."""
    return [one.verdict for one in result.findings if what in one.claim.statement]
