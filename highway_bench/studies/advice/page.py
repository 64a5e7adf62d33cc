"""The page of an advice: the page of known results, with the layer as one more kind, and the advice folded below.

The layer's rows of the wide table have the places by training loss that the advice gives, so that both agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.frames.results import Results
from highway_bench.frames.rows import STARTED, TUNED, recipe_of, rows_of, without_start
from highway_bench.frames.trainability import held_out
from highway_bench.measure.paired import UNDECIDED
from highway_bench.measure.statistics import t_interval, wilson
from highway_bench.report import columns as column
from highway_bench.report import page as common
from highway_bench.report.choice import table as wide
from highway_bench.report.choice.answers import known_answers
from highway_bench.report.choice.columns import (
    BEHIND,
    BEST,
    HERE,
    LEARNS,
    NOT_SEPARATED,
    WideRow,
    bounds,
    of_interval,
    typed,
)
from highway_bench.report.choice.costs import Curves, add_seconds
from highway_bench.report.choice.ranking import LayerKind, kinds_of
from highway_bench.report.choice.screen import screen
from highway_bench.report.columns import TextTable
from highway_bench.report.format import NONE, quantity, three
from highway_bench.report.labels import protocol_of
from highway_bench.results.store import Store
from highway_bench.studies.advice.about import start_in
from highway_bench.studies.advice.answer import CONFIDENCE, LEARNT, Advice, ConnectionResult, Learning, in_percent
from highway_bench.studies.advice.request import FINAL_SEEDS
from highway_bench.success.ladder import DIVERGES, FAILS, NOT_RUN, TRAINS

OUTCOMES: Final = {
    Learning.TRAINS: TRAINS,
    Learning.LEARNS: LEARNS,
    Learning.UNSTABLE: DIVERGES,
    Learning.FAILS: FAILS,
    Learning.DIVERGES: DIVERGES,
    Learning.ERROR: UNDECIDED,
}
BELOW: Final = f"{100 * LEARNT:g} % below that of the best constant prediction"
EXPLAINED: Final = {
    Learning.TRAINS: "every one of its longest runs reached the success threshold of the data",
    Learning.LEARNS: f"the mean loss of its longest runs fell at least {BELOW}; not every run reached the threshold",
    Learning.UNSTABLE: "in its longest runs the loss of some seeds, not of all, stopped being finite",
    Learning.FAILS: f"the mean loss of its longest runs did not fall {BELOW}",
    Learning.DIVERGES: "in its longest runs the loss of every seed stopped being finite",
    Learning.ERROR: "a run ended with an error",
    Learning.LEFT_OUT: "not trained, for the reason given",
}


def write_page(advice: Advice, folder: Path, store: Store) -> Advice:
    """Write the page of ``advice`` into ``folder``: that of known results, with its layer as the first kind.

    Returns the advice with the page's path, and with what held-out loss says as a first note. Raises ``BadInput`` if
    the page cannot be written.
    """
    results, known = Results(store.frame(), store.runs()), known_answers()
    kind, rows = wide_rows(advice, results)
    shown = screen(typed([*rows, *rows_of(known)]), [kind, *kinds_of(known)])
    by_score = shown["kinds"][0]["depths"][0]["by"]["held-out"]
    if by_score["take"]:
        advice = replace(advice, notes=[f"By held-out loss: {by_score['say']}", *advice.notes])
    shown["here"] = f"By training loss, {advice.about['layer']}: {advice.headline.removesuffix('.')}"
    tables = [in_words(advice), finalists_table(advice), every_table(advice)]
    page = common.write_page(results, folder / common.PAGE, shown, subtitle(advice), tables)
    return replace(advice, page=page)


def in_words(advice: Advice) -> TextTable:
    """The answer in sentences, and the notes."""
    rows = [line.partition("? ") for line in advice.lines()] + [("note", "", note) for note in advice.notes]
    records = [(name, text) if text else ("answer", name) for name, _, text in rows]
    table = pd.DataFrame(records, columns=["what", "text"])
    return column.shown("words", "The advice in words", table, [column.words("what", ""), column.words("text", "")])


def subtitle(advice: Advice) -> str:
    """The request in one line."""
    about = advice.about
    return (
        f"{about['layer']}, {about['depth']} layers of width {about['width']} on {about['data']}, within "
        f"{about['minutes']:g} minutes on {about['device']}."
    )


def finalists_table(advice: Advice) -> TextTable:
    """One row for each finalist, the lowest loss first."""
    rows = [
        {
            "connection": str(one.connection),
            "verdict": relation(advice, one),
            "loss against the best": NONE if (gap := advice.behind(one.connection)) is None else in_percent(gap),
            "final loss": three(one.loss),
            "test accuracy": NONE if one.test_accuracy is None else f"{three(100 * one.test_accuracy)} %",
            "does it train?": f"{one.learning}: {one.succeeded} of {one.runs} reach the threshold",
            "step ÷ pre-norm's": one.cost.ratio,
            "bytes per layer": quantity(one.cost.saved, "B"),
        }
        for one in map(advice.result, advice.ranked)
    ]
    hints = {
        "loss against the best": f"with its interval of {CONFIDENCE}",
        "final loss": "mean over seeds of the training loss at the end",
        "step ÷ pre-norm's": "with its 95 % interval over processes",
        "bytes per layer": "saved for the backward pass",
    }
    title = f"The finals: {advice.quality.seeds} fresh seeds, {advice.ladder[-1]:,} steps each, paired"
    return _shown("finalists", title, rows, hints)


def every_table(advice: Advice) -> TextTable:
    """One row for each connection."""
    rows = [
        {
            "connection": str(one.connection),
            "how it begins": start_in(advice.about["layer"], one.connection),
            "at the start": one.at_start or NONE,
            "does it train?": str(one.learning),
            "steps": f"{one.steps:,}" if one.steps else NONE,
            "runs": str(one.runs) if one.runs else NONE,
            "learning rate": three(one.rate),
            "final loss": three(one.loss),
            "step ÷ pre-norm's": one.cost.ratio,
            "bytes per layer": quantity(one.cost.saved, "B"),
            "width": str(one.width),
            "remark": one.reason or "",
        }
        for one in advice.results
    ]
    hints = {
        "at the start": "signal and gradient before training",
        "steps": "of its longest runs",
        "runs": "with this rate and so many steps",
        "width": "that gives it as many parameters a layer as plain's",
    }
    title = f"Every connection: rungs of {', '.join(f'{steps:,}' for steps in advice.ladder)} steps"
    note = "; ".join(f"{word}: {meaning}" for word, meaning in EXPLAINED.items())
    return _shown("connections", title, rows, hints, f"{note}.")


def _shown(
    name: str, title: str, rows: Sequence[Mapping[str, str]], hints: Mapping[str, str], note: str = ""
) -> TextTable:
    columns = [column.words(heading, heading, hints.get(heading, "")) for heading in (rows[0] if rows else ())]
    return column.shown(name, title, pd.DataFrame(rows), columns, note=note)


def relation(advice: Advice, one: ConnectionResult) -> str:
    """How a finalist compares: the best, a leader, or behind."""
    if advice.quality.best is None:
        return NONE
    behind = advice.behind(one.connection)
    if behind is not None:
        return behind.relation
    if one.connection == advice.quality.best:
        return "lowest loss"
    if one.learning == Learning.FAILS:
        return str(one.learning)
    return "a run failed" if one.reason else "diverged at a seed"


def wide_rows(advice: Advice, results: Results) -> tuple[LayerKind, list[WideRow]]:
    """The kind that is the layer of ``advice`` under its name, and a row for each connection and start.

    ``results`` are those of its store. Losses are those of the finals, so what did not reach these has none. Places by
    training loss are the advice's own, so that page and answer agree.
    """
    runs = results.training_runs().sort_values("seed", kind="stable")
    finals, contest = runs[runs["seed"].ge(FINAL_SEEDS)], rows_of(runs)[-1]
    recipe = canonical({**recipe_of(contest["recipe"]), "rate": TUNED})
    within = f"within {advice.about['minutes']:g} minutes"
    timed = f", steps timed at {advice.timed_depth} layers" * (advice.timed_depth != advice.about["depth"])
    setting = {
        "kind": contest["family_label"],
        "data": contest["dataset"],
        "depth": advice.about["depth"],
        "protocol": f"{protocol_of({**contest, 'recipe': recipe})}, {within}{timed}",
        "plain_width": contest["nominal_width"],
        "batch": contest["batch_size"],
        "source": HERE,
        "costs": HERE,
        "timed_on": contest["ran_on"],
    }
    of_each = [_finals_of(one, finals) for one in advice.results]
    rows = [setting | _row(one, own) for one, own in zip(advice.results, of_each, strict=True)]
    by_label = {row["label"]: own for row, own in zip(rows, of_each, strict=True)}
    scores = {label: values for label, own in by_label.items() if (values := held_out(own))}
    losses = {label: values for label, own in by_label.items() if (values := wide.log_losses(own))}
    in_bits = "test_bits" in finals and bool(finals["test_bits"].notna().any())
    wide.add_differences(rows, scores, losses, in_bits=in_bits)
    Curves(results).add_to(rows, pd.concat(of_each))
    for row, one in zip(rows, advice.results, strict=True):
        add_seconds(row)
        row |= _judged(advice, one)
    name = advice.about["layer"].rpartition(":")[2]
    return LayerKind("advice", f"{name}, this advice", setting["kind"], setting["data"], (), setting["protocol"]), rows


def _finals_of(one: ConnectionResult, finals: pd.DataFrame) -> pd.DataFrame:
    """The runs of a connection that count: those at its better rate."""
    block, start = one.connection
    named = finals["block"].map(without_start).eq(block) & finals["start"].eq(start)
    return finals[named & finals["rate"].eq(one.rate or math.nan)]


def _row(one: ConnectionResult, finals: pd.DataFrame) -> WideRow:
    """What was measured of one connection alone."""
    block, start = one.connection
    row: WideRow = {
        "label": next(iter(finals["block"]), STARTED.join(one.connection)),
        "connection": block,
        "start": start,
        "outcome": DIVERGES if one.learning == Learning.DIVERGES else NOT_RUN,
        "trains": 0,
        "seeds": 0,
        **of_interval("step_ratio", one.cost.step),
        "bytes": one.cost.saved,
        "width": one.width,
    }
    if finals.empty:
        return row
    losses, n = wide.log_losses(finals), one.runs
    if len(losses) == n:
        row |= of_interval("loss", t_interval(losses.values()), math.exp)
    return row | {
        "outcome": OUTCOMES[one.learning],
        "trains": one.succeeded,
        "seeds": n,
        **bounds("trains_share", one.succeeded / n, *wilson(one.succeeded, n)),
        "rate": one.rate,
        "params": finals["params"].max(),
        "steps": one.steps,
        **wide.of_runs(finals),
    }


def _judged(advice: Advice, one: ConnectionResult) -> WideRow:
    """The place of a connection by training loss, and how far it is behind, as the advice has them."""
    behind = advice.behind(one.connection)
    if behind is None:
        return {"loss_place": BEST} if one.connection == advice.quality.best else {}
    ratio = of_interval("loss_behind", behind.difference, lambda difference: 1 + difference)
    return ratio | {"loss_place": BEHIND if behind.worse else NOT_SEPARATED}
