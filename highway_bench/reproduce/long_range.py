"""Long ranges: training steps of attention and bidirectional LSTMs on adding and copy, by sequence length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.report.format import count, three
from highway_bench.report.rows import recipe_of
from highway_bench.report.tables.trainability import training_runs
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce._long_range_pictures import Hits, picture, shown, steps_text, table_of
from highway_bench.reproduce.base import Conclusion, NotAttempted, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.reproduce.quantities import Region, Statistic, order
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES
from highway_bench.success.judging import THRESHOLD

WIDTH, DEPTH, BATCH = 32, 2, 16
HEADS = 2  # of attention; with four, the scores of 200 × 200 positions would take most of the time
STEPS, SEEDS = 1_000, 6
RATES = (0.03, 0.01, 0.003, 0.001)  # Adam's; LSTMs and attention learn best at the two in the middle
VERSION = RuleVersion(2, "2026-11-23", seen=3)  # version 1 had three seeds, which can only suggest, and two rates
ITEMS = STEPS * BATCH  # training items; none is repeated within the default number of steps

FAMILIES = {"attention": ("pre-norm", "highway"), "bilstm": ("plain", "highway")}


@dataclass(frozen=True)
class Problem:
    """The lengths T of a problem, and its architecture if it is not the default one."""

    lengths: tuple[int, ...]
    layout: str | None = None


# The default head averages over positions. Layers that see one position at a time could then learn a sum over marked
# positions, so the output for the adding problem is read at the last position.
PROBLEMS = {"adding": Problem((25, 50, 100, 200), "last-step"), "copy": Problem((50, 100))}


class Arm(NamedTuple):
    """A family with a block."""

    family: str
    block: str

    def __str__(self) -> str:
        return f"{self.block} {self.family}"


# A run hits when it reaches the threshold. A miss is later than any hit, and its growth is at least that at the budget
PAIRS = (
    (Arm("attention", "highway"), Arm("bilstm", "highway")),  # the same block
    (Arm("attention", "pre-norm"), Arm("bilstm", "plain")),  # the usual block of each family
)
LEAST_SEEDS = 3
SCATTER = 0.15  # decades between the steps of runs

TABLE = "arXiv:1706.03762, Table 1"
PATHS = "arXiv:1706.03762, §4"


@register_reproduction(
    "long-range",
    title="Adding and copy by sequence length, attention against BiLSTM",
    source="arXiv:1706.03762, §4 and Table 1; problems: arXiv:1803.01271, arXiv:1511.06464",
)
class LongRange(Reproduction):
    """Two layers of width 32, equal parameters per layer within a family; Adam, the rate tuned over four values.

    Between two positions a signal passes one attention layer, or one LSTM step per position between them. If short
    paths make distant relations easier to learn, an LSTM needs more training steps than attention, and the difference
    grows with the sequence.

    Each of the eight findings is decided by the order of all seeds of one arm against all of the other. Six against six
    fall into such an order with p = 0.002 by chance; three against three would only suggest. Families are matched in
    width, not in parameters; both counts are reported.

    Adding is read at the last position, where the backward direction has seen one position only. In copy, a
    bidirectional layer sees only markers to the right of each target, but its backward direction can count positions
    from the end, and attention reads the symbols directly. Neither needs the memory over time that a one-directional
    layer needs, so copy compares paths here and not memories.
    """

    takes = frozenset({"steps", "seeds"})
    least_seeds = LEAST_SEEDS
    version = VERSION
    not_attempted = (
        NotAttempted("adding at T = 400, copy at T = 500 and 1,000", "arXiv:1803.01271", "out of reach of two cores"),
        NotAttempted("perplexity and BLEU of translation", "arXiv:1706.03762, Table 2", "the data are not here"),
    )

    def cells(self, request: Request) -> list[Cell]:
        return [
            trained(
                block,
                family,
                depth=DEPTH,
                nominal_width=WIDTH,
                batch_size=BATCH,
                dataset=name,
                seq_len=length,
                family_options={"heads": HEADS} if family == "attention" else {},
                device=request.device,
                seed=seed,
                recipe=recipe(problem, request.steps or STEPS),
            )
            for name, problem in PROBLEMS.items()
            for length in problem.lengths
            for family, blocks in FAMILIES.items()
            for block in blocks
            for seed in self.seeds(request, SEEDS)
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        seeds = len(self.seeds(request, SEEDS))
        return [
            claim
            for problem, lengths in PROBLEMS.items()
            for pair in PAIRS
            for claim in claims_of(problem, lengths.lengths, *pair, seeds)
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        ended = hits(self.fresh(rows))
        findings = [claim.judge(ended) for claim in self.claims(request)]
        if ended.empty:
            return Conclusion(findings=findings)
        budget = budget_of(ended)
        note = (
            f"A hit is a running mean loss of {THRESHOLD:g} × the constant predictor's within {count(budget)} "
            f"steps in batches of {BATCH}. {DEPTH} layers, plain's width {WIDTH}, {HEADS} heads. Adding is read at "
            "the last position. In copy the backward direction can count positions from the end."
        )
        caption = (
            f"{DEPTH} layers, equal parameters per layer within a family, plain's width {WIDTH}, batches of "
            f"{BATCH}, rate tuned."
        )
        panels = {
            (problem, family): {block: hits_of(Arm(family, block), problem, ended) for block in blocks}
            for problem in PROBLEMS
            for family, blocks in FAMILIES.items()
        }
        return Conclusion(
            findings=findings,
            tables=[shown(table_of(ended, RATES), note)],
            pictures=[picture(panels, budget, _title(ended), caption)],
        )


def recipe(problem: Problem, steps: int) -> dict[str, Any]:
    """The recipe of every network on ``problem``."""
    words: dict[str, Any] = {
        "optimiser": "adam",
        "rate": "tuned",
        "rates": list(RATES),
        "decay": 1.0,
        "steps": steps,
        "threshold": THRESHOLD,
        "dataset": {"size": ITEMS},
    }
    return words | ({"layout": problem.layout} if problem.layout else {})


def hits(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run that ended, with the columns of ``runs`` and two more: ``hit``, the step at which it reached the
    threshold (∞ for a miss), and ``relative``, its final loss over that of the constant predictor."""
    ended = training_runs(rows)
    ended = ended[ended["status"].isin(OUTCOMES)].copy()
    ended["hit"] = ended["steps_to_threshold"].astype("float64").fillna(math.inf)
    chances = {
        (name, length): make_dataset(name, length=length).chance_loss
        for name, problem in PROBLEMS.items()
        for length in problem.lengths
    }
    losses = zip(ended["dataset"], ended["seq_len"], ended["final_loss"], strict=True)
    ended["relative"] = [loss / chances[str(name), int(length)] for name, length, loss in losses]
    return ended


