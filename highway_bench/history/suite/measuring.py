"""Measure a point: all values of one commit, from processes that run its package."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .process import CellLacking, PackageProcess, RequestFailed
from .series import BY_NAME, SERIES, HistoryCell, Judged, Suite

PROCESSES, MOST_PROCESSES = 3, 6  # in which a step's ratio is timed
PRECISION = 0.03  # half-width of every ratio's interval from which on no process is added
SAMPLES, SECONDS = 20, 0.5  # least rounds of a process, and their times added up
SEEDS, STEPS = 5, 200
WORST_LOSS, LEAST_LOSS = 1e3, 1e-6  # nat: of a run that diverged, since a plot needs finite values; the unit of losses
TRAINING = {
    "nominal_width": 32,
    "batch_size": 50,
    "dataset": "digits",
    "recipe": {"optimiser": "adam", "rate": 0.005, "decay": 0.1, "steps": STEPS, "threshold": 0.1},
}
RATIO, FLOP, SLOWDOWN, LOSS = (BY_NAME[name] for name in ("ratio", "flop", "slowdown", "log_loss"))
TIMES = ("ratio", "seconds", "gpu_seconds")
MEMORY = {"peak_bytes": "peak", "saved_bytes": "saved_activations"}  # series, and the metrics of the task
COUNTED = [series.name for series in SERIES if series.judged is Judged.EXACT and series.name not in MEMORY]


class SeriesKey(NamedTuple):
    """A series of the table, by name, at a cell."""

    series: str
    cell: HistoryCell


Values = dict[SeriesKey, list[float] | str]
"""The samples of each series, or the message of its failure. A series without a sample is n/a."""


def measure_point(suite: Suite, device: str, *, quick: bool) -> Values:
    """The values of the package that this interpreter's path finds first: n/a where it has no API for asv."""
    values: Values = {}
    suite = suite.on(device)
    time_cells(suite, device, values, quick)
    with PackageProcess(sys.path, device, 0) as process:
        for cell in suite.cells(SLOWDOWN, quick=quick):
            fields = {"phase": "forward-backward", "recipe": {"seconds": 0.1, "samples": 10}}
            add(values, cell, ["slowdown"], asked(process, "measured", cell, task="throughput", fields=fields))
    with ThreadPoolExecutor() as side_by_side:  # what is not timed
        counted = side_by_side.submit(count_cells, sys.path, device, suite.cells(FLOP, quick=quick))
        train_cells(suite, device, values, quick)
    return values | counted.result()


def count_cells(path: Sequence[str], device: str, cells: Iterable[HistoryCell], tree: Path | None = None) -> Values:
    """The exact counts of the package that ``path`` finds first, in a process of their own."""
    values: Values = {}
    with PackageProcess(path, device, 0, tree) as process:
        for cell in cells:
            add(values, cell, COUNTED, asked(process, "counts", cell))
            memory = asked(process, "measured", cell, task="memory", fields={"phase": "train-step"})
            add(values, cell, MEMORY, memory)
    return values


def train_cells(suite: Suite, device: str, values: Values, quick: bool) -> None:
    """Add the losses of trainings, with a sample for each seed, in a process of their own."""
    with PackageProcess(sys.path, device, 1) as process:
        for cell, seed in itertools.product(suite.cells(LOSS, quick=quick), range(SEEDS)):
            trained = asked(process, "measured", cell, task="trainability", fields={**TRAINING, "seed": seed})
            if isinstance(trained, dict):
                reached = trained.get("steps_to_threshold")
                trained["log_loss"] = log_loss(trained.get("final_loss"))
                trained["steps_to_threshold"] = STEPS if reached is None else reached
            add(values, cell, ["log_loss", "steps_to_threshold"], trained)


def time_cells(suite: Suite, device: str, values: Values, quick: bool) -> None:
    """Add ratios and seconds, with a sample for each process. Blocks of one family, depth and size are timed in
    turn."""
    groups: dict[tuple[str, int, str], list[str]] = {}
    for cell in suite.cells(RATIO, quick=quick):
        groups.setdefault((cell.family, cell.depth, cell.size), []).append(cell.block)
    for number in range(MOST_PROCESSES):
        wide = {
            where: blocks
            for where, blocks in groups.items()
            if number < PROCESSES
            or not precise([values.get(SeriesKey("ratio", HistoryCell(block, *where)), "") for block in blocks])
        }
        with PackageProcess(sys.path, device, number) as process:
            for where, blocks in wide.items():
                family, depth, size = where
                try:
                    found = process.ask(
                        "ratios",
                        blocks=blocks,
                        family=family,
                        depth=depth,
                        size=size,
                        samples=SAMPLES,
                        seconds=SECONDS,
                        seed=number,
                    )
                except CellLacking:
                    continue
                except RequestFailed as error:
                    found = dict.fromkeys(blocks, str(error))
                for block, times in found.items():
                    add(values, HistoryCell(block, *where), ["ratio"] if quick else TIMES, times)


def precise(samples: Sequence[list[float] | str]) -> bool:
    """Whether the intervals of all ratios, over their processes, are narrow enough; one that failed has none."""
    from ...measure.statistics import log10_interval

    intervals = [log10_interval(of_one) for of_one in samples if isinstance(of_one, list) and len(of_one) > 1]
    return all(interval.high / interval.value - 1 <= PRECISION for interval in intervals)


def asked(process: PackageProcess, request: str, cell: HistoryCell, **fields: Any) -> dict[str, Any] | str | None:
    """The named values of a request at ``cell``; ``None`` where the package lacks it, a message where it failed."""
    try:
        value: dict[str, Any] = process.ask(request, **cell._asdict(), **fields)
    except CellLacking:
        return None
    except RequestFailed as error:
        return str(error)
    return value


def add(
    values: Values, cell: HistoryCell, names: Sequence[str] | Mapping[str, str], found: dict[str, Any] | str | None
) -> None:
    """Add to the series ``names`` what was ``found`` for them, by the same names or by those that the mapping gives.

    Values that are not finite are left out. A failure replaces the samples of all the series, except where a series has
    enough of them without it.
    """
    for name in names:
        key = SeriesKey(name, cell)
        of_key = values.setdefault(key, [])
        if isinstance(of_key, str):
            continue
        if isinstance(found, str):
            values[key] = of_key if len(of_key) >= PROCESSES else found
        elif found is not None:
            value = found.get(names[name] if isinstance(names, Mapping) else name)
            if value is not None and math.isfinite(value):
                of_key.append(float(value))


def log_loss(loss: float | None) -> float:
    """log₁₀ of the loss in units of 1e-6 nat, between 0 and 9; 9 for a run that diverged."""
    return math.log10(min(max(WORST_LOSS if loss is None else loss, LEAST_LOSS), WORST_LOSS) / LEAST_LOSS)
