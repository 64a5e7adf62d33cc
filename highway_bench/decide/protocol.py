"""The protocol: the pending cells of all candidates are trained, until no candidate has any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from highway_bench.cell import Cell
from highway_bench.decide.candidate import Candidate, TrainingEnd, Trainings
from highway_bench.decide.vision import vision_candidates
from highway_bench.errors import UnknownName
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.plan.plan import Plan, RunResult

PARTS: Mapping[str, Callable[[], Iterable[Candidate]]] = {"vision": vision_candidates}


def parts(name: str) -> list[Candidate]:
    """The candidates of the part called ``name``; raises ``UnknownName`` with near names."""
    if name not in PARTS:
        raise UnknownName("part", name, PARTS)
    return list(PARTS[name]())


def train_candidates(
    candidates: Iterable[Candidate],
    store: Path,
    *,
    engine: AnyEngine = "local",
    workers: int | None = None,
    on_event: Callable[[Event], None] | None = None,
    on_round: Callable[[int, int], None] = lambda number, cells: None,
) -> Trainings:
    """Train ``candidates`` to their end, and return how each training ended.

    What ``store`` has is not trained again, so an interrupted protocol goes on where it stopped. ``on_round`` receives
    the number of each round and of its cells.
    """
    candidates, number = list(candidates), 0
    trainings: dict[Cell, TrainingEnd] = {}
    while cells := [cell for candidate in candidates for cell in candidate.pending(trainings)]:
        number += 1
        on_round(number, len(cells))
        plan = Plan(tuple(dict.fromkeys(cells)))
        trainings |= ended(plan.run(store, engine=engine, workers=workers, on_event=on_event), cells)
    return trainings


def ended(result: RunResult, cells: Sequence[Cell]) -> dict[Cell, TrainingEnd]:
    """How the trainings of ``cells`` ended."""
    scalars = result.rows[result.rows["axis"] == ""]
    values = {
        (digest, metric): value
        for digest, metric, value in scalars[["digest", "metric", "value"]].itertuples(index=False, name=None)
    }
    found = {}
    for cell in cells:
        digest = result.summary.digests[cell]
        loss, success = (values.get((digest, metric)) for metric in ("final_loss", "success"))
        found[cell] = TrainingEnd(None if loss is None or loss != loss else float(loss), success == 1)
    return found
