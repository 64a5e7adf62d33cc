"""Plain, highway and residual stacks of bidirectional LSTMs by depth, on real sentences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import pandas as pd

from highway_bench.data import make_dataset
from highway_bench.decide.candidate import Candidate
from highway_bench.frames.rows import of_task, recipe_of
from highway_bench.frames.trainability import training_runs
from highway_bench.measure.statistics import t_interval
from highway_bench.plan.settings import FIRST_ADAMW_RATES
from highway_bench.report.format import count
from highway_bench.reproduce._bilstm_claims import BLOG, LEAST_SEEDS, NAMED, VERSION, CorpusAccuracies, claims_of
from highway_bench.reproduce._bilstm_pictures import picture, shown
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce._tuned import TunedReproduction, with_edges
from highway_bench.reproduce.base import Conclusion, NotAttempted, register_reproduction
from highway_bench.reproduce.claims import Claim
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES, Status

BLOCKS = ("plain", "highway", "residual")
DEPTHS = (1, 2, 4, 10)  # the author names 10
WIDTH, BATCH = 64, 64
SEEDS, REPORTED_SEEDS = 11, 3  # at the two depths that decide, and at the others
LENGTH = 32  # words; one film review in seven is longer and is cut

# The published optimiser and clipping. The published rate, 0.001, is meant for 500 epochs in batches of 16. Within a
# few epochs of batches of 64, one layer learns at 0.003 and hardly at 0.001; deep stacks may need less. So the rate is
# tuned for every block and depth.
CLIP = 3.0


@dataclass(frozen=True)
class CorpusTraining:
    """Training on one corpus: batches per epoch, and epochs."""

    steps_per_epoch: int
    epochs: int


ARM = ("corpus", "depth", "block")
CORPORA = {"movie-reviews": CorpusTraining(132, 2), "tweets": CorpusTraining(51, 4)}


@register_reproduction(
    "bilstm",
    title="Stacked, highway and residual BiLSTMs by depth, on real sentences",
    source="bamtercelboo/pytorch_Highway_Networks, 2017; block: arXiv:1505.00387, eq. 3",
)
class BiLstmByDepth(TunedReproduction):
    """Embedding → 1 to 10 BiLSTM layers of width 64, equal parameters per layer → mean over the words → two classes.

    The published code initialises its gate again in every forward pass and carries the gate's pre-activation instead of
    the input; the highway block here has neither fault. Padding enters neither direction nor the mean. Accuracy is that
    of the network after the last epoch, on test texts that were used for no choice. The rate is tuned for every block
    and depth, by the loss on training texts.
    """

    takes = frozenset({"epochs", "seeds", "depth"})
    least_seeds = LEAST_SEEDS
    version = VERSION
    not_attempted = (
        NotAttempted("accuracy by depth, in numbers", BLOG, "its table is an image without numbers to quote"),
        NotAttempted(
            "the same on the Stanford Sentiment Treebank",
            BLOG,
            "the data are not here; film reviews and tweets replace it",
        ),
        NotAttempted("500 epochs at 300 units with a dropout of 0.6", BLOG, "out of reach of two cores"),
    )

    def arms(self, request: Request) -> dict[Hashable, Candidate]:
        found: dict[Hashable, Candidate] = {}
        for corpus, depth, block in itertools.product(CORPORA, request.depth or DEPTHS, BLOCKS):
            template = trained(
                block,
                "bilstm",
                depth=depth,
                nominal_width=WIDTH,
                batch_size=BATCH,
                dataset="sentiment",
                recipe=recipe(corpus, request.epochs),
                device=request.device,
            )
            seeds = self.seeds(request, SEEDS if depth in (1, NAMED) else REPORTED_SEEDS)
            found[corpus, depth, block] = Candidate(template, (depth,), FIRST_ADAMW_RATES, fresh=seeds, more=())
        return found

    def claims(self, request: Request) -> Sequence[Claim]:
        seeds = len(self.seeds(request, SEEDS))
        return [
            claim
            for corpus, training in CORPORA.items()
            for claim in claims_of(corpus, request.epochs or training.epochs, seeds)
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        results = with_edges(accuracies(self.fresh(rows)), ARM, self.tuned_runs(rows, request))
        measured = set(results["corpus"])
        chances = {corpus: chance_of(corpus) if corpus in measured else math.nan for corpus in CORPORA}
        corpora = {
            corpus: CorpusAccuracies.of(results[results["corpus"] == corpus], chance)
            for corpus, chance in chances.items()
        }
        findings = [claim.judge(corpora) for claim in self.claims(request)]
        if results.empty:
            return Conclusion(findings=findings)
        table = table_of(results, last_gains(self.fresh(rows))).assign(chance=lambda own: own["corpus"].map(chances))
        budget = _budget(table)
        note = (
            f"{budget}; batches of {BATCH}, Adam, texts cut at {LENGTH} words. Every block has the parameters per "
            f"layer of plain at width {WIDTH}; the counts include the embedding."
        )
        caption = f"Equal parameters per layer, plain at width {WIDTH}, rate tuned; {budget}"
        return Conclusion(findings=findings, tables=[shown(table, note)], pictures=[picture(table, results, caption)])


def recipe(corpus: str, epochs: int | None) -> dict[str, object]:
    """The recipe of every network on ``corpus``."""
    steps = (epochs or CORPORA[corpus].epochs) * CORPORA[corpus].steps_per_epoch
    return {
        "optimiser": "adam",
        "decay": 1.0,
        "clip": CLIP,
        "steps": steps,
        "verdict": False,
        "evaluate": "epoch",
        "dataset": {"corpus": corpus, "length": LENGTH},
    }


def chance_of(corpus: str) -> float:
    """Test accuracy of always predicting the more frequent class."""
    chance = make_dataset("sentiment", corpus=corpus).chance_accuracy
    assert chance is not None
    return chance


def accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run that ended: ``corpus``, ``block``, ``depth``, ``seed``, accuracies, width, size, rate, time."""
    results = training_runs(rows)
    results = results[results["status"].isin(OUTCOMES)].copy()
    results["corpus"] = [_corpus(text) for text in results["recipe"]]
    diverged = results["status"] == Status.DIVERGED
    for corpus in results.loc[diverged, "corpus"].unique():
        results.loc[diverged & (results["corpus"] == corpus), "test_accuracy"] = chance_of(corpus)
    return results.assign(diverged=diverged)


