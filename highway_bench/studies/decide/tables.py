"""The tables of the protocol: every family by depth, the planned contrasts in language, those at twice the width.

Next to our own contrasts with pre-norm stands what has been published about connections in language models. Most of
that are single runs of far larger networks, and many of the differences are smaller than what ten seeds of a small
network can show. Where public results on a connection disagree, those with a source are here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pandas as pd

from highway_bench.frames.results import Results
from highway_bench.frames.rows import groups, recipe_of, rows_of, start_of, without_start
from highway_bench.measure.paired import LEAST_PAIRS, BySeed, compare, contrasts
from highway_bench.measure.statistics import wilson
from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Record, TextTable, shown
from highway_bench.report.format import count, listed
from highway_bench.results.schema import OUTCOMES, Status
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.studies.decide.language import DEEP, SHALLOW, WIDER, WIDTH
from highway_bench.success.ladder import TOO_FEW_SEEDS
from highway_bench.success.rates import size

LANGUAGE: Final = "language"
SETTING: Final = ("nominal_width", "depth")
UNSTABLE: Final = "unstable"
"""The verdict on a connection of which some seeds diverged."""
UNSTABLE_REFERENCE: Final = f"{REFERENCE} unstable"
"""The verdict on all others where some seeds of the reference diverged."""
CONTRAST: Final = (
    *SETTING,
    "equal_steps",
    "reference",
    "block",
    "steps",
    "runs",
    "diverged",
    "bits",
    "difference",
    "difference_low",
    "difference_high",
    "pairs",
    "p",
    "verdict",
)
SETTINGS: Final = ((WIDTH, SHALLOW), (WIDTH, DEEP), (WIDER, SHALLOW))
"""The widths and depths of the planned contrasts."""


class PublishedContrast(NamedTuple):
    """A published result of one connection: the ``network``, the ``result`` against pre-norm unless it names another
    baseline, and its ``source``."""

    network: str
    result: str
    source: str


RESIDUALS: Final = "arXiv:2603.15031"
MARIN: Final = "widths 512 / 768, one run each"

PUBLISHED: Final[Mapping[str, tuple[PublishedContrast, ...]]] = {
    "hc-dynamic": (PublishedContrast("OLMo, 1B", "loss 2.811 to 2.781: −0.030 nat", "arXiv:2409.19606"),),
    "mhc": (
        PublishedContrast("436M", "loss 1.766 to 1.747: −0.019 nat", RESIDUALS),
        PublishedContrast("3B, on the output side only", "diverged", "arXiv:2605.20798"),
        PublishedContrast(
            MARIN, "× 0.95 / 0.96 less time, × 1.05 / 1.04 less compute to the same loss", "marin-community/marin"
        ),
    ),
    "attn-residual": (
        PublishedContrast("436M", "loss 1.766 to 1.737: −0.029 nat", RESIDUALS),
        PublishedContrast("194M", "loss 1.931 to 1.899: −0.032 nat", RESIDUALS),
        PublishedContrast(
            MARIN, "× 1.01 / 1.19 less time, × 1.06 / 1.17 less compute to the same loss", "marin-community/marin"
        ),
    ),
    "sandwich-norm": (
        PublishedContrast("width 512, one run", "× 0.92 less compute to the same loss", "marin-community/marin"),
    ),
    "dense-average": (PublishedContrast("436M", "loss 1.766 to 1.767: +0.001 nat", RESIDUALS),),
    "x0-mix": tuple(
        PublishedContrast(f"nanochat, {depth} layers", f"−{gain} bit per byte", "karpathy/nanochat, dev/LOG.md")
        for depth, gain in ((8, "0.0103"), (12, "0.0077"), (16, "0.0057"), (20, "0.0039"))
    ),
    "rezero": (
        PublishedContrast(
            "12 layers, enwiki8", "1.2 bits 56 % faster than the vanilla Transformer (post-norm)", "arXiv:2003.04887"
        ),
    ),
    "keel": (PublishedContrast("64 to 1,024 layers", "better at each depth", "arXiv:2601.19895"),),
}


def tables(results: Results) -> list[TextTable]:
    """The tables of whatever parts the results have, and the published results next to ours."""
    runs = results.training_runs()
    language = runs[runs["dataset"] == LANGUAGE]
    trials = results.trials()
    found, contrasted = [ladder_table(results), tries_shown(trials[trials["dataset"] == LANGUAGE])], pd.DataFrame()
    if "test_bits" in language and language["test_bits"].notna().any():
        contrasted = contrast_table(language)
        found += [contrast_shown(contrasted)]
    return [one for one in [*found, published_shown(contrasted)] if one.entries]


def ladder_table(results: Results) -> TextTable:
    """One row per family, depth, block and start: how many fresh seeds train, to which loss, at which rate."""
    table = results.trainability()
    return shown(
        "ladder",
        "Every family by depth",
        table[table["n"] > 0],
        [
            column.words("family_label", "family"),
            column.whole("depth", "depth"),
            column.whole("nominal_width", "plain's width"),
            column.computed("connection", lambda row: without_start(row["block"]), is_number=False),
            column.computed("start", _start, is_number=False),
            column.computed("steps", lambda row: count(recipe_of(row["recipe"]).get("steps"))),
            column.number("rate", "learning rate"),
            column.computed("seeds that train", _successes, "Wilson 95 % interval"),
            column.spread("final_loss", "final training loss [95 %]", "loss_low", "loss_high", "1"),
            column.number("test_bits", "test bits per byte"),
            column.percent("test_accuracy", "test accuracy"),
        ],
    )


def tries_shown(trials: pd.DataFrame) -> TextTable:
    """What the tuning runs on language say before the finals decide: the lowest training loss of each connection.

    ``trials`` are those of ``Results.trials``.
    """
    records = []
    for setting, part in groups(trials[trials["status"].isin(OUTCOMES)], [*SETTING, "block"]):
        sizes = part.assign(size=part["final_loss"].map(size))  # infinite where a run diverged
        rates = sizes.groupby("rate")["size"].agg(["mean", "count"]).reset_index()
        best = rows_of(rates.sort_values(["count", "mean", "rate"], ascending=[False, True, True]))[0]
        ended = {"diverged": int((part["status"] == Status.DIVERGED).sum()), "rates": len(rates)}
        bits = math.exp(best["mean"]) / math.log(2)
        records.append(setting | ended | {"bits": bits, "rate": best["rate"], "seeds": best["count"]})
    table = pd.DataFrame(records, columns=[*SETTING, "block", "bits", "rate", "seeds", "rates", "diverged"])
    return shown(
        "tries",
        "Tuning runs on language: training bits per byte of the last 5 % of the steps",
        table.sort_values([*SETTING, "bits"]),
        [
            column.whole("nominal_width", "width"),
            column.whole("depth", "depth"),
            column.words("block", "connection"),
            column.number("bits", "bits per byte"),
            column.number("rate", "learning rate"),
            column.whole("seeds", "seeds"),
            column.whole("rates", "rates tried"),
            column.whole("diverged", "diverged", "of the runs at all rates"),
        ],
        note="No verdict: these runs choose the rates, and which connections go on. Bits are the geometric mean over "
        "the seeds of the best rate. With a single seed, differences below 0.05 bits are within the scatter between "
        "seeds. The finals, with fresh seeds, decide.",
    )


def contrast_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per width, depth, block and number of steps: the held-out bits and the contrast with pre-norm.

    ``runs`` are those of ``Results.training_runs`` on language. Contrasts of one width and depth were planned together;
    those of equal seconds, which have other steps than pre-norm, are a family of their own. ``diverged`` of the
    ``runs`` that ended have no bits: then the others are compared, and the verdict is ``UNSTABLE``. It is
    ``UNSTABLE_REFERENCE`` where a run of pre-norm diverged.
    """
    records: list[dict[str, Any]] = []
    for setting, part in groups(with_steps(runs), SETTING):
        is_reference = part["block"].map(without_start) == REFERENCE
        reference = part[is_reference & part["full"]]
        for equal_steps in (True, False):
            about = setting | {"equal_steps": equal_steps, "reference": listed(sorted(set(reference["block"])))}
            chosen = part[(part["full"] == equal_steps) & ~is_reference]
            records += [about | one for one in _records(chosen, reference)]
    order = {"nominal_width": True, "depth": True, "equal_steps": False, "difference": True}
    return pd.DataFrame(records, columns=[*CONTRAST]).sort_values(list(order), ascending=list(order.values()))


