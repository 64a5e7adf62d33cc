"""Write the pages of docs/results from the committed rows, or check them: ``python -m docs.pages [--check]``.

The prose is in the templates. Every number, table, figure and verdict comes from the rows in docs/data, the history's
points, and the lines of the proofs, so another state of these gives other pages.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from docs.pages import claims, history, known_cost, tables
from docs.pages.committed import Committed, Repetition, Study, profile_of
from highway_bench.decide.tables import tables as decide_tables
from highway_bench.errors import HighwayBenchError
from highway_bench.export.text import every_plain_torch
from highway_bench.history import Paths
from highway_bench.history.files import write_text
from highway_bench.peers.table import peer_table, peer_tables
from highway_bench.report.choice.columns import KNOWN
from highway_bench.report.choice.known import FINALS, FOLDER, PLAIN, TABLE, bytes_of
from highway_bench.report.choice.table import finals_of, wide_table
from highway_bench.report.choice.taken import taken
from highway_bench.report.columns import Head, Shown
from highway_bench.report.definitions import DEFINITIONS
from highway_bench.report.figures import NothingToShow, Picture, figures, svg_text
from highway_bench.report.figures.overview import overview_picture
from highway_bench.report.format import between, quantity, three
from highway_bench.report.markdown import markdown_table, shown_lines
from highway_bench.report.ratio import quoted
from highway_bench.report.results import Results
from highway_bench.report.sections.base import sections
from highway_bench.report.sections.throughput import mode_table, rate_table
from highway_bench.report.summary_tables import summary_tables
from highway_bench.report.tables.trainability import gives_verdicts

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README": ("depth", "decide"), "depth": ("depth",), "start": ("start",), "cost": ("cost",),
         "decide": ("decided",), "literature": (), "history": (), "peers": ("peers",), "tool": ()}  # fmt: skip
"""The pages, and the studies whose rows each shows."""
OF_CLAIMS = ("README", "literature")
"""The pages that show the rows of all reproductions."""
TEXT = re.compile(r"<(title|desc|text)\b[^>]*>(.*?)</\1>", re.DOTALL)


class Site:
    """The pages in the making. Templates ask it for studies, findings and figures; figures become files."""

    def __init__(self, data: Path, points: Path) -> None:
        self.data, self.points = data, points
        self.committed = Committed.of(data)
        self.studies = {one.name: one for one in studies(self.committed)}
        self.files: dict[str, str] = {}

    def write(self, *pages: str) -> dict[str, str]:
        """The texts of these pages, by default of all, and of their figures, by their path in the folder of results."""
        templates = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        templates.filters |= {"table": markdown, "three": three, "prose": inspect.getdoc}
        templates.globals |= {**HELPERS, **self.studies, "site": self}
        for page in pages or PAGES:
            used = [self.studies[name] for name in PAGES[page]]
            used += [one.study for one in self.repetitions] if page in OF_CLAIMS else []
            text = templates.get_template(f"{page}.md.j2").render(page=page, measured_by=tables.provenance(used))
            self.files[f"{page}.md"] = re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
        return self.files

    @cached_property
    def repetitions(self) -> list[Repetition]:
        return self.committed.repetitions()

    @cache  # noqa: B019 (a site is made once)
    def known(self) -> dict[str, pd.DataFrame]:
        """The tables that travel with the package, by the names of their files."""
        results = self.studies["decided"].results
        if results is None:
            return {}
        table = wide_table(results, KNOWN)
        return {TABLE: table, FINALS: finals_of(results), PLAIN: every_plain_torch(table)}

    def overview(self, table: pd.DataFrame) -> str:
        """The overview of the wide table, in Markdown; the table itself becomes a file."""
        self.files["answers.csv"] = table.to_csv(index=False, float_format="%.4g")
        return self.pictures("overview", [overview_picture(table)])

    @property
    def machines(self) -> list[history.MachineHistory]:
        return history.machines(self.points, Paths.of(ROOT).suite())

    def proof(self, name: str) -> str:
        """The tables of a proof, in Markdown; empty if it has not been collected."""
        return history.judged(f"{name}_proof", self.data / f"{name}-proof.jsonl")

    @property
    def benchmarks(self) -> Shown:
        return tables.benchmark_table(self.data)

    @property
    def known_costs(self) -> Shown:
        return known_cost.known_cost_table(self.data / known_cost.FILE)

    @property
    def durations(self) -> Shown:
        return tables.duration_table(self.committed.runs)

    def drawn(self, study: Study, *names: str) -> str:
        """The figures of these kinds from the rows of ``study``, in Markdown."""
        every: list[Picture] = []
        for name in names:
            try:
                every += figures.get(name).draw(study.results) if study.results else []
            except NothingToShow:
                continue
        return self.pictures(study.name, every)

    def pictures(self, prefix: str, every: Iterable[Picture]) -> str:
        """Pictures in Markdown, each of which becomes a file."""
        lines = []
        for one in every:
            stem = one.name if one.name.startswith(prefix) else f"{prefix}-{one.name}"
            path = next(name for name in numbered(f"images/{stem}") if name not in self.files)
            svg = svg_text(one).replace(f"{one.name}-", "")  # ids need no name in a file of their own
            self.files[path] = svg + "\n"
            lines += [f"![{one.title}]({path})", "", f"*{one.caption}*", ""]
        return "\n".join(lines)


def numbered(stem: str) -> Iterator[str]:
    """Names of figures: of several sizes of one reproduction, the figures have the same name."""
    yield f"{stem}.svg"
    yield from (f"{stem}-{number}.svg" for number in count(2))


def studies(committed: Committed) -> list[Study]:
    """The studies besides the reproductions, each with the command that measures it."""

    def of(*profiles: str) -> Any:
        return lambda words: profile_of(words) in profiles

    depth = committed.study("depth", "highway-bench run --profile frontier", of("frontier"), "trainability")
    if depth.rows.empty:
        depth = committed.study("depth", depth.command, of("standard"), "trainability")
    depth = replace(depth, rows=depth.rows[depth.rows["recipe"].map(gives_verdicts).astype(bool)])
    cost = committed.study(
        "cost", "highway-bench run throughput memory cost", of("standard"), "throughput", "memory", "cost"
    )
    decide = committed.study(
        "decide", "highway-bench decide --part vision", lambda words: words[:1] in (["decide"], ["forecast"])
    )
    return [
        priced(depth, cost, committed),
        cost,
        committed.study("start", "highway-bench run propagation", of("standard"), "propagation"),
        committed.study("peers", "highway-bench peers", lambda words: words[:1] == ["peers"]),
        priced(tables.without_lone_blocks(decide), cost, committed),
        replace(decide, name="decided"),  # with the runs of equal seconds, whose blocks each have steps of their own
    ]


def priced(study: Study, cost: Study, committed: Committed) -> Study:
    """``study`` with the costs of its families and depths, for the answer's table, if it has timed nothing itself."""
    if study.rows["task"].eq("throughput").any():
        return study
    alike = ["family", "depth"]
    trained = pd.MultiIndex.from_frame(study.rows[alike])
    rows = cost.rows[pd.MultiIndex.from_frame(cost.rows[alike]).isin(trained)]
    chosen = committed.rows[committed.rows.index.isin([*study.rows.index, *rows.index])]
    return Study(study.name, study.command, chosen, {**cost.runs, **study.runs})


