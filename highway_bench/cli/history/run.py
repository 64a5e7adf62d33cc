"""``highway-bench history init``, ``run``, ``import`` and ``publish``: from a package's first file to asv's pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import show
from highway_bench.cli.history.options import Device, MachineName, Quick, Root
from highway_bench.errors import BadInput, HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.history.measure import Measured

FOR_ASV = (
    'asv compare and asv show need "results_dir": "reports/asv/results" in asv.conf.json, and '
    "/reports/asv/results/benchmarks.json in .gitignore"
)


class SomeFailed(HighwayBenchError):
    """A benchmark failed; the other values are stored."""


def init(json: AsJson = False, root: Root = Path(".")) -> None:
    """Write what asv needs to follow the blocks and layers that this package's pyproject.toml names as entry points.

    Commit the written files, then start with history run.
    """
    from highway_bench.history.init import write_history

    written = write_history(root)
    show({"written": written}, written, as_json=json)


def run(
    span: Annotated[
        str | None,
        typer.Argument(
            metavar="[RANGE]", help="Commits to build and measure, such as HEAD~10..HEAD; by default this checkout."
        ),
    ] = None,
    quick: Quick = True,
    replace: Annotated[bool, typer.Option("--replace", help="Measure commits again that have a point.")] = False,
    device: Device = None,
    machine: MachineName = None,
    commit: Annotated[str | None, typer.Option(help="Which commit this checkout is, where there is no git.")] = None,
    out: Annotated[Path | None, typer.Option(help="A folder for the results, to be imported elsewhere.")] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Measure this checkout's point, or those of a range of commits.

    Points are stored in reports/asv/results, to be committed. That of a tree with uncommitted changes is shown on the
    pages, and not stored.
    """
    from highway_bench.history.git import has_git
    from highway_bench.history.machine import this_machine
    from highway_bench.history.measure import measure_here, measure_range
    from highway_bench.history.paths import Paths
    from highway_bench.history.points import follow_accepted, follow_points

    if span and (commit or out):
        raise BadInput("--commit and --out are for this checkout's own point: give no range")
    paths = Paths.of(root)
    if not (span or commit or has_git(paths.root)):
        typer.echo("no git and no --commit: history import will need --commit", err=json)
    here = this_machine(device, machine)
    followed = follow_points(paths) if has_git(paths.root) else []
    if span:
        measured = measure_range(paths, here, span, quick=quick, replace=replace)
    else:
        measured = measure_here(paths, here, quick=quick, commit=commit, out=out, replace=replace)
    if has_git(paths.root):
        followed += follow_accepted(paths)
    measured.lines[:0] = followed if paths.is_read_by_asv else [*followed, FOR_ASV]
    show(as_dict(measured), measured_lines(measured), as_json=json)
    if measured.failed:
        raise SomeFailed(f"failed: {', '.join(measured.failed)}")


def as_dict(measured: Measured) -> dict[str, Any]:
    """A run's result as plain data."""
    return {
        "machine": measured.machine,
        "files": [result.path for result in measured.results.values()],
        "values": {commit: len(result.points) for commit, result in measured.results.items()},
        "without": [*map(str, measured.without)],
        "failed": measured.failed,
        "dirty": measured.dirty,
        "lines": measured.lines,
    }


def measured_lines(measured: Measured) -> Iterator[str]:
    """A run's result for people."""
    yield from map(str, [*measured.lines, *measured.without])
    for commit, result in measured.results.items():
        yield f"{commit[:8]}: {len(result.points):,} values in {result.path}"
    if measured.dirty:
        yield "uncommitted changes: this point is shown on the pages, and not stored"


def import_folder(
    folder: Annotated[
        Path, typer.Argument(help="The folder that history run --out wrote, or one machine's folder in it.")
    ],
    commit: Annotated[str | None, typer.Option(help="The measured commit, for files that do not name it.")] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Import results that were measured elsewhere into reports/asv/results."""
    from highway_bench.history.paths import Paths
    from highway_bench.history.points import import_results

    paths = Paths.of(root)
    imported = import_results(paths, folder, commit)
    written = [path.relative_to(paths.root) for path in imported.written]
    show({"written": written, "lines": imported.lines}, [*written, *imported.lines], as_json=json)


def publish(
    site: Annotated[
        Path | None, typer.Option(help="Also copy all pages into this folder, to be uploaded to a web host.")
    ] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Write asv's pages into reports/asv/html.

    With --site, also copy them, the report (highway-bench report) and the documentation (nox -s docs) into a folder.
    """
    from highway_bench.history.paths import Paths
    from highway_bench.history.publish import publish as write_pages
    from highway_bench.history.site import write_site

    paths = Paths.of(root)
    published = write_pages(paths)
    index, lines = published.html / "index.html", list(published.lines)
    if site is not None:
        lines += write_site(published.html.parents[1], site, str(paths.configuration()["project"]))
        index = site / "index.html"
    show(
        {"index": index, "machines": published.machines, "points": published.points, "lines": lines},
        [*lines, f"{published.points} points of {', '.join(published.machines)}: {index}"],
        as_json=json,
    )
