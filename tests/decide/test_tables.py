"""The tables of what a store has: ladders by family, contrasts."""

import math

import pandas as pd
import pytest

from highway_bench.blocks import blocks
from highway_bench.cli._output import write_tables
from highway_bench.errors import BadInput
from highway_bench.frames.results import Results, open_results
from highway_bench.studies.decide.tables import (
    PUBLISHED,
    UNSTABLE,
    UNSTABLE_REFERENCE,
    contrast_shown,
    contrast_table,
    ladder_table,
    published_shown,
    tables,
    tries_shown,
)
from highway_bench.success.ladder import TOO_FEW_SEEDS
from tests.rows import cell, frame_of, training


def run(block, seed, bits, *, depth=6, width=64, steps=1_500):
    return {
        "block": block,
        "seed": seed,
        "test_bits": bits,
        "depth": depth,
        "nominal_width": width,
        "recipe": f'{{"steps":{steps}}}',
        "dataset": "language",
        "status": "diverged" if math.isnan(bits) else "ok",
    }


RUNS = pd.DataFrame(
    [run("pre-norm · depth-aware", seed, 2.6 + 0.01 * seed) for seed in range(10)]
    + [run("keel", seed, 2.5 + 0.01 * seed + 0.002 * (seed % 3)) for seed in range(10)]
    + [run("mhc · published", seed, 2.6 + 0.01 * seed + 0.02 * (-1) ** seed) for seed in range(10)]
    + [run("keel", seed, 2.7 + 0.01 * seed + 0.002 * (seed % 3), steps=1_200) for seed in range(5)]
    + [
        run(block, seed, bits + 0.01 * (seed * len(block) % 3), width=128)
        for block, bits in (("pre-norm · depth-aware", 2.3), ("keel", 2.2), ("mhc · published", 2.4))
        for seed in range(3)
    ]
)


def test_contrasts_of_equal_steps_and_of_equal_seconds():
    table = contrast_table(RUNS)
    narrow = table[table["nominal_width"] == 64].set_index(["block", "steps"])
    assert narrow["verdict"].to_dict() == {
        ("keel", 1_500): "better",
        ("mhc · published", 1_500): "undecided",
        ("keel", 1_200): "worse",
    }
    assert narrow.loc[("keel", 1_500), "difference"] == pytest.approx(-0.098, abs=1e-3)
    assert narrow.loc[("keel", 1_200), "pairs"] == 5


def test_a_connection_of_which_a_seed_diverged_is_unstable():
    """Nor has it a difference from one seed."""
    diverged = [run("keel", 10, math.nan), run("keel", 3, math.nan, width=128), run("gru-gate", 0, 2.0, width=128)]
    diverged += [run("gru-gate", seed, math.nan, width=128) for seed in (1, 2)]
    runs = pd.concat([RUNS[RUNS["recipe"] != '{"steps":1200}'], pd.DataFrame(diverged)])
    table = contrast_table(runs).set_index(["nominal_width", "block"])
    assert table.loc[(64, "keel"), "verdict"] == table.loc[(128, "gru-gate"), "verdict"] == UNSTABLE
    assert (table.loc[(64, "keel"), "pairs"], table.loc[(64, "keel"), "diverged"]) == (10, 1)
    assert math.isnan(table.loc[(128, "gru-gate"), "difference_low"])


def test_nothing_is_better_than_a_reference_that_diverged_at_a_seed():
    diverged = pd.DataFrame([run("pre-norm · depth-aware", 10, math.nan)])
    table = contrast_table(pd.concat([RUNS, diverged])).set_index(["nominal_width", "block", "steps"])
    assert table.loc[(64, "keel", 1_500), "verdict"] == UNSTABLE_REFERENCE
    assert table.loc[(128, "keel", 1_500), "verdict"] == TOO_FEW_SEEDS
    reference = RUNS["block"].str.startswith("pre-norm")
    for gone, verdict in ((reference, UNSTABLE_REFERENCE), (~reference, UNSTABLE)):
        bits, status = RUNS["test_bits"].mask(gone), RUNS["status"].mask(gone, "diverged")
        every = contrast_table(RUNS.assign(test_bits=bits, status=status))
        assert set(every["verdict"]) == {verdict}
        assert contrast_shown(every).entries


def test_a_run_that_failed_is_no_run_of_a_contrast():
    failed = RUNS.assign(status=RUNS["status"].mask((RUNS["block"] == "keel") & (RUNS["seed"] > 6), "timeout"))
    table = contrast_table(failed).set_index(["nominal_width", "block", "steps"])
    assert tuple(table.loc[(64, "keel", 1_500), ["runs", "diverged", "pairs"]]) == (7, 0, 7)


def test_a_tuning_run_that_diverged_counts():
    tries = [(0.03, 0, 1.0), (0.03, 1, math.nan), (0.01, 0, 1.7), (0.01, 1, 1.8), (0.003, 0, 1.9)]
    trials = pd.DataFrame(
        [run("keel", seed, loss) | {"rate": rate, "final_loss": loss} for rate, seed, loss in tries]
        + [run("mhc", 0, math.nan) | {"rate": 0.01, "final_loss": math.nan}]
        + [run("keel", 0, math.nan, depth=24) | {"rate": math.nan, "final_loss": math.nan, "status": "oom"}]
    )
    shown = tries_shown(trials)
    assert [row[2:] for row in shown.entries] == [
        ("keel", "2.52", "0.0100", "2", "3", "1"),
        ("mhc", "∞", "0.0100", "1", "1", "1"),
    ]


def test_published_results_next_to_ours():
    shown = published_shown(contrast_table(RUNS))
    assert [row[:4] for row in shown.entries] == [
        (block, *one) for block, all_of in PUBLISHED.items() for one in all_of
    ]
    assert PUBLISHED.keys() <= set(blocks)
    rows = {row[0]: row for row in shown.entries}
    assert rows["keel"][4].startswith("−0.098 [")
    assert rows["keel"][4].endswith(", better")  # that of equal steps, not that of equal seconds
    assert rows["rezero"][4:] == ("not measured",) * 3
    assert {row[4] for row in published_shown(pd.DataFrame()).entries} == {"not measured"}


def test_the_ladder_names_the_start_of_a_block_that_has_one():
    rows = [
        one | {"start": start, "digest": f"{block} {start}"}
        for block, start in (("rezero", "published"), ("highway", "published"), ("highway", "depth-aware"))
        for one in training(cell("trainability", block, "conv", 5, dataset="digits"), 0.1, rate=0.1)
    ]
    entries = ladder_table(Results(frame_of(rows))).entries
    assert {row[3:5] for row in entries} == {
        ("rezero", "published"), ("highway", "published"), ("highway", "depth-aware")}  # fmt: skip


def test_the_tables_of_a_store(trained_part, tmp_path):
    written, path = tables(open_results(trained_part.store)), tmp_path / "decide.md"
    write_tables(written, path)
    assert "| dense | 1 | 8 | plain | default |" in path.read_text(encoding="utf-8")  # these cells name no start
    with pytest.raises(BadInput, match="cannot write"):
        write_tables(written, tmp_path)
