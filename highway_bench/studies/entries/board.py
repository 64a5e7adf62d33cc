"""The board: every entry of a folder on one page, ``python -m highway_bench.studies.entries.board``.

With ``--check`` each entry is checked first, in a process of its own, since its block's code runs there. Its card must
follow from its rows. Its rows must be all that the protocol asks for, and nothing else. Two seeds of its first column
must end as they did. The page is written in any case.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Final

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.frames.results import Results
from highway_bench.plugins import load_plugins
from highway_bench.report.choice.table import finals_of
from highway_bench.report.columns import markdown_table
from highway_bench.results import import_rows
from highway_bench.results.parquet import ParquetRows
from highway_bench.studies.decide.rounds import Trainer, rounds, stored_ends
from highway_bench.studies.entries.columns import ColumnResult, held_out
from highway_bench.studies.entries.folder import ABOUT, CARD, ROWS, Entry, per_cent, read_entry, step_text
from highway_bench.studies.entries.protocol import EntryColumn, EntryWork, entry_columns, protocol_name

PAGE: Final = "README.md"
REPEATED: Final = (0, 1)
"""The seeds that a check trains again."""
REACH: Final = 4.0
"""Standard deviations of pre-norm's committed losses by which the repeated ones may differ on another machine."""


def problems(entry: Entry, columns: Sequence[EntryColumn], *, quick: bool) -> Iterator[str]:
    """What is wrong with an entry of this protocol, whose block's code runs here; ``quick`` trains nothing again."""
    if entry.card(columns) != (entry.folder / CARD).read_text("utf-8"):
        yield f"{CARD} is not that of {ABOUT} and {ROWS}"
    (module,) = load_plugins([entry.block_file])
    if entry.name not in blocks or blocks.module_of(entry.name) != module:
        yield f"{entry.about['file']} does not register it"
        return
    if blocks.get(entry.name).equation != entry.about["equation"]:
        yield f"its equation is not that of {entry.about['file']}"
    missing = entry.about["missing"]
    here = EntryWork(entry.name, [replace(one, missing=missing.get(one.label, "")) for one in columns])
    if here.missing != missing:
        yield f"the columns that are missing are {', '.join(here.missing) or 'none'}"
    yield from rows_problems(entry, here)
    measured = [one for one in columns if one.label not in missing]
    if quick or not measured:
        return
    if measured[0].missing:
        yield f"{measured[0].label} cannot be repeated here: {measured[0].missing}"
    else:
        yield from repetition_problems(entry, measured[0])


def rows_problems(entry: Entry, work: EntryWork) -> Iterator[str]:
    """Whether the rows are those of the protocol's trainings."""
    with TemporaryDirectory() as scratch:
        store = Path(scratch) / "rows.sqlite"
        import_rows(store, entry.folder / ROWS)
        asked = rounds(work.pending, lambda cells: stored_ends(store, cells))
        lacking = [cell for cell, end in asked.items() if end is None]
    if lacking:
        yield f"{ROWS} lacks {len(lacking)} trainings, the first: {lacking[0]}"
    rows = ParquetRows(entry.folder / ROWS).frame()
    trained = rows.loc[rows["task"].eq("trainability"), "digest"].nunique()
    if trained > len(asked):
        yield f"{ROWS} has {trained} trainings, and the protocol asks for {len(asked)}"


def repetition_problems(entry: Entry, column: EntryColumn) -> Iterator[str]:
    """Whether two seeds end as they did in ``column``, up to the scatter of pre-norm's committed seeds."""
    result = next(one for one in entry.results([column]) if one.label == column.label)
    (own,) = (one for one in column.candidates(entry.name) if one.template.start == result.start)
    runs = Trainer(None).measure(own.run(column.depth, result.rate, seed) for seed in REPEATED)
    again, before = (held_out(finals_of(one), column, entry.name) for one in (Results(runs.rows), entry.read()))
    pairs = [(again.get(seed, math.nan), before.get(seed, math.nan)) for seed in REPEATED]
    if not agree(pairs, column.committed()):
        ends = (", ".join(f"{loss:.4g}" for loss in losses) for losses in zip(*pairs, strict=True))
        yield "{}: seeds 0 and 1 end at {} here, and at {} in {}".format(column.label, *ends, ROWS)


