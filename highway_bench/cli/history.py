"""``highway-bench history``: measure commits, record and import points, publish asv's pages, gate, compare."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json, print_table
from highway_bench.errors import HighwayBenchError, UnknownName

if TYPE_CHECKING:
    from highway_bench.history.gate import Verdict
    from highway_bench.history.measure import Measured
    from highway_bench.history.regressions import Regression

Root = Annotated[Path, typer.Option(help="The checkout.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default a GPU where there is one.")]
MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine",
        envvar="HIGHWAY_BENCH_MACHINE",
        help="This machine's name in the history; by default its GPU's or CPU's.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick/--full", help="The cheap values alone, or all of them.")]


class SomeFailed(HighwayBenchError):
    """A benchmark failed; what was measured is kept."""


class Regressed(HighwayBenchError):
    """The gate found a regression."""


def run(
    span: Annotated[
        str | None,
        typer.Argument(
            metavar="[RANGE]", help="Commits to build and measure, such as HEAD~10..HEAD; by default this checkout."
        ),
    ] = None,
    quick: Quick = True,
    again: Annotated[bool, typer.Option(help="Measure commits again that have a point.")] = False,
    device: Device = None,
    machine: MachineName = None,
    commit: Annotated[str | None, typer.Option(help="Which commit this checkout is, where there is no git.")] = None,
    out: Annotated[Path | None, typer.Option(help="A folder for the results, to be imported elsewhere.")] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Measure this checkout's point, or those of a range of commits.

    A tree with uncommitted changes is measured and shown, never recorded.
    """
    from highway_bench.errors import BadInput
    from highway_bench.history import Paths
    from highway_bench.history.git import has_git, is_dirty
    from highway_bench.history.measure import measure_here, measure_range, this_machine

    if span and (commit or out):
        raise BadInput("--commit and --out are for this checkout's own point: leave the range away")
    paths = Paths.of(root)
    if out and has_git(paths.root) and is_dirty(paths.root):
        raise BadInput("uncommitted changes: what --out writes would pass for HEAD's point elsewhere")
    if not (span or commit or has_git(paths.root)):
        typer.echo("no git and no --commit: history import will have to be told which commit this is", err=json)
    here = this_machine(device, machine)
    if span:
        measured = measure_range(paths, here, span, quick=quick, again=again)
    else:
        measured = measure_here(paths, here, quick=quick, commit=commit, out=out)
    print_measured(measured, as_json=json)
    if measured.failed:
        raise SomeFailed(f"failed: {', '.join(measured.failed)}")


def print_measured(measured: Measured, *, as_json: bool) -> None:
    """What a run gave."""
    values = {commit: len(result.points) for commit, result in measured.results.items()}
    if as_json:
        print_json(
            {
                "machine": measured.machine,
                "folder": measured.folder,
                "values": values,
                "without": measured.without,
                "failed": measured.failed,
                "dirty": measured.dirty,
                "lines": measured.lines,
            }
        )
        return
    for line in [*measured.lines, *measured.without]:
        typer.echo(line)
    commits = "1 commit" if len(values) == 1 else f"{len(values)} commits"
    typer.echo(f"{measured.machine}: {commits}, {sum(values.values()):,} values, in {measured.folder}")
    if measured.dirty:
        typer.echo("uncommitted changes: this point is shown on the pages, and not recorded")


