"""Long ranges: steps that attention and bidirectional LSTMs need to learn adding and copy, by the sequence's length."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.measure.statistics import log10_interval, wilson
from highway_bench.report import present
from highway_bench.report.figures import Picture
from highway_bench.report.figures._base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.frame import block_order, recipe_of
from highway_bench.report.number import between, count, three
from highway_bench.report.style import looks
from highway_bench.report.tables.trainability import runs
from highway_bench.reproduce._base import (
    Asked,
    Finding,
    NotAttempted,
    Outcome,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce._cells import trained
from highway_bench.results.schema import OUTCOMES

WIDTH, DEPTH, BATCH = 32, 2, 16
HEADS = 2  # of attention: with four, scores of 200 × 200 steps would take most of the time
STEPS, SEEDS = 1_000, 3
RATES = (0.01, 0.003)  # Adam's; LSTMs like the first here and attention the second
ITEMS = STEPS * BATCH  # training items: none is met twice within the steps by default
THRESHOLD = 0.1  # of the constant predictor's loss: 1/6 for adding, 10 ln 8 / (T + 20) for copy

FAMILIES = {"attention": ("pre-norm", "highway"), "bilstm": ("plain", "highway")}


@dataclass(frozen=True)
class Problem:
    """A data set, its lengths T, and the layout that reads the answer where it is not the usual one."""

    lengths: tuple[int, ...]
    layout: str | None = None


# The usual head averages over steps. A sum over marked steps is then learnt by layers that look at one step at a time,
# so the adding problem's answer is read at the last step.
PROBLEMS = {"adding": Problem((25, 50, 100, 200), "last-step"), "copy": Problem((50, 100))}


class Arm(NamedTuple):
    """A family under a block."""

    family: str
    block: str

    def __str__(self) -> str:
        return f"{self.block} {self.family}"


# The rules, agreed before any run. A miss counts as later than any hit, and as a growth of at least what the budget
# says. With three seeds an order that every seed keeps is the most that can be asked for (p = 0.1 by permutation).
PAIRS = ((Arm("attention", "highway"), Arm("bilstm", "highway")),  # the same block
         (Arm("attention", "pre-norm"), Arm("bilstm", "plain")))  # each family as it is commonly stacked
LEAST_SEEDS = 3

TABLE = "arXiv:1706.03762, Table 1"
PATHS = "arXiv:1706.03762, §4"


@register_reproduction("long-range", title="Adding and copy by sequence length, attention against BiLSTM",
                       source="arXiv:1706.03762, §4 and Table 1; problems: arXiv:1803.01271, arXiv:1511.06464")
class LongRange(Reproduction):
    """Two layers, 32 wide, equal parameters a layer within a family; Adam, the rate tuned over the same two for all.

    Between any two steps a signal passes one attention layer, or as many LSTM steps as lie between. If short paths make
    distant relations easier to learn, an LSTM needs more steps than attention, and ever more as sequences grow.

    Adding is read at the last step, of which the backward direction has seen one step. In copy a bidirectional layer
    has only markers to the right of each answer, but its backward direction can count the steps from the end, and
    attention looks at the symbols directly: neither needs a memory over time of the kind that a one-directional layer
    does, so that copy compares paths here and not memories.
    """

    takes = frozenset({"steps", "seeds"})
    not_attempted = (
        NotAttempted("adding at T = 400, copy at T = 500 and 1,000", "arXiv:1803.01271", "out of reach of two cores"),
        NotAttempted("perplexity and BLEU of translation", "arXiv:1706.03762, Table 2", "the data are not here"),
    )

    def cells(self, asked: Asked) -> list[Cell]:
        return [
            trained(block, family, depth=DEPTH, nominal_width=WIDTH, batch_size=BATCH, dataset=name, seq_len=length,
                    family_options={"heads": HEADS} if family == "attention" else {}, device=asked.device, seed=seed,
                    recipe=recipe(problem, asked.steps or STEPS))
            for name, problem in PROBLEMS.items()
            for length in problem.lengths
            for family, blocks in FAMILIES.items()
            for block in blocks
            for seed in range(asked.seeds or SEEDS)
        ]

    def outcome(self, rows: pd.DataFrame, asked: Asked) -> Outcome:
        found = hits(rows)
        findings = [finding for problem in PROBLEMS for pair in PAIRS
                    for finding in findings_of(problem, *pair, found)]
        table = table_of(found)
        return Outcome(findings=findings, tables=[_shown(table, found)] if len(table) else [],
                       pictures=[_picture(found)] if len(found) else [])


def recipe(problem: Problem, steps: int) -> dict[str, Any]:
    """How every network is trained on ``problem``."""
    told: dict[str, Any] = {"optimiser": "adam", "rate": "tuned", "rates": list(RATES), "decay": 1.0, "steps": steps,
                            "threshold": THRESHOLD, "dataset": {"size": ITEMS}}
    return told | ({"layout": problem.layout} if problem.layout else {})


def hits(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a run that ended: as in ``runs``, ``hit`` being the step at which it met the threshold, ∞ for a miss, and
    ``relative`` its final loss over the constant predictor's."""
    found = runs(rows)
    found = found[found["status"].isin(OUTCOMES)].copy()
    found["hit"] = found["steps_to_threshold"].astype("float64").fillna(math.inf)
    chances = {(name, length): make_dataset(name, length=length).chance_loss
               for name, problem in PROBLEMS.items() for length in problem.lengths}
    places = zip(found["dataset"], found["seq_len"], found["final_loss"], strict=True)
    found["relative"] = [loss / chances[str(name), int(length)] for name, length, loss in places]
    return found


