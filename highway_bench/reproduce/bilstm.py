"""Stacked against highway against residual bidirectional LSTMs by depth, on real sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.measure.statistics import Estimate, t_interval
from highway_bench.report import present
from highway_bench.report.figures import Picture
from highway_bench.report.figures._base import head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.frame import of_task, recipe_of, rows_of
from highway_bench.report.number import count, three
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
from highway_bench.results.schema import OUTCOMES, Status

BLOCKS = ("plain", "highway", "residual")
DEPTHS = (1, 2, 4, 8, 16)
WIDTH, BATCH, SEEDS = 64, 64, 3
LENGTH = 32  # words: one film review in seven has more, and loses its end

# The published optimiser and clipping; its rate, 0.001, is meant for 500 epochs in batches of 16. Within a few epochs
# of batches of 64 one layer learns at 0.003 and hardly at 0.001, so all blocks and depths get 0.003.
RATE, CLIP = 0.003, 3.0


@dataclass(frozen=True)
class Corpus:
    """A corpus, the batches that an epoch over its training part has, and the epochs trained."""

    steps_per_epoch: int
    epochs: int


CORPORA = {"movie-reviews": Corpus(132, 2), "tweets": Corpus(51, 4)}

# The rules, agreed before any run. Differences are taken seed by seed, intervals are 95 % t intervals over seeds, and
# a depth with fewer than three seeds is shown without a verdict. A run that diverged counts with chance accuracy.
LEAST_SEEDS = 3
POINT = 0.01  # of accuracy: a mean gain up to this is none
NEAR = 0.02  # of accuracy: a mean this near to chance, or below, is a random guess
MUCH = 0.5  # of plain's fall: what highway may lose at most to fall "much less"

BLOG = "a public highway BiLSTM of 2017, its author's text; no numbers"


@register_reproduction("bilstm", title="Stacked, highway and residual BiLSTMs by depth, on real sentences",
                       source="a public highway BiLSTM of 2017; block: arXiv:1505.00387, eq. 3")
class BiLstmByDepth(Reproduction):
    """Embedding → 1 to 16 BiLSTM layers, 64 wide, equal parameters a layer → mean over the words → two classes.

    The published code draws its gate anew in every forward pass and carries the gate's pre-activation in place of the
    input; the highway block here has neither fault. Padding is kept out of both directions and of the mean. What a
    text is judged by is fixed beforehand: the network after the last epoch, on test texts that nothing was chosen by.
    """

    takes = frozenset({"epochs", "seeds", "depths"})
    not_attempted = (
        NotAttempted("accuracy by depth, in numbers", BLOG, "its table is a picture without digits to quote"),
        NotAttempted("the same on the Stanford Sentiment Treebank", BLOG,
                     "the data are not here; film reviews and tweets stand in for it"),
        NotAttempted("500 epochs at 300 units with a dropout of 0.6", BLOG, "out of reach of two cores"),
    )

    def cells(self, asked: Asked) -> list[Cell]:
        return [
            trained(block, "bilstm", depth=depth, nominal_width=WIDTH, batch_size=BATCH, dataset="sentiment",
                    recipe=recipe(corpus, asked.epochs), device=asked.device, seed=seed)
            for corpus in CORPORA
            for depth in asked.depths or DEPTHS
            for block in BLOCKS
            for seed in range(asked.seeds or SEEDS)
        ]

    def outcome(self, rows: pd.DataFrame, asked: Asked) -> Outcome:
        found = accuracies(rows)
        chances = {corpus: chance_of(corpus) for corpus in CORPORA if (found["corpus"] == corpus).any()}
        findings = [
            finding
            for corpus, chance in chances.items()
            for finding in findings_of(corpus, found[found["corpus"] == corpus], chance)
        ]
        table = table_of(found, last_gains(rows))
        return Outcome(findings=findings, tables=[_shown(table, chances)],
                       pictures=[_picture(table, chances)] if len(table) else [])


def recipe(corpus: str, epochs: int | None) -> dict[str, object]:
    """How every network is trained on ``corpus``."""
    steps = (epochs or CORPORA[corpus].epochs) * CORPORA[corpus].steps_per_epoch
    return {"optimiser": "adam", "rate": RATE, "decay": 1.0, "clip": CLIP, "steps": steps, "verdict": False,
            "evaluate": "epoch", "dataset": {"corpus": corpus, "length": LENGTH}}


def chance_of(corpus: str) -> float:
    """Test accuracy of always giving the commoner class."""
    chance = make_dataset("sentiment", corpus=corpus).chance_accuracy
    assert chance is not None
    return chance


def accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a run that ended: ``corpus``, ``block``, ``depth``, ``seed``, ``test_accuracy``, ``train_accuracy``, …"""
    found = runs(rows)
    found = found[found["status"].isin(OUTCOMES)].copy()
    found["corpus"] = [_corpus(text) for text in found["recipe"]]
    diverged = found["status"] == Status.DIVERGED
    for corpus in found.loc[diverged, "corpus"].unique():
        found.loc[diverged & (found["corpus"] == corpus), "test_accuracy"] = chance_of(corpus)
    return found.assign(diverged=diverged)


