"""The matrix: connections × depths, one table per contest. The text of a cell says what its colour shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from highway_bench.report.findings import what_trains
from highway_bench.report.format import counted, three
from highway_bench.report.labels import contest_text, data_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import rows_of
from highway_bench.report.tables.answer import AHEAD, NOT_MEASURED, TIED, Answer
from highway_bench.report.tables.trainability import surely_fails
from highway_bench.success.ladder import DIVERGES, FAILS, FEW, OPEN, RATE, SLOW, TRAINS

SHADES: Final = 5
"""Shades of the colour of what trains, from the highest loss to the lowest."""

WORDS: Final = {FEW: "too few seeds"}
"""The verdicts that have another word in a cell."""
COLOURS: Final = {FAILS: "fails", DIVERGES: "fails", SLOW: "open", OPEN: "open", FEW: "open", RATE: "open"}


@dataclass(frozen=True)
class MatrixCell:
    """The lines of text of a cell, and the name of its colour in the style sheet."""

    lines: tuple[str, ...]
    colour: str


@dataclass(frozen=True)
class Matrix:
    """One contest: a title that states the finding, its ``depths``, and per connection its equation and its cells."""

    title: str
    note: str
    depths: tuple[int, ...]
    rows: tuple[tuple[str, str, tuple[MatrixCell, ...]], ...]


def matrices(results: Results) -> list[Matrix]:
    """One matrix per contest with verdicts."""
    contests, about = results.contests(), results.about
    every = [contest for contest, _ in contests]
    answers = {(answer.family, answer.depths): answer for answer in results.answer()}
    tables = []
    for contest, part in contests:
        name = title_of(contest, every, data_name)
        blocks = about.block_order(part["block"])
        depths = tuple(sorted(int(depth) for depth in part["depth"].unique()))
        cells = {(cell["block"], cell["depth"]): cell for cell in rows_of(part)}
        at = {depth: answers[name, (depth,)] for depth in depths}
        scale = _scale(part)
        rows = tuple(
            (
                block,
                str(about.blocks.get(block.partition(" ")[0], {}).get("equation") or ""),
                tuple(_cell(cells.get((block, depth)), at[depth], scale) for depth in depths),
            )
            for block in blocks
        )
        transform = about.families.get(contest["family_label"].partition(" ")[0], {}).get("transform")
        note = f"{contest_text(contest)}. " + (f"{contest['family_label']}: {transform}." if transform else "")
        tables.append(Matrix(f"{name}: {what_trains(part, blocks)}", note.strip(), depths, rows))
    return tables


def _scale(part: pd.DataFrame) -> tuple[float, float]:
    """The logarithms of the lowest and the highest loss among what trains."""
    losses = part.loc[part["verdict"].eq(TRAINS) & part["final_loss"].gt(0), "final_loss"]
    losses = losses[losses < math.inf]
    return (math.log(losses.min()), math.log(losses.max())) if len(losses) else (0.0, 0.0)


def _cell(cell: Mapping[str, Any] | None, answer: Answer, scale: tuple[float, float]) -> MatrixCell:
    if cell is None or not cell["n"]:
        failed = cell["unfinished"] if cell else 0
        return MatrixCell((f"{counted(failed, 'run')} failed" if failed else NOT_MEASURED,), "none")
    verdict = cell["verdict"]
    perhaps = verdict in (FAILS, DIVERGES) and not surely_fails(cell)
    lines = [f"{'perhaps ' * perhaps}{WORDS.get(verdict, verdict)} {cell['k']}/{cell['n']}"]
    if verdict == TRAINS and cell["block"] in answer.use and answer.verdict in (AHEAD, TIED):
        lines.append({AHEAD: "best", TIED: "tied best"}[answer.verdict])
    if math.isfinite(cell["final_loss"]):
        lines.append(f"loss {three(cell['final_loss'])}")
    if cell["diverged"]:
        lines.append(f"{cell['diverged']} diverged")
    if not math.isnan(cell["test_accuracy"]):
        lines.append(f"test {three(100 * cell['test_accuracy'])} %")
    if cell["edge"]:
        lines.append(f"{cell['edge']} rate")
    colour = COLOURS[OPEN] if perhaps else COLOURS.get(verdict) or f"trains-{_shade(cell['final_loss'], scale)}"
    return MatrixCell(tuple(lines), colour)


def _shade(loss: float, scale: tuple[float, float]) -> int:
    """From 0 for the highest loss to ``SHADES`` − 1 for the lowest, on a logarithmic scale."""
    low, high = scale
    if not 0 < loss < math.inf or high == low:
        return SHADES - 1 if loss < math.inf else 0
    share = (high - math.log(loss)) / (high - low)
    return min(SHADES - 1, max(0, int(share * SHADES)))
