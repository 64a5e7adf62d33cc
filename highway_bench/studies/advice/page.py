"""The page of an advice: the page of known results, with the layer as one more kind, and the advice folded below."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report import columns as column
from highway_bench.report import page as common
from highway_bench.report.choice.answers import known_answers
from highway_bench.report.choice.columns import typed
from highway_bench.report.choice.ranking import kinds_of
from highway_bench.report.choice.screen import screen
from highway_bench.report.columns import Column, TextTable
from highway_bench.report.format import NONE, quantity, three
from highway_bench.results.store import Store
from highway_bench.studies.advice.answer import CONFIDENCE, Advice, ConnectionResult, interval, percent
from highway_bench.studies.advice.building import start_in
from highway_bench.studies.advice.learning import EXPLAINED, Learning
from highway_bench.studies.advice.wide_rows import wide_rows


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
    rows = [advice.result(one) for one in advice.ranked]
    columns = [
        _text("connection", lambda one: str(one.connection)),
        _text("verdict", lambda one: relation(advice, one)),
        _text("loss against the best", lambda one: difference(advice, one), f"with its interval of {CONFIDENCE}"),
        _text("final loss", lambda one: three(one.loss), "mean over seeds of the training loss at the end"),
        _text("test accuracy", lambda one: NONE if one.accuracy is None else f"{three(100 * one.accuracy)} %"),
        _text("does it train?", lambda one: f"{one.learning}: {one.succeeded} of {one.runs} reach the threshold"),
        _text("step ÷ pre-norm's", lambda one: str(one.cost), "with its 95 % interval over processes"),
        _text("bytes per layer", lambda one: quantity(one.cost.saved, "B"), "saved for the backward pass"),
    ]
    title = f"The finals: {advice.quality.seeds} fresh seeds, {advice.ladder[-1]:,} steps each, paired"
    return column.shown("finalists", title, pd.DataFrame({"result": rows}), columns)


def every_table(advice: Advice) -> TextTable:
    """One row for each connection."""
    columns = [
        _text("connection", lambda one: str(one.connection)),
        _text("how it begins", lambda one: start_in(advice.about["layer"], one.connection)),
        _text("at the start", lambda one: one.at_start or NONE, "signal and gradient before training"),
        _text("does it train?", lambda one: str(one.learning)),
        _text("steps", lambda one: f"{one.steps:,}" if one.steps else NONE, "of its longest runs"),
        _text("runs", lambda one: str(one.runs) if one.runs else NONE, "with this rate and so many steps"),
        _text("learning rate", lambda one: three(one.rate)),
        _text("final loss", lambda one: three(one.loss)),
        _text("step ÷ pre-norm's", lambda one: str(one.cost)),
        _text("bytes per layer", lambda one: quantity(one.cost.saved, "B")),
        _text("width", lambda one: str(one.width), "that gives it as many parameters a layer as plain's"),
        _text("remark", lambda one: one.reason),
    ]
    title = f"Every connection: rungs of {', '.join(f'{steps:,}' for steps in advice.ladder)} steps"
    note = "; ".join(f"{word}: {meaning}" for word, meaning in EXPLAINED.items())
    return column.shown("connections", title, pd.DataFrame({"result": list(advice.results)}), columns, note=f"{note}.")


def relation(advice: Advice, one: ConnectionResult) -> str:
    """How a finalist compares: the best, a leader, or behind."""
    if one.connection not in advice.finalists or advice.quality.best is None:
        return NONE
    behind = advice.behind(one.connection)
    if behind is not None:
        return behind.relation
    if one.connection == advice.quality.best:
        return "lowest loss"
    if one.learning == Learning.STALLS:
        return str(one.learning)
    return "a run failed" if one.reason else "diverged at a seed"


def difference(advice: Advice, one: ConnectionResult) -> str:
    """How far a finalist is behind the best."""
    behind = advice.behind(one.connection)
    return NONE if behind is None else f"{percent(behind.difference)} {interval(behind)}"


def _text(heading: str, make: Any, hint: str = "") -> Column:
    return column.computed(heading, lambda record: make(record["result"]), hint, is_number=False)
