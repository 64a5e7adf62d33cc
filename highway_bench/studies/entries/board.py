"""The board: every entry of a folder, checked and on one page. ``python -m highway_bench.studies.entries.board``.

With ``--check`` it fails if a card is not that of its rows, if two of an entry's seeds, trained again in its first
column, end elsewhere, or if the page is not that of the entries.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev

from scipy import stats

from highway_bench.errors import HighwayBenchError
from highway_bench.frames.results import Results
from highway_bench.frames.rows import without_start
from highway_bench.report.choice.table import log_losses
from highway_bench.report.columns import markdown_table
from highway_bench.report.format import between, signed, three
from highway_bench.results.parquet import ParquetRows
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.decide.rounds import Trainer, ended
from highway_bench.studies.entries.columns import ColumnResult
from highway_bench.studies.entries.folder import ABOUT, CARD, ROWS, Entry, read_entry
from highway_bench.studies.entries.protocol import VERSION, EntryColumn, entry_columns

PAGE = "README.md"
REPEATED = (0, 1)
"""The seeds that a check trains again."""
LEVEL = 0.001
"""A repetition is another result if losses so far apart are as rare as this."""


def entries(folder: Path) -> list[Entry]:
    """The entries in ``folder``, by name."""
    return [read_entry(path.parent) for path in sorted(folder.glob(f"*/{ABOUT}"))]


def problems(entry: Entry, columns: Sequence[EntryColumn]) -> Iterator[str]:
    """What is wrong with an entry of this protocol."""
    entry.load()
    if entry.card(columns) != (entry.folder / CARD).read_text("utf-8"):
        yield f"{entry.name}: {CARD} is not that of {ROWS}"
    first = next((one for one in entry.results(columns) if one.seeds), None)
    if first is None:
        yield f"{entry.name}: {ROWS} has no column"
        return
    column = next(one for one in columns if one.label == first.label)
    (candidate,) = (one for one in column.candidates(entry.name) if one.template.start == first.start)
    again, before = repeated(candidate, column, first), losses(entry, candidate, column)
    if not agree(again, before):
        yield f"{entry.name}: {first.label} ends at {_text(again)} here, and at {_text(before)} in {ROWS}"


def repeated(candidate: Candidate, column: EntryColumn, first: ColumnResult) -> list[float]:
    """The logarithms of the losses of two seeds, trained again."""
    cells = [candidate.run(column.depth, first.rate, seed) for seed in REPEATED]
    result = Trainer(None).measure(cells)
    found = ended(result.rows, result.summary.digests)
    return [math.log(end.loss) if end.loss else math.inf for end in (found[cell] for cell in cells)]


def losses(entry: Entry, candidate: Candidate, column: EntryColumn) -> list[float]:
    """The logarithms of the losses of an entry's finals in a column."""
    rows = ParquetRows(entry.folder / ROWS)
    runs = Results(rows.frame(), rows.runs()).training_runs()
    place = runs["depth"].eq(column.depth) & runs["dataset"].eq(str(candidate.template.dataset))
    return list(log_losses(runs[place & runs["block"].map(without_start).eq(entry.name)]).values())


def agree(again: Sequence[float], before: Sequence[float]) -> bool:
    """Whether runs that were made again may be of the same distribution: the difference of means by the scatter of
    those before, by Student's t."""
    if not all(map(math.isfinite, [*again, *before])) or len(before) < 2:
        return sorted(map(math.isfinite, again)) == sorted(map(math.isfinite, before[: len(again)]))
    reach = float(stats.t.ppf(1 - LEVEL / 2, len(before) - 1)) * stdev(before)
    return abs(fmean(again) - fmean(before)) <= reach * math.sqrt(1 / len(again) + 1 / len(before))


def page(found: Sequence[Entry], columns: Sequence[EntryColumn]) -> str:
    """The board as Markdown: entries of this protocol with their columns, those of others by name."""
    own = [entry for entry in found if entry.about["protocol"] == VERSION]
    rows = []
    for entry in own:
        entry.load()
        cells = [_cell(one) for one in entry.results(columns)]
        rows.append([f"[{entry.name}]({entry.name})", str(entry.about["paper"]), *cells, str(entry.about["machine"])])
    others = [f"{entry.name} (protocol {entry.about['protocol']})" for entry in found if entry not in own]
    heads = ["connection", "paper", *(one.label for one in columns), "machine"]
    return "\n".join(
        [
            "<!-- Written by `nox -s entries`. -->",
            "# Entries",
            "",
            f"Held-out loss against pre-norm's in per cent, [95 % for all columns]; protocol {VERSION}.",
            "[How to enter](../docs/papers.md#enter-a-block).",
            "",
            *markdown_table(heads, rows),
            "",
            *(f"![{entry.name}]({entry.name}/{CARD})" for entry in own),
            *([f"\nOf another protocol: {', '.join(others)}."] if others else []),
            "",
        ]
    )


def _cell(one: ColumnResult) -> str:
    if not one.difference.n:
        return one.word
    value = f"{signed(one.difference.value, '+.1f')} {between(one.difference.low, one.difference.high, _signed)}"
    return f"{one.word}: {value}, × {three(one.step.value)} step"


def _signed(value: float) -> str:
    return signed(value, "+.1f")


def _text(logs: Sequence[float]) -> str:
    return ", ".join(three(math.exp(one)) for one in logs)


def main() -> None:
    """Write the board, or check it and its entries."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("entries"))
    given = parser.parse_args()
    try:
        found, columns = entries(given.folder), entry_columns()
        text = page(found, columns)
        wrong = [line for one in found if given.check and one.about["protocol"] == VERSION
                 for line in problems(one, columns)]  # fmt: skip
    except HighwayBenchError as error:
        parser.exit(error.exit_status, f"{error}\n")
    if not given.check:
        (given.folder / PAGE).write_text(text, "utf-8")
    elif text != (given.folder / PAGE).read_text("utf-8"):
        wrong.append(f"{given.folder / PAGE} is not that of the entries: nox -s entries writes it")
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    parser.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