# ------------------------------------------------------------------------------------------------------- findings


def hits_of(arm: Arm, problem: str, ended: pd.DataFrame) -> Hits:
    """One arm's hits on one problem."""
    own = ended[(ended["dataset"] == problem) & (ended["family"] == arm.family) & (ended["block"] == arm.block)]
    by_length: dict[int, dict[int, float]] = {}
    for length, seed, hit in zip(own["seq_len"], own["seed"], own["hit"], strict=True):
        by_length.setdefault(int(length), {})[int(seed)] = float(hit)
    return dict(sorted(by_length.items()))


class Contest(NamedTuple):
    """The hits of attention (``near``) and of a BiLSTM (``far``) at the shortest and the longest length with enough
    seeds, and the parameters of both in words."""

    near: Hits
    far: Hits
    lengths: Sequence[int]
    sizes: str

    @classmethod
    def of(cls, problem: str, attention: Arm, lstm: Arm, ended: pd.DataFrame) -> Contest:
        near, far = hits_of(attention, problem, ended), hits_of(lstm, problem, ended)
        common = [length for length in near if length in far]
        enough = [length for length in common if min(len(near[length]), len(far[length])) >= LEAST_SEEDS]
        sizes = " against ".join(_parameters(arm, problem, ended) for arm in (attention, lstm))
        return cls(near, far, enough, f"with {sizes} parameters")


def claims_of(problem: str, lengths: Sequence[int], attention: Arm, lstm: Arm, seeds: int) -> list[Claim]:
    """The claims on two arms: which hits first at the longest sequences, and whose steps grow more with length."""
    shortest, longest = min(lengths), max(lengths)
    pair = partial(Contest.of, problem, attention, lstm)
    common: dict[str, Any] = {
        "unit": "×",
        "statistic": Statistic.ORDER,
        "region": Region(least=1.0),
        "n": seeds,
        "scatter": SCATTER,
        "comparisons": 2 * len(PAIRS) * len(PROBLEMS),
        "version": VERSION,
    }
    who = f"{problem}, {attention} against {lstm}"
    return [
        Claim(
            statement=f"{who}: the shorter the path, the easier a long range is learnt",
            source=PATHS,
            quantity=f"the BiLSTM's over attention's steps to a tenth of chance at the longest T ({longest})",
            guard="if a seed of the slower one misses at the shortest T",
            observe=lambda ended, _: _earlier(pair(ended)),
            **common,
        ),
        Claim(
            statement=f"{who}: path length is constant for attention and grows with n for a recurrent layer; if that "
            "is what makes it hard, steps to learn grow more with T under the BiLSTM",
            source=TABLE,
            evidence=Evidence.OURS,
            quantity="the BiLSTM's over attention's growth of the steps to a tenth of chance from the shortest to the "
            f"longest T ({shortest} to {longest}), a miss counting as the budget at least",
            guard="if attention misses; path lengths are counted and not measured",
            observe=lambda ended, _: _grows(pair(ended), budget_of(ended)),
            effect=longest / shortest,  # by which the path grows under the BiLSTM; it does not under attention
            **common,
        ),
    ]


