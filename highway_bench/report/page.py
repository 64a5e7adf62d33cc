"""The HTML page of a store: a single file that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from highway_bench.provenance.machine import labels
from highway_bench.report.choice.answers import answers
from highway_bench.report.choice.screen import screen
from highway_bench.report.columns import Shown
from highway_bench.report.definitions import DEFINITIONS
from highway_bench.report.figures import NothingToShow, Picture, every_figure, svg_text
from highway_bench.report.format import counted
from highway_bench.report.further_values import all_results, further_tables
from highway_bench.report.gaps import not_measured
from highway_bench.report.glossary import glossary
from highway_bench.report.provenance import provenance_of
from highway_bench.report.results import Results
from highway_bench.report.sections import ReportSection, every_section
from highway_bench.report.sections.throughput import rate_table
from highway_bench.report.summary_tables import failure_table, summary_tables
from highway_bench.writing import writing

PAGE: Final = "index.html"
MOST_OF_A_KIND: Final = 3
"""Of more pictures of one kind, the first ones are on the page."""


class Drawn(NamedTuple):
    """A picture, its SVG element, the name of the section that it belongs to (empty for the folded figures), and
    whether it is on the page: of many pictures of a kind, the others are files."""

    picture: Picture
    svg: str
    section: str = ""
    on_page: bool = True


class Folded(NamedTuple):
    """A section that is folded away under its heading, for the template."""

    heading: str
    note: str
    tables: list[Shown]
    pictures: list[dict[str, str]]
    further: list[Shown]


def draw(results: Results) -> tuple[list[Drawn], list[str]]:
    """All figures of ``results``, and one line for each kind of figure that has no data."""
    pictures: list[Drawn] = []
    missing: list[str] = []
    for kind in every_figure():
        try:
            drawn = enumerate(kind.draw(results))
            pictures += [Drawn(one, svg_text(one), kind.section, number < MOST_OF_A_KIND) for number, one in drawn]
        except NothingToShow as reason:
            missing.append(f"Figure “{kind.title}”: {reason}.")
    return pictures, missing


def write_html(
    results: Results, pictures: list[Drawn], undrawn: list[str], path: Path, history: Mapping[str, str]
) -> Path:
    """Write the page to ``path`` and return it. ``pictures`` and ``undrawn`` are the values of ``draw``.

    ``history`` has the addresses of asv's pages, the only other files that the page leads to; it may be empty. Raises
    ``BadInput`` if the file cannot be written.
    """
    text = _template("page.html.j2").render(
        title="Which connection?",
        subtitle=_subtitle(results),
        css=Markup(_resource("page.css")),
        script=Markup(_resource("page.js")),
        screen=screen(answers(results)),
        folded=_folded(results, pictures),
        tables=all_results(results),
        failed=failure_table(results),
        missing=[*not_measured(results), *undrawn],
        glossary=glossary(results),
        definitions=DEFINITIONS,
        rates=rate_table(results),
        provenance=provenance_of(results.rows, results.runs),
        history=history,
    )
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def _tasks(results: Results, section: ReportSection) -> list[str]:
    """The tasks in the rows that ``section`` shows."""
    tasks = results.rows["task"].dropna().drop_duplicates()
    return [task for task in tasks if results.about.section(task) == section.name]


def _folded(results: Results, pictures: list[Drawn]) -> list[Folded]:
    """The summary, the figures, and every section with a heading of its own; those without content are left out."""
    parts = [
        Folded("One row per connection", "", summary_tables(results), [], []),
        Folded("Figures", "Each connection has the same colour, marker and dash.", [], _elements(pictures, ""), []),
    ]
    for section in every_section():
        tables = [shown for shown in section.tables(results) if shown.entries] if section.heading else []
        further = [shown for task in _tasks(results, section) for shown in further_tables(results, task)]
        if tables:
            parts.append(Folded(section.heading, section.note, tables, _elements(pictures, section.name), further))
    return [part for part in parts if part.tables or part.pictures]


def _elements(pictures: list[Drawn], section: str) -> list[dict[str, str]]:
    """The pictures of a section for the template."""
    return [
        {"name": drawn.picture.name, "caption": drawn.picture.caption, "svg": Markup(drawn.svg)}
        for drawn in pictures
        if drawn.section == section and drawn.on_page
    ]


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
