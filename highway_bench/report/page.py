"""The HTML page of a store: a single file that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from highway_bench.errors import writing
from highway_bench.frames.results import Results
from highway_bench.provenance.machine import labels
from highway_bench.report.choice.answers import answers
from highway_bench.report.choice.screen import ScreenData, screen
from highway_bench.report.columns import TextTable
from highway_bench.report.figures import NothingToShow, Picture, every_figure, svg_text
from highway_bench.report.format import counted
from highway_bench.report.provenance import provenance_of
from highway_bench.report.task_tables import depth_table, failure_table, task_tables

PAGE: Final = "index.html"


class Drawn(NamedTuple):
    """A picture and its SVG element."""

    picture: Picture
    svg: str


def draw(results: Results) -> list[Drawn]:
    """All figures of ``results``."""
    pictures: list[Drawn] = []
    for kind in every_figure():
        try:
            pictures += [Drawn(one, Markup(svg_text(one))) for one in kind.draw(results)]
        except NothingToShow:
            continue
    return pictures


def write_html(results: Results, pictures: list[Drawn], path: Path, history: str = "") -> Path:
    """Write the page to ``path`` and return it. ``pictures`` is the value of ``draw``, and ``history`` the address of
    asv's pages, the only other files that the page leads to; it may be empty.

    Raises ``BadInput`` if the file cannot be written.
    """
    tables = [depth_table(results), *task_tables(results)]
    return write_page(results, path, screen(answers(results)), _subtitle(results), tables, pictures, history)


def write_page(
    results: Results,
    path: Path,
    shown: ScreenData,
    subtitle: str,
    tables: Iterable[TextTable],
    pictures: Sequence[Drawn] = (),
    history: str = "",
) -> Path:
    """Write the page of ``shown`` with ``tables`` folded below it; else as ``write_html`` does."""
    text = _template("page.html.j2").render(
        title="Which connection?",
        subtitle=subtitle,
        css=Markup(_resource("page.css")),
        script=Markup(_resource("page.js")),
        screen=shown,
        pictures=pictures,
        tables=[table for table in tables if table.entries],
        failed=failure_table(results),
        provenance=provenance_of(results.rows, results.runs),
        history=history,
    )
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def _resource(name: str) -> str:
    return files("highway_bench.report").joinpath("templates", name).read_text(encoding="utf-8")


def _template(name: str) -> Any:
    # Everything is escaped: names of blocks, messages and commands come from outside.
    loader = PackageLoader("highway_bench.report")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.filters |= {"chip": itemgetter("name", "label"), "runs_of": _runs_of}
    return templates.get_template(name)


def _runs_of(entries: Iterable[Mapping[str, Any]], key: str) -> list[list[Mapping[str, Any]]]:
    """``entries`` in runs of equal ``key``."""
    return [list(run) for _, run in groupby(entries, key=itemgetter(key))]


def _subtitle(results: Results) -> str:
    rows = results.rows
    last = rows["time_utc"].fillna("").max()
    parts = [
        counted(rows["label"].nunique(), "connection"),
        f"{rows['family'].nunique()} {'family' if rows['family'].nunique() == 1 else 'families'}",
        "measured on " + "; ".join(sorted(labels(rows["machine"].dropna()).values())),
    ]
    releases = sorted({".".join(str(one).split(".")[:2]) for one in rows["torch"].dropna().unique()})
    by = f" By torch {' and '.join(releases)}: a cell counts once, by the one that measured it last."
    return ", ".join(parts) + (f", last on {last[:10]}." if last else ".") + (by if len(releases) > 1 else "")