def record(
    device: Device = None,
    machine: MachineName = None,
    replace: Annotated[bool, typer.Option(help="Put newer points in the place of recorded ones.")] = False,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Copy this machine's points into reports/asv/results, to be committed."""
    from dataclasses import asdict

    from highway_bench.history import Paths
    from highway_bench.history.measure import this_machine
    from highway_bench.history.record import record as keep

    name = machine or this_machine(device, None).name
    recorded = keep(Paths.of(root), name, replace=replace)
    if json:
        print_json(asdict(recorded))
    else:
        typer.echo(str(recorded))


def import_folder(
    folder: Annotated[Path, typer.Argument(help="Results measured elsewhere: a machine's folder, or one of several.")],
    commit: Annotated[str | None, typer.Option(help="The commit measured, where the files do not know.")] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Bring results that were measured elsewhere into reports/asv/results."""
    from highway_bench.history import Paths
    from highway_bench.history.importing import import_results
    from highway_bench.history.publish import discover

    paths = Paths.of(root)
    imported = import_results(paths, folder, commit)
    discover(paths)  # the list of benchmarks, which decides what is shown
    written = [path.relative_to(paths.root) for path in imported.written]
    if json:
        print_json({"written": written, "lines": imported.lines})
        return
    for line in [*written, *imported.lines]:
        typer.echo(str(line))


def publish(json: AsJson = False, root: Root = Path(".")) -> None:
    """Write asv's pages into reports/asv/html."""
    from highway_bench.history import Paths
    from highway_bench.history.publish import publish as write

    done = write(Paths.of(root))
    if json:
        print_json(
            {
                "index": done.html / "index.html",
                "machines": done.machines,
                "points": done.points,
                "lines": done.lines,
            }
        )
        return
    for line in done.lines:
        typer.echo(line)
    typer.echo(f"{done.points} points of {', '.join(done.machines)}: {done.html / 'index.html'}")


def gate(
    window: Annotated[int, typer.Option(help="Measured commits of a machine that count as recent.")] = 10,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this commit first, quickly.")] = False,
    confirm: Annotated[bool, typer.Option(help="Measure again what seems to have regressed here.")] = True,
    device: Device = None,
    machine: MachineName = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Fail if something regressed in recent commits, on any machine, and say what and since when.

    Status 0 clean, 1 a regression or a series that lost its value at HEAD, 2 bad input, 3 nothing measured at HEAD or
    nothing before it, 4 asv went wrong.
    """
    from dataclasses import asdict

    from highway_bench.history import Paths
    from highway_bench.history.gate import check
    from highway_bench.history.gate import gate as judge
    from highway_bench.history.machine import busy
    from highway_bench.history.measure import measure_here, this_machine

    paths = Paths.of(root)
    check(paths, window)
    here = this_machine(device, machine) if measure or confirm else None
    disturbed = busy() if here else None
    if measure and here:
        measure_here(paths, here)  # what failed is the gate's to judge
    verdict = judge(paths, here if confirm else None, window=window)
    verdict.lines += [disturbed] if disturbed else []
    if json:
        print_json(asdict(verdict))
    else:
        show(verdict)
    if verdict.regressions or verdict.lost:
        raise Regressed(f"{len(verdict.regressions)} series regressed, {len(verdict.lost)} without a value at HEAD")


def show(verdict: Verdict) -> None:
    """The verdict for people."""
    for line in verdict.lines:
        typer.echo(line)
    heads = ["series", "machine", "unit", "before", "after", "change", "tolerated", "commit", "last good", "remark"]
    for title, rows in (
        ("Regressions", verdict.regressions),
        ("Not confirmed by a re-run: no regressions", verdict.dismissed),
    ):
        if rows:
            print_table(title, heads, [row_of(one) for one in rows])
    if verdict.lost:
        print_table(
            "Without a value at HEAD",
            ["series", "machine", "reason"],
            [[one.series, one.machine, one.reason] for one in verdict.lost],
        )
    if verdict.limits:
        print_table(
            "What would be flagged of a next point",
            ["benchmark", "machine", "series", "least", "median", "most"],
            [
                [
                    one.benchmark,
                    one.machine,
                    one.series,
                    *(rise_of(one.benchmark, share) for share in (one.least, one.median, one.most)),
                ]
                for one in verdict.limits
            ],
            note="least, median and most are of the series: each has its own noise",
        )
    if not verdict.regressions and not verdict.lost:
        typer.echo(f"no regression in {verdict.series:,} series of {', '.join(verdict.machines)}")


def rise_of(benchmark: str, share: float) -> str:
    """A tolerated rise for people."""
    from highway_bench.history.noise import is_loss

    return "any rise" if not share else f"{share:.2f} decades" if is_loss(benchmark) else f"{100 * share:.0f} %"


def row_of(found: Regression) -> list[str]:
    """A regression for people."""
    from highway_bench.report.ratio import quoted

    beside = found.beside
    ratio = [] if beside is None else [f"÷ {found.good[:8]}, in turn: {quoted(beside.value, beside.low, beside.high)}"]
    return [
        found.series,
        found.machine,
        found.unit,
        f"{found.before:.4g}",
        f"{found.after:.4g}",
        found.change,
        f"{found.tolerated:.3g}",
        found.commit[:8],
        found.good[:8],
        "; ".join(filter(None, [found.remark, *ratio])),
    ]


def noise(
    runs: Annotated[int, typer.Option(help="How often to measure this checkout.")] = 3,
    quick: Quick = True,
    device: Device = None,
    machine: MachineName = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Measure how far each series moves when nothing changes, A against A, for the gate.

    Pooled with what was recorded before; remove the machine's file in reports/asv/noise to begin anew.
    """
    from highway_bench.history import Paths
    from highway_bench.history.measure import this_machine
    from highway_bench.history.noise import measure_noise

    here = this_machine(device, machine)
    found = measure_noise(Paths.of(root), here, runs, quick=quick)
    if json:
        print_json({"machine": here.name, "spreads": {series: spread._asdict() for series, spread in found.items()}})
        return
    typer.echo(f"noise of {len(found)} series recorded in reports/asv/noise")


def compare(
    first: Annotated[str, typer.Argument(help="The commit to compare with.")],
    second: Annotated[str, typer.Argument(help="The commit that may be slower, or faster.")] = "HEAD",
    block: Annotated[list[str] | None, typer.Option(help="A block; repeatable. By default the core ones.")] = None,
    family: Annotated[list[str] | None, typer.Option(help="A family; repeatable.")] = None,
    depth: Annotated[list[int] | None, typer.Option(help="A depth; repeatable.")] = None,
    pairs: Annotated[int, typer.Option(help="Pairs of fresh processes, one a commit; 6 or more.")] = 8,
    steps: Annotated[int, typer.Option(help="Steps of each process a cell.")] = 6,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Time two commits' steps in turn, and give the ratio of the second to the first with an interval."""
    from highway_bench.history import Paths
    from highway_bench.history.compare import compare as measure
    from highway_bench.history.measure import this_machine
    from highway_bench.registry import literal_calls
    from highway_bench.report.ratio import PERCENT, quoted

    paths = Paths.of(root)
    this_machine(device)  # raises for a device that is not here, before anything is unpacked
    calls = literal_calls(paths.root / "highway_bench/blocks", "register_block")
    variants = literal_calls(paths.root / "highway_bench/blocks", "register_variant")
    families = literal_calls(paths.root / "highway_bench/families", "register_family")
    for kind, given, known in (("block", block, calls | variants), ("family", family, families)):
        for name in given or []:
            if name not in known:
                raise UnknownName(kind, name, known)
    blocks = block or [name for name, about in calls.items() if about.get("core")]
    cells = [(one, kind, deep) for kind in family or ["dense"] for deep in depth or [10, 50] for one in blocks]
    rows = measure(
        paths,
        first,
        second,
        cells,
        pairs=pairs,
        steps=steps,
        device=device,
        say=lambda line: typer.echo(line, err=True),
    )
    if json:
        compared = [
            {
                **dict(zip(("block", "family", "depth"), row.cell, strict=True)),
                "first": median(row.first),
                "second": median(row.second),
                "ratio": row.ratio.value,
                "low": row.ratio.low,
                "high": row.ratio.high,
                "ratios": row.ratios,
                "verdict": row.verdict,
            }
            for row in rows
        ]
        print_json({"steps": compared})
        return
    print_table(
        f"A step at {second}, relative to {first}",
        ["cell", first, second, "ratio [at least 95 %]", "verdict"],
        [
            [
                row.name,
                f"{1e3 * median(row.first):.3g} ms",
                f"{1e3 * median(row.second):.3g} ms",
                quoted(row.ratio.value, row.ratio.low, row.ratio.high),
                row.verdict,
            ]
            for row in rows
        ],
        note=f"steps: medians; ratio: the median of {pairs} pairs of processes, each took its steps in turn, "
        "and so not the medians' quotient; the interval is the sign test's of that median. A verdict is "
        f"its cell's alone: of {len(rows)} cells, some may be told apart by chance. A ratio is undecided "
        f"if its interval reaches more than {PERCENT} from it; more --pairs make it narrower",
    )
