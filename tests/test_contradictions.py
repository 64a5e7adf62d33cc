"""Numbers on the page that are wrong or contradict each other, as tests of the committed rows.

Those that the rebuilt table of issue 62 must pass are expected failures. ``Tables`` is the only place that knows how
today's tables are made: whoever rebuilds them changes it, and takes the marks away.
"""

from __future__ import annotations

import base64
import itertools
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
from scipy import stats

from highway_bench.decide.tables import UNSTABLE, contrast_table
from highway_bench.measure.paired import ALPHA, holm
from highway_bench.report.figures import figures
from highway_bench.report.matrix import matrices
from highway_bench.report.results import Results
from highway_bench.report.rows import rows_of, start_of, without_start
from highway_bench.report.summary_tables import summary_tables
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.quantities import Quantity
from highway_bench.reproduce.request import Request
from highway_bench.results.parquet import RUNS_KEY
from highway_bench.success.ladder import FULL_SEEDS, TRAINS

ROOT = Path(__file__).parents[1]
TEXT = "transformer causal"
pytestmark = pytest.mark.slow  # the rows take 10 seconds to read


def rebuilt(why: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=f"issue 62: {why}")


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
    def timed(self) -> Results:
        """The costs of ``standard``, of which nothing is trained for a verdict: the page of ``nox -s bench``."""
        return self._of("run", "throughput", "memory")

    @cached_property
    def frontier(self) -> Results:
        """The depths to which connections train in the profiles."""
        return self._of("run .*standard", "trainability")

    @cached_property
    def wide(self) -> pd.DataFrame:
        """One row per kind of layer, depth, plain's width and connection with its start: ``trains`` of ``runs``, their
        ``outcome`` and the ``words`` that are printed of it, ``step_ratio`` with its interval and the ``timed_start``,
        and the ``width``."""
        results = self.decided
        table = results.trainability().rename(columns={"k": "trains", "n": "runs", "verdict": "outcome"})
        alike = ["family_label", "recipe", "nominal_width", "machine", "depth", "block"]
        table = table.merge(results.costs()[[*alike, "ratio", "ratio_low", "ratio_high"]], how="left", on=alike)
        table = table.rename(columns={"family_label": "kind", "block": "connection"})
        table["timed_start"] = "default"  # a block with another start has the costs of the block
        return table.rename(columns={name: f"step_{name}" for name in ("ratio", "ratio_low", "ratio_high")})

    def steps(self, kind: str, depth: int) -> dict[str, dict[str, Any]]:
        """By connection: the ratio of its training step that is quoted for a kind of layer at a depth."""
        table = self.decided.ratios()
        own = table[table["family_label"].eq(kind) & table["depth"].eq(depth) & table["phase"].eq("train-step")]
        return {row["block"]: row for row in rows_of(own[own["mode"].eq("eager")])}

    def cell(self, kind: str, depth: int, connection: str, width: int | None = None) -> dict[str, Any]:
        """A row of ``wide``; without one, the connection is ``not measured``."""
        own = self.wide[(self.wide["kind"] == kind) & (self.wide["depth"] == depth)]
        own = own[own["connection"].eq(connection) & (own["nominal_width"].eq(width) | (width is None))]
        return rows_of(own)[0] if len(own) else {"outcome": "not measured"}


@pytest.fixture(scope="module")
def tables() -> Tables:
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


# --------------------------------------------------------------------------------------------------------- mended