def markdown(shown: Shown, explained: set[Head] | None = None) -> str:
    """A table with its note, in Markdown; empty without rows. ``explained`` are headings that tables above it have."""
    return "\n".join(shown_lines(shown, explained)) if shown.entries else ""


def ratio_table(results: Results) -> Shown:
    """Each block's step time over plain's, in the phase in which costs are compared; plain's step in time."""
    timed, baseline = results.ratios(), results.about.baseline
    timed = timed[timed["phase"].eq(results.phase()) & timed["mode"].eq("eager")]

    def text(row: Mapping[str, Any]) -> str:
        if row["block"] == baseline:
            return quantity(row["step_time"], "s")
        return quoted(row["ratio"], row["ratio_low"], row["ratio_high"], row["ratio_gap"] or "")

    note = f"{baseline}: median step; the others: ratio to it with the 95 % interval over processes."
    return tables.by_block("step-ratios", f"Step time ({results.phase()})", results, timed, text, note=note)


def byte_table(results: Results) -> Shown:
    """The bytes per layer that autograd saves."""
    counted = results.memory()
    return tables.by_block(
        "bytes",
        "Bytes per layer that are saved for the backward pass",
        results,
        counted[counted["saved_per_layer"].notna()],
        lambda row: quantity(row["saved_per_layer"], "B"),
        note="Counted exactly: no interval.",
    )


