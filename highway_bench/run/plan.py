"""Plan: a profile's grids, narrowed or widened by what was asked for, as the list of cells to measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from highway_bench.blocks import blocks
from highway_bench.budget import matched_width
from highway_bench.cell import MATCHES, MODES, PHASES, Cell
from highway_bench.data import make_dataset
from highway_bench.errors import BadInput, NothingMeasured, UnknownName
from highway_bench.families import Family, families, make_family
from highway_bench.network import check_depth
from highway_bench.run.profiles import Grid, Profile, get_profile
from highway_bench.tasks import tasks
from highway_bench.tasks._network import cell_device, cell_dtype, dataset_options, default_device


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What was asked for on top of a profile. ``None``, or an empty tuple, leaves a coordinate to the profile.

    ``blocks``, ``families`` and ``tasks`` choose among the profile's by wildcard; a family given as ``module:factory``,
    or as a family object, is put in the place of the profile's own. The other fields replace the grids' values.
    """

    tasks: Sequence[str] = ()
    blocks: Sequence[str] = ()
    families: Sequence[str | Family] = ()
    depths: Sequence[int] = ()
    widths: Sequence[int] = ()
    batch_size: int | None = None
    seq_lens: Sequence[int] = ()
    phases: Sequence[str] = ()
    modes: Sequence[str] = ()
    dtypes: Sequence[str] = ()
    seeds: Sequence[int] = ()
    device: str | None = None
    match: str | None = None
    dataset: str | None = None
    block_options: Mapping[str, Any] = field(default_factory=dict)
    family_options: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None


@dataclass(frozen=True)
class Planned:
    """A cell to measure, with the ways in which it may end without surprise."""

    cell: Cell
    statuses: frozenset[str]


def plan(profile: str | Profile, selection: Selection = Selection(), *, threads: int = 1) -> list[Planned]:
    """The cells of ``profile`` under ``selection``, each once, in the order of the profile's grids.

    ``threads`` are those of tasks that run alone; others get one. Raises ``BadInput`` for what cannot be, before
    anything is measured, and ``NothingMeasured`` if no cell is left.
    """
    chosen = get_profile(profile) if isinstance(profile, str) else profile
    check(selection)
    cells: dict[Cell, Planned] = {}
    for grid in chosen.grids:
        for planned in expand(grid, selection, threads):
            cells.setdefault(planned.cell, planned)
    if not cells:
        raise NothingMeasured(f"profile {chosen.name!r} has no cell for this selection")
    return list(cells.values())


def check(selection: Selection) -> None:
    """Raise ``BadInput`` for a selection that no grid could use: unknown names, an impossible depth or device."""
    for task in selection.tasks:
        tasks.select(task)
    for block in selection.blocks:
        blocks.select(block)
    for depth in selection.depths:
        check_depth(depth)
    for width in selection.widths:
        if width < 1:
            raise BadInput(f"width must be at least 1, not {width}")
    for what, value in (("batch size", selection.batch_size), ("threads", selection.threads)):
        if value is not None and value < 1:
            raise BadInput(f"{what} must be at least 1, not {value}")
    if any(length < 1 for length in selection.seq_lens):
        raise BadInput("a sequence's length must be at least 1")
    _check_known("phase", selection.phases, PHASES)
    _check_known("mode", selection.modes, MODES)
    _check_known("match", [selection.match] if selection.match else [], MATCHES)
    if selection.dataset is not None:
        make_dataset(selection.dataset)
    device = selection.device or default_device()
    probe = Cell(task="", block="", family="", depth=1, width=1, nominal_width=1, device=device)
    cell_device(probe)
    for dtype in selection.dtypes:
        cell_dtype(probe.but(dtype=dtype))


def _check_known(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise UnknownName(kind, name, known)


def expand(grid: Grid, selection: Selection, threads: int) -> Iterator[Planned]:
    """The cells of one grid under ``selection``. A family and a data set that make no network still give a cell: its
    row says ``skipped`` and why."""
    if selection.tasks and grid.task not in tasks.select(*selection.tasks):
        return
    device = selection.device or default_device()
    task, sizes = tasks.get(grid.task), grid.sizes(device)
    grid = overridden(grid, selection)
    names = [name for name in blocks.select(*grid.blocks)
             if not selection.blocks or name in blocks.select(*selection.blocks)]
    names.sort(key=lambda name: not blocks.get(name).yardstick)  # the yard-stick first
    for name in names:
        blocks.get(name).check_options(selection.block_options)
    for family in grid_families(grid, selection):
        lengths = grid.seq_lens if family.kind == "sequence" else (None,)
        widths = selection.widths or (sizes.widths[family.kind],)
        places = itertools.product(grid.depths, lengths, grid.phases, selection.dtypes or ("float32",), grid.modes,
                                   grid.seeds, widths, names)
        for depth, seq_len, phase, dtype, mode, seed, nominal, name in places:
            width = matched_width(blocks.get(name), family, nominal, grid.match, snap=sizes.snap,
                                  positions=family.positions(seq_len))
            cell = Cell(task=grid.task, block=name, block_options=selection.block_options, family=family.name,
                        family_options=family.options, depth=depth, width=width, nominal_width=nominal,
                        match=grid.match, batch_size=selection.batch_size or sizes.batches[family.kind],
                        seq_len=seq_len, phase=phase, dtype=dtype, device=device, mode=mode, dataset=grid.dataset,
                        recipe=grid.recipe, seed=seed, threads=(selection.threads or threads) if task.alone else 1)
            if cell.dataset is not None:
                make_dataset(cell.dataset, **dataset_options(cell))
            yield Planned(cell, grid.statuses)


def overridden(grid: Grid, selection: Selection) -> Grid:
    """``grid`` with the selection's values in place of its own."""
    trains = grid.task == "trainability"
    changes: dict[str, Any] = {
        "depths": selection.depths or None,
        "seq_lens": selection.seq_lens or None,
        "phases": (selection.phases or None) if not trains else None,
        "modes": (selection.modes or None) if not trains else None,
        "seeds": (selection.seeds or None) if trains else None,
        "dataset": selection.dataset if trains else None,
        "match": selection.match,
        "recipe": {**grid.recipe, **selection.recipe} if selection.recipe else None,
    }
    return replace(grid, **{name: value for name, value in changes.items() if value is not None})


def grid_families(grid: Grid, selection: Selection) -> list[Family]:
    """The grid's families that the selection keeps; the user's own stand in for them all."""
    wanted = list(selection.families) or ["*"]
    own = [family for family in wanted if not isinstance(family, str) or ":" in family]
    patterns = [family for family in wanted if isinstance(family, str) and ":" not in family]
    kept = [name for name in families.select(*grid.families) if patterns and name in families.select(*patterns)]
    named = [*kept, *(one for one in own if isinstance(one, str))]
    made = [make_family(name, **{**grid.family_options, **selection.family_options}) for name in named]
    given = [family for family in own if not isinstance(family, str)]
    for family in given:
        check_travels(family)
    return made + given


def check_travels(family: Family) -> None:
    """Raise ``BadInput`` for a family object that a worker process could not make again from its name and options."""
    try:
        travels = make_family(family.name, **family.options) == family
    except BadInput:  # no module holds its factory: a lambda, or a function made in another
        travels = False
    if not travels:
        raise BadInput(f"family {family.name!r} cannot reach a worker process: make its factory a module's function")