def test_the_commit_of_the_populations_is_that_of_their_rows() -> None:
    record = json.loads((ROOT / "docs/data/benchmark-population.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/peers.md").read_text(encoding="utf-8")
    assert f"at commit {record['commit_info']['id'][:8]}" in " ".join(page.split())


# --------------------------------------------------------------------------------------------------- 1, 2: costs


@rebuilt("costs of an answer do not ask for the mode")
def test_every_quoted_cost_is_of_one_mode(tables: Tables) -> None:
    """The heading says eager."""
    ratios = tables.timed.ratios()
    eager = set(ratios.loc[ratios["mode"].eq("eager"), "ratio"].dropna())
    quoted = [cost["ratio"] for answer in tables.timed.answer() for cost in answer.costs]
    assert quoted
    assert [ratio for ratio in quoted if not math.isnan(ratio) and ratio not in eager] == []


@rebuilt("the step of another start stands beside the one that is named")
def test_the_start_that_is_named_is_the_one_that_was_timed(tables: Tables) -> None:
    timed = tables.wide[tables.wide["step_ratio"].notna()]
    assert len(timed)
    assert timed["connection"].map(start_of).eq(timed["timed_start"]).all()


@rebuilt("what the bare sum costs above connections that do more is not explained")
def test_a_bare_sum_costs_no_more_than_one_with_a_scale(tables: Tables) -> None:
    """Text, 6 layers: rezero is residual with a learned scale."""
    ratios = tables.steps(TEXT, 6)
    assert ratios["residual"]["ratio_low"] <= ratios["rezero"]["ratio_high"]


# ------------------------------------------------------------------------------------------------- 4, 5: verdicts


@rebuilt("a connection that diverged at some seeds is unstable in one table and trains in another")
def test_a_connection_has_one_verdict_at_a_depth(tables: Tables) -> None:
    runs = tables.decided.training_runs()
    contrasts = contrast_table(runs[runs["dataset"] == "language"])
    unstable = contrasts[contrasts["verdict"].eq(UNSTABLE) & contrasts["equal_steps"]]
    assert len(unstable)
    words = {
        tables.cell(TEXT, row["depth"], row["block"], row["nominal_width"])["outcome"] for row in rows_of(unstable)
    }
    assert TRAINS not in words


@rebuilt("tuning runs that all diverged are no outcome")
@pytest.mark.parametrize("connection", ["highway", "highway-free"])
def test_a_connection_of_which_every_run_diverged_diverges(tables: Tables, connection: str) -> None:
    """At 24 layers of text neither has fresh seeds, since all of its tuning runs diverged."""
    trials = tables.decided.trials()
    own = trials[trials["family_label"].eq(TEXT) & trials["depth"].eq(24)]
    own = own[own["block"].map(without_start).eq(connection)]
    assert len(own)
    assert set(own["status"]) == {"diverged"}
    assert {tables.cell(TEXT, 24, label)["outcome"] for label in set(own["block"])} == {"diverges"}


@rebuilt("5 of 5 reads stronger than 8 of 10")
def test_a_verdict_of_fewer_than_ten_seeds_is_printed_as_provisional(tables: Tables) -> None:
    texts = [
        " ".join(cell.lines)
        for matrix in matrices(tables.decided)
        for _, _, cells in matrix.rows
        for cell in cells
        if cell.lines[0].startswith(("trains", "fails", "perhaps"))
    ]
    few = [text for text in texts if int(text.partition("/")[2].partition(",")[0].split()[0]) < FULL_SEEDS]
    assert few
    assert [text for text in few if "provisional" not in text] == []


# --------------------------------------------------------------------------------------------- 8: units and columns


@rebuilt("compiled costs compare with compiled plain, though eager plain is faster")
def test_a_compiled_step_is_compared_with_the_faster_plain(tables: Tables) -> None:
    ratios = tables.timed.ratios()
    plain = ratios[ratios["block"].eq("plain") & ratios["step_time"].notna()]
    alike = ["machine", "threads", "dtype", "phase", "family_label", "depth", "nominal_width", "batch_size", "seq_len"]
    modes = plain.pivot_table(index=[name for name in alike if plain[name].notna().all()], columns="mode",
                              values="step_time")  # fmt: skip
    both = modes.dropna(subset=["eager", "compile"])
    assert len(both)
    assert (both["compile"] <= both["eager"]).all()


@rebuilt("the figure of bytes says ÷ plain's over an axis in bytes")
def test_a_figure_of_bytes_has_one_unit(tables: Tables) -> None:
    for picture in figures.get("layer-bytes").draw(tables.timed):
        labels = [axes.get_xlabel() for axes in picture.figure.axes]
        assert ("÷" in picture.title) == any("÷" in label for label in labels)


@rebuilt("a loss of −14.5 points stands beside a gain of −0.327 points")
def test_differences_of_accuracy_have_one_sign() -> None:
    falls = {
        "fall" in claim.quantity for claim in reproductions.get("bilstm").claims(Request()) if claim.unit == "points"
    }
    assert len(falls) == 1


@rebuilt("numbers that are not known or infinite are printed with a unit")
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_has_no_unit(value: float) -> None:
    assert "×" not in str(Quantity("", value, value, value, 5, "×"))


@rebuilt("step times of training runs are not timed in turn")
def test_tables_have_no_step_times_of_training_runs(tables: Tables) -> None:
    """Connections are compared by paired steps only."""
    assert "step_seconds" not in tables.wide


@rebuilt("the column has no time in any row")
def test_times_to_the_threshold_are_times(tables: Tables) -> None:
    for one in summary_tables(tables.frontier):
        for head, entries in zip(one.heads, zip(*one.entries, strict=True), strict=True):
            if head.text == "to threshold":
                assert any(any(sign.isdigit() for sign in entry) for entry in entries), entries


@rebuilt("a title's 49.5 % stands over losses that give 50.3 %")
def test_a_margin_is_that_of_the_losses_that_are_drawn(tables: Tables) -> None:
    table = tables.frontier.trainability()
    compared = 0
    for answer in tables.frontier.answer():
        if answer.margin is None or math.isnan(answer.margin.low):
            continue
        here = table[table["family_label"].eq(answer.family.partition(" on ")[0]) & table["depth"].eq(answer.depths[0])]
        losses = here.set_index("block")["final_loss"]
        drawn = losses[answer.best] / losses[answer.margin.block]
        assert answer.margin.ratio == pytest.approx(drawn, abs=0.001)
        compared += 1
    assert compared


# -------------------------------------------------------------------------------------------------- 9: comparisons


@rebuilt("differences between starts are tested one by one")
def test_what_trains_with_one_start_only_is_corrected_for_all_comparisons(tables: Tables) -> None:
    cells = tables.wide.assign(name=tables.wide["connection"].map(without_start))
    keys, p_values = [], []
    for key, part in cells.groupby(["kind", "recipe", "nominal_width", "name", "depth"]):
        for one, other in itertools.combinations(rows_of(part), 2):
            counts = [[row["trains"], row["runs"] - row["trains"]] for row in (one, other)]
            keys.append((key[0], key[3], key[4]))
            p_values.append(float(stats.fisher_exact(counts).pvalue))
    significant = {key for key, p in zip(keys, holm(p_values), strict=True) if p < ALPHA}
    claimed = {
        (one.trains.partition(" · ")[0], one.block, depth)
        for one in tables.decided.conflicting_verdicts()
        if one.trains.partition(" · ")[0] == one.stalls.partition(" · ")[0]
        for depth in one.depths
    }
    assert claimed
    assert claimed <= significant


@rebuilt("conv highway of width 11 is compared with conv-pair of width 16 as if the family were the cause")
def test_families_are_compared_at_equal_width(tables: Tables) -> None:
    pairs = 0
    for one in tables.decided.conflicting_verdicts():
        family, other = (name.partition(" · ") for name in (one.trains, one.stalls))
        if family[0] != other[0]:
            for depth in one.depths:
                labels = [f"{one.block} · {name[2]}" if name[2] else one.block for name in (family, other)]
                here = (tables.cell(kind[0], depth, label) for kind, label in zip((family, other), labels, strict=True))
                assert len({cell["width"] for cell in here}) == 1
                pairs += 1
    assert pairs
