"""What asv's pages get from here: names of the field, only what was measured, the gate's regressions, local scripts.

asv's own search for regressions uses another rule than the gate, over all commits. It lists times that rose because a
machine was slower, and misses slow rises. So the page lists what the gate finds in the same points.

``index`` is the content of asv's ``index.json``, and ``revisions`` the number of each commit on asv's axis.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from highway_bench.history.files import Result, read_json, write_json, write_text
from highway_bench.history.lines import SuspectedRegression, TrackedSeries
from highway_bench.history.suite.series import SERIES, Suite
from highway_bench.history.verdicts import Gap

LABELS = 8  # of commits on a graph, at most
LABEL_WIDTH = 16  # pixels
SCRIPTS = (  # what stands in asv's scripts, and what replaces it
    # its internal names: index.json has those of the field
    ("regressions.js", ".text(benchmark_name)", ".text($.asv.main_json.names[benchmark_name] || benchmark_name)"),
    ("graphdisplay.js", ".text(bm_name)", ".text($.asv.main_json.benchmarks[bm_name].pretty_name)"),
    # labels along their lines, below the legend, and none over another: zooming in shows the others
    (
        "graphdisplay.js",
        '"top: -2ex;" +',
        '"bottom:" + (plot.getPlotOffset().bottom + 4) + "px;writing-mode:vertical-rl;white-space:nowrap;" +',
    ),
    ("graphdisplay.js", "background:white;", "background:rgba(255,255,255,.7);"),
    ("graphdisplay.js", "/* Add the tags as vertical grid lines */", "var labelled = [];"),
    (
        "graphdisplay.js",
        "var p = plot.pointOffset({x: x, y: 0});",
        "var p = plot.pointOffset({x: x, y: 0});"
        f"if (labelled.some(left => Math.abs(left - p.left) < {LABEL_WIDTH})) return;"
        "labelled.push(p.left);",
    ),
)
NARROW = """
@media (max-width: 767px) {
    #nav, #graphdisplay-navigation, #regressions-display, #summarygrid-display, #summarylist-display > div {
        position: static !important;
        width: auto !important;
    }
    #nav ul { margin: 0; }
    #nav li { float: left; }
    #graph-display > div:last-child {
        position: relative !important;
        top: 0 !important;
        left: 0 !important;
        height: 600px;
    }
}
"""  # styles: on a telephone nothing lies over anything else, as the bar of links does


def title(of: TrackedSeries) -> str:
    """A series in words: ``step time · highway · dense · 50 layers · 128 × 128``."""
    return f"{of.series.title} · {of.cell.described(of.device)}"


def parts_of(name: str) -> tuple[str, tuple[str, ...]]:
    """asv's benchmark and the values of its parameters in the name of a series."""
    benchmark, _, values = name.removesuffix(")").partition("(")
    return benchmark, tuple(values.split(", "))


def keep_measured(path: Path, results: Iterable[Result]) -> None:
    """Leave in asv's list of benchmarks those that ``results`` have points of, and the values of their parameters.

    asv would show empty frames, or an error, for the others. Points are stored with the values of their parameters, so
    none is lost.
    """
    measured: dict[str, list[set[str]]] = {}
    for benchmark, values in map(parts_of, {name for result in results for name in result.points}):
        for seen, value in zip(measured.setdefault(benchmark, [set() for _ in values]), values, strict=True):
            seen.add(value)
    listed = read_json(path)
    for name, benchmark in list(listed.items()):
        if name in measured:
            axes = zip(benchmark["params"], measured[name], strict=True)
            benchmark["params"] = [[value for value in axis if value in seen] for axis, seen in axes]
        elif isinstance(benchmark, dict):  # asv's own entry is its schema's number
            del listed[name]
    write_json(path, listed)


