"""Long ranges: training steps of attention and bidirectional LSTMs on the adding problem, by sequence length."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from highway_bench.reproduce.quantities import Region, Statistic, apart, rate
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES
from highway_bench.success.judging import THRESHOLD

LENGTHS = (25, 50, 100, 200)
SHORT, MIDDLE, LONG = 25, 100, 200  # growth is judged up to the middle one: there most runs of attention hit
WIDTH, DEPTH, BATCH = 32, 2, 16
HEADS = 2  # of attention; with four, the scores of 200 × 200 positions would take most of the time
STEPS, SEEDS = 2_000, 10
RATES = (0.03, 0.01, 0.003, 0.001, 0.0003)  # Adam's
ITEMS = STEPS * BATCH  # training items; none is repeated within the default number of steps

FAMILIES = {"attention": ("pre-norm", "highway"), "bilstm": ("plain", "highway")}


class Arm(NamedTuple):
    """A family with a block."""

    family: str
    block: str

    def __str__(self) -> str:
        return f"{self.block} {self.family}"


# A run hits when it reaches the threshold; if it does not, it misses
PAIRS = (
    (Arm("attention", "highway"), Arm("bilstm", "highway")),  # the same block
    (Arm("attention", "pre-norm"), Arm("bilstm", "plain")),  # the usual block of each family
)

TABLE = "arXiv:1706.03762, Table 1"
PATHS = "arXiv:1706.03762, §4"


@register_reproduction(
    "long-range",
    title="Adding by sequence length, attention against BiLSTM",
    source="arXiv:1706.03762, §4 and Table 1; problem: arXiv:1803.01271, arXiv:1511.06464",
)
class LongRange(Reproduction):
    """Two layers of width 32, equal parameters per layer within a family; Adam, the rate tuned over five values.

    Between two positions a signal passes one attention layer, or one LSTM step per position between them. If short
    paths make distant relations easier to learn, attention learns long sequences at more seeds than an LSTM does, and
    the LSTM's training steps grow more with the sequence. Families are matched in width, not in parameters; both counts
    are reported.

    The output is read at the last position, where the backward direction has seen one position only. An average over
    positions, the default head, would let layers that see one position at a time learn the sum.
    """

    takes = frozenset({"steps", "seeds"})
    version = RuleVersion(3, "2026-11-25", seen=9)  # version 2 let one miss of attention's withhold every verdict
    not_attempted = (
        NotAttempted("adding at T = 400", "arXiv:1803.01271", "out of reach of two cores"),
        NotAttempted(
            "copy",
            "arXiv:1803.01271",
            "at none of four rates from 0.003 to 0.1 did the BiLSTM learn it within 1,000 steps, down to T = 1",
        ),
        NotAttempted("perplexity and BLEU of translation", "arXiv:1706.03762, Table 2", "the data are not here"),
    )

    def cells(self, request: Request) -> list[Cell]:
        recipe = {
            "optimiser": "adam",
            "rate": "tuned",
            "rates": list(RATES),
            "decay": 1.0,
            "steps": request.steps or STEPS,
            "threshold": THRESHOLD,
            "dataset": {"size": ITEMS},
            "layout": "last-step",
        }
        return [
            trained(
                block,
                family,
                depth=DEPTH,
                nominal_width=WIDTH,
                batch_size=BATCH,
                dataset="adding",
                seq_len=length,
                family_options={"heads": HEADS} if family == "attention" else {},
                device=request.device,
                seed=seed,
                recipe=recipe,
            )
            for length in LENGTHS
            for family, blocks in FAMILIES.items()
            for block in blocks
            for seed in self.seeds(request, SEEDS)
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        common: dict[str, Any] = {
            "n": len(self.seeds(request, SEEDS)),
            "least": self.least_seeds,
            "comparisons": 2 * len(PAIRS),
            "guard": f"if either misses at T = {SHORT} at more than half of its seeds",
            "version": self.version,
        }
        return [claim for pair in PAIRS for claim in claims_of(*pair, common)]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        ended = hits(self.fresh(rows))
        findings = [claim.judge(ended) for claim in self.claims(request)]
        if ended.empty:
            return Conclusion(findings=findings)
        budget = budget_of(ended)
        note = (
            f"A hit is a running mean loss of {THRESHOLD:g} × the constant predictor's within {count(budget)} "
            f"steps in batches of {BATCH}. {DEPTH} layers, plain's width {WIDTH}, {HEADS} heads."
        )
        caption = (
            f"{DEPTH} layers, equal parameters per layer within a family, plain's width {WIDTH}, batches of "
            f"{BATCH}, rate tuned."
        )
        panels = {
            family: {block: hits_of(Arm(family, block), ended) for block in blocks}
            for family, blocks in FAMILIES.items()
        }
        return Conclusion(
            findings=findings,
            tables=[shown(table_of(ended, RATES), note, len(RATES))],
            pictures=[picture(panels, budget, _title(ended), caption)],
        )


def hits(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run that ended, with the columns of ``runs`` and two more: ``hit``, the step at which it reached the
    threshold (∞ for a miss), and ``relative``, its final loss over that of the constant predictor."""
    ended = training_runs(rows)
    ended = ended[ended["status"].isin(OUTCOMES)].copy()
    ended["hit"] = ended["steps_to_threshold"].astype("float64").fillna(math.inf)
    chances = {length: make_dataset("adding", length=length).chance_loss for length in LENGTHS}
    losses = zip(ended["seq_len"], ended["final_loss"], strict=True)
    ended["relative"] = [loss / chances[int(length)] for length, loss in losses]
    return ended


