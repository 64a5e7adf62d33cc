"""Write the pages of docs/results from the committed rows, or check them: ``python -m docs.pages [--check]``.

The prose is in the templates. Every number, table, figure and verdict comes from the rows in docs/data, the history's
points, and the lines of the proofs, so another state of these gives other pages. What a page has no room for is a CSV
file that it links to.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from docs.pages import tables
from docs.pages.committed import Committed, NotMeasured, Repetition
from highway_bench.errors import HighwayBenchError
from highway_bench.export.text import every_plain_torch
from highway_bench.frames.results import Results
from highway_bench.history.files import write_text
from highway_bench.report.choice.columns import KNOWN
from highway_bench.report.choice.table import finals_of, wide_table
from highway_bench.report.columns import TextTable
from highway_bench.report.figures import NothingToShow, Picture, figures, svg_text
from highway_bench.results.parquet import FINALS, FOLDER, PLAIN, TABLE

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README", "decide", "depth", "start", "cost", "literature", "history", "peers", "tool")
HEAD = "<!-- Written by `nox -s results` from docs/data and docs/pages/templates/{}.md.j2. -->\n"
FOOT = "\n\n[runs.csv](runs.csv): all runs with command, commit and machine.\n"
ABSENT = "**Not measured.** `{}` measures it."
TEXT = re.compile(r"<(?:title|desc|text)\b[^>]*>(.*?)</", re.DOTALL)


class Site:
    """The pages in the making. Templates ask it for results, tables and figures; figures and long tables are files."""

    def __init__(self, data: Path, points: Path) -> None:
        self.data, self.points = data, points
        self.committed = Committed.of(data)
        self.files: dict[str, str] = {}
        self.page = ""

    def write(self, *pages: str) -> dict[str, str]:
        """The texts of these pages, by default of all, and of their files, by their path in the folder of results."""
        loader = FileSystemLoader(ROOT / "docs/pages/templates")
        templates = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        templates.globals |= vars(tables) | {"site": self, "results": self.committed.results}
        for self.page in pages or PAGES:
            try:
                text = templates.get_template(f"{self.page}.md.j2").render()
            except NotMeasured as command:
                text = f"# {self.page}\n\n{ABSENT.format(command)}"
            self.files[f"{self.page}.md"] = re.sub(r"\n{3,}", "\n\n", HEAD.format(self.page) + text + FOOT)
        return self.files

    @cached_property
    def repetitions(self) -> list[Repetition]:
        return list(self.committed.repetitions())

    @cached_property
    def claims(self) -> pd.DataFrame:
        return tables.claim_table(self.repetitions)

    @cached_property
    def known(self) -> dict[str, pd.DataFrame]:
        """The tables that travel with the package, by the names of their files."""
        results = self.committed.results("decide")
        table = wide_table(results, KNOWN)
        return {TABLE: table, FINALS: finals_of(results), PLAIN: every_plain_torch(table)}

    def proof(self, name: str) -> str:
        """The tables of the proof ``name`` for its lines ``NAME-….jsonl``, in Markdown."""
        lines = next(self.data.glob(f"{name}-*.jsonl"), None)
        judge = import_module(f"benches.proofs.{name}").judge
        return "\n".join(judge(lines)) if lines is not None else ABSENT.format(f"nox -s proof -- {name}")

    def csv(self, name: str, table: pd.DataFrame | TextTable) -> str:
        """A link to a file with ``table``."""
        self.files[f"{name}.csv"] = tables.csv_text(table)
        return f"[{name}.csv]({name}.csv)"

    def drawn(self, results: Results, *names: str) -> str:
        """The first figure of each of these kinds, in Markdown."""
        every: list[Picture] = []
        for name in names:
            with suppress(NothingToShow):
                every += figures.get(name).draw(results)[:1]
        return self.pictures(every, f"{self.page}-")

    def pictures(self, every: Iterable[Picture], prefix: str = "") -> str:
        """Pictures in Markdown, each of which becomes a file."""
        lines = []
        for one in every:
            path = f"images/{prefix}{one.name}.svg"
            while path in self.files:  # of several sizes, figures have one name
                path = path.replace(".svg", "-2.svg")
            self.files[path] = svg_text(one).replace(f"{one.name}-", "") + "\n"  # ids need no name in their own file
            lines += [f"![{one.title}]({path})", "", f"*{one.caption}*", ""]
        return "\n".join(lines)


def differences(written: Mapping[str, str], folder: Path) -> list[str]:
    """The lines in which files of ``folder`` are not as ``written``. Of a figure, its texts count: the
    paths of its curves are rounded differently on another machine."""
    lines = []
    for name, text in sorted(written.items()):
        both = (
            TEXT.findall(one) if name.endswith(".svg") else one.splitlines() for one in (stored(folder / name), text)
        )
        lines += [f"{name}: {line}" for line in list(difflib.unified_diff(*both, n=0, lineterm=""))[2:]]
    return lines


def stored(path: Path) -> str:
    """The text of a file, empty if there is none; of a Parquet file, that of its table."""
    if not path.is_file():
        return ""
    return tables.csv_text(pd.read_parquet(path)) if path.suffix == ".parquet" else path.read_text(encoding="utf-8")


def others(written: Mapping[str, str], folder: Path) -> list[Path]:
    """The pages, tables and figures of ``folder`` that are not ``written``."""
    present = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in present if str(path.relative_to(folder)) not in written]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if the pages are not those of the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--page", action="append", choices=PAGES, default=[], help="only this")
    for name, folder in (("data", "docs/data"), ("points", "reports/asv/results"), ("out", "docs/results")):
        parser.add_argument(f"--{name}", type=Path, default=ROOT / folder)
    given = parser.parse_args(arguments)
    try:
        site = Site(given.data, given.points)
        written = site.write(*given.page)
    except HighwayBenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    package = site.known if "answers.csv" in written else {}
    old = [] if given.page else others(written, given.out)
    if given.check:
        changed = [*differences(written, given.out), *(f"{path}: not written" for path in old)]
        changed += differences({name: tables.csv_text(table) for name, table in package.items()}, FOLDER)
        sys.stdout.write("\n".join(changed or ["nothing differs"]) + "\n")
        return 1 if changed else 0
    for path in old:
        path.unlink()
    for name, text in written.items():
        write_text(given.out / name, text)
    for name, table in package.items():
        table.to_parquet(FOLDER / name, compression="zstd", index=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