def arrange(index: dict[str, Any], measured: Collection[str]) -> None:
    """Put asv's benchmarks into the order of the table of series, and label some ``measured`` commits on the graphs.

    asv labels tags. A labelled commit is far enough from the one before it and from the newest.
    """
    order = {series.benchmark: number for number, series in enumerate(SERIES)}
    benchmarks = index["benchmarks"].items()
    index["benchmarks"] = dict(sorted(benchmarks, key=lambda one: order.get(one[0].rpartition(".")[2], len(order))))
    commits = sorted((int(revision), name) for revision, name in index["revision_to_hash"].items() if name in measured)
    gap = max(1, (commits[-1][0] - commits[0][0]) // LABELS)
    labelled = commits[:1]
    for revision, name in commits:  # a label of the newest would leave the graph at its right
        if revision - labelled[-1][0] >= gap and commits[-1][0] - revision >= gap:
            labelled.append((revision, name))
    index["tags"] |= {name[:7]: revision for revision, name in labelled}


def label_gaps(index: dict[str, Any], gaps: Mapping[Gap, int], revisions: Mapping[str, int]) -> None:
    """Label on the graphs the commits that have no point, given with their dates: ``0123abcd does not import``.

    They come first, since of two labels at one place the pages show the first.
    """
    labels = {}
    for gap, date in gaps.items():
        number = labels[gap.reason.partition(":")[0]] = revisions[gap.commit]
        index["revision_to_hash"][str(number)], index["revision_to_date"][str(number)] = gap.commit, date
    index["tags"] = labels | index["tags"]


def draw_worst(html: Path, results: Iterable[Result], revisions: Mapping[str, int]) -> None:
    """Draw in asv's grid, for each benchmark, the series that grew most since its first point: the largest ratio at
    each commit. The mean of all, which asv draws, hides one block that regressed."""
    first: dict[tuple[str, str], float] = {}
    worst: dict[str, dict[int, float]] = {}
    for result in sorted(results, key=lambda one: revisions[one.commit]):
        for name, point in result.points.items():
            before = first.setdefault((result.path.parent.name + result.data["env_name"], name), point.value)
            if before > 0:
                at = worst.setdefault(name.partition("(")[0], {})
                number = revisions[result.commit]
                at[number] = max(at.get(number, 0.0), point.value / before)
    for name, at in worst.items():
        write_text(html / "graphs/summary" / f"{name}.json", json.dumps(list(at.items())))


def name_series(html: Path, index: Mapping[str, Any], suite: Suite) -> None:
    """Put names of the field into asv's list, and leave out what was not measured."""
    for path in html.glob("graphs/*/**/summary.json"):
        rows, device = json.loads(path.read_text(encoding="utf-8")), "cpu" if "gpu-none" in path.parts else "cuda"
        for row in rows:
            values = [*itertools.product(*index["benchmarks"][row["name"]]["params"])][row["idx"] or 0]
            known = suite.names.get(f"{row['name'].partition('.')[2]}({', '.join(values)})")
            if known is not None:  # else a benchmark of asv that is not in the table
                row["pretty_name"] = f"{known[0].title} ({known[1].described(device)})"
        write_text(path, json.dumps([row for row in rows if row["last_value"] is not None]))


def adapt_pages(html: Path) -> str | None:
    """Let asv's pages print names of the field and legible labels, and fit narrow windows.

    Returns the reason why not, for an unknown asv.
    """
    for name, theirs, ours in SCRIPTS:
        script = (html / name).read_text(encoding="utf-8")
        if theirs not in script:
            return f"the pages print internal names: {name} is not that of the versions of asv that are known"
        write_text(html / name, script.replace(theirs, ours))
    write_text(html / "asv.css", (html / "asv.css").read_text(encoding="utf-8") + NARROW)
    return None


def list_regressions(
    html: Path,
    index: dict[str, Any],
    found: Iterable[tuple[SuspectedRegression, Result]],
    revisions: Mapping[str, int],
    project: str,
) -> None:
    """Make asv's page and feed of regressions list the rises that were ``found``, each with its machine's newest point.

    The names stay asv's, which accepted rises are listed by; ``name_series`` lets the page print those of the field.
    """
    from asv.feed import FeedEntry, write_atom
    from asv.graph import Graph

    listed: list[list[Any]] = []
    entries, index["names"] = [], {}
    for rise, newest in found:
        name, values = parts_of(rise.of.name)
        benchmark = index["benchmarks"][name]
        number = [*itertools.product(*benchmark["params"])].index(values)
        graph = next(one for one in index["graph_param_list"] if newest.data["params"].items() <= one.items())
        several = {key: value for key, value in graph.items() if len(index["params"][key]) > 1}
        jump = [revisions[rise.good], revisions[rise.commit], rise.before, rise.after]
        graph_file = f"{Graph.get_file_path(graph, name)}.json"
        listed.append([rise.of.name, graph_file, several, number, rise.after, rise.before, [jump]])
        index["names"][rise.of.name] = title(rise.of)
        chosen = {f"p-{axis}": value for axis, value in zip(benchmark["param_names"], values, strict=True)}
        commits = {"commits": f"{rise.good}-{rise.commit}"}
        entries.append(
            FeedEntry(
                f"{100 * rise.change:+.1f} % {title(rise.of)}",
                datetime.fromtimestamp(index["revision_to_date"][str(jump[1])] / 1000, UTC).replace(tzinfo=None),
                f"index.html#{name}?{urlencode(several | chosen | commits)}",
                id_context=[rise.of.name, rise.good, rise.commit],
            )
        )
    write_json(html / "regressions.json", {"regressions": listed})
    write_atom(str(html / "regressions.xml"), entries, "asv", f"{project}: regressions", f"{project}.asv")