# ------------------------------------------------------------------------------------------------------- findings

Hits = Mapping[int, Mapping[int, float]]
"""Length → seed → step of the hit."""


def hits_of(arm: Arm, problem: str, found: pd.DataFrame) -> Hits:
    """One arm's hits on one problem."""
    own = found[(found["dataset"] == problem) & (found["family"] == arm.family) & (found["block"] == arm.block)]
    by_length: dict[int, dict[int, float]] = {}
    for length, seed, hit in zip(own["seq_len"], own["seed"], own["hit"], strict=True):
        by_length.setdefault(int(length), {})[int(seed)] = float(hit)
    return dict(sorted(by_length.items()))


def findings_of(problem: str, attention: Arm, lstm: Arm, found: pd.DataFrame) -> Iterator[Finding]:
    """What one pair of arms says: who hits first at the longest sequences, and whose steps grow more with length."""
    near, far = hits_of(attention, problem, found), hits_of(lstm, problem, found)
    common = [length for length in near if length in far]
    enough = [length for length in common if min(len(near[length]), len(far[length])) >= LEAST_SEEDS]
    budget = int(max((recipe_of(text)["steps"] for text in found["recipe"]), default=STEPS))
    who = f"{problem}, {attention} against {lstm}"
    yield _earlier(who, near, far, enough)
    yield _grows(who, near, far, enough, budget)


def _earlier(who: str, near: Hits, far: Hits, lengths: Sequence[int]) -> Finding:
    verdict, measured = Verdict.NOT_TESTABLE, f"fewer than {LEAST_SEEDS} seeds"
    if lengths:
        longest = max(lengths)
        ours, others = list(near[longest].values()), list(far[longest].values())
        verdict = (Verdict.REPRODUCED if max(ours) < min(others) else
                   Verdict.CONTRADICTED if max(others) < min(ours) else Verdict.NOT_TESTABLE)
        measured = f"T = {longest}: {_told(ours)} against {_told(others)}"
        if math.isinf(min(ours)) and math.isinf(min(others)):
            measured += "; the budget is too small for either"
    return Finding(published=f"{who}: the shorter the path, the easier a long range is learnt", source=PATHS,
                   measured=measured, verdict=verdict,
                   rule="steps to a tenth of chance at the longest T: reproduced if every seed of attention hits "
                        "before any of the BiLSTM, contradicted if every one of these hits before any of attention")


