"""Every metric of every task that has a value in the rows is shown: on the page, or in a table of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from highway_bench.cell import Cell
from highway_bench.report import write_page
from highway_bench.report.console import print_summary
from highway_bench.report.rows import prepared
from highway_bench.results.schema import COLUMNS, Row
from highway_bench.run.failure import stored, worst
from highway_bench.run.job import CellResult
from highway_bench.run.rows import Origin, rows_of
from highway_bench.tasks import tasks
from highway_bench.tasks._base import Task

NOT_SHOWN: Mapping[str, str] = {
    "mistaken_for": "the class that a single test item was taken for: a picture's, which one reproduction draws",
}
"""Metrics that are in no table, and why."""

TRAINED: Mapping[str, Any] = {"steps": 3, "optimiser": "sgd", "rate": 0.1, "momentum": 0.9, "decay": 1.0}


def cells() -> Iterator[Cell]:
    """A few tiny cells of every task, with what a metric needs to have a value: gates, epochs, a signal that vanishes
    and one that explodes, layers that stand still."""
    shared = {"family": "dense", "width": 8, "nominal_width": 8, "batch_size": 8}
    for block in ("plain", "highway-free"):
        timed = {"seconds": 0.001, "samples": 6}
        yield Cell(task="throughput", block=block, depth=1, phase="forward", recipe=timed, **shared)
        yield Cell(task="memory", block=block, depth=1, phase="train-step", **shared)
        yield Cell(task="cost", block=block, depth=1, **shared)
        for task in ("trainability", "gates"):
            recipe = {**TRAINED, "threshold": 100.0, "evaluate": "epoch", "mistakes": 2}
            yield Cell(task=task, block=block, depth=2, dataset="digits", recipe=recipe, **shared | {"batch_size": 600})
        for gain in (0.01, 100.0):
            yield Cell(task="propagation", block=block, depth=6, dtype="float64", recipe={"gain": gain}, **shared)
        first = {**TRAINED, "gain": 0.01, "rate": 0.01, "momentum": 0.0}
        yield Cell(task="propagation", block=block, depth=6, dtype="float64", dataset="digits", recipe=first, **shared)


def measured(task: Task[Any], group: list[Cell]) -> Iterator[Row]:
    """The rows of a group of cells, as a run stores them."""
    origin = Origin("run-1", "abc1234", torch.__version__)
    for outcome in task.measure_group(group):
        assert outcome.error is None, outcome.error
        values = tuple(stored(one, task) for one in outcome.measurements)
        result = CellResult(
            place=0,
            status=worst(values).status,
            params=outcome.params,
            values=values,
            flops_per_item=outcome.flops_per_item,
        )
        yield from rows_of(result, outcome.cell, task, digest=outcome.cell.key, origin=origin)


@pytest.fixture(scope="session")
def real() -> pd.DataFrame:
    """Rows of every registered task, measured here."""
    every = list(cells())
    assert {cell.task for cell in every} == set(tasks.names()), "a task without a cell here"
    rows: list[Row] = []
    for name, group in itertools.groupby(sorted(every, key=lambda cell: cell.task), key=lambda cell: cell.task):
        task = tasks.get(name)
        together = list(group)
        groups = {key: [cell for cell in together if task.group(cell) == key] for key in map(task.group, together)}
        for one in groups.values():
            rows += measured(task, one)
    kinds = {"INTEGER": "Int64", "REAL": "float64", "TEXT": "str"}
    frame = pd.DataFrame.from_records(rows, columns=list(COLUMNS))
    return frame.astype({name: kinds[kind] for name, (kind, _) in COLUMNS.items()})


def told_apart(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple[str, str], str]]:
    """``frame`` with three digits of its own for every metric in the place of its values; and these digits."""
    frame = frame.copy()
    known = frame["value"].notna() & ~frame["metric"].isin(NOT_SHOWN)
    pairs = sorted(set(zip(frame.loc[known, "task"], frame.loc[known, "metric"], strict=True)))
    fit = (number for number in range(113, 1000, 7) if number % 10)  # a last zero would be lost among others
    digits = {pair: str(number) for pair, number in zip(pairs, fit, strict=False)}
    assert len(digits) == len(pairs)
    for (task, metric), number in digits.items():
        of = known & (frame["task"] == task) & (frame["metric"] == metric)
        frame.loc[of, ["value", "low", "high"]] = float(number)
    return frame, digits


def test_every_metric_is_shown(real: pd.DataFrame, tmp_path: Path) -> None:
    frame, digits = told_apart(real)
    page = write_page(frame, tmp_path).read_text(encoding="utf-8")
    text = re.sub(r"(?s)<style.*?</style>|<script.*?</script>|<[^>]+>", " ", page)
    numbers = {re.sub(r"[.,]", "", number).strip("0") for number in re.findall(r"\d[\d.,]*", text)}
    hidden = [f"{task}: {metric}" for (task, metric), number in digits.items() if number not in numbers]
    assert not hidden


SELDOM = {"compile_time", "graph_breaks", "conv_rate", "depth_scale"}
"""Metrics that these cells have no value of: compiling takes seconds, and few starts settle exponentially."""


def test_the_rows_have_all_other_metrics(real: pd.DataFrame) -> None:
    """What the test above can see."""
    have = {(row.task, row.metric) for row in real[real["value"].notna()].itertuples()}
    lacking = {(name, metric.name) for name in tasks.names() for metric in tasks.get(name).metrics} - have
    assert {metric for _, metric in lacking} <= SELDOM


def test_gates_and_counts_are_folded_away_below_the_answer(real: pd.DataFrame, tmp_path: Path) -> None:
    page = write_page(real, tmp_path).read_text(encoding="utf-8")
    for name in ("inside", "cost"):
        section = page[page.index(f'<section id="{name}">') :].partition("</section>")[0]
        assert "<table" in section.partition("<details>")[2]
        assert "<table" not in section.partition("<details>")[0]
        assert f'href="#{name}"' in page
        assert page.index('id="summary"') < page.index(f'id="{name}"') < page.index('id="tables"')


@pytest.mark.parametrize("task", ["gates", "cost"])
def test_the_terminal_shows_what_was_measured_alone(task: str, real: pd.DataFrame, capsys: Any) -> None:
    from rich.console import Console

    print_summary(real[real["task"] == task], Console(width=400))
    printed = capsys.readouterr().out
    assert "highway-free" in printed
    assert {"gates": "gate bias, start", "cost": "multiply-adds"}[task] in printed


def test_a_task_of_a_plug_in_has_a_table(real: pd.DataFrame, tmp_path: Path) -> None:
    mine = real[real["task"] == "cost"].assign(task="my-task")
    mine["metric"] = "my_metric"
    frame = prepared(pd.concat([real, mine[mine["value"] > 100].drop_duplicates("digest")]))
    page = write_page(frame, tmp_path).read_text(encoding="utf-8")
    assert "my-task, a row a network" in page
    assert "my metric" in page