def last_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """What the last epoch added to the test accuracy, mean over seeds: ``corpus``, ``block``, ``depth``, ``gain``."""
    frame = of_task(rows, "trainability")
    frame = frame[frame["metric"] == "epoch_test_accuracy"].sort_values("index")
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
    ordered = found.sort_values(["corpus", "depth", "block"], kind="stable",
                                key=lambda column: column.map(order[column.name]) if column.name in order else column)
    for (corpus, depth, block), part in ordered.groupby(["corpus", "depth", "block"], sort=False):
        accuracy = t_interval(part["test_accuracy"])
        records.append({
            "corpus": corpus, "depth": depth, "block": block, "width": part["width"].max(),
            "params": part["params"].max(), "n": accuracy.n, "accuracy": accuracy.value, "low": accuracy.low,
            "high": accuracy.high, "train_accuracy": part["train_accuracy"].mean(),
            "diverged": int(part["diverged"].sum()), "step_seconds": part["step_seconds"].median(),
            "epochs": recipe_of(part["recipe"].iloc[0])["steps"] // CORPORA[str(corpus)].steps_per_epoch,
        })
    columns = ["corpus", "depth", "block", "width", "params", "n", "accuracy", "low", "high", "train_accuracy",
               "diverged", "step_seconds", "epochs"]
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


def _single(own: pd.DataFrame) -> Estimate:
    """The accuracy of one layer. Where it is not above chance, depth has nothing to take away; with too few seeds, or
    none, the ends are NaN, and nobody knows."""
    single = own.loc[own["depth"] == 1, "test_accuracy"]
    return t_interval(single) if len(single) >= LEAST_SEEDS else Estimate(math.nan, math.nan, math.nan, len(single))


def _gains_nothing(corpus: str, plain: Falls, learnt: bool) -> Finding:
    gains = {depth: t_interval(-values) for depth, values in plain.items()}
    above = any(gain.low > 0 for gain in gains.values())
    none = bool(gains) and all(gain.value <= POINT for gain in gains.values())
    verdict = Verdict.CONTRADICTED if above else Verdict.REPRODUCED if none else Verdict.NOT_TESTABLE
    return Finding(
        published=f"{corpus}: a plain stacked BiLSTM gains nothing from depth", source=BLOG,
        measured="; ".join(f"{depth} layers: {_points(gain)}" for depth, gain in gains.items()) or _why(learnt),
        verdict=verdict if learnt else Verdict.NOT_TESTABLE,
        rule=f"accuracy minus that of one layer: reproduced if the mean is at most {100 * POINT:g} point at every "
             "depth, contradicted if an interval lies above 0",
    )