def with_steps(runs: pd.DataFrame) -> pd.DataFrame:
    """The ``runs`` that ended, with their ``steps`` and whether these are as many as pre-norm's at the same width and
    depth (``full``)."""
    ended = runs[runs["status"].isin(OUTCOMES)]
    ended = ended.assign(steps=[recipe_of(recipe)["steps"] for recipe in ended["recipe"]])
    of_reference = ended["steps"].where(ended["block"].map(without_start) == REFERENCE)
    return ended.assign(full=ended["steps"] == of_reference.groupby([ended[name] for name in SETTING]).transform("max"))


def bits_by_seed(runs: pd.DataFrame) -> BySeed:
    """The held-out bits of each seed that has them."""
    return {int(run["seed"]): float(run["test_bits"]) for run in rows_of(runs[runs["test_bits"].notna()])}


def _records(runs: pd.DataFrame, reference: pd.DataFrame) -> list[dict[str, Any]]:
    by_block = {str(block): part for block, part in runs.groupby("block")}
    values, own = {block: bits_by_seed(part) for block, part in by_block.items()}, bits_by_seed(reference)
    both = {REFERENCE: own, **values}
    found, judged = (contrasts(both, REFERENCE), compare(both, REFERENCE)) if len(reference) else ({}, {})
    records = []
    for block, one in found.items():
        diverged = _diverged(by_block[block])
        word = TOO_FEW_SEEDS if one.difference.n < LEAST_PAIRS else judged[block].word
        records.append(
            {
                "block": block,
                "steps": by_block[block]["steps"].max(),
                "runs": len(by_block[block]),
                "diverged": diverged,
                "bits": by_block[block]["test_bits"].mean(),
                "difference": one.difference.value,
                "difference_low": one.difference.low,
                "difference_high": one.difference.high,
                "pairs": one.difference.n,
                "p": one.p,
                "verdict": UNSTABLE if diverged else UNSTABLE_REFERENCE if _diverged(reference) else word,
            }
        )
    return records


