"""Checks of a plan before anything is measured. Without them, the same error would occur in every cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from highway_bench.blocks import blocks
from highway_bench.cell import Cell, canonical
from highway_bench.data import DataSet, datasets, make_dataset
from highway_bench.errors import USER_ERRORS, BadInput, near_names
from highway_bench.families import Family, Site, families, make_family
from highway_bench.plan.expand import (
    block_options,
    given_sizes,
    grid_blocks,
    grid_families,
    grid_family_names,
    is_pattern,
    own_families,
    recipe_words,
    refusal,
)
from highway_bench.plan.grid import Grid
from highway_bench.plan.selection import Selection
from highway_bench.provenance.free_memory import gpu
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import check_device, check_dtype, dataset_options, default_device, pinned


def check_selection(selection: Selection) -> None:
    """Raise ``BadInput`` for a selection that no grid can use: unknown names, or a device that this machine lacks."""
    for task in selection.task:
        tasks.select(task)
    for block in selection.block:
        blocks.select(block)
    for family in selection.family:
        if isinstance(family, Family):
            check_rebuilds(family)
    if selection.dataset is not None:
        make_dataset(selection.dataset, **selection.recipe.get("dataset", {}))
    device = selection.device or default_device()
    check_device(device)
    for dtype in selection.dtype:
        check_dtype(dtype, device)
    for dtype in ("bfloat16", "tf32"):
        if device == "cuda" and dtype in selection.dtype and not getattr(gpu(device), dtype):
            raise BadInput(f"this GPU lacks {dtype}")


def check_grids(grids: Sequence[Grid], selection: Selection) -> None:
    """Raise ``BadInput`` for blocks, options and recipe words that none of ``grids`` accepts."""
    check_families(grids, selection)
    check_block_and_family_options(grids, selection)
    check_recipe(grids, selection)


def check_families(grids: Sequence[Grid], selection: Selection) -> None:
    """Raise ``BadInput`` for a block that the selection names in full and that no chosen family or width can have."""
    for spec in (blocks.get(name) for name in selection.block if name in blocks):
        having = [grid for grid in grids if spec.name in grid_blocks(grid, selection)]
        every = [size for grid in having for size in given_sizes(grid, selection)]
        if every and all(spec.refusal(*size) for size in every):
            spec.check_family(*every[0])


def check_block_and_family_options(grids: Sequence[Grid], selection: Selection) -> None:
    """Raise ``BadInput`` for an option that no chosen block or family accepts, or a value that a block rejects."""
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
            check_builds(name, options)
    chosen = {name for grid in grids for name in grid_family_names(grid, selection)}
    chosen |= {family for family in selection.family if isinstance(family, str) and ":" in family}
    if not chosen and all(is_pattern(family) for family in selection.family):
        return
    for option, value in selection.family_options.items():
        refused = {name: refusal(name, option, value) for name in sorted(chosen)}
        if all(refused.values()):
            having = [name for name in refused if ":" not in name and option in families.get(name).options]
            if having or len(refused) == 1:
                raise next(error for name, error in refused.items() if error and (not having or name in having))
            own = f"; a function binds that of a layer of your own: lambda width: Layer(width, {option}=…)"
            raise BadInput(f"no chosen family has the option {option}{own if own_families(selection) else ''}")


def check_recipe(grids: Sequence[Grid], selection: Selection) -> None:
    """Raise ``BadInput`` for a recipe word that no cell of the selection has, and for an impossible value."""
    if not selection.recipe:
        return
    words = [
        recipe_words(grid, selection)
        for grid in grids
        if grid_blocks(grid, selection) and grid_families(grid, selection)
    ]
    for name, value in selection.recipe.items():
        having = [one[name] for one in words if name in one]
        if words and not having:
            known = sorted({word for one in words for word in one})
            if name == "dataset":
                raise BadInput("data do not apply to the chosen tasks")
            raise BadInput(f"no chosen task has the recipe word {name!r}; {near_names(name, known)}")
        for word in having:
            word.check(name, value)
    try:
        canonical(selection.recipe)
    except (TypeError, ValueError) as error:  # an infinite number in a list, or an object
        raise BadInput(f"recipe {dict(selection.recipe)}: {error}") from error


def check_builds(name: str, options: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` for options with which the block ``name`` cannot be built."""
    spec, (part,) = blocks.get(name), make_family("dense").sublayers
    with torch.random.fork_rng(devices=[]):
        try:
            spec.join(Site(part, width=4), {**spec.options, **options})
        except BadInput:
            raise
        except USER_ERRORS as error:  # raised by the block's own code for a value that it does not support
            raise BadInput(f"block {name!r} with {dict(options)}: {type(error).__name__}: {error}") from error


def check_rebuilds(family: Family) -> None:
    """Raise ``BadInput`` for a family object that is not what its name and options give a worker process."""
    if make_family(family.name, **family.options) != family:
        raise BadInput(f"family {family.name!r} cannot be rebuilt in a worker process by its name and options")


def check_cells(cells: Iterable[Cell]) -> None:
    """Raise ``BadInput`` for what no run of a cell can do: its task says what that is. Also for a cell that does not
    say which data it has, where these depend on the machine."""
    for cell in cells:
        tasks.get(cell.task).check(cell)
        if pinned(cell) is not cell:
            pins = " and ".join(datasets.get(str(cell.dataset)).cls.pins)
            raise BadInput(
                f"a cell on {cell.dataset} needs the data set's options {pins} in its recipe: "
                f"highway_bench.tasks.from_cell.pinned adds them"
            )


def missing_data(cells: Iterable[Cell]) -> dict[str, str]:
    """Data sets of ``cells`` with something missing, and what; nothing is loaded."""
    reasons = [(name, dataset.missing()) for name, dataset, _ in data_sets(cells)]
    return {name: reason for name, reason in reasons if reason is not None}


def check_data(cells: Iterable[Cell]) -> None:
    """Load the data sets of ``cells`` once in this process, so that a broken file is reported before anything is
    measured, and one process downloads instead of every worker. Raises ``BadInput`` for a broken file, and for a batch
    larger than its data."""
    for name, dataset, cell in data_sets(cells):
        items = len(dataset.load(seed=cell.seed).train.inputs)
        if cell.batch_size > items:
            raise BadInput(f"a batch of {cell.batch_size} is larger than the {items} training items of {name}")


def data_sets(cells: Iterable[Cell]) -> Iterator[tuple[str, DataSet, Cell]]:
    """The data sets of ``cells``, each once, with its name and the cell that takes the largest batch of it."""
    largest: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        if cell.dataset is not None:
            key = (cell.dataset, repr(dataset_options(cell)))
            largest[key] = max(largest.get(key, cell), cell, key=lambda one: one.batch_size)
    for (name, _), cell in largest.items():
        yield name, make_dataset(name, **dataset_options(cell)), cell