def agree(pairs: Sequence[tuple[float, float]], scatter: Mapping[int, float]) -> bool:
    """Whether held-out losses that were measured again, the first of each pair, may be those of before; those that
    diverged must diverge again. ``scatter`` are pre-norm's by seed."""
    if any(math.isnan(one + other) or math.isinf(one) != math.isinf(other) for one, other in pairs):
        return all(math.isinf(one) and math.isinf(other) for one, other in pairs)
    apart = [math.log(one / other) for one, other in pairs if math.isfinite(one)]
    return not apart or abs(fmean(apart)) <= REACH * stdev(map(math.log, scatter.values()))


def problems_apart(folder: Path, *options: str) -> list[str]:
    """The problems of the entry in ``folder``, from a process of its own."""
    command = [sys.executable, "-m", "highway_bench.studies.entries.board"]
    done = subprocess.run([*command, "--entry", str(folder), *options], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode and not lines:
        lines = [f"{folder.name}: {(done.stderr.splitlines() or ['the check ended without a word'])[-1]}"]
    return lines


def page(entries: Sequence[Entry], columns: Sequence[EntryColumn]) -> tuple[str, list[str]]:
    """The board as Markdown, and what is wrong: entries of this protocol with their columns, those of others by
    name."""
    protocol, rows, cards, others, wrong = protocol_name(columns), [], [], [], []
    for entry in entries:
        if entry.about["protocol"] != protocol:
            others.append(f"{entry.name} ({entry.about['protocol']})")
            continue
        try:
            cells = list(map(_cell, entry.results(columns)))
        except HighwayBenchError as error:
            wrong.append(f"{entry.name}: {error}")
            continue
        about = [str(entry.about[name]) for name in ("paper", "author", "machine")]
        rows.append([f"[{entry.name}]({entry.name}/{ABOUT})", *about[:2], *cells, about[2]])
        cards.append(f"![{entry.name}]({entry.name}/{CARD})")
    heads = ["connection", "paper", "by", *(one.label for one in columns), "machine"]
    text = [
        "<!-- Written by `nox -s entries`. -->",
        "# Entries",
        "",
        f"Held-out loss against pre-norm's in per cent, [95 % for all columns]; protocol {protocol}.",
        "[How to enter](../docs/papers.md#enter-a-block).",
        "",
        *(markdown_table(heads, rows) if rows else ["No entry yet."]),
        *(["", *cards] if cards else []),
        *(["", f"Of other protocols: {', '.join(others)}."] if others else []),
        "",
    ]
    return "\n".join(text), wrong


def _cell(one: ColumnResult) -> str:
    if not one.difference.n:
        return one.word
    return f"{one.word} {per_cent(one.difference.value, one.difference.low, one.difference.high)}, {step_text(one)}"


def read_all(folder: Path) -> tuple[list[Entry], list[str]]:
    """The entries in ``folder``, by name, and what is wrong with those that are none."""
    entries, wrong = [], []
    for path in sorted(folder.glob(f"*/{ABOUT}")):
        try:
            entries.append(read_entry(path.parent))
        except BadInput as error:
            wrong.append(str(error))
    return entries, wrong


def main() -> None:
    """Write the board, check its entries too, or check one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("entries"))
    parser.add_argument("--entry", type=Path, help="check this one alone, in this process")
    parser.add_argument("--quick", action="store_true", help="train nothing again")
    given = parser.parse_args()
    try:
        columns = entry_columns()
        if given.entry:
            entry = read_entry(given.entry)
            wrong = [f"{entry.name}: {line}" for line in problems(entry, columns, quick=given.quick)]
        else:
            entries, wrong = read_all(given.folder)
            text, unread = page(entries, columns)
            own = [one for one in entries if one.about["protocol"] == protocol_name(columns)]
            wrong += unread + [line for one in own if given.check for line in problems_apart(one.folder)]
            (given.folder / PAGE).write_text(text, "utf-8")
    except HighwayBenchError as error:
        parser.exit(error.exit_status, f"{error}\n")
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    parser.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
