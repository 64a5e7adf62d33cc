"""The answer, one sentence per depth: the best block, its margin and its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.format import between, listed, quantity, three
from highway_bench.report.labels import contest_text, size_text
from highway_bench.report.ratio import NOT_TIMED, OLDER, ONE_PROCESS, geometric_mean, quoted
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.tables.conflicts import ConflictingVerdict
from highway_bench.report.tables.matched_costs import measured_alike
from highway_bench.report.tables.ranking import ranking
from highway_bench.report.tables.summary import without_contest
from highway_bench.report.tables.trainability import Contests, able_blocks, gives_verdicts
from highway_bench.success.ladder import FEW, OPEN, STALLS, TRAINS

ONLY_COST = "nothing was trained, so only cost is known"


@dataclass(frozen=True)
class Answer:
    """One sentence of the answer: ``lead`` are its first words, ``contest`` is the heading above it."""

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
    answers: list[Answer] = []
    for contest, part in contests:
        single = next((group for setting, group in groups(runs, CONTEST) if setting == contest), runs.iloc[:0])
        able = able_blocks(part)
        for depth in sorted(part["depth"].unique()):
            rungs = part[part["depth"] == depth]
            text = _sentence(rungs, single[single["depth"] == depth], timed, contest, able, about.baseline)
            answers.append(Answer(contest_text(contest), f"Depth {depth}:", text))
    answers += _cost_only(without_contest(timed, contests), about, anything_trained=bool(answers))
    if conflicts:
        text = f"{'; '.join(map(str, conflicts))}. These verdicts depend on the start or the branch, not on the block."
        answers.append(Answer("", "Conflicting verdicts:", text))
    short = runs[~runs["recipe"].map(gives_verdicts)]
    if len(short):
        families = listed(about.family_order(short["family_label"]))
        answers.append(
            Answer("", "No verdict:", f"{families} had one short loss curve per block, which does not judge depths.")
        )
    return answers


def _sentence(
    rungs: pd.DataFrame,
    single: pd.DataFrame,
    timed: pd.DataFrame,
    contest: dict[str, Any],
    able: set[str],
    baseline: str,
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
    words += [f"undecided, because runs did not finish: {listed(of[OPEN])}"] if of[OPEN] else []
    words += [f"not enough seeds: {listed(of[FEW])}"] if of[FEW] else []
    remarks = [provisional] if provisional else []
    if of[TRAINS]:
        margin, remark = _margin(cells, single, of[TRAINS], timed, contest, baseline)
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
    baseline: str,
) -> tuple[str, str]:
    """The block of lowest loss among those that train, its margin and cost; and a remark on its significance."""
    by_block = {cell["block"]: cell for cell in cells}
    best, *others = sorted(trained, key=lambda block: by_block[block]["final_loss"])
    cost = _cost(best, by_block[best], timed, contest, baseline)
    if not others:
        return f"{best} has a final loss of {_loss(by_block[best])}{cost}", ""
    second = others[0]
    ranked = ranking(single, best, others)
    losses = f"{_loss(by_block[best])} against {second}'s {_loss(by_block[second])}"
    text = f"{best} has the lowest final loss, {losses}{cost}"
    if not ranked.testable:
        return text, "not enough seeds to rank those that train"
    if ranked.ahead_of_all:
        return text, f"ahead of every other that trains, Holm-corrected p ≤ {three(ranked.p)}"
    return text, f"no significant difference from {listed(list(ranked.level))}"


def _loss(cell: Mapping[str, Any]) -> str:
    """A final loss with its interval over seeds, if it has one."""
    return f"{three(cell['final_loss'])} {between(cell['loss_low'], cell['loss_high'])}".strip()


def _cost(block: str, own: Mapping[str, Any], timed: pd.DataFrame, contest: dict[str, Any], baseline: str) -> str:
    """The cost of a block: time to the threshold, and its step time over plain's if it was timed at this depth."""
    parts: list[str] = []
    if math.isfinite(own["seconds_to_threshold"]):
        parts.append(f"it reaches the threshold in {quantity(own['seconds_to_threshold'], 's')}")
    alike = measured_alike(timed[timed["depth"] == own["depth"]], contest, block, own["depth"])
    cells = rows_of(alike)
    nearest = next((cell for cell in cells if not cell["ratio_gap"]), cells[0] if cells else None)
    if block != baseline and nearest:
        width, batch = nearest["nominal_width"], nearest["batch_size"]
        same = (width, batch) == (contest["nominal_width"], contest["batch_size"])
        at = "" if same else f" at {size_text(math.nan, width, batch)}"
        parts.append(f"its {nearest['phase']} step ÷ plain's{at}: {_ratio(nearest)}")
    elif block != baseline:
        parts.append(f"its step ÷ plain's: {NOT_TIMED} at this depth")
    return "".join(f"; {part}" for part in parts)


def _ratio(cell: Mapping[str, Any]) -> str:
    return quoted(cell["ratio"], cell["ratio_low"], cell["ratio_high"], cell["ratio_gap"])


def _mean(block: str, cells: pd.DataFrame, families: int) -> str:
    """A block's ratio: the geometric mean over the families that have one."""
    known = cells[cells["ratio"].notna()]
    if known.empty:
        return f"{block} {cells['ratio_gap'].iloc[0]}"
    mean = geometric_mean(list(known[["ratio", "ratio_low", "ratio_high"]].itertuples(index=False, name=None)))
    count = known["family_label"].nunique()
    return f"{block} {quoted(*mean)}" + (f" in {count} of them" if count < families else "")


def _cost_only(timed: pd.DataFrame, about: Descriptions, *, anything_trained: bool) -> list[Answer]:
    """One sentence per depth, phase and mode on the step time of blocks that were not trained for a verdict."""
    answers: list[Answer] = []
    compared = timed["ratio"].notna() | timed["ratio_gap"].isin([ONE_PROCESS, OLDER])
    costs = timed[(timed["block"] != about.baseline) & compared]
    for setting, part in groups(costs.sort_values("depth", kind="stable"), ["depth", "phase", "mode", "device"]):
        families = about.family_order(part["family_label"])
        ratios = [
            _mean(block, part[part["block"] == block], len(families)) for block in about.block_order(part["block"])
        ]
        over = f"in {families[0]}" if len(families) == 1 else f"geometric means over {len(families)} families"
        named = f": {', '.join(families)}" if anything_trained and len(families) > 1 else ""
        mode = "" if setting["mode"] == "eager" else f", {setting['mode']}"
        known = "not trained for a verdict, so only cost is known" if anything_trained else ONLY_COST
        answers.append(
            Answer(
                "",
                f"Depth {setting['depth']}:",
                f"{known}: a {setting['phase']} "
                f"step ({setting['device']}{mode}) ÷ plain's: {'; '.join(ratios)} ({over}{named}).",
            )
        )
    if answers or anything_trained:
        return answers
    return [Answer("", "No answer:", "nothing was trained, and no block was timed in turn with plain.")]
