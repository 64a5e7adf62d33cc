"""The answer, a sentence a depth: which block, by what margin, at what cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.format import between, listed, quantity, three
from highway_bench.report.labels import contest_text, size_text
from highway_bench.report.ratio import NOT_PAIRED, NOT_TIMED, TOO_FEW, geometric_mean, quoted
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.tables.conflicts import ConflictingVerdict
from highway_bench.report.tables.matched_costs import measured_alike
from highway_bench.report.tables.ranking import ranking
from highway_bench.report.tables.summary import without_contest
from highway_bench.report.tables.trainability import Contests, able_blocks, gives_verdicts
from highway_bench.success import FEW, OPEN, STALLS, TRAINS

ONLY_COST = "nothing was trained, so only cost is known"


@dataclass(frozen=True)
class Answer:
    """A sentence of the answer: ``contest`` is its subject, ``lead`` its first words."""

    contest: str
    lead: str
    rest: str

    def __str__(self) -> str:
        return f"{self.lead} {self.rest}".strip()


def answer(
    contests: Contests,
    runs: pd.DataFrame,
    timed: pd.DataFrame,
    conflicts: Sequence[ConflictingVerdict],
    about: Descriptions,
) -> list[Answer]:
    """The sentences of ``Results.answer``, from the tables of ``contests``, ``training_runs`` and ``ratios``."""
    found: list[Answer] = []
    for contest, part in contests:
        single = next((group for setting, group in groups(runs, CONTEST) if setting == contest), runs.iloc[:0])
        able = able_blocks(part)
        for depth in sorted(part["depth"].unique()):
            rungs = part[part["depth"] == depth]
            text = _sentence(rungs, single[single["depth"] == depth], timed, contest, able, about.yardstick)
            found.append(Answer(contest_text(contest), f"Depth {depth}:", text))
    found += _cost_only(without_contest(timed, contests), about, anything_trained=bool(found))
    if conflicts:
        text = f"{'; '.join(map(str, conflicts))}. There the start or the branch decides as much as the block does."
        found.append(Answer("", "Verdicts that flip:", text))
    short = runs[~runs["recipe"].map(gives_verdicts)]
    if len(short):
        families = listed(about.family_order(short["family_label"]))
        found.append(
            Answer("", "No verdict:", f"{families} had one short loss curve a block, too little to say which trains.")
        )
    return found


def _sentence(
    rungs: pd.DataFrame,
    single: pd.DataFrame,
    timed: pd.DataFrame,
    contest: dict[str, Any],
    able: set[str],
    yardstick: str,
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
        margin, remark = _margin(cells, single, of[TRAINS], timed, contest, yardstick)
        words.append(margin)
        remarks += [remark] if remark else []
    at_edge = [cell for cell in cells if cell["rate_at_edge"] and cell["block"] in able]
    edges = [f"{cell['block']} ({three(cell['rate'])})" for cell in at_edge]
    remarks += [f"best rate at the grid's edge: {listed(edges)}"] if edges else []
    return "; ".join(words) + (f" ({', '.join(remarks)})" if remarks else "") + "."


def _margin(
    cells: list[dict[str, Any]],
    single: pd.DataFrame,
    trained: list[str],
    timed: pd.DataFrame,
    contest: dict[str, Any],
    yardstick: str,
) -> tuple[str, str]:
    """The best of those that train, by how much and at what cost; and whether that differs from chance."""
    by_block = {cell["block"]: cell for cell in cells}
    best, *others = sorted(trained, key=lambda block: by_block[block]["final_loss"])
    cost = _cost(best, by_block[best], timed, contest, yardstick)
    if not others:
        return f"{best} ends at a loss of {_loss(by_block[best])}{cost}", ""
    second = others[0]
    found = ranking(single, best, others)
    losses = f"{_loss(by_block[best])} against {second}'s {_loss(by_block[second])}"
    text = f"{best} has the lowest final loss, {losses}{cost}"
    if not found.testable:
        return text, "not enough seeds to rank those that train"
    if found.ahead_of_all:
        return text, f"ahead of every other that trains, Holm-corrected p ≤ {three(found.p)}"
    return text, f"not told apart from {listed(list(found.level))} by these seeds"


def _loss(cell: Mapping[str, Any]) -> str:
    """A final loss with its interval over seeds, where it has one."""
    return f"{three(cell['final_loss'])} {between(cell['loss_low'], cell['loss_high'])}".strip()


def _cost(block: str, own: Mapping[str, Any], timed: pd.DataFrame, contest: dict[str, Any], yardstick: str) -> str:
    """What the best costs: time to the threshold, and its step's time over plain's where timed at this depth."""
    parts: list[str] = []
    if math.isfinite(own["seconds_to_threshold"]):
        parts.append(f"it reaches the threshold in {quantity(own['seconds_to_threshold'], 's')}")
    alike = measured_alike(timed[timed["depth"] == own["depth"]], contest, block, own["depth"])
    found = next((cell for cell in rows_of(alike) if not cell["ratio_gap"]), next(iter(rows_of(alike)), None))
    if block != yardstick and found:
        alike_in = ("nominal_width", "batch_size")
        other = [found[name] for name in alike_in] != [contest[name] for name in alike_in]
        at = f" at {size_text(math.nan, found['nominal_width'], found['batch_size'])}" if other else ""
        parts.append(f"its {found['phase']} step ÷ plain's{at}: {_ratio(found)}")
    elif block != yardstick:
        parts.append(f"its step ÷ plain's: {NOT_TIMED} at this depth")
    return "".join(f"; {part}" for part in parts)


def _ratio(cell: Mapping[str, Any]) -> str:
    return quoted(cell["ratio"], cell["ratio_low"], cell["ratio_high"], cell["ratio_gap"])


def _mean(block: str, cells: pd.DataFrame, families: int) -> str:
    """A block's ratio, the geometric mean over the families that have one."""
    known = cells[cells["ratio"].notna()]
    if known.empty:
        return f"{block} {cells['ratio_gap'].iloc[0]}"
    mean = geometric_mean(list(known[["ratio", "ratio_low", "ratio_high"]].itertuples(index=False, name=None)))
    count = known["family_label"].nunique()
    return f"{block} {quoted(*mean)}" + (f" in {count} of them" if count < families else "")


