"""How well the cost of a run is known before it: predicted time and peak memory, and what was then measured.

    nox -s proof -- cost                    # all settings, a quarter of an hour on two cores
    nox -s proof -- cost --minutes 5        # a part; the same command goes on
    nox -s proof -- cost --rows docs/data/cost-known.jsonl

A setting is a connection in a family, or in a user's layer, at one depth. Time and memory are predicted as
``--dry-run`` predicts them, from shallow networks. Then the task ``memory`` measures a step, and a training on digits
is run. A training that diverges ends before its last step, so it has no time. A line of JSON for each setting is added
to the file of rows; settings that have a line of this commit and machine are not measured again.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pandas as pd

from benches.proofs.lines import add_line, read_lines
from highway_bench.cell import Cell
from highway_bench.execution.progress import Event, Finished
from highway_bench.execution.runner import run_cells
from highway_bench.families import families, make_family
from highway_bench.plugins import load_plugins
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.report import columns as column
from highway_bench.report.columns import shown, shown_lines
from highway_bench.report.format import three
from highway_bench.results import Store
from highway_bench.results.schema import FAILURES, Status
from highway_bench.tasks import tasks
from highway_bench.tasks.predicted_costs import predicted_bytes, predicted_seconds

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ROOT / "examples/user_layers.py"
USERS = "user_layers:feed_forward"
CONNECTIONS = ("plain", "highway", "pre-norm", "hc-dynamic", "dense-average", "attn-residual")
DEPTHS = (16, 40)
WIDTHS: Mapping[str, int] = {"vector": 64, "image": 16, "sequence": 32}
STEPS: Mapping[str, int] = {"vector": 400, "image": 80, "sequence": 40}  # so that a training takes a second or more
RECIPE = {"rate": 0.01, "evaluate": "never"}
FILE: Final = "cost-known.jsonl"
SOURCE: Final = ("machine", "commit")
"""What a line was measured on, and by which code."""
RATIOS: Final = {
    "peak memory": ("predicted_bytes", "peak_bytes"),
    "its closed form": ("closed_form_bytes", "peak_bytes"),
    "time": ("predicted_seconds", "seconds"),
    "its closed form's": ("closed_form_seconds", "seconds"),
}
"""By heading: what is divided by what was measured."""


def settings() -> list[Cell]:
    """The training of every setting, family by family."""
    every = []
    for family, depth, block in product((*families, USERS), DEPTHS, CONNECTIONS):
        kind = make_family(family).kind
        width, recipe = WIDTHS[kind], RECIPE | {"steps": STEPS[kind]}
        cell = Cell(task="trainability", block=block, family=family, depth=depth, width=width, nominal_width=width)
        every.append(cell.but(match="width", batch_size=32, dataset="digits", recipe=recipe))
    return every


def step_of(training: Cell) -> Cell:
    """The cell that measures the peak of a step of the same layers."""
    steps = 8 if make_family(training.family).kind == "sequence" else None
    return training.but(task="memory", dataset=None, recipe={}, phase="train-step", seq_len=steps)


def predictions(training: Cell) -> dict[str, float]:
    """What is known before the run, and the closed forms."""
    step = step_of(training)
    return {
        "predicted_bytes": predicted_bytes(step),
        "closed_form_bytes": tasks.get("memory").cost(step).bytes,
        "predicted_seconds": predicted_seconds(training),
        "closed_form_seconds": tasks.get("trainability").cost(training).seconds,
    }


def measured(trainings: Sequence[Cell], store: Store) -> Iterator[dict[str, Any]]:
    """A line for each of ``trainings`` that did not fail; without seconds for one that ended before its last step.

    What failed is named on stderr."""
    before = {one: predictions(one) for one in trainings}
    seconds: dict[Cell, float | None] = {}

    def note(event: Event) -> None:
        if isinstance(event, Finished) and event.status in FAILURES:
            sys.stderr.write(f"{event.cell}: {event.status} ({event.message})\n")
        elif isinstance(event, Finished):
            seconds[event.cell] = None if event.status == Status.DIVERGED else event.seconds

    cells = [step_of(one) for one in trainings]
    ran = run_cells([*cells, *trainings], store, workers=1, on_event=note, rerun="all", plugins=plugins())
    for training, step in zip(trainings, cells, strict=True):
        if training in seconds and step in seconds:
            yield {
                **{name: getattr(training, name) for name in ("family", "block", "depth", "width", "batch_size")},
                **before[training],
                "peak_bytes": store.scalars(ran.digests[step])["peak"],
                "seconds": seconds[training],
                "machine": identity().machine,
                "torch": identity().torch,
                "commit": source_commit(),
                "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            }


def judge(path: Path) -> list[str]:
    """A table in Markdown with a row for each family: the settings, and the range of each prediction over what was
    measured. Of several machines and commits, those of the last line."""
    table = pd.DataFrame(read_lines(path))
    where = dict(table.iloc[-1][[*SOURCE]]) if len(table) else {}
    for name, value in where.items():
        table = table[table[name] == value]
    records: list[dict[str, Any]] = []
    for family, part in table.groupby("family", sort=True) if len(table) else ():
        ratios = {name: part[predicted] / part[measured] for name, (predicted, measured) in RATIOS.items()}
        ranges = {name: f"{three(one.min())} to {three(one.max())}" for name, one in ratios.items()}
        numbers = {"settings": len(part), "timed": part["seconds"].count()}
        records.append({"family": str(family).rpartition(":")[2], **numbers, **ranges})
    columns = [
        column.words("family", "family"),
        column.whole("settings", "settings"),
        column.whole("timed", "timed", "trainings that ran to their last step"),
    ]
    columns += [column.words(name, name) for name in RATIOS]
    note = "Predicted ÷ measured, the range over connections and depths. A training that diverged is not timed."
    note += f" Measured on {where['machine']} at {str(where['commit'])[:8]}." if where else ""
    return shown_lines(shown("known-cost", "Cost predicted before a run", pd.DataFrame(records), columns, note=note))


def plugins() -> tuple[str, ...]:
    """The modules of the user's layers, importable here and in workers."""
    return load_plugins([str(LAYERS)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the settings that have no line, family by family, and print the table; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=Path, default=ROOT / "reports" / FILE)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no family after this time")
    given = parser.parse_args(arguments)
    plugins()
    began = time.monotonic()
    known = {tuple(line[name] for name in ("family", "block", "depth", *SOURCE)) for line in read_lines(given.rows)}
    here = identity().machine, source_commit()
    left = [one for one in settings() if (one.family, one.block, one.depth, *here) not in known]
    failed = 0
    with TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
        for family in dict.fromkeys(one.family for one in left):
            if time.monotonic() - began < 60 * given.minutes:
                own = [one for one in left if one.family == family]
                lines = list(measured(own, store))
                for line in lines:
                    add_line(given.rows, line)
                failed += len(own) - len(lines)
                sys.stderr.write(f"{family}: {time.monotonic() - began:.0f} s\n")
    sys.stdout.write("\n".join([*judge(given.rows), ""]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