def _falls_to_chance(corpus: str, plain: pd.DataFrame, chance: float, learnt: bool) -> Finding:
    depths = sorted(int(depth) for depth in plain["depth"].unique())
    deep = {depth: t_interval(plain.loc[plain["depth"] == depth, "test_accuracy"]) for depth in depths if depth >= 10}
    judged = [found for found in deep.values() if found.n >= LEAST_SEEDS]
    verdict = Verdict.NOT_TESTABLE
    if learnt and judged:
        if all(found.value <= chance + NEAR for found in judged):
            verdict = Verdict.REPRODUCED
        elif all(found.low > chance + NEAR for found in judged):
            verdict = Verdict.CONTRADICTED
    measured = "; ".join(f"{depth} layers: {_accuracy(found)}" for depth, found in deep.items())
    return Finding(
        published=f"{corpus}: at 10 layers it falls below a random guess", source=BLOG, verdict=verdict,
        measured=f"{measured or 'no depth of ten or more'}; chance {three(100 * chance)} %",
        rule=f"at 10 layers or more, {LEAST_SEEDS} seeds: reproduced if the mean is at most {100 * NEAR:g} points "
             "above chance, contradicted if the interval lies above that",
    )


def _falls_less(corpus: str, plain: Falls, highway: Falls, learnt: bool) -> list[Finding]:
    common = [depth for depth in plain if depth in highway]
    claims = f"{corpus}: with highway layers accuracy still falls with depth", f"{corpus}: … but much less than plain's"
    rules = ("its fall from one layer to the deepest with enough seeds: reproduced if the interval lies above 0, "
             f"contradicted if it lies below {100 * POINT:g} point",
             "plain's fall minus highway's there: reproduced if the interval lies above 0 and highway loses at most "
             f"{MUCH:g} of what plain does, contradicted if it lies below 0")
    if not common or not learnt:
        return [Finding(published=claim, source=BLOG, measured=_why(learnt), rule=rule, verdict=Verdict.NOT_TESTABLE)
                for claim, rule in zip(claims, rules, strict=True)]
    depth = max(common)
    own, other, less = (t_interval(values.dropna())
                        for values in (highway[depth], plain[depth], plain[depth] - highway[depth]))
    still = Verdict.REPRODUCED if own.low > 0 else Verdict.CONTRADICTED if own.high < POINT else Verdict.NOT_TESTABLE
    much = (Verdict.REPRODUCED if less.low > 0 and own.value <= MUCH * other.value
            else Verdict.CONTRADICTED if less.high < 0 else Verdict.NOT_TESTABLE)
    return [
        Finding(published=claims[0], source=BLOG, measured=f"{depth} layers: a fall of {_points(own)}", rule=rules[0],
                verdict=still),
        Finding(published=claims[1], source=BLOG, rule=rules[1], verdict=much,
                measured=f"{depth} layers: plain {_points(other)}, highway {_points(own)}, difference {_points(less)}"),
    ]


def _why(learnt: bool) -> str:
    """Why there is nothing to judge."""
    few = f"fewer than {LEAST_SEEDS} seeds"
    return few if learnt else f"{few}, or one layer is not above chance within the budget"


def _points(found: Estimate) -> str:
    """A difference of accuracies in points."""
    return f"{_in_percent(found)} points"


def _accuracy(found: Estimate) -> str:
    return f"{_in_percent(found)} %"


def _in_percent(found: Estimate) -> str:
    ends = "" if math.isnan(found.low) else f" [{100 * found.low:.1f}, {100 * found.high:.1f}]"
    return f"{100 * found.value:.1f}{ends}".replace("-", "−")


# --------------------------------------------------------------------------------------------- table and figure

def _shown(table: pd.DataFrame, chances: Mapping[str, float]) -> present.Shown:
    def accuracy(record: present.Record) -> present.Entry:
        text = _accuracy(Estimate(record["accuracy"], record["low"], record["high"], record["n"]))
        return present.Entry(text, record["accuracy"])

    columns = [
        present.words("corpus", "corpus"),
        present.whole("depth", "layers"),
        present.words("block", "block"),
        present.whole("width", "width"),
        present.whole("params", "parameters"),
        present.whole("n", "seeds"),
        present.made("test accuracy", accuracy, "mean over seeds with its 95 % t interval; none for a single seed"),
        present.percent("chance", "chance", "always the commoner class"),
        present.percent("train_accuracy", "train accuracy"),
        present.percent("gain", "last epoch's gain", "of test accuracy: large where the budget ended too soon"),
        present.whole("diverged", "diverged"),
        present.number("step_seconds", "step", "s"),
    ]
    note = (f"{_budget(table)} batches of {BATCH}, Adam at {RATE:g}, texts cut at {LENGTH} words. Widths give each "
            f"block the parameters a layer that plain has at {WIDTH}; the embedding is in the count.")
    return present.shown("bilstm-accuracy", "Test accuracy by depth",
                         table.assign(chance=table["corpus"].map(chances)), columns, note=note)


