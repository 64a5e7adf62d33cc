"""Plan: a profile's grids, narrowed or widened by what was asked for, as the list of cells to measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from highway_bench.blocks import blocks
from highway_bench.cell import MATCHES, MODES, PHASES, Cell, canonical
from highway_bench.data import datasets, make_dataset
from highway_bench.errors import USER_ERRORS, BadInput, NothingMeasured, UnknownName, near_names
from highway_bench.families import Family, Site, families, make_family
from highway_bench.gpu import gpu
from highway_bench.matching import matched_width
from highway_bench.network import check_depth
from highway_bench.plan.profiles import Grid, Profile, climbing, get_profile
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import cell_device, cell_dtype, dataset_options, default_device, positions_of
from highway_bench.training.recipe import Word


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What was asked for on top of a profile. ``None``, or an empty tuple, leaves a coordinate to the profile.

    ``blocks``, ``families`` and ``tasks`` choose among the profile's by wildcard; a family given as ``module:factory``,
    or as a family object, stands in for the profile's families of its kind. The other fields replace the grids' values
    where these mean something: an option, for one, goes to the blocks or families that have it.
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
    grids = [grid for grid in chosen.grids if not selection.tasks or grid.task in tasks.select(*selection.tasks)]
    check_options(grids, selection)
    check_recipe(grids, selection)
    cells: dict[Cell, Planned] = {}
    for grid in grids:
        for planned in expand(grid, selection, threads):
            cells.setdefault(planned.cell, planned)
    if not cells:
        raise NothingMeasured(f"profile {chosen.name!r} has no cell for this selection")
    if selection.seq_lens and all(cell.seq_len is None for cell in cells):
        raise BadInput("no cell of this selection has sequences whose length can be chosen")
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
    if any(seed < 0 for seed in selection.seeds):
        raise BadInput(f"a seed must be at least 0, not {min(selection.seeds)}")
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
    if device == "cuda" and "bfloat16" in selection.dtypes and not gpu(device).bfloat16:
        raise BadInput("this GPU lacks bfloat16")


def _check_known(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise UnknownName(kind, name, known)


def expand(grid: Grid, selection: Selection, threads: int) -> Iterator[Planned]:
    """The cells of one grid under ``selection``. A family and a data set that make no network still give a cell: its
    row says ``skipped`` and why."""
    device = selection.device or default_device()
    task, sizes = tasks.get(grid.task), grid.sizes(device)
    grid = overridden(grid, selection)
    names = grid_blocks(grid, selection)
    for family in grid_families(grid, selection):
        lengths = grid.seq_lens if family.kind == "sequence" else (None,)
        widths = selection.widths or (sizes.widths[family.kind],)
        places = itertools.product(
            grid.depths, lengths, grid.phases, selection.dtypes or grid.dtypes, grid.modes, grid.seeds, widths, names
        )
        for depth, seq_len, phase, dtype, mode, seed, nominal, name in places:
            cell = Cell(
                task=grid.task,
                block=name,
                block_options=block_options(name, selection),
                family=family.name,
                family_options=family.options,
                depth=depth,
                width=nominal,
                nominal_width=nominal,
                match=grid.match,
                batch_size=selection.batch_size or sizes.batches[family.kind],
                seq_len=seq_len,
                phase=phase,
                dtype=dtype,
                device=device,
                mode=mode,
                dataset=grid.dataset,
                recipe=grid.recipe,
                seed=seed,
                threads=(selection.threads or threads) if task.alone else 1,
            )
            if cell.dataset is not None:
                make_dataset(cell.dataset, **dataset_options(cell))
            width = matched_width(
                blocks.get(name), family, nominal, grid.match, snap=sizes.snap, positions=positions_of(family, cell)
            )
            yield Planned(cell.but(width=width), grid.statuses)


def overridden(grid: Grid, selection: Selection) -> Grid:
    """``grid`` with the selection's values in place of its own, as far as its task's cells have such."""
    having = tasks.get(grid.task).coordinates
    dataset = grid_dataset(grid, selection)
    has_length = dataset is None or "length" in datasets.get(dataset).options
    words = recipe_words(grid, selection)
    recipe = {word: value for word, value in selection.recipe.items() if word in words}
    changes: dict[str, Any] = {
        "depths": selection.depths or None,
        "seq_lens": (selection.seq_lens or None) if has_length else (None,),
        "phases": (selection.phases or None) if "phase" in having else None,
        "modes": (selection.modes or None) if "mode" in having else None,
        "seeds": (selection.seeds or None) if "seed" in having else None,
        "dataset": dataset,
        "match": selection.match,
        "recipe": {**grid.recipe, **recipe} if recipe else None,
    }
    changed = replace(grid, **{name: value for name, value in changes.items() if value is not None})
    return climbing(changed) if "ladder" in grid.recipe and "ladder" not in selection.recipe else changed


def grid_dataset(grid: Grid, selection: Selection) -> str | None:
    """The data set of the grid's cells: the selection's where the task's cells may have one, else the grid's own."""
    return (selection.dataset if "dataset" in tasks.get(grid.task).coordinates else None) or grid.dataset


def recipe_words(grid: Grid, selection: Selection) -> Mapping[str, Word]:
    """The words of the selection's recipe that the grid's cells have a use for."""
    return tasks.get(grid.task).words_for(grid.recipe, grid_dataset(grid, selection))


def grid_blocks(grid: Grid, selection: Selection) -> list[str]:
    """The grid's blocks that the selection keeps, the yard-stick first. A control stays out of a grid and a selection
    that do not name it in full: no wildcard asks for one."""
    names = [
        name for name in blocks.select(*grid.blocks) if not selection.blocks or name in blocks.select(*selection.blocks)
    ]
    names = [name for name in names if not blocks.get(name).control or name in (*grid.blocks, *selection.blocks)]
    return sorted(names, key=lambda name: not blocks.get(name).yardstick)


def grid_families(grid: Grid, selection: Selection) -> list[Family]:
    """The grid's families that the selection keeps. The user's own join where the grid has one of their kind, unless it
    has options of a named family's: that is a control, and no grid of theirs."""
    made = [
        make_family(name, **{**grid.family_options, **family_options(name, selection)})
        for name in grid_family_names(grid, selection)
    ]
    kinds = set() if grid.family_options else {families.get(name).kind for name in grid.family_names()}
    return made + [family for family in own_families(selection) if family.kind in kinds]


