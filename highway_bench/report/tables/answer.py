"""The answer: for each family and depth, which connection to use, which to avoid, by what margin, at what cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.format import counted, first_of, listed, seeds_text
from highway_bench.report.labels import data_name, title_of
from highway_bench.report.ratio import ONE_PROCESS, is_decided
from highway_bench.report.rows import COMPARISON, CONTEST, groups, recipe_of, rows_of
from highway_bench.report.tables.costs import COST
from highway_bench.report.tables.ranking import Margin, lead
from highway_bench.report.tables.trainability import Contests, failed_before, gives_verdicts, not_judged, surely_fails
from highway_bench.success.ladder import DIVERGES, FAILS, FEW, LEAST_SEEDS, OPEN, RATE, SLOW, TRAINS

AHEAD, ALONE, TIED, UNDECIDED, NOT_MEASURED = "ahead", "the only one that trains", "tied", "undecided", "not measured"
TIES: Final = 3
"""Of more connections that are tied, only the first is named; the matrix has all."""
MOST_NAMED: Final = 8
"""Of more connections in a list, some are named and the others counted."""
MOST_SEEDS: Final = 100
"""More seeds than this are not named as the number that would settle a tie."""

KNOWN: Final = ("block", "ratio", "ratio_low", "ratio_high", "ratio_gap", "bytes_per_layer", "bytes_ratio")
"""The costs of a block of which nothing was trained."""

BlockCost = Mapping[str, Any]
"""The columns ``block`` and ``COST`` of one block."""


class Successes(NamedTuple):
    """How many of a block's runs succeed, how many diverge, and the learning rate of all."""

    block: str
    k: int
    n: int
    diverged: int
    rate: float