def _budget(table: pd.DataFrame) -> str:
    corpora = [corpus for corpus in CORPORA if (table["corpus"] == corpus).any()]
    parts = [f"{corpus}: epochs: {count(table.loc[table['corpus'] == corpus, 'epochs'].max())}" for corpus in corpora]
    return f"{'; '.join(parts)};"


def _picture(table: pd.DataFrame, chances: Mapping[str, float]) -> Picture:
    """A panel a corpus: accuracy by depth, a line a block, with intervals where seeds allow them."""
    look, told = looks(table["block"]), []
    depths = sorted(table["depth"].unique())
    with settings():
        figure, all_axes = panels(len(chances), 2, 2.9)
        for axes, (corpus, chance) in zip(all_axes, chances.items(), strict=True):
            for block, style in look.items():
                own = table[(table["corpus"] == corpus) & (table["block"] == block)].sort_values("depth")
                axes.plot(own["depth"], 100 * own["accuracy"], color=style.colour, linestyle=style.dash)
                axes.fill_between(own["depth"], 100 * own["low"], 100 * own["high"], color=style.colour, alpha=0.15,
                                  linewidth=0)
                for record in rows_of(own):
                    single = math.isnan(record["low"])
                    axes.plot(record["depth"], 100 * record["accuracy"], color=style.colour, marker=style.marker,
                              markerfacecolor="white" if single else style.colour)
                told += [f"{corpus}, {block}, {record['depth']} layers: {three(100 * record['accuracy'])} %"
                         for record in rows_of(own)]
            axes.axhline(100 * chance, color="#555555", linewidth=0.9, linestyle=":")
            axes.annotate("chance", (1, 100 * chance), xytext=(0, 3), textcoords="offset points", fontsize=7.5,
                          va="bottom", ha="left", color="#555555")
            axes.set_title(corpus, loc="left")
            axes.set_xlim(depths[0] / 1.2, depths[-1] * 1.2)
            log_axis(axes, "x", at=depths)
            axes.set_xlabel("BiLSTM layers (log)")
        all_axes[0].set_ylabel("test accuracy, %")
        title = _title(table)
        head(figure, title)
        extra = [mark("o", "a single seed", filled=False)] if np.isnan(table["low"]).any() else []
        legend(figure, look, extra, lines=True)
    seeds = sorted(set(table["n"]))
    caption = (f"Equal parameters a layer, plain {WIDTH} wide; {_budget(table)} bands are 95 % t intervals over "
               f"{' or '.join(map(str, seeds))} seeds; dotted: always the commoner class.")
    return Picture("bilstm-accuracy", title, f"Test accuracy by depth. {joined(told, 40)}", caption, figure)


def _title(table: pd.DataFrame) -> str:
    """What depth does to plain and highway, at the deepest that both have with an interval."""
    parts = []
    for corpus, part in table.groupby("corpus", sort=False):
        sure = part[part["low"].notna()].pivot_table(index="depth", columns="block", values="accuracy")
        sure = sure.reindex(columns=["plain", "highway"]).dropna()
        if len(sure):
            ends = [f"{block} {100 * sure[block].iloc[0]:.0f} → {100 * sure[block].iloc[-1]:.0f} %" for block in sure]
            parts.append(f"{corpus}, {sure.index[0]:.0f} to {sure.index[-1]:.0f} layers: {', '.join(ends)}")
    return "; ".join(parts) or "Test accuracy of BiLSTMs by depth"
