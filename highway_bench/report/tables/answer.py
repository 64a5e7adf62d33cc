"""The answer, a sentence a depth: which block, by what margin, at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.report.frame import CONTEST, YARDSTICK, block_order, family_order, groups, prepared, rows_of
from highway_bench.report.number import between, listed, quantity, three
from highway_bench.report.tables.cost import measured_alike
from highway_bench.report.tables.flips import flips
from highway_bench.report.tables.ranking import ranking
from highway_bench.report.tables.throughput import throughput_table
from highway_bench.report.tables.trainability import (
    FEW,
    OPEN,
    STALLS,
    TRAINS,
    able_blocks,
    contests,
    gives_verdicts,
    runs,
    trainability_table,
)
from highway_bench.report.tables.words import contest_text, size_text


@dataclass(frozen=True)
class Answer:
    """A sentence of the answer: ``contest`` is what it is about, ``lead`` its first word or two."""

    contest: str
    lead: str
    rest: str

    def __str__(self) -> str:
        return f"{self.lead} {self.rest}".strip()


def answer(rows: pd.DataFrame) -> list[Answer]:
    """Sentences, one a depth of every contest with verdicts; where there is none, one a phase on speed alone."""
    frame = prepared(rows)
    table, timed, counted = trainability_table(frame), throughput_table(frame), runs(frame)
    found: list[Answer] = []
    for contest, part in contests(table):
        single = next((group for place, group in groups(counted, CONTEST) if place == contest), counted.iloc[:0])
        able = able_blocks(part)
        for depth in sorted(part["depth"].unique()):
            rungs = part[part["depth"] == depth]
            text = _sentence(rungs, single[single["depth"] == depth], timed, contest, able)
            found.append(Answer(contest_text(contest), f"Depth {depth}:", text))
    if not found:
        found = _speed(timed)
    if flipped := flips(table):
        text = f"{'; '.join(map(str, flipped))}. There the start or the branch decides as much as the block does."
        found.append(Answer("", "Verdicts that flip:", text))
    short = table[~table["recipe"].map(gives_verdicts)]
    if len(short):
        families = listed(family_order(short["family_label"]))
        found.append(
            Answer("", "No verdict:", f"{families} had one short loss curve a block, too little to say which trains.")
        )
    return found


def _sentence(
    rungs: pd.DataFrame, single: pd.DataFrame, timed: pd.DataFrame, contest: dict[str, Any], able: set[str]
) -> str:
    cells = rows_of(rungs)
    of = {verdict: [cell["block"] for cell in cells if cell["verdict"] == verdict] for verdict in (TRAINS, OPEN, FEW)}
    seeds = max(cell["n"] for cell in cells)
    counts = {cell["block"]: f"{cell['block']} ({cell['k']} of {cell['n']})" for cell in cells if cell["n"]}
    if not counts:
        return "not measured: no run finished."
    if len(of[FEW]) == len(counts):
        return f"not enough seeds for a verdict; seeds that succeed: {listed(list(counts.values()))}."
    if not any(cell["k"] for cell in cells) and not of[OPEN]:
        return "no block trains with any seed: not testable with this budget."
    provisional = f"provisional on {seeds} seeds" if any(cell["provisional"] for cell in cells) else ""
    misses = [counts[cell["block"]] for cell in cells if cell["verdict"] == STALLS]
    if of[TRAINS]:
        trained = f"{listed(of[TRAINS])} {'train' if len(of[TRAINS]) > 1 else 'trains'}"
        words = [trained + (f", {listed(misses)} {'do' if len(misses) > 1 else 'does'} not" if misses else "")]
    else:
        words = [f"no block trains reliably: {listed(misses)} seeds succeed"] if misses else []
    words += [f"undecided, for runs did not finish: {listed(of[OPEN])}"] if of[OPEN] else []
    words += [f"not enough seeds: {listed(of[FEW])}"] if of[FEW] else []
    remarks = [provisional] if provisional else []
    if of[TRAINS]:
        margin, remark = _margin(cells, single, of[TRAINS], timed, contest)
        words.append(margin)
        remarks += [remark] if remark else []
    at_edge = [cell for cell in cells if cell["rate_at_edge"] and cell["block"] in able]
    edges = [f"{cell['block']} ({three(cell['rate'])})" for cell in at_edge]
    remarks += [f"best rate at the grid's edge: {listed(edges)}"] if edges else []
    return "; ".join(words) + (f" ({', '.join(remarks)})" if remarks else "") + "."


def _margin(
    cells: list[dict[str, Any]], single: pd.DataFrame, trained: list[str], timed: pd.DataFrame, contest: dict[str, Any]
) -> tuple[str, str]:
    """The best of those that train, by how much and at what cost; and whether that can be told from chance."""
    by_block = {cell["block"]: cell for cell in cells}
    best, *others = sorted(trained, key=lambda block: by_block[block]["final_loss"])
    loss = by_block[best]["final_loss"]
    cost = _cost(best, by_block, timed, contest)
    if not others:
        return f"{best} ends at a loss of {three(loss)}{cost}", ""
    margin = by_block[others[0]]["final_loss"] / loss
    by = f", {three(margin)} times below {others[0]}" if math.isfinite(margin) else ""
    found = ranking(single, best, others)
    text = f"{best} has the lowest final loss, {three(loss)}{by}{cost}"
    if not found.testable:
        return text, "not enough seeds to rank those that train"
    if found.ahead_of_all:
        return text, f"ahead of every other that trains, Holm-corrected p ≤ {three(found.p)}"
    return text, f"not told apart from {listed(list(found.level))} by these seeds"


def _cost(block: str, by_block: dict[str, dict[str, Any]], timed: pd.DataFrame, contest: dict[str, Any]) -> str:
    """What the best costs: time to the threshold, and its step beside plain's (paired where timed at this depth)."""
    own, plain = by_block[block], by_block.get(YARDSTICK)
    parts: list[str] = []
    if math.isfinite(own["seconds_to_threshold"]):
        parts.append(f"reaches the threshold in {quantity(own['seconds_to_threshold'], 's')}")
    alike = measured_alike(timed[timed["depth"] == own["depth"]], contest, block, own["depth"])
    paired = next((cell for cell in rows_of(alike) if cell["paired"]), None)
    if block == YARDSTICK:
        pass
    elif paired:
        interval = between(paired["ratio_low"], paired["ratio_high"])
        alike_in = ("nominal_width", "batch_size")
        other = [paired[name] for name in alike_in] != [contest[name] for name in alike_in]
        at = f" at {size_text(math.nan, paired['nominal_width'], paired['batch_size'])}" if other else ""
        parts.append(f"takes {three(paired['ratio'])} {interval} times plain's {paired['phase']} step{at}")
    elif plain is not None and plain["step_seconds"] > 0 and own["step_seconds"] > 0:
        parts.append(f"takes {three(own['step_seconds'] / plain['step_seconds'])} times plain's training step")
    return f"; it {' and '.join(parts)}" if parts else ""


def _speed(timed: pd.DataFrame) -> list[Answer]:
    """Where nothing was trained: a sentence a depth, phase and mode on what the blocks' steps cost."""
    found: list[Answer] = []
    costs = timed[(timed["block"] != YARDSTICK) & timed["ratio"].notna()]
    for place, part in groups(costs.sort_values("depth", kind="stable"), ["depth", "phase", "mode", "device"]):
        logs = part.assign(log=np.log(part["ratio"])).groupby("block")["log"].mean()
        ratios = [f"{block} {three(float(np.exp(logs[block])))}" for block in block_order(logs.index)]
        families = family_order(part["family_label"])
        over = f"in {families[0]}" if len(families) == 1 else f"geometric means over {len(families)} families"
        mode = "" if place["mode"] == "eager" else f", {place['mode']}"
        found.append(
            Answer(
                "",
                f"Depth {place['depth']}:",
                f"nothing was trained, so only cost is known: a {place['phase']} "
                f"step ({place['device']}{mode}) takes, in multiples of plain's, {', '.join(ratios)} ({over}).",
            )
        )
    return found or [Answer("", "Nothing was trained", "and no block was timed beside plain: no answer can be given.")]