@dataclass(frozen=True)
class Answer:
    """The answer for one contest and depth; for depths that were not measured, one answer covers several.

    ``family`` names the contest. ``verdict``: ``ahead``, the first of ``use`` has a lower loss than every other block
    that trains; ``the only one that trains``; ``tied``, each of ``use`` may be the best; ``undecided``; ``not
    measured``. ``use`` is ordered by loss. ``avoid`` has the blocks that surely do not train, ``unsure`` those whose
    success rate may be that of one that trains, each with its successes and runs. ``margin`` is that of ``best``
    over the next one; in a tie, over the next that it is tied with. ``rates`` are the learning rates of ``use``, with
    ``optimiser``, ``accuracies`` their test accuracies, ``bits`` their held-out bits per byte of text, ``costs`` their
    costs; without a verdict those of all blocks, at the depth ``cost_depth``.
    ``edges`` has the blocks whose best rate is the lowest or highest of those tried. ``reason`` has the seeds that the
    margin is from, or why there is no verdict. ``not_judged`` is the number of blocks that train at the depth before
    and have too few final runs here. ``failed_before`` are those that surely do not train at a smaller depth and were
    not tried.
    """

    family: str
    depths: tuple[int, ...]
    verdict: str
    reason: str
    use: tuple[str, ...] = ()
    avoid: tuple[Successes, ...] = ()
    unsure: tuple[Successes, ...] = ()
    margin: Margin | None = None
    optimiser: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    accuracies: Mapping[str, float] = field(default_factory=dict)
    bits: Mapping[str, float] = field(default_factory=dict)
    costs: tuple[BlockCost, ...] = ()
    cost_depth: int | None = None
    edges: Mapping[str, str] = field(default_factory=dict)
    not_judged: int = 0
    failed_before: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The connection of the lowest loss; empty if none can be named."""
        return self.use[0] if self.use else ""

    @property
    def cheapest(self) -> str:
        """The connection of ``use`` whose step takes the least time; empty unless all their ratios are decided."""
        ratios = {cost["block"]: cost["ratio"] for cost in self.costs if is_decided(*_estimate(cost))}
        return min(ratios, key=ratios.__getitem__) if self.use and set(ratios) == set(self.use) else ""


def answers(
    contests: Contests,
    runs: pd.DataFrame,
    costs: pd.DataFrame,
    timed: pd.DataFrame,
    rows: pd.DataFrame,
    about: Descriptions,
) -> list[Answer]:
    """The value of ``Results.answer``, from the values of its methods of these names; ``timed`` are the ratios of the
    phase in which costs are compared. Families without any verdict come after those with one."""
    every = [contest for contest, _ in contests]
    trained, priced = list(groups(runs, CONTEST)), list(groups(costs, CONTEST))
    decided: list[Answer] = []
    for contest, part in contests:
        single, own = (next(of for setting, of in parts if setting == contest) for parts in (trained, priced))
        for depth in sorted(part["depth"].unique()):
            rungs, ended, cost = (frame[frame["depth"] == depth] for frame in (part, single, own))
            family = title_of(contest, every, data_name)
            answer = _answer(family, int(depth), rungs, ended, cost)
            optimiser = str(recipe_of(contest["recipe"]).get("optimiser", ""))
            answer = replace(answer, optimiser=optimiser, failed_before=tuple(failed_before(part, int(depth))))
            if others := not_judged(part, int(depth)):
                names = listed(first_of(others, MOST_NAMED))
                why = f"{answer.reason}; not judged here, though they train at the depth before: {names}"
                answer = replace(answer, reason=why, not_judged=len(others))
            decided.append(answer)
    useful = {answer.family for answer in decided if answer.use}
    decided.sort(key=lambda answer: answer.family not in useful)
    return decided + _not_measured(contests, timed, runs, rows, about)


def _answer(family: str, depth: int, rungs: pd.DataFrame, runs: pd.DataFrame, costs: pd.DataFrame) -> Answer:
    """The answer for one depth of a contest: ``rungs`` has one row per block, ``runs`` one per run."""
    ran = [cell for cell in rows_of(rungs) if cell["n"]]
    if not ran:
        return Answer(family, (depth,), NOT_MEASURED, "no run finished")
    verdicts = (TRAINS, SLOW, OPEN, FEW, RATE)
    of = {verdict: [cell["block"] for cell in ran if cell["verdict"] == verdict] for verdict in verdicts}
    fails = [cell for cell in ran if cell["verdict"] in (FAILS, DIVERGES)]
    avoid, unsure = (
        tuple(Successes(*(cell[name] for name in Successes._fields)) for cell in fails if surely_fails(cell) == surely)
        for surely in (True, False)
    )
    edges = {cell["block"]: f"{cell['rate']:g}, the {cell['edge']}" for cell in ran if cell["edge"]}
    seeds = seeds_text(cell["n"] for cell in ran)
    common: dict[str, Any] = {"family": family, "depths": (depth,), "avoid": avoid, "unsure": unsure, "edges": edges}
    if not of[TRAINS] or len(ran) == 1:
        return Answer(verdict=UNDECIDED, reason=_undecided(ran, of, seeds), **common)
    ahead = lead(runs, of[TRAINS])
    use = (ahead.best, *ahead.tied)
    common |= {
        "use": use,
        "rates": _known(ran, "rate", use),
        "accuracies": _known(ran, "test_accuracy", use),
        "bits": _known(ran, "test_bits", use),
        "costs": tuple(_records(costs, use)),
        "cost_depth": depth,
    }
    unknown = "".join(f"; {word}: {listed(of[word])}" for word in (SLOW, OPEN, FEW, RATE) if of[word])
    if len(of[TRAINS]) == 1:
        k, n = next((cell["k"], cell["n"]) for cell in ran if cell["block"] == use[0])
        return Answer(verdict=ALONE, reason=f"{k} of {n} seeds{unknown}", **common)
    if not ahead.tied:
        (margin, *_) = ahead.margins
        return Answer(verdict=AHEAD, reason=f"{counted(margin.seeds, 'seed')}{unknown}", margin=margin, **common)
    margin = next(margin for margin in ahead.margins if not margin.decided)
    seeds = counted(margin.seeds, "seed") if margin.seeds > 1 else "too few seeds in common"
    return Answer(verdict=TIED, reason=f"{seeds}{_seeds_needed(margin)}{unknown}", margin=margin, **common)


def _undecided(ran: list[dict[str, Any]], of: Mapping[str, list[str]], seeds: str) -> str:
    if len(ran) == 1:
        (cell,) = ran
        return f"only {cell['block']} was trained: {cell['k']} of {cell['n']} seeds succeed"
    if len(of[FEW]) == len(ran):
        return f"{seeds}, and a verdict needs {LEAST_SEEDS}"
    if of[OPEN]:
        return f"runs of {listed(of[OPEN])} did not finish"
    if of[RATE]:
        return f"{listed(of[RATE])} may train at a lower rate"
    if not any(cell["k"] for cell in ran):
        return f"no connection that was tried trains with any seed ({seeds}): not testable with this budget"
    return f"no connection that was tried trains reliably ({seeds})"


def _seeds_needed(margin: Margin) -> str:
    if math.isnan(margin.needed):
        return ""
    enough = margin.needed <= MOST_SEEDS
    return f"; about {margin.needed:g} would decide" if enough else f"; even {MOST_SEEDS} would not decide"


def _records(costs: pd.DataFrame, blocks: Sequence[str]) -> list[BlockCost]:
    by_block = {cost["block"]: {name: cost[name] for name in ("block", *COST)} for cost in rows_of(costs)}
    return [by_block[block] for block in blocks if block in by_block]


def _known(ran: Sequence[Mapping[str, Any]], name: str, blocks: Sequence[str]) -> dict[str, float]:
    """The values of one column for ``blocks``, without those that are not known."""
    values = {cell["block"]: cell[name] for cell in ran}
    return {block: values[block] for block in blocks if not math.isnan(values[block])}


def _estimate(cost: BlockCost) -> tuple[float, float, float]:
    return cost["ratio"], cost["ratio_low"], cost["ratio_high"]


def _not_measured(
    contests: Contests, timed: pd.DataFrame, runs: pd.DataFrame, rows: pd.DataFrame, about: Descriptions
) -> list[Answer]:
    """One answer per family for its depths without a verdict. If nothing was trained for a verdict, one per family and
    timed depth, with the costs that are known."""
    trained: dict[str, set[int]] = {}
    for contest, part in contests:
        trained.setdefault(_name(contest["family_label"]), set()).update(map(int, part["depth"]))
    short = {_name(label) for label in runs.loc[~runs["recipe"].map(gives_verdicts), "family_label"]}
    gaps: list[Answer] = []
    for family in about.family_order(rows["family"].dropna()):
        own = {int(depth) for depth in rows.loc[rows["family"] == family, "depth"].dropna()}
        missing = sorted(own - trained.get(family, set()))
        reason = "one short run per connection" if family in short else "not trained for a verdict"
        if family in trained and missing:
            gaps.append(Answer(family, tuple(missing), NOT_MEASURED, "not trained at this depth"))
        elif family not in trained:
            costs = _costs_of(timed[timed["family_label"].map(_name) == family], about)
            if trained or not costs:
                deepest = max(costs, default=None)
                known = costs[deepest] if deepest is not None else ()
                gaps.append(Answer(family, tuple(missing), NOT_MEASURED, reason, costs=known, cost_depth=deepest))
            else:
                gaps += [
                    Answer(
                        family, (depth,), NOT_MEASURED, f"{reason}: only cost is known", costs=known, cost_depth=depth
                    )
                    for depth, known in sorted(costs.items())
                ]
                rest = tuple(depth for depth in missing if depth not in costs)
                gaps += [Answer(family, rest, NOT_MEASURED, reason)] if rest else []
    return gaps


def _name(family_label: str) -> str:
    return family_label.partition(" ")[0]


def _costs_of(timed: pd.DataFrame, about: Descriptions) -> dict[int, tuple[BlockCost, ...]]:
    """By depth, the costs of all blocks but the baseline, cheapest first, in the comparison with the most ratios."""
    known = timed[(timed["block"] != about.baseline) & (timed["ratio"].notna() | timed["ratio_gap"].eq(ONE_PROCESS))]
    known = known.assign(bytes_per_layer=math.nan, bytes_ratio=math.nan)
    most: dict[int, pd.DataFrame] = {}
    for setting, part in groups(known, COMPARISON):
        depth = int(str(setting["depth"]))
        if part["ratio"].notna().sum() > most.get(depth, part.iloc[:0])["ratio"].notna().sum() or depth not in most:
            most[depth] = part
    return {depth: tuple(rows_of(part.sort_values("ratio", kind="stable")[[*KNOWN]])) for depth, part in most.items()}
