"""The HTML page of a store: one file that needs no network and no JavaScript."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from highway_bench.errors import BadInput
from highway_bench.report.definitions import DEFINITIONS
from highway_bench.report.figures import FIGURES, INSIDE, NothingToShow, Picture, svg_text
from highway_bench.report.gaps import not_measured
from highway_bench.report.history_links import history_links
from highway_bench.report.network_tables import count_tables, gate_tables
from highway_bench.report.provenance import Runs, blocks_of, provenance_of
from highway_bench.report.rows import block_order, family_order, prepared
from highway_bench.report.sections import failure_table, further, rate_table, summary_tables, whole_tables
from highway_bench.report.tables import Answer, answer
from highway_bench.results.store import Store

PAGE: Final = "index.html"


def load(source: pd.DataFrame | Store | str | os.PathLike[str]) -> tuple[pd.DataFrame, Runs]:
    """The prepared rows and the runs of a store, a store's path, or a frame of its rows (of which no run is known)."""
    if isinstance(source, pd.DataFrame):
        return prepared(source), {}
    if isinstance(source, Store):
        runs = source.runs()
        return prepared(source.frame(), runs), runs
    with Store(source, read_only=True) as store:
        runs = store.runs()
        return prepared(store.frame(), runs), runs


class Drawn(NamedTuple):
    """A picture, its SVG element, and whether it is folded away with the tables of trained networks."""

    picture: Picture
    svg: str
    inside: bool = False


def draw(rows: pd.DataFrame) -> tuple[list[Drawn], list[str]]:
    """All figures that ``rows`` give, and a line for each kind that they do not."""
    pictures: list[Drawn] = []
    missing: list[str] = []
    for name, figure in (FIGURES | INSIDE).items():
        try:
            pictures += [Drawn(picture, svg_text(picture), name in INSIDE) for picture in figure(rows)]
        except NothingToShow as reason:
            missing.append(f"Figure “{name}”: {reason}.")
    return pictures, missing


def write_page(source: pd.DataFrame | Store | str | os.PathLike[str], out_dir: str | os.PathLike[str]) -> Path:
    """Write the page of ``source`` into the folder ``out_dir``; the file's path.

    Raises ``NothingMeasured`` where there are no rows, ``BadInput`` where the store cannot be read or the folder not
    be written.
    """
    rows, runs = load(source)
    pictures, undrawn = draw(rows)
    return write_html(rows, runs, pictures, undrawn, Path(out_dir))


def write_html(rows: pd.DataFrame, runs: Runs, pictures: list[Drawn], undrawn: list[str], folder: Path) -> Path:
    """Write the page of what is loaded and drawn already."""
    text = _template("page.html.j2").render(
        title="How should these layers be joined?",
        subtitle=_subtitle(rows),
        css=Markup(_resource("page.css")),
        script=Markup(_resource("sort.js")),
        answers=_by_contest(answer(rows)),
        summaries=summary_tables(rows),
        pictures=[_shown(drawn) for drawn in pictures if not drawn.inside],
        gates=gate_tables(rows),
        gate_pictures=[_shown(drawn) for drawn in pictures if drawn.inside],
        more_gates=further(rows, "gates"),
        counts=count_tables(rows),
        more_counts=further(rows, "cost"),
        failed=failure_table(rows),
        tables=whole_tables(rows),
        missing=[*not_measured(rows), *undrawn],
        definitions=DEFINITIONS,
        blocks=blocks_of(rows, runs),
        rates=rate_table(rows),
        provenance=provenance_of(rows, runs),
        history=history_links(folder),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / PAGE
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write the page into {folder}: {error.strerror}") from error
    return path


def _shown(drawn: Drawn) -> dict[str, str]:
    """A picture as the template has it."""
    return {"name": drawn.picture.name, "caption": drawn.picture.caption, "svg": Markup(drawn.svg)}


def _resource(name: str) -> str:
    return files("highway_bench.report").joinpath("templates", name).read_text(encoding="utf-8")


def _template(name: str) -> Any:
    # Autoescape is on for everything: blocks' names, messages and commands come from outside.
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(_resource(name))


def _subtitle(rows: pd.DataFrame) -> str:
    blocks, families = block_order(rows["label"]), family_order(rows["family_label"])
    last = max((str(time) for time in rows["time_utc"].dropna()), default="")
    parts = [
        f"{len(blocks)} {'block' if len(blocks) == 1 else 'blocks'}: {', '.join(blocks)}",
        f"{len(families)} {'family' if len(families) == 1 else 'families'}: {', '.join(families)}",
        "measured on " + ", ".join(sorted(str(name) for name in rows["machine"].dropna().unique())),
    ]
    return "; ".join(parts) + (f"; last result {last[:16].replace('T', ' ')} UTC." if last else ".")


def _by_contest(sentences: list[Answer]) -> list[tuple[str, list[Answer]]]:
    found: dict[str, list[Answer]] = {}
    for sentence in sentences:
        found.setdefault(sentence.contest, []).append(sentence)
    return list(found.items())
