"""Stacked against highway against residual bidirectional LSTMs by depth, on real sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.measure.statistics import IntervalEstimate, t_interval
from highway_bench.report.format import count, three
from highway_bench.report.rows import of_task, recipe_of
from highway_bench.report.tables.trainability import training_runs
from highway_bench.reproduce._bilstm_pictures import in_percent, picture, shown
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce.base import (
    Conclusion,
    Evidence,
    Finding,
    NotAttempted,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES, Status

BLOCKS = ("plain", "highway", "residual")
DEPTHS = (1, 2, 4, 10)  # the deepest is the one that the author names; tuning at 8 and 16 too would take half an hour
WIDTH, BATCH, SEEDS = 64, 64, 3
LENGTH = 32  # words: one film review in seven has more, and loses its end

# The published optimiser and clipping. The published rate, 0.001, is meant for 500 epochs in batches of 16; within a
# few epochs of batches of 64 one layer learns at 0.003 and hardly at 0.001, and deep stacks may want less. So the rate
# is tuned over both for every block and depth, by the training loss of one run each on a seed of its own.
RATES, CLIP = (0.003, 0.001), 3.0


@dataclass(frozen=True)
class CorpusTraining:
    """A corpus, the batches that an epoch over its training part has, and the epochs trained."""

    steps_per_epoch: int
    epochs: int


CORPORA = {"movie-reviews": CorpusTraining(132, 2), "tweets": CorpusTraining(51, 4)}

# The rules, agreed before any run. Differences are taken seed by seed, intervals are 95 % t intervals over seeds, and
# a depth with fewer than three seeds is shown without a verdict. A run that diverged counts with chance accuracy.
LEAST_SEEDS = 3
MARGIN = 0.02  # of accuracy: a gain up to this is none, and an accuracy up to this above chance a random guess
POINT = 0.01  # of accuracy: a fall below this is none
MUCH = 0.5  # of plain's fall: what highway may lose at most to fall "much less"
NAMED = 10  # layers, at which the author's plain stack falls below a random guess

BLOG = "bamtercelboo/pytorch_Highway_Networks and its blog post, 2017; a direction, no numbers"


@register_reproduction(
    "bilstm",
    title="Stacked, highway and residual BiLSTMs by depth, on real sentences",
    source="bamtercelboo/pytorch_Highway_Networks, 2017; block: arXiv:1505.00387, eq. 3",
)
class BiLstmByDepth(Reproduction):
    """Embedding → 1 to 10 BiLSTM layers, 64 wide, equal parameters a layer → mean over the words → two classes.

    The published code draws its gate anew in every forward pass and carries the gate's pre-activation in place of the
    input; the highway block here has neither fault. Padding is kept out of both directions and of the mean. What a
    text is judged by is fixed beforehand: the network after the last epoch, on test texts that nothing was chosen by.
    The rate is tuned for every block and depth over the same two, on training texts.
    """

    takes = frozenset({"epochs", "seeds", "depth"})
    least_seeds = LEAST_SEEDS
    not_attempted = (
        NotAttempted("accuracy by depth, in numbers", BLOG, "its table is a picture without digits to quote"),
        NotAttempted(
            "the same on the Stanford Sentiment Treebank",
            BLOG,
            "the data are not here; film reviews and tweets stand in for it",
        ),
        NotAttempted("500 epochs at 300 units with a dropout of 0.6", BLOG, "out of reach of two cores"),
    )

    def cells(self, request: Request) -> list[Cell]:
        return [
            trained(
                block,
                "bilstm",
                depth=depth,
                nominal_width=WIDTH,
                batch_size=BATCH,
                dataset="sentiment",
                recipe=recipe(corpus, request.epochs),
                device=request.device,
                seed=seed,
            )
            for corpus in CORPORA
            for depth in request.depth or DEPTHS
            for block in BLOCKS
            for seed in range(request.seeds or SEEDS)
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        found = accuracies(rows)
        measured = set(found["corpus"])
        chances = {corpus: chance_of(corpus) if corpus in measured else math.nan for corpus in CORPORA}
        findings = [
            finding
            for corpus, chance in chances.items()
            for finding in findings_of(corpus, found[found["corpus"] == corpus], chance)
        ]
        if found.empty:
            return Conclusion(findings=findings)
        table = table_of(found, last_gains(rows)).assign(chance=lambda own: own["corpus"].map(chances))
        budget = _budget(table)
        note = (
            f"{budget}; batches of {BATCH}, Adam, texts cut at {LENGTH} words. Widths give each block the "
            f"parameters a layer that plain has at {WIDTH}; the embedding is in the count."
        )
        caption = f"Equal parameters a layer, plain {WIDTH} wide, rate tuned; {budget}"
        return Conclusion(findings=findings, tables=[shown(table, note)], pictures=[picture(table, caption)])


def recipe(corpus: str, epochs: int | None) -> dict[str, object]:
    """How every network is trained on ``corpus``."""
    steps = (epochs or CORPORA[corpus].epochs) * CORPORA[corpus].steps_per_epoch
    return {
        "optimiser": "adam",
        "rate": "tuned",
        "rates": list(RATES),
        "decay": 1.0,
        "clip": CLIP,
        "steps": steps,
        "verdict": False,
        "evaluate": "epoch",
        "dataset": {"corpus": corpus, "length": LENGTH},
    }


def chance_of(corpus: str) -> float:
    """Test accuracy of always giving the commoner class."""
    chance = make_dataset("sentiment", corpus=corpus).chance_accuracy
    assert chance is not None
    return chance


def accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a run that ended: ``corpus``, ``block``, ``depth``, ``seed``, ``test_accuracy``, ``train_accuracy``, …"""
    found = training_runs(rows)
    found = found[found["status"].isin(OUTCOMES)].copy()
    found["corpus"] = [_corpus(text) for text in found["recipe"]]
    diverged = found["status"] == Status.DIVERGED
    for corpus in found.loc[diverged, "corpus"].unique():
        found.loc[diverged & (found["corpus"] == corpus), "test_accuracy"] = chance_of(corpus)
    return found.assign(diverged=diverged)