def grid_family_names(grid: Grid, selection: Selection) -> list[str]:
    """Names of the grid's own families that the selection keeps."""
    patterns = ["*"] if not selection.families else [one for one in selection.families if is_pattern(one)]
    return [name for name in grid.family_names() if patterns and name in families.select(*patterns)]


def is_pattern(family: str | Family) -> bool:
    """Whether ``family`` chooses among the registered ones, and is none of the user's own."""
    return isinstance(family, str) and ":" not in family


def own_families(selection: Selection) -> list[Family]:
    """The user's own families, with the options that they have."""
    own = [family for family in selection.families if not is_pattern(family)]
    for family in own:
        if not isinstance(family, str):
            check_travels(family)
    return [
        make_family(family, **family_options(family, selection)) if isinstance(family, str) else family
        for family in own
    ]


def block_options(name: str, selection: Selection) -> dict[str, Any]:
    """The selection's options that the block has."""
    known = blocks.get(name).option_names
    return {option: value for option, value in selection.block_options.items() if option in known}


def family_options(name: str, selection: Selection) -> dict[str, Any]:
    """The selection's options that the family has, and whose value it can have."""
    return {option: value for option, value in selection.family_options.items() if refusal(name, option, value) is None}


def refusal(family: str, option: str, value: Any) -> BadInput | None:
    """What the family called ``family`` says against an option; ``None`` if it takes it."""
    try:
        make_family(family, **{option: value})
    except BadInput as error:
        return error
    return None


def check_options(grids: Sequence[Grid], selection: Selection) -> None:
    """Raise ``BadInput`` for an option that nothing takes, and for a block's whose value it refuses."""
    names = sorted({name for grid in grids for name in grid_blocks(grid, selection)})
    for option, value in selection.block_options.items():
        having = [name for name in names if option in blocks.get(name).option_names]
        if names and not having:
            if len(names) == 1:
                blocks.get(names[0]).check_options({option: value})
            known = sorted({one for name in names for one in blocks.get(name).option_names})
            raise BadInput(f"no chosen block has the option {option}; they have {', '.join(known) or 'none'}")
    for name in names:
        if options := block_options(name, selection):
            check_join(name, options)
    chosen = {name for grid in grids for name in grid_family_names(grid, selection)}
    chosen |= {family for family in selection.families if isinstance(family, str) and ":" in family}
    if not chosen and all(is_pattern(family) for family in selection.families):
        return
    for option, value in selection.family_options.items():
        refused = {name: refusal(name, option, value) for name in sorted(chosen)}
        if all(refused.values()):
            having = [name for name in refused if ":" not in name and option in families.get(name).options]
            if having or len(refused) == 1:
                raise next(error for name, error in refused.items() if error and (not having or name in having))
            raise BadInput(f"no chosen family has the option {option}")


def check_recipe(grids: Sequence[Grid], selection: Selection) -> None:
    """Raise ``BadInput`` for a word of the recipe that no cell of the selection has, and for a value that it cannot
    have."""
    words = [
        recipe_words(grid, selection)
        for grid in grids
        if grid_blocks(grid, selection) and grid_families(grid, selection)
    ]
    for name, value in selection.recipe.items():
        having = [one[name] for one in words if name in one]
        if words and not having:
            known = sorted({word for one in words for word in one})
            raise BadInput(f"no chosen task has the recipe word {name!r}; {near_names(name, known)}")
        for word in having:
            word.check(name, value)
    try:
        canonical(selection.recipe)
    except (TypeError, ValueError) as error:  # a number amid others that is infinite, or an object
        raise BadInput(f"recipe {dict(selection.recipe)}: {error}") from error


def check_join(name: str, options: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` for options that the block called ``name`` cannot be made with."""
    spec, (part,) = blocks.get(name), make_family("dense").sublayers
    with torch.random.fork_rng(devices=[]):
        try:
            spec.join(Site(part, width=4), {**spec.options, **options})
        except BadInput:
            raise
        except USER_ERRORS as error:  # the block's own code, given a value that it is not made for
            raise BadInput(f"block {name!r} with {dict(options)}: {type(error).__name__}: {error}") from error


def check_travels(family: Family) -> None:
    """Raise ``BadInput`` for a family object that a worker process could not make again from its name and options."""
    try:
        travels = make_family(family.name, **family.options) == family
    except BadInput:  # no module holds its factory: a lambda, or a function made in another
        travels = False
    if not travels:
        raise BadInput(f"family {family.name!r} cannot reach a worker process: make its factory a module's function")