def last_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """The gain in test accuracy in the last epoch, mean over seeds: ``corpus``, ``block``, ``depth``, ``gain``."""
    frame = of_task(rows, "trainability")
    frame = frame[(frame["metric"] == "epoch_test_accuracy") & frame["trial"].isna()].sort_values("index")
    frame = frame.assign(corpus=[_corpus(text) for text in frame["recipe"]])
    arm = ["corpus", "label", "depth"]
    gains = frame.groupby([*arm, "seed"])["value"].apply(lambda values: values.diff().iloc[-1])
    return gains.groupby(arm).mean().rename("gain").reset_index().rename(columns={"label": "block"})


def _corpus(text: object) -> str:
    return str(recipe_of(text)["dataset"]["corpus"])


def table_of(results: pd.DataFrame, gains: pd.DataFrame) -> pd.DataFrame:
    """One row per corpus, depth and block: accuracy with its interval over seeds, size, rate, gain and step time."""
    records = []
    order = {"corpus": list(CORPORA).index, "block": BLOCKS.index}
    ordered = results.sort_values(
        [*ARM],
        kind="stable",
        key=lambda column: column.map(order[column.name]) if column.name in order else column,
    )
    for (corpus, depth, block), part in ordered.groupby([*ARM], sort=False):
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
                "edge": part["edge"].iloc[0],
                "step_seconds": part["step_seconds"].median(),
                "epochs": recipe_of(part["recipe"].iloc[0])["steps"] // CORPORA[str(corpus)].steps_per_epoch,
            }
        )
    return pd.DataFrame(records).merge(gains, how="left", on=["corpus", "block", "depth"])


def _budget(table: pd.DataFrame) -> str:
    """The epochs of training on each corpus."""
    return "; ".join(
        f"{corpus}: epochs: {count(part['epochs'].max())}" for corpus, part in table.groupby("corpus", sort=False)
    )
