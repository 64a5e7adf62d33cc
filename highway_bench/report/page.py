"""The HTML page of a store: a single file that needs no network. Only sorting needs JavaScript."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from highway_bench.errors import BadInput
from highway_bench.report.columns import Shown
from highway_bench.report.definitions import DEFINITIONS
from highway_bench.report.figures import NothingToShow, Picture, every_figure, svg_text
from highway_bench.report.format import counted
from highway_bench.report.further_values import all_results, further_tables
from highway_bench.report.gaps import not_measured
from highway_bench.report.history_links import history_links
from highway_bench.report.provenance import blocks_of, provenance_of
from highway_bench.report.results import Results
from highway_bench.report.sections import ReportSection, every_section
from highway_bench.report.sections.throughput import rate_table
from highway_bench.report.summary_tables import failure_table, summary_tables
from highway_bench.report.tables.answer import Answer

PAGE: Final = "index.html"


class Drawn(NamedTuple):
    """A picture, its SVG element, and the name of the section that it belongs to; empty for the top of the page."""

    picture: Picture
    svg: str
    section: str = ""


class Folded(NamedTuple):
    """A section with a heading of its own, for the template."""

    section: ReportSection
    tables: list[Shown]
    pictures: list[dict[str, str]]
    further: list[Shown]


def draw(results: Results) -> tuple[list[Drawn], list[str]]:
    """All figures of ``results``, and one line for each kind of figure that has no data."""
    pictures: list[Drawn] = []
    missing: list[str] = []
    for kind in every_figure():
        try:
            pictures += [Drawn(picture, svg_text(picture), kind.section) for picture in kind.draw(results)]
        except NothingToShow as reason:
            missing.append(f"Figure “{kind.title}”: {reason}.")
    return pictures, missing


def write_html(results: Results, pictures: list[Drawn], undrawn: list[str], folder: Path) -> Path:
    """Write the page into ``folder`` and return its path. ``pictures`` and ``undrawn`` are the values of ``draw``.

    Raises ``BadInput`` if the folder cannot be written.
    """
    text = _template("page.html.j2").render(
        title="Layer connections compared",
        subtitle=_subtitle(results),
        css=Markup(_resource("page.css")),
        script=Markup(_resource("sort.js")),
        answers=_by_contest(results.answer()),
        summaries=summary_tables(results),
        pictures=[_element(drawn) for drawn in pictures if not drawn.section],
        folded_sections=_folded_sections(results, pictures),
        failed=failure_table(results),
        tables=all_results(results),
        missing=[*not_measured(results), *undrawn],
        definitions=DEFINITIONS,
        blocks=blocks_of(results),
        rates=rate_table(results),
        provenance=provenance_of(results.rows, results.runs),
        history=history_links(folder),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / PAGE
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write the page into {folder}: {error.strerror}") from error
    return path


def _tasks(results: Results, section: ReportSection) -> list[str]:
    """The tasks in the rows that ``section`` shows."""
    tasks = results.rows["task"].dropna().drop_duplicates()
    return [task for task in tasks if results.about.section(task) == section.name]


def _folded_sections(results: Results, pictures: list[Drawn]) -> list[Folded]:
    folded = []
    for section in every_section():
        tables = [shown for shown in section.tables(results) if shown.entries] if section.heading else []
        if tables:
            further = [shown for task in _tasks(results, section) for shown in further_tables(results, task)]
            elements = [_element(drawn) for drawn in pictures if drawn.section == section.name]
            folded.append(Folded(section, tables, elements, further))
    return folded


def _element(drawn: Drawn) -> dict[str, str]:
    """A picture for the template."""
    return {"name": drawn.picture.name, "caption": drawn.picture.caption, "svg": Markup(drawn.svg)}


def _resource(name: str) -> str:
    return files("highway_bench.report").joinpath("templates", name).read_text(encoding="utf-8")


def _template(name: str) -> Any:
    # Everything is escaped: names of blocks, messages and commands come from outside.
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(_resource(name))


def _subtitle(results: Results) -> str:
    rows, about = results.rows, results.about
    blocks, families = about.block_order(rows["label"]), about.family_order(rows["family_label"])
    last = max((str(time) for time in rows["time_utc"].dropna()), default="")
    parts = [
        f"{counted(len(blocks), 'block')}: {', '.join(blocks)}",
        f"{len(families)} {'family' if len(families) == 1 else 'families'}: {', '.join(families)}",
        "measured on " + ", ".join(sorted(str(name) for name in rows["machine"].dropna().unique())),
    ]
    return "; ".join(parts) + (f"; last result {last[:16].replace('T', ' ')} UTC." if last else ".")


def _by_contest(sentences: list[Answer]) -> list[tuple[str, list[Answer]]]:
    by_contest: dict[str, list[Answer]] = {}
    for sentence in sentences:
        by_contest.setdefault(sentence.contest, []).append(sentence)
    return list(by_contest.items())
