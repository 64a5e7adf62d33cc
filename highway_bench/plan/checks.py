"""Checks of a plan before anything is measured: what would otherwise fail in every worker, once a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from highway_bench.cell import Cell
from highway_bench.data import DataSet, make_dataset
from highway_bench.errors import BadInput
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import dataset_options


def check_cells(cells: Iterable[Cell]) -> None:
    """Raise ``BadInput`` for what no run of a cell, or of one that it needs, can do: its task says what that is."""
    waiting = list(cells)
    seen = set(waiting)
    for cell in waiting:  # grows: what is run for a tuned cell are the trials that it needs
        tasks.get(cell.task).check(cell)
        needed = [one for one in tasks.get(cell.task).needs(cell) if one not in seen]
        waiting.extend(needed)
        seen.update(needed)


def missing_data(cells: Iterable[Cell]) -> dict[str, str]:
    """Data sets of ``cells`` that are not at hand, and why; nothing is loaded."""
    reasons = [(name, dataset.missing()) for name, dataset, _ in data_sets(cells)]
    return {name: reason for name, reason in reasons if reason is not None}


def check_data(cells: Iterable[Cell]) -> None:
    """Load the data sets of ``cells`` once, here: a broken file is found before anything is measured, and a download
    is made once and not by every worker. Raises ``BadInput`` for a batch that is larger than its data as well."""
    for name, dataset, cell in data_sets(cells):
        items = len(dataset.load(seed=cell.seed).train.inputs)
        if cell.batch_size > items:
            raise BadInput(f"a batch of {cell.batch_size} is larger than the {items} training items of {name}")


def data_sets(cells: Iterable[Cell]) -> Iterator[tuple[str, DataSet, Cell]]:
    """The data sets of ``cells``, each once, with its name and the cell that takes the largest batch of it."""
    found: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        if cell.dataset is not None:
            key = (cell.dataset, repr(dataset_options(cell)))
            found[key] = max(found.get(key, cell), cell, key=lambda one: one.batch_size)
    for (name, _), cell in found.items():
        yield name, make_dataset(name, **dataset_options(cell)), cell
