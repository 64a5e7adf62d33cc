"""The report of a store: its HTML page, a single file that needs no network, and the files of its figures."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from highway_bench.errors import writing
from highway_bench.frames.results import Results, Source, open_results
from highway_bench.frames.rows import Runs
from highway_bench.pages import HISTORY, index
from highway_bench.provenance.machine import labels
from highway_bench.report.choice.answers import answers
from highway_bench.report.choice.screen import ScreenData, screen
from highway_bench.report.columns import TextTable
from highway_bench.report.figures import NothingToShow, Picture, every_figure, svg_text
from highway_bench.report.format import counted
from highway_bench.report.task_tables import depth_table, failure_table, task_tables
from highway_bench.results.schema import DESCRIBED

PAGE: Final = "index.html"
NOT_LISTED: Final = (*DESCRIBED, "digests", "requested")
"""Parts of a run's record that are not listed: the page shows them elsewhere, or they are thousands of digests."""

EMPTY: Final[tuple[object, ...]] = (None, "", {}, [])


@dataclass(frozen=True)
class Report:
    """The files of a written report: the page, and every figure."""

    page: Path
    figures: tuple[Path, ...]


def write_report(source: Source | Results, out_dir: str | os.PathLike[str]) -> Report:
    """Write the page of ``source`` into the folder ``out_dir`` and its figures into ``out_dir/figures``.

    ``source`` is a store, its path, a frame of its rows, or ``Results``. The page leads to asv's pages if they were
    published next to the folder. Raises ``NothingMeasured`` if there are no rows, and ``BadInput`` if the store cannot
    be read or the folder cannot be written.
    """
    results = source if isinstance(source, Results) else open_results(source)
    pictures, folder = draw(results), Path(out_dir)
    has_history = (folder.resolve().parent / index(HISTORY)).is_file()
    page = write_html(results, pictures, folder / PAGE, f"../{index(HISTORY)}" if has_history else "")
    paths = [folder / "figures" / f"{drawn.picture.name}.svg" for drawn in pictures]
    with writing(folder):
        (folder / "figures").mkdir(exist_ok=True)
        for path, drawn in zip(paths, pictures, strict=True):
            path.write_text(f"{drawn.svg}\n", encoding="utf-8")
    return Report(page, tuple(paths))


def write_one_file(source: Source | Results, path: str | os.PathLike[str]) -> Path:
    """Write the page of ``source`` to ``path`` as one file that leads to no other: to mail, or to attach to a paper.

    Raises as ``write_report`` does.
    """
    results = source if isinstance(source, Results) else open_results(source)
    return write_html(results, draw(results), Path(path))


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


def provenance_of(rows: pd.DataFrame, runs: Runs) -> list[dict[str, Any]]:
    """The record of every run that has rows, oldest first, with facts from its rows added."""
    listed: list[dict[str, Any]] = []
    began = rows.groupby("run_id", sort=False)["time_utc"].min().sort_values(kind="stable", na_position="first")
    for run_id in began.index:
        part = rows[rows["run_id"] == run_id]
        record = {name: value for name, value in runs.get(run_id, {}).items() if name not in NOT_LISTED}
        command = record.pop("command", None)
        facts: dict[str, str] = {}
        if command:
            facts["command"] = shlex.join(map(str, command)) if isinstance(command, list) else str(command)
        for column in ("machine", "gpu", "commit", "torch", "threads", "task_version", "protocol"):
            distinct = part[column].dropna().unique()
            values = sorted(f"{value:g}" if isinstance(value, float) else str(value) for value in distinct)
            if values:
                facts[column.replace("_", " ")] = ", ".join(values)
        facts |= {name: _flat(value) for name, value in record.items() if value not in EMPTY and name not in facts}
        times = part["time_utc"].dropna()
        facts |= {"results": f"{len(part):,} rows" + (f", {times.min()} to {times.max()}" if len(times) else "")}
        listed.append({"id": run_id, "facts": list(facts.items())})
    return listed


def _flat(value: Any) -> str:
    """A value of a run's record in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_flat(item)}" for name, item in value.items() if item not in EMPTY)
    if isinstance(value, (list, tuple)):
        return " ".join(_flat(item) for item in value)
    return str(value)


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
    families = rows["family"].nunique()
    parts = [
        counted(rows["label"].nunique(), "connection"),
        f"{families} {'family' if families == 1 else 'families'}",
        "measured on " + "; ".join(sorted(labels(rows["machine"].dropna()).values())),
    ]
    releases = sorted({".".join(str(one).split(".")[:2]) for one in rows["torch"].dropna().unique()})
    by = f" By torch {' and '.join(releases)}: a cell counts once, by the one that measured it last."
    return ", ".join(parts) + (f", last on {last[:10]}." if last else ".") + (by if len(releases) > 1 else "")
