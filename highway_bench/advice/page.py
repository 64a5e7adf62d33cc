"""The page of an advice: one HTML file whose first screen is the answer, without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from highway_bench.advice.answer import (
    CONFIDENCE,
    Advice,
    ConnectionResult,
    interval,
    percent,
)
from highway_bench.advice.building import start_in
from highway_bench.advice.figure import losses_figure
from highway_bench.advice.finals import EQUAL
from highway_bench.advice.learning import EXPLAINED, Learning
from highway_bench.blocks import blocks
from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Shown
from highway_bench.report.figures import svg_text
from highway_bench.report.format import NONE, quantity, three
from highway_bench.report.provenance import provenance_of
from highway_bench.report.ratio import PERCENT
from highway_bench.results.store import Store
from highway_bench.writing import writing

PAGE: Final = "index.html"


def write_page(advice: Advice, folder: Path, store: Store) -> Advice:
    """Write the page of ``advice`` into ``folder``, and return the advice with its path.

    Raises ``BadInput`` if it cannot be written.
    """
    text = _template().render(
        title=advice.headline,
        subtitle=subtitle(advice),
        css=Markup(_resource("highway_bench.report", "page.css")),
        questions=[line.partition("? ") for line in advice.lines()[1:]],
        finalists=finalists_table(advice),
        every=every_table(advice),
        picture=_element(advice),
        words={str(word): meaning for word, meaning in EXPLAINED.items()},
        equations=equations(advice),
        starts=starts(advice),
        confidence=CONFIDENCE,
        equal=f"{100 * EQUAL:g} %",
        undecided=PERCENT,
        advice=advice,
        provenance=provenance_of(store.frame(), store.runs()),
    )
    path = folder / PAGE
    with writing(path):
        path.write_text(text, encoding="utf-8")
    return replace(advice, page=path)


def subtitle(advice: Advice) -> str:
    """The request in one line."""
    about = advice.about
    return (
        f"{about['layer']}: {about['depth']} layers of width {about['width']} on {about['data']}, "
        f"measured within {about['minutes']:g} minutes on this machine's {about['device']}"
    )


def finalists_table(advice: Advice) -> Shown:
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


def every_table(advice: Advice) -> Shown:
    """One row for each connection."""
    columns = [
        _text("connection", lambda one: str(one.connection)),
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
    return column.shown("every", title, pd.DataFrame({"result": list(advice.results)}), columns)


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


def equations(advice: Advice) -> dict[str, str]:
    """The equation of each block that was compared."""
    names = dict.fromkeys(one.connection.block for one in advice.results)
    return {name: f"{blocks.get(name).equation} ({blocks.get(name).source})" for name in names}


def starts(advice: Advice) -> dict[str, str]:
    """How each connection that was compared begins."""
    layer = advice.about["layer"]
    return {", ".join(one.connection): start_in(layer, one.connection) for one in advice.results}


def _text(heading: str, make: Any, hint: str = "") -> Column:
    return column.computed(heading, lambda record: make(record["result"]), hint, is_number=False)


def _element(advice: Advice) -> Mapping[str, Any] | None:
    picture = losses_figure(advice)
    return None if picture is None else {"svg": Markup(svg_text(picture)), "caption": picture.caption}


def _resource(package: str, name: str) -> str:
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


def _template() -> Any:
    # Everything is escaped: names of layers, messages and commands come from outside.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_resource("highway_bench.advice", "advice.html.j2"))