def _grows(who: str, near: Hits, far: Hits, lengths: Sequence[int], budget: int) -> Finding:
    verdict, measured = Verdict.NOT_TESTABLE, "fewer than two lengths with enough seeds"
    if len(lengths) > 1:
        shortest, longest = min(lengths), max(lengths)
        ours, others = (growth(hits, shortest, longest, budget) for hits in (near, far))
        measured = f"T = {shortest} to {longest}: "
        if not (ours and others):
            measured += f"T = {shortest} is not learnt within {count(budget)} steps"
        else:
            censored = any(math.isinf(hit) for hit in near[longest].values())
            bound = any(math.isinf(hit) for hit in far[longest].values())
            measured += f"{_times(ours, censored)} against {_times(others, bound)}"
            if censored:
                measured += f"; attention misses within {count(budget)} steps, so that its growth is not known"
            elif min(others) > max(ours):
                verdict = Verdict.REPRODUCED
            elif max(others) < min(ours) and not bound:
                verdict = Verdict.CONTRADICTED
    return Finding(published=f"{who}: path length is constant for attention and grows with n for a recurrent layer",
                   source=TABLE, measured=measured, verdict=verdict,
                   rule="growth of the steps to a tenth of chance from the shortest to the longest T, a miss counting "
                        "as the budget at least: reproduced if every seed's growth under the BiLSTM is above every "
                        "one's under attention, contradicted if below; not testable where attention misses")


def growth(hits: Hits, shortest: int, longest: int, budget: int) -> list[float]:
    """By what factor the steps grow, seed by seed; a miss at the longest counts as the budget. Empty where a seed
    misses at the shortest."""
    both = [seed for seed in hits[shortest] if seed in hits[longest]]
    if any(math.isinf(hits[shortest][seed]) for seed in both):
        return []
    return [min(hits[longest][seed], budget) / hits[shortest][seed] for seed in both]


def _told(steps: Sequence[float]) -> str:
    """Hits as they are read: 310–420 steps, 3 of 3 seeds."""
    reached = sorted(step for step in steps if math.isfinite(step))
    which = f"{len(reached)} of {len(steps)} seeds"
    if not reached:
        return f"no hit in {len(steps)} seeds"
    return f"{_range(reached)} steps, {which}"


def _times(factors: Sequence[float], bound: bool) -> str:
    low, high = f"{min(factors):.3g}", f"{max(factors):.3g}"
    return f"{'≥ ' if bound else ''}{low if low == high else f'{low}–{high}'}×"


def _range(values: Sequence[float]) -> str:
    low, high = count(min(values)), count(max(values))
    return low if low == high else f"{low}–{high}"


# ---------------------------------------------------------------------------------------------- table and figure

def table_of(found: pd.DataFrame) -> pd.DataFrame:
    """A row a problem, length and arm."""
    records = []
    order = {"dataset": list(PROBLEMS).index, "block": block_order(found["block"]).index}
    place = ["dataset", "seq_len", "family", "block"]
    ordered = found.sort_values(place, kind="stable",
                                key=lambda column: column.map(order[column.name]) if column.name in order else column)
    for _, part in ordered.groupby(place, sort=False):
        first, reached = part.iloc[0], int((part["hit"] < math.inf).sum())
        low, high = wilson(reached, len(part))
        loss = log10_interval(part["relative"]) if (part["relative"] > 0).all() else None
        records.append({
            "problem": first["dataset"], "length": first["seq_len"], "family": first["family"],
            "block": first["block"], "width": part["width"].max(), "params": part["params"].max(),
            "rate": part["rate"].median(), "hits": f"{reached} of {len(part)} {between(low, high)}",
            "median": median(part["hit"]), "steps": _told(list(part["hit"])),
            "relative": loss.value if loss else math.nan, "low": loss.low if loss else math.nan,
            "high": loss.high if loss else math.nan, "step_seconds": part["step_seconds"].median(),
        })
    return pd.DataFrame(records)