def start_tables(results: Results) -> list[Shown]:
    """The tables of starts: verdicts by family, by gain, and the layers that the first steps leave unchanged."""
    return [shown for shown in sections.get("propagation").summary(results) if shown.entries]


HELPERS: Mapping[str, Any] = {
    "between": between,
    "byte_table": byte_table,
    "by_verdict": claims.by_verdict,
    "claim_lines": claims.claim_lines,
    "group_of": claims.group_of,
    "decide_tables": decide_tables,
    "definitions": dict(DEFINITIONS),
    "headings": set,
    "markdown_table": lambda heads, rows: "\n".join(markdown_table(heads, rows)),
    "mode_table": mode_table,
    "peer_spans": lambda results: tables.peer_spans(peer_table(results.rows)),
    "peer_tables": lambda results: peer_tables(peer_table(results.rows)) if results else [],
    "rate_table": rate_table,
    "ratio_table": ratio_table,
    "start_tables": start_tables,
    "summary_tables": lambda results: [one for one in summary_tables(results) if one.name.startswith("summary")],
    "taken": taken,
    "tally": claims.tally,
}
"""What templates call."""


def differences(written: Mapping[str, str], folder: Path) -> list[str]:
    """The lines in which files of ``folder`` are not as ``written``. Of a figure, its texts count: the
    paths of its curves are rounded differently on another machine."""
    lines = []
    for name, text in sorted(written.items()):
        path = folder / name
        stored = path.read_text(encoding="utf-8") if path.is_file() else ""
        old, new = (TEXT.findall(one) if name.endswith(".svg") else one.splitlines() for one in (stored, text))
        if old != new:
            changed = difflib.unified_diff(list(map(str, old)), list(map(str, new)), n=0, lineterm="")
            lines += [f"{name}: {line}" for line in list(changed)[2:]] or [f"{name}: differs"]
    return lines


def is_stored(table: pd.DataFrame, path: Path) -> bool:
    """Whether the file at ``path`` has these values."""
    if not path.is_file():
        return False
    stored = pd.read_parquet(path)
    try:
        pd.testing.assert_frame_equal(stored, table, check_dtype=False, rtol=1e-9)
    except AssertionError:
        return False
    return True


def others(written: Mapping[str, str], folder: Path) -> list[Path]:
    """The pages and figures of ``folder`` that are not ``written``."""
    present = [*folder.glob("*.md"), *folder.glob("*.csv"), *folder.glob("images/*.svg")]
    return [path for path in sorted(present) if str(path.relative_to(folder)) not in written]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if the pages are not those of the rows."""
    parser = argparse.ArgumentParser(prog="python -m docs.pages", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the pages with the rows; write nothing")
    parser.add_argument("--page", action="append", choices=PAGES, default=[], help="only this page; repeatable")
    parser.add_argument("--data", type=Path, default=ROOT / "docs/data", help="the folder of committed rows")
    parser.add_argument("--points", type=Path, default=ROOT / "reports/asv/results", help="the history's points")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results", help="the folder of the pages")
    parser.add_argument("--known", type=Path, default=FOLDER, help="the folder of the tables in the package")
    given = parser.parse_args(arguments)
    try:
        site = Site(given.data, given.points)
        written, known = site.write(*given.page), {} if given.page else site.known()
    except HighwayBenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    old = [] if given.page else others(written, given.out)
    if given.check:
        stale = [*old, *(given.known / name for name in known if not is_stored(known[name], given.known / name))]
        changed = [*differences(written, given.out), *(f"{path.name}: not of these rows" for path in stale)]
        sys.stdout.write("\n".join(changed or [f"{len(written) + len(known)} files are those of the rows"]) + "\n")
        return 1 if changed else 0
    for path in old:
        path.unlink()
    for name, text in written.items():
        write_text(given.out / name, text)
    for name, table in known.items():
        (given.known / name).write_bytes(bytes_of(table))
    sys.stdout.write(f"{len(written)} files in {given.out}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
