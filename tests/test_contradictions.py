"""Numbers on the page must not contradict each other: tests of the committed rows."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of, start_of, without_start
from highway_bench.report.choice.table import wide_table
from highway_bench.results.parquet import RUNS_KEY
from highway_bench.studies.decide.tables import UNSTABLE, contrast_table
from highway_bench.studies.reproduce.quantities import Quantity
from highway_bench.success.ladder import TRAINS

ROOT = Path(__file__).parents[1]
TEXT = "transformer causal"
pytestmark = pytest.mark.slow  # the rows take 10 seconds to read


@dataclass(frozen=True)
class Tables:
    """The committed rows without curves, as the tables that pages are made of."""

    rows: pd.DataFrame
    runs: Mapping[str, Mapping[str, Any]]

    def _of(self, pattern: str, *tasks: str) -> Results:
        """The results of the runs whose command, without the program's name, matches."""
        words = {run: " ".join((record.get("command") or [""])[1:]) for run, record in self.runs.items()}
        chosen = [run for run, command in words.items() if re.match(pattern, command)]
        rows = self.rows[self.rows["run_id"].isin(chosen) & self.rows["task"].isin(tasks)]
        return Results(rows, {run: self.runs[run] for run in set(rows["run_id"])})

    @cached_property
    def decided(self) -> Results:
        """The connections under the protocol of ``decide``."""
        return self._of("decide|forecast", "trainability", "throughput", "memory")

    @cached_property
    def wide(self) -> pd.DataFrame:
        """The wide table of the connections under the protocol of ``decide``."""
        return wide_table(self.decided)

    def steps(self, kind: str, depth: int) -> dict[str, dict[str, Any]]:
        """By connection: the ratio of its training step that is quoted for a kind of layer at a depth."""
        table = self.decided.ratios()
        own = table[table["family_label"].eq(kind) & table["depth"].eq(depth) & table["phase"].eq("train-step")]
        return {row["block"]: row for row in rows_of(own[own["mode"].eq("eager")])}


@pytest.fixture(scope="module")
def tables():
    frames, runs = [], {}
    wanted = pa.array(["trainability", "throughput", "memory"])
    for path in sorted((ROOT / "docs/data").rglob("*.parquet")):
        table = parquet.read_table(path)
        runs |= json.loads(zlib.decompress(base64.b64decode(table.schema.metadata[RUNS_KEY])))
        scalar = pc.and_(pc.equal(table["axis"], ""), pc.is_in(table["task"], value_set=wanted))
        frames.append(table.filter(scalar).to_pandas())
    rows = pd.concat(frames, ignore_index=True)
    cells = rows.sort_values("time_utc", kind="stable").drop_duplicates("digest", keep="last")[["digest", "run_id"]]
    return Tables(rows.merge(cells, on=["digest", "run_id"]), runs)  # of a cell, the newest run


def test_the_start_that_is_named_is_the_one_that_was_timed(tables):
    timed = tables.wide[tables.wide["step_ratio"].notna()]
    assert len(timed)
    assert timed["start"].eq(timed["timed_start"]).all()


def test_a_bare_sum_costs_no_more_than_one_with_a_scale(tables):
    """Text, 6 layers: rezero is residual with a learned scale, and both begin near the identity. With its published
    weights residual's step takes a quarter longer than plain's, in the same run."""
    ratios = tables.steps(TEXT, 6)
    assert ratios["residual · depth-aware"]["ratio_low"] <= ratios["rezero"]["ratio_high"]


def test_a_connection_has_one_verdict_at_a_depth(tables):
    """What is unstable in the contrasts does not train in the wide table."""
    runs = tables.decided.training_runs()
    contrasts = contrast_table(runs[runs["dataset"] == "language"])
    unstable = contrasts[contrasts["verdict"].eq(UNSTABLE) & contrasts["equal_steps"]]
    assert len(unstable)
    wide = tables.wide[tables.wide["kind"].eq(TEXT) & tables.wide["data"].eq("language")]
    for row in rows_of(unstable):
        own = wide[wide["connection"].eq(without_start(row["block"])) & wide["depth"].eq(row["depth"])]
        own = own[own["protocol"].str.contains(f"width {row['nominal_width']:g},")]
        assert len(own)
        assert not own.loc[own["start"].eq(start_of(row["block"])), "outcome"].eq(TRAINS).any()


@pytest.mark.parametrize("connection", ["highway", "highway-free"])
def test_a_connection_of_which_every_run_diverged_diverges(tables, connection):
    """At 24 layers of text neither has fresh seeds, since all of its tuning runs diverged."""
    trials = tables.decided.trials()
    own = trials[trials["family_label"].eq(TEXT) & trials["depth"].eq(24)]
    own = own[own["block"].map(without_start).eq(connection)]
    assert len(own)
    assert set(own["status"]) == {"diverged"}
    found = tables.wide[tables.wide["kind"].eq(TEXT) & tables.wide["depth"].eq(24)]
    assert set(found.loc[found["connection"].eq(connection), "outcome"]) == {"diverges"}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_has_no_unit(value):
    assert "×" not in str(Quantity("", value, value, value, 5, "×"))


def test_a_margin_is_that_of_the_losses_that_are_shown(tables):
    """Where two connections have the same seeds, their ratio is that of the losses in their rows."""
    wide, compared = tables.wide, 0
    for row in rows_of(wide[wide["loss_ratio"].notna()]):
        alike = wide[(wide[["kind", "data", "protocol", "depth"]] == [row["kind"], row["data"], row["protocol"],
                                                                      row["depth"]]).all(axis=1)]  # fmt: skip
        names = alike["connection"] + " · " + alike["start"]
        (reference,) = rows_of(alike[names.eq(row["reference"]) | alike["connection"].eq(row["reference"])])
        if row["seeds"] == reference["seeds"]:
            assert row["loss_ratio"] == pytest.approx(row["loss"] / reference["loss"])
            compared += 1
    assert compared > 50
