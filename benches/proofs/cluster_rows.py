"""Whether a Ray cluster of three nodes gives the rows of the local engine, for the trainings of a profile.

    unshare -n python tests/cluster/loopback.py "$(command -v python)" -m benches.proofs.cluster_rows --profile standard

The cluster runs on this machine, in a network that has only the loopback device. Prints one line of JSON: the cells,
the rows without times, how many of them differ, and the seconds of both engines. The status is 1 if a row differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from benches.proofs.cluster_overhead import cluster
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.results import Store

KEY = ["digest", "metric", "axis", "index"]
OF_A_RUN = ["run_id", "time_utc"]  # columns that differ from run to run


def measured(plan: Plan, engine: str, folder: Path) -> tuple[pd.DataFrame, float]:
    """The rows of a plan by an engine, without times, and the seconds that it took."""
    began = time.perf_counter()
    with Store(folder / f"{engine}.sqlite") as store:
        rows = plan.run(store, engine=engine, workers=2).rows
    seconds = time.perf_counter() - began
    rows = rows[~rows["unit"].str.fullmatch("s|.*/s")].drop(columns=OF_A_RUN)
    return rows.sort_values(KEY).reset_index(drop=True), seconds


def main() -> None:
    """Print how the rows compare."""
    parser = argparse.ArgumentParser(description="The rows of a Ray cluster against those of the local engine.")
    parser.add_argument("--profile", default="standard")
    plan = Plan.of(parser.parse_args().profile, Selection.of("trainability"))
    with tempfile.TemporaryDirectory() as folder:
        here, seconds = measured(plan, "local", Path(folder))
        with cluster():
            there, seconds_there = measured(plan, "ray", Path(folder))
    equal = len(here) == len(there) and here.equals(there)
    differing = 0 if equal else len(here.merge(there, how="outer", indicator=True).query("_merge != 'both'"))
    line = {"cells": int(here["digest"].nunique()), "rows": len(here), "differing": differing}
    print(json.dumps(line | {"seconds_local": round(seconds), "seconds_ray": round(seconds_there)}))  # noqa: T201
    sys.exit(not equal)


if __name__ == "__main__":
    main()