def _diverged(runs: pd.DataFrame) -> int:
    return int((runs["status"] == Status.DIVERGED).sum())


def contrast_shown(table: pd.DataFrame) -> TextTable:
    """The table of contrasts for print."""
    return shown(
        "contrasts",
        "Held-out bits per byte, against pre-norm on the same seeds",
        table,
        [
            column.whole("nominal_width", "width"),
            column.whole("depth", "depth"),
            column.words("block", "connection"),
            column.whole("steps", "steps"),
            column.number("bits", "bits per byte"),
            column.computed("bits − pre-norm's [95 %]", _difference, "Student's t over pairs of runs"),
            column.whole("pairs", "pairs"),
            column.computed("diverged", lambda row: f"{row['diverged']} of {row['runs']}"),
            column.number("p", "p, corrected"),
            column.words("verdict", "verdict"),
        ],
        note=f"Pre-norm: {listed(sorted(set(table['reference'])))}. "
        "p is that of the paired t-test, corrected by Holm for those of one width and depth. Those of equal "
        "seconds, with other steps than pre-norm's, are corrected apart. Unstable: some seeds diverged, and bits, "
        f"difference and p are those of the others. {UNSTABLE_REFERENCE.capitalize()}: some of its seeds diverged, so "
        "there is no verdict against it.",
    )


def published_shown(table: pd.DataFrame) -> TextTable:
    """Every published result, and next to it the contrast of equal steps that was measured here, if it was."""
    records: list[dict[str, Any]] = [
        {"block": block, **one._asdict()} for block, results in PUBLISHED.items() for one in results
    ]
    measured = {
        (without_start(row["block"]), row["nominal_width"], row["depth"]): row
        for row in rows_of(table)
        if row["equal_steps"]
    }
    return shown(
        "published",
        "Published results in language models, and ours",
        pd.DataFrame(records),
        [
            column.words("block", "connection"),
            column.words("network", "published for"),
            column.words("result", "published result, against pre-norm unless it says otherwise"),
            column.words("source", "source"),
            *(_ours(measured, width, depth) for width, depth in SETTINGS),
        ],
        note="Ours: held-out bits per byte less pre-norm's on the same seeds [95 %], and the verdict of the corrected "
        "p. Only the five best of the tuning runs at that width and depth have finals, so connections that are not "
        "measured are mostly those that were behind in tuning (see the tuning runs). 1 nat is 1.44 bits, and a token "
        "has several bytes: compare signs, not sizes.",
    )


def _ours(measured: Mapping[tuple[str, int, int], Record], width: int, depth: int) -> Column:
    def entry(row: Record) -> str:
        own = measured.get((row["block"], width, depth))
        return "not measured" if own is None else f"{_difference(own)}, {own['verdict']}"

    return column.computed(f"ours, depth {depth}, width {width}", entry, is_number=False)


def _start(row: Record) -> str:
    return start_of(row["block"]) if column.missing(row["start"]) else str(row["start"])


def _difference(row: Record) -> str:
    if math.isnan(row["difference_low"]):  # fewer than two pairs
        return "–"
    return f"{row['difference']:+.3f} [{row['difference_low']:+.3f}, {row['difference_high']:+.3f}]".replace("-", "−")


def _successes(row: Record) -> str:
    low, high = wilson(row["k"], row["n"])
    return f"{row['k']:g} of {row['n']:g} [{100 * low:.0f} %, {100 * high:.0f} %]"