def last_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """What the last epoch added to the test accuracy, mean over seeds: ``corpus``, ``block``, ``depth``, ``gain``."""
    frame = of_task(rows, "trainability")
    frame = frame[(frame["metric"] == "epoch_test_accuracy") & frame["trial"].isna()].sort_values("index")
    frame = frame.assign(corpus=[_corpus(text) for text in frame["recipe"]])
    place = ["corpus", "label", "depth"]
    gains = frame.groupby([*place, "seed"])["value"].apply(lambda values: values.diff().iloc[-1])
    return gains.groupby(place).mean().rename("gain").reset_index().rename(columns={"label": "block"})


def _corpus(text: object) -> str:
    return str(recipe_of(text)["dataset"]["corpus"])


def table_of(found: pd.DataFrame, gains: pd.DataFrame) -> pd.DataFrame:
    """A row a corpus, depth and block: accuracy with its interval over seeds, and what goes with it."""
    records = []
    order = {"corpus": list(CORPORA).index, "block": BLOCKS.index}
    ordered = found.sort_values(
        ["corpus", "depth", "block"],
        kind="stable",
        key=lambda column: column.map(order[column.name]) if column.name in order else column,
    )
    for (corpus, depth, block), part in ordered.groupby(["corpus", "depth", "block"], sort=False):
        accuracy = t_interval(part["test_accuracy"])
        records.append(
            {
                "corpus": corpus,
                "depth": depth,
                "block": block,
                "width": part["width"].max(),
                "params": part["params"].max(),
                "n": accuracy.n,
                "accuracy": accuracy.value,
                "low": accuracy.low,
                "high": accuracy.high,
                "train_accuracy": part["train_accuracy"].mean(),
                "diverged": int(part["diverged"].sum()),
                "rate": part["rate"].median(),
                "step_seconds": part["step_seconds"].median(),
                "epochs": recipe_of(part["recipe"].iloc[0])["steps"] // CORPORA[str(corpus)].steps_per_epoch,
            }
        )
    columns = [
        "corpus",
        "depth",
        "block",
        "width",
        "params",
        "n",
        "accuracy",
        "low",
        "high",
        "train_accuracy",
        "diverged",
        "rate",
        "step_seconds",
        "epochs",
    ]
    return pd.DataFrame(records, columns=columns).merge(gains, how="left", on=["corpus", "block", "depth"])


# ------------------------------------------------------------------------------------------------------ findings

Falls = Mapping[int, pd.Series]
"""Depth → how much lower the test accuracy is than at one layer, seed by seed; depths with enough seeds only."""


def findings_of(corpus: str, found: pd.DataFrame, chance: float) -> list[Finding]:
    """What one corpus says of the published statements; accuracies are shares."""
    plain, highway = (found[found["block"] == block] for block in ("plain", "highway"))
    learnt = all(_single(own).low > chance for own in (plain, highway))
    return [
        _gains_nothing(corpus, falls(plain), learnt),
        _falls_to_chance(corpus, plain, chance, learnt),
        *_falls_less(corpus, falls(plain), falls(highway), learnt),
    ]


def falls(own: pd.DataFrame) -> Falls:
    """How much one block's accuracy falls from one layer to each depth beyond."""
    by_seed = own.pivot_table(index="seed", columns="depth", values="test_accuracy")
    if 1 not in by_seed:
        return {}
    deeper = [int(depth) for depth in by_seed.columns.astype(int) if depth > 1]
    differences = {depth: (by_seed[1] - by_seed[depth]).dropna() for depth in deeper}
    return {depth: values for depth, values in differences.items() if len(values) >= LEAST_SEEDS}