def hits_of(arm: Arm, ended: pd.DataFrame) -> Hits:
    """One arm's hits."""
    own = ended[(ended["family"] == arm.family) & (ended["block"] == arm.block)]
    by_length: dict[int, dict[int, float]] = {}
    for length, seed, hit in zip(own["seq_len"], own["seed"], own["hit"], strict=True):
        by_length.setdefault(int(length), {})[int(seed)] = float(hit)
    return dict(sorted(by_length.items()))


def budget_of(ended: pd.DataFrame) -> int:
    """The number of training steps of a run."""
    return int(max((recipe_of(text)["steps"] for text in ended["recipe"]), default=STEPS))


# ------------------------------------------------------------------------------------------------------- findings


class Contest(NamedTuple):
    """The hits of attention (``near``) and of a BiLSTM (``far``), the budget of a run in steps, and the parameters of
    both in words."""

    near: Hits
    far: Hits
    budget: int
    sizes: str

    @classmethod
    def of(cls, attention: Arm, lstm: Arm, ended: pd.DataFrame) -> Contest:
        sizes = " against ".join(_parameters(arm, ended) for arm in (attention, lstm))
        return cls(hits_of(attention, ended), hits_of(lstm, ended), budget_of(ended), f"with {sizes} parameters")

    @property
    def untrained(self) -> str:
        """The reason why a longer T decides nothing: an arm misses the shortest too. Empty if both hit."""
        for who, own in (("attention", self.near), ("the BiLSTM", self.far)):
            steps = own.get(SHORT, {}).values()
            reached = sum(map(math.isfinite, steps))
            if 2 * reached < len(steps):
                return f"{who} is untrained: it hits at T = {SHORT} at {reached} of {len(steps)} seeds"
        return ""