def budget_of(ended: pd.DataFrame) -> int:
    """The number of training steps of a run."""
    return int(max((recipe_of(text)["steps"] for text in ended["recipe"]), default=STEPS))


def _parameters(arm: Arm, problem: str, ended: pd.DataFrame) -> str:
    own = ended[(ended["dataset"] == problem) & (ended["family"] == arm.family) & (ended["block"] == arm.block)]
    return count(own["params"].max())


def _earlier(contest: Contest) -> Observation:
    if not contest.lengths:
        return Observation(untestable=f"fewer than {LEAST_SEEDS} seeds")
    shortest, longest = min(contest.lengths), max(contest.lengths)
    ours, others = (list(hits[longest].values()) for hits in (contest.near, contest.far))
    steps = order(f"T = {longest}", others, ours)
    slower = contest.far if steps.low > 1 else contest.near if steps.high < 1 else {}
    untestable = ""
    if math.isinf(min(ours)) and math.isinf(min(others)):
        untestable = "the budget is too small for either"
    elif not all(math.isfinite(hit) for hit in slower.get(shortest, {}).values()):
        untestable = f"the slower one misses at T = {shortest} too, so the range may not be its difficulty"
    return Observation(
        decisive=[steps],
        note=f"{steps_text(ours)} against {steps_text(others)}, {contest.sizes}",
        untestable=untestable,
    )


def _grows(contest: Contest, budget: int) -> Observation:
    if len(contest.lengths) < 2:
        return Observation(untestable="fewer than two lengths with enough seeds")
    shortest, longest = min(contest.lengths), max(contest.lengths)
    ours, others = (growth(hits, shortest, longest, budget) for hits in (contest.near, contest.far))
    if not (ours and others):
        return Observation(untestable=f"T = {shortest} is not learnt within {count(budget)} steps")
    censored, bound = (any(map(math.isinf, hits[longest].values())) for hits in (contest.near, contest.far))
    ratio = order(f"T = {shortest} to {longest}", others, ours)
    untestable = ""
    if censored:
        untestable = f"attention misses within {count(budget)} steps, so its growth is unknown"
    elif bound and ratio.high < 1:
        untestable = "the BiLSTM's growth is known from below only"
    return Observation(
        decisive=[ratio],
        note=f"{_times(ours, censored)} against {_times(others, bound)}, {contest.sizes}",
        untestable=untestable,
    )


def growth(hits: Hits, shortest: int, longest: int, budget: int) -> list[float]:
    """The factor by which the steps grow from the shortest to the longest length, by seed.

    A miss at the longest counts as the budget. Empty if a seed misses at the shortest."""
    both = [seed for seed in hits[shortest] if seed in hits[longest]]
    if any(math.isinf(hits[shortest][seed]) for seed in both):
        return []
    return [min(hits[longest][seed], budget) / hits[shortest][seed] for seed in both]


def _times(factors: Sequence[float], bound: bool) -> str:
    low, high = f"{min(factors):.3g}", f"{max(factors):.3g}"
    return f"{'≥ ' if bound else ''}{low if low == high else f'{low}–{high}'}×"


def _title(ended: pd.DataFrame) -> str:
    """Steps of both families, with highway, on the longest adding problem that both have results for."""
    steps = {arm: hits_of(arm, "adding", ended) for arm in PAIRS[0]}
    common = set.intersection(*(set(hits) for hits in steps.values()))
    if not common:
        return "Steps to learn by sequence length"
    middles = {arm: median(hits[max(common)].values()) for arm, hits in steps.items()}
    parts = [
        f"{arm} {f'takes {three(step)} steps' if math.isfinite(step) else 'misses'}" for arm, step in middles.items()
    ]
    return f"Adding at T = {max(common)}: {', '.join(parts)}"