def _shown(table: pd.DataFrame, found: pd.DataFrame) -> present.Shown:
    steps = max(recipe_of(text)["steps"] for text in found["recipe"])
    columns = [
        present.words("problem", "problem"),
        present.whole("length", "T"),
        present.words("family", "family"),
        present.words("block", "block"),
        present.whole("width", "width"),
        present.whole("params", "parameters"),
        present.number("rate", "rate", hint="the better of two, by one run each on another seed"),
        present.words("hits", "seeds that hit", "of those that ended, with Wilson's 95 % interval"),
        present.made("steps to the hit", lambda record: present.Entry(record["steps"], record["median"]),
                     "range over seeds"),
        present.spread("relative", "final loss / chance", "low", "high", "1", "geometric mean, 95 % t interval"),
        present.number("step_seconds", "step", "s"),
    ]
    note = (f"A hit is a running mean loss of {THRESHOLD:g} × the constant predictor's within {count(steps)} steps in "
            f"batches of {BATCH}. {DEPTH} layers, plain's width {WIDTH}, {HEADS} heads. Adding is read at the last "
            "step. In copy the backward direction can count the steps from the end.")
    return present.shown("long-range", "Steps to learn by sequence length", table, columns, note=note)


def _picture(found: pd.DataFrame) -> Picture:
    """A row a problem and a column a family: every seed's steps to the hit against length, misses above the budget."""
    look, told = looks(found["block"]), []
    budget = max(recipe_of(text)["steps"] for text in found["recipe"])
    missed = budget * 1.3
    places = [(problem, family) for problem in PROBLEMS for family in FAMILIES]
    with settings():
        figure, axes = panels(len(places), 2, 2.0, sharey=True)
        for panel, (problem, family) in zip(axes, places, strict=True):
            lengths = sorted(int(length) for length in found.loc[found["dataset"] == problem, "seq_len"].unique())
            arms = [block for block in look if block in FAMILIES[family]]
            for turn, block in enumerate(arms):
                style = look[block]
                hits = hits_of(Arm(family, block), problem, found)
                shift = [length * math.exp(dodge(turn, len(arms), 0.12)) for length in hits]
                middles = [median(of_seeds.values()) for of_seeds in hits.values()]
                panel.plot(shift, [step if math.isfinite(step) else math.nan for step in middles],
                           color=style.colour, linestyle=style.dash, linewidth=1.2)
                for x, of_seeds in zip(shift, hits.values(), strict=True):
                    for step in of_seeds.values():
                        hit = math.isfinite(step)
                        panel.plot(x, step if hit else missed, color=style.colour, marker=style.marker if hit else "x",
                                   linestyle="none", markersize=4.5, alpha=0.8)
                told += [f"{problem}, {block} {family}, T = {length}: {_told(list(of_seeds.values()))}"
                         for length, of_seeds in hits.items()]
            panel.axhline(budget, color="#555555", linewidth=0.8, linestyle=":")
            panel.set_title(f"{problem}, {family}", loc="left")
            panel.set_ylim(budget / 25, budget * 1.7)
            if lengths:
                panel.set_xlim(lengths[0] / 1.4, lengths[-1] * 1.4)
                log_axis(panel, "x", at=lengths)
            log_axis(panel, "y")
        for panel in axes[-2:]:
            panel.set_xlabel("length T (log)")
        figure.supylabel("steps to a tenth of chance (log)", fontsize=9)
        title = _title(found)
        head(figure, title)
        legend(figure, look, [mark("x", "missed")], lines=True)
    caption = (f"{DEPTH} layers, equal parameters a layer, plain's width {WIDTH}, batches of {BATCH}, rate tuned. A "
               f"mark a seed, lines through medians; crosses above the dots missed within {count(budget)} steps.")
    return Picture("long-range", title, f"Steps to the threshold by length. {joined(told, 40)}", caption, figure)


def _title(found: pd.DataFrame) -> str:
    """The longest adding problem, highway in both families."""
    parts = []
    for arm in PAIRS[0]:
        hits = hits_of(arm, "adding", found)
        if hits:
            longest = max(hits)
            steps = median(hits[longest].values())
            took = f"takes {three(steps)} steps" if math.isfinite(steps) else "misses"
            parts.append(f"{arm} {took}")
    return f"Adding at T = {longest}: {', '.join(parts)}" if parts else "Steps to learn by sequence length"