def claims_of(attention: Arm, lstm: Arm, common: dict[str, Any]) -> list[Claim]:
    """The claims on two arms: which hits the longest sequences, and whose steps grow more with length."""
    pair = partial(Contest.of, attention, lstm)
    who = f"adding, {attention} against {lstm}"
    return [
        Claim(
            statement=f"{who}: the shorter the path, the easier a long range is learnt",
            source=PATHS,
            quantity=f"rate of seeds that reach a tenth of chance at T = {LONG}, attention's minus the BiLSTM's",
            unit="points",
            statistic=Statistic.RATES,
            region=Region(least=0.0),
            observe=lambda ended, confidence: _easier(pair(ended), confidence),
            effect=90.0,
            **common,
        ),
        Claim(
            statement=f"{who}: path length is constant for attention and grows with n for a recurrent layer; if that "
            "is what makes it hard, steps to learn grow more with T under the BiLSTM",
            source=TABLE,
            evidence=Evidence.OURS,
            quantity=f"rate of seeds at which the steps to a tenth of chance grow by a larger factor from T = {SHORT} "
            f"to {MIDDLE} under the BiLSTM than under attention; after a miss the growth is at least that at the "
            "budget, and a seed that this leaves open counts against either verdict",
            unit="%",
            statistic=Statistic.RATE,
            region=Region(least=50.0),
            observe=lambda ended, confidence: _grows(pair(ended), confidence),
            effect=95.0,
            **common,
        ),
    ]


def _parameters(arm: Arm, ended: pd.DataFrame) -> str:
    own = ended[(ended["family"] == arm.family) & (ended["block"] == arm.block)]
    return count(own["params"].max())


def _easier(contest: Contest, confidence: float) -> Observation:
    near, far = (list(hits.get(LONG, {}).values()) for hits in (contest.near, contest.far))
    if not (near and far):
        return Observation()
    ours, others = (rate("", sum(map(math.isfinite, steps)), len(steps), confidence) for steps in (near, far))
    return Observation(
        decisive=[apart(f"T = {LONG}", ours, others, "points")],
        note=f"{steps_text(near)} against {steps_text(far)}, {contest.sizes}",
        untestable=contest.untrained,
    )


def _grows(contest: Contest, confidence: float) -> Observation:
    near, far = (growths(hits, contest.budget) for hits in (contest.near, contest.far))
    both = sorted(set(near) & set(far))
    if not both:
        return Observation()
    more = sum(far[seed][0] > near[seed][1] for seed in both)
    less = sum(far[seed][1] < near[seed][0] for seed in both)
    between = f"T = {SHORT} to {MIDDLE}"
    shown = rate(between, more, len(both), confidence)
    notes = [f"{_times(near)} against {_times(far)}", contest.sizes]
    if left := len(both) - more - less:
        notes.insert(1, f"{left} {'seeds' if left > 1 else 'seed'} open")
    return Observation(
        decisive=[shown],
        against=[rate(between, len(both) - less, len(both), confidence)],
        note=", ".join(notes),
        untestable=contest.untrained,
    )


def growths(hits: Hits, budget: int) -> dict[int, tuple[float, float]]:
    """The bounds of the factor by which the steps grow from T = 25 to 100, by seed.

    They are equal for a run that hits both. A miss at 100 leaves the upper bound infinite; a miss at 25 lets the factor
    be any number."""
    found = {}
    for seed in hits.get(SHORT, {}).keys() & hits.get(MIDDLE, {}).keys():
        first, last = hits[SHORT][seed], hits[MIDDLE][seed]
        if math.isinf(first):
            found[seed] = (0.0, math.inf)
        else:
            found[seed] = (min(last, budget) / first, last / first)
    return found


def _times(factors: dict[int, tuple[float, float]]) -> str:
    """The factors of all seeds in words: "1.2–3.4×", with "≥" if one is known from below only."""
    lows = [low for low, _ in factors.values()]
    bound = "≥ " if any(math.isinf(high) for _, high in factors.values()) else ""
    low, high = three(min(lows)), three(max(lows))
    return f"{bound}{low if low == high else f'{low}–{high}'}×"


def _title(ended: pd.DataFrame) -> str:
    """Steps of both families, with highway, on the longest problem that both have results for."""
    steps = {arm: hits_of(arm, ended) for arm in PAIRS[0]}
    common = set.intersection(*(set(hits) for hits in steps.values()))
    if not common:
        return "Steps to learn by sequence length"
    middles = {arm: median(hits[max(common)].values()) for arm, hits in steps.items()}
    parts = [
        f"{arm} {f'takes {three(step)} steps' if math.isfinite(step) else 'misses'}" for arm, step in middles.items()
    ]
    return f"Adding at T = {max(common)}: {', '.join(parts)}"