def _single(own: pd.DataFrame) -> IntervalEstimate:
    """The accuracy of one layer. Where it is not above chance, depth has nothing to take away; with too few seeds, or
    none, the ends are NaN, and nobody knows."""
    single = own.loc[own["depth"] == 1, "test_accuracy"]
    return (
        t_interval(single)
        if len(single) >= LEAST_SEEDS
        else IntervalEstimate(math.nan, math.nan, math.nan, len(single))
    )


def _gains_nothing(corpus: str, plain: Falls, learnt: bool) -> Finding:
    gains = {depth: t_interval(-values) for depth, values in plain.items()}
    verdict = Verdict.NOT_TESTABLE
    if learnt and gains:
        if any(gain.low > MARGIN for gain in gains.values()):
            verdict = Verdict.CONTRADICTED
        elif all(gain.high <= MARGIN for gain in gains.values()):
            verdict = Verdict.REPRODUCED
    return Finding(
        published=f"{corpus}: a plain stacked BiLSTM gains nothing from depth",
        source=BLOG,
        evidence=Evidence.SECONDARY,
        verdict=verdict,
        measured="; ".join(f"{depth} layers: {_points(gain)}" for depth, gain in gains.items()) or _why(learnt),
        rule=f"accuracy minus that of one layer: reproduced if the interval's upper end is at most {100 * MARGIN:g} "
        "points at every depth, contradicted if the lower end is above that at any",
    )


def _falls_to_chance(corpus: str, plain: pd.DataFrame, chance: float, learnt: bool) -> Finding:
    values = plain.loc[plain["depth"] == NAMED, "test_accuracy"]
    found = t_interval(values) if len(values) else None
    verdict = Verdict.NOT_TESTABLE
    if learnt and found is not None and found.n >= LEAST_SEEDS:
        if found.high <= chance + MARGIN:
            verdict = Verdict.REPRODUCED
        elif found.low > chance + MARGIN:
            verdict = Verdict.CONTRADICTED
    measured = f"no run of {NAMED} layers" if found is None else f"{NAMED} layers: {in_percent(found)} %"
    return Finding(
        published=f"{corpus}: at {NAMED} layers it falls below a random guess",
        source=BLOG,
        evidence=Evidence.SECONDARY,
        verdict=verdict,
        measured=f"{measured}; chance {three(100 * chance)} %",
        rule=f"at {NAMED} layers, {LEAST_SEEDS} seeds: reproduced if the interval's upper end is at most "
        f"{100 * MARGIN:g} points above chance, contradicted if the lower end is above that",
    )


def _falls_less(corpus: str, plain: Falls, highway: Falls, learnt: bool) -> list[Finding]:
    common = [depth for depth in plain if depth in highway]
    claims = f"{corpus}: with highway layers accuracy still falls with depth", f"{corpus}: … but much less than plain's"
    rules = (
        "its fall from one layer to the deepest with enough seeds: reproduced if the interval lies above 0, "
        f"else contradicted if its upper end is below {100 * POINT:g} point",
        "the falls to that depth: reproduced if the interval of plain's lies above 0 and so does that of "
        f"{MUCH:g} of plain's minus highway's, contradicted if that of plain's minus highway's lies below 0",
    )
    verdicts, measured = [Verdict.NOT_TESTABLE] * 2, [_why(learnt)] * 2
    if common and learnt:
        depth = max(common)
        own, other, less, half = (
            t_interval(values.dropna())
            for values in (
                highway[depth],
                plain[depth],
                plain[depth] - highway[depth],
                MUCH * plain[depth] - highway[depth],
            )
        )
        verdicts = [
            Verdict.REPRODUCED if own.low > 0 else Verdict.CONTRADICTED if own.high < POINT else Verdict.NOT_TESTABLE,
            Verdict.REPRODUCED
            if other.low > 0 and half.low > 0
            else Verdict.CONTRADICTED
            if less.high < 0
            else Verdict.NOT_TESTABLE,
        ]
        measured = [
            f"{depth} layers: a fall of {_points(own)}",
            f"{depth} layers: plain {_points(other)}, highway {_points(own)}, difference {_points(less)}, "
            f"{MUCH:g} of plain's minus highway's {_points(half)}",
        ]
    return [
        Finding(published=claim, source=BLOG, evidence=Evidence.SECONDARY, measured=told, rule=rule, verdict=verdict)
        for claim, told, rule, verdict in zip(claims, measured, rules, verdicts, strict=True)
    ]


def _why(learnt: bool) -> str:
    """Why there is nothing to judge."""
    few = f"fewer than {LEAST_SEEDS} seeds"
    return few if learnt else f"{few}, or one layer is not above chance within the budget"


def _points(found: IntervalEstimate) -> str:
    """A difference of accuracies in points."""
    return f"{in_percent(found)} points"


def _budget(table: pd.DataFrame) -> str:
    """The epochs trained, corpus by corpus."""
    return "; ".join(
        f"{corpus}: epochs: {count(part['epochs'].max())}" for corpus, part in table.groupby("corpus", sort=False)
    )