def _cost_only(timed: pd.DataFrame, about: Descriptions, *, anything_trained: bool) -> list[Answer]:
    """A sentence a depth, phase and mode on the step's cost of blocks that were not trained for a verdict."""
    found: list[Answer] = []
    lacking = [str(gap).startswith((NOT_PAIRED, TOO_FEW)) for gap in timed["ratio_gap"]]
    compared = timed["ratio"].notna() | pd.Series(lacking, index=timed.index, dtype=bool)
    costs = timed[(timed["block"] != about.yardstick) & compared]
    for setting, part in groups(costs.sort_values("depth", kind="stable"), ["depth", "phase", "mode", "device"]):
        families = about.family_order(part["family_label"])
        ratios = [
            _mean(block, part[part["block"] == block], len(families)) for block in about.block_order(part["block"])
        ]
        over = f"in {families[0]}" if len(families) == 1 else f"geometric means over {len(families)} families"
        named = f": {', '.join(families)}" if anything_trained and len(families) > 1 else ""
        mode = "" if setting["mode"] == "eager" else f", {setting['mode']}"
        known = "not trained for a verdict, so only cost is known" if anything_trained else ONLY_COST
        found.append(
            Answer(
                "",
                f"Depth {setting['depth']}:",
                f"{known}: a {setting['phase']} "
                f"step ({setting['device']}{mode}) ÷ plain's: {'; '.join(ratios)} ({over}{named}).",
            )
        )
    if found or anything_trained:
        return found
    return [Answer("", "Nothing was trained", "and no block was timed beside plain: no answer can be given.")]
