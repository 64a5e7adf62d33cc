"""Expansion: turns a profile's grids and a selection into cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from highway_bench.blocks import blocks
from highway_bench.cell import DEPTH_AWARE, STARTS, Cell, StartName
from highway_bench.data import datasets, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families import Family, families, make_family
from highway_bench.matching import matched_width
from highway_bench.plan.grid import ADAM_RATES, MEASURED, SGD_RATES, TUNED, Grid, with_ladder
from highway_bench.plan.selection import Selection
from highway_bench.plan.settings import Rates, known_rates
from highway_bench.provenance.machine import cores
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import (
    cell_family,
    cell_spec,
    dataset_options,
    default_device,
    pinned,
    positions_of,
)
from highway_bench.words import Word


def expand(grid: Grid, selection: Selection, trained: dict[tuple[str, str], Any] | None = None) -> Iterator[Cell]:
    """The cells of one grid under ``selection``. Tasks that run alone may have more threads than one.

    ``trained`` has, by task and family, how the grids before this one train (see ``is_first``), and is filled.

    A grid of as many threads as there are cores has no cells on a GPU, whose steps take one thread of the CPU. A family
    and a data set that are incompatible still give a cell: its row is ``skipped`` and says why.
    """
    device = selection.device or default_device()
    if grid.threads is None and device.startswith("cuda"):
        return
    task, sizes = tasks.get(grid.task), grid.sizes(device)
    grid = overridden(grid, selection)
    if without_depth_aware(grid, selection):
        grid = replace(grid, starts=STARTS)
    options = {name: block_options(name, selection) for name in grid_blocks(grid, selection)}
    for family in grid_families(grid, selection):
        if trained is not None and not is_first(grid, family, selection, trained):
            continue
        template = Cell(
            task=grid.task,
            block="",
            family=family.name,
            family_options=family.options,
            depth=1,
            width=1,
            nominal_width=1,
            match=grid.match,
            batch_size=selection.batch_size or sizes.batches[family.kind],
            device=device,
            dataset=grid.dataset,
            recipe=grid.recipe,
            threads=selection.threads or grid.threads or cores() if task.alone else 1,
        )
        template = pinned(template)
        named = {name for name in selection.block if name in blocks and blocks.get(name).refusal(family) is None}
        names = [name for name in options if joins(name, family) or name in named]
        lengths = dict.fromkeys(wanted_lengths(grid, family, selection))
        nominal_widths = [family.nearest_width(one) for one in wanted_widths(grid, selection, family)]
        widths = {}  # by sequence length, nominal width and block
        for seq_len in lengths:
            with_length = template.but(seq_len=seq_len)
            if with_length.dataset is not None:
                make_dataset(with_length.dataset, **dataset_options(with_length))
            positions = positions_of(family, with_length)
            for nominal, name in itertools.product(nominal_widths, names):
                widths[seq_len, nominal, name] = matched_width(
                    blocks.get(name), family, nominal, grid.match, snap=sizes.snap, positions=positions
                )
        for depth, seq_len, phase, dtype, mode, seed, nominal, name in itertools.product(
            grid.depths,
            lengths,
            grid.phases,
            dtypes_of(family, grid, selection),
            selection.mode if "mode" in task.coordinates and selection.mode else grid.modes_on(device),
            grid.seeds,
            nominal_widths,
            names,
        ):
            if blocks.get(name).refusal(family, widths[seq_len, nominal, name]) is not None:
                continue
            for start in cell_starts(name, family, grid, options[name]):
                cell = template.but(
                    block=name,
                    block_options=options[name],
                    start=start,
                    depth=depth,
                    width=widths[seq_len, nominal, name],
                    nominal_width=nominal,
                    seq_len=seq_len,
                    phase=phase,
                    dtype=dtype,
                    mode=mode,
                    seed=seed,
                )
                yield from repeated(cell, family, selection) if grid.repeats else [cell]


def repeated(cell: Cell, family: Family, selection: Selection) -> Iterator[Cell]:
    """A cell of a grid that repeats, at its committed learning rate, or none: see ``Grid``."""
    recipe = cell.recipe
    known: Rates = {}
    if recipe.get("rate") == TUNED and not (cell.block_options or recipe.get("own_rate")):
        words = cell.depth, cell.nominal_width, cell.batch_size, recipe["steps"]
        known = known_rates(family, cell.dataset, *words)
    rate = known.get((cell.block, str(cell.start)))
    group = blocks.get(cell.block).group
    if rate is not None:
        words_left = {word: value for word, value in recipe.items() if word != "rates"}
        yield cell.but(recipe={**words_left, "rate": rate, "own_rate": True})
    elif group == "own" or (not known and (group in MEASURED or cell.block in selection.block)):
        yield cell


STEPS_PER_WARM_UP: Final = 10
"""A warm-up is at most a tenth of the steps that a selection names."""

OF_ONE = {"optimiser", "rate", "rates"}  # words of a recipe that mean something for one optimiser and data set alone


def is_first(grid: Grid, family: Family, selection: Selection, trained: dict[tuple[str, str], Any]) -> bool:
    """Whether the grid trains as the first one that trains ``family`` for its task: on its data with its optimiser.

    A profile may have several such experiments. A user's layer, or a selection with a rate, gets one of them.
    """
    if "optimiser" not in grid.recipe or not (":" in family.name or selection.recipe.keys() & OF_ONE):
        return True
    how = grid.dataset, grid.recipe["optimiser"]
    return bool(trained.setdefault((grid.task, family.name), how) == how)


def wanted_widths(grid: Grid, selection: Selection, family: Family) -> Sequence[int]:
    """Plain's widths that are asked for. A user's layer gets the ones next to these that it takes."""
    return selection.width or (grid.sizes(selection.device or default_device()).widths[family.kind],)


def wanted_lengths(grid: Grid, family: Family, selection: Selection) -> Sequence[int | None]:
    """The lengths of sequences. Where none is selected, a user's layer gets ones that it takes."""
    if family.kind != "sequence":
        return (None,)
    if grid.dataset or selection.seq_len:
        return grid.seq_lens
    return [length and family.nearest_length(length) for length in grid.seq_lens]


def given_sizes(grid: Grid, selection: Selection) -> list[tuple[Family, int | None]]:
    """The grid's families with the widths that every block has in them, or ``None`` where each has one of its own."""
    return [
        (family, family.nearest_width(width) if (selection.match or grid.match) == "width" else None)
        for family in grid_families(grid, selection)
        for width in wanted_widths(grid, selection, family)
    ]


def dtypes_of(family: Family, grid: Grid, selection: Selection) -> Sequence[str]:
    """The dtypes of the cells: that of a user's layer where it has one of its own, else the selection's or the grid's.

    Raises ``BadInput`` where another one than the layer's is selected.
    """
    if family.dtype is None:
        return selection.dtype or grid.dtypes
    others = [dtype for dtype in selection.dtype if dtype != family.dtype]
    if others:
        raise BadInput(
            f"family {family.name!r} has parameters of {family.dtype}, so that it is measured in that and not in "
            f"{', '.join(others)}: leave --dtype out, or let the factory make others"
        )
    return (family.dtype,)


def joins(name: str, family: Family) -> bool:
    """Whether the block ``name`` can join ``family``, and differs from all others with so few transforms a layer."""
    spec = blocks.get(name)
    return len(family.sublayers) >= spec.sublayers and spec.refusal(family) is None


def cell_starts(name: str, family: Family, grid: Grid, options: Mapping[str, Any]) -> Sequence[StartName | None]:
    """The starts at which the block ``name`` with ``options`` is measured in ``family``.

    It is ``None`` alone where the task's cells have no start, and where options decide how the block begins.
    """
    starts = [one for one in blocks.get(name).starts if one.init in family.inits]
    if "start" not in tasks.get(grid.task).coordinates or "init" in family.options:
        return [None]
    if any(option in one.options for one in starts for option in options):
        return [None]
    return [one.name for one in starts if one.name in grid.starts] or [starts[0].name]


def without_depth_aware(grid: Grid, selection: Selection) -> list[str]:
    """The users' blocks without the depth-aware start at which the grid measures the others.

    The others are then measured at their published starts too, so that equal starts are compared.
    """
    if tuple(grid.starts) != (DEPTH_AWARE,) or selection.start or "start" not in tasks.get(grid.task).coordinates:
        return []
    own = [spec for spec in map(blocks.get, grid_blocks(grid, selection)) if spec.group == "own"]
    return [spec.name for spec in own if DEPTH_AWARE not in {start.name for start in spec.starts}]


def overridden(grid: Grid, selection: Selection) -> Grid:
    """``grid`` with the selection's values instead of its own, where its task's cells have that coordinate."""
    having = tasks.get(grid.task).coordinates
    dataset = grid_dataset(grid, selection)
    has_length = dataset is None or "length" in datasets.get(dataset).options
    words = recipe_words(grid, selection)
    own = {word: value for word, value in grid.recipe.items() if dataset == grid.dataset or word != "dataset"}
    recipe = with_rate({word: value for word, value in selection.recipe.items() if word in words}, grid, words)
    if "warm_up" in own and "steps" in recipe:
        own["warm_up"] = min(own["warm_up"], recipe["steps"] // STEPS_PER_WARM_UP)
    changes: dict[str, Any] = {
        "depths": selection.depth or None,
        "seq_lens": (selection.seq_len or None) if has_length else (None,),
        "phases": (selection.phase or None) if "phase" in having else None,
        "seeds": (selection.seed or None) if "seed" in having else None,
        "starts": (selection.start or None) if "start" in having else None,
        "dataset": dataset,
        "match": selection.match,
        "recipe": {**own, **recipe},
    }
    changed = replace(grid, **{name: value for name, value in changes.items() if value is not None})
    return with_ladder(changed) if "ladder" in grid.recipe and "ladder" not in selection.recipe else changed


def with_rate(recipe: Mapping[str, Any], grid: Grid, words: Mapping[str, Word]) -> dict[str, Any]:
    """The words of a ``recipe`` that replace the grid's, with a learning rate where they need one: it belongs to its
    optimiser.

    Another optimiser without a rate is tuned, and so are ``rates``. Raises ``BadInput`` where the task tunes nothing.
    """
    optimiser = recipe.get("optimiser", grid.recipe.get("optimiser"))
    if "rate" in recipe or ("rates" not in recipe and optimiser == grid.recipe.get("optimiser")):
        return dict(recipe)
    if "rates" not in words:
        raise BadInput(f"a learning rate belongs to its optimiser: give {optimiser} its own, as the recipe's rate")
    return {"rate": "tuned", "rates": list(SGD_RATES if optimiser == "sgd" else ADAM_RATES), **recipe}


def grid_dataset(grid: Grid, selection: Selection) -> str | None:
    """The data set of the grid's cells: the selection's where the task's cells may have one, else the grid's own."""
    return (selection.dataset if "dataset" in tasks.get(grid.task).coordinates else None) or grid.dataset


def recipe_words(grid: Grid, selection: Selection) -> Mapping[str, Word]:
    """The recipe words that the grid's cells accept, by name."""
    return tasks.get(grid.task).words_for(grid.recipe, grid_dataset(grid, selection))


def grid_blocks(grid: Grid, selection: Selection) -> list[str]:
    """The grid's blocks that the selection includes, the baseline first.

    Blocks of other groups than the grid's are included where the grid or the selection names them in full, and modern
    ones where a wildcard of the selection matches them.
    """
    groups = {*grid.groups, *(("modern",) if selection.block else ())}
    names = [
        name for name in blocks.select(*grid.blocks) if not selection.block or name in blocks.select(*selection.block)
    ]
    names = [name for name in names if blocks.get(name).group in groups or name in (*grid.blocks, *selection.block)]
    return sorted(names, key=lambda name: not blocks.get(name).baseline)


def grid_families(grid: Grid, selection: Selection) -> list[Family]:
    """The grid's families that the selection includes. The user's own families are added to a grid with a family of the
    same kind. A grid with family options is a control of the named family, so they are not added to it."""
    named = [
        make_family(name, **{**grid.family_options, **family_options(name, selection)})
        for name in grid_family_names(grid, selection)
    ]
    kinds = set() if grid.family_options else {families.get(name).kind for name in grid.family_names()}
    return named + [family for family in own_families(selection) if family.kind in kinds]


def grid_family_names(grid: Grid, selection: Selection) -> list[str]:
    """Names of the grid's own families that the selection includes; a variant only where one of them names it."""
    if grid.users_only:
        return []
    patterns = ["*"] if not selection.family else [one for one in selection.family if is_pattern(one)]
    named = {*patterns, *(() if callable(grid.families) else grid.families)}
    names = [name for name in grid.family_names() if patterns and name in families.select(*patterns)]
    return [name for name in names if families.get(name).group == "core" or name in named]


def is_pattern(family: str | Family) -> bool:
    """Whether ``family`` selects registered families, as opposed to one of the user's own."""
    return isinstance(family, str) and ":" not in family


def own_families(selection: Selection) -> list[Family]:
    """The user's own families, with the selection's options that they accept."""
    own = [family for family in selection.family if not is_pattern(family)]
    return [
        make_family(family, **family_options(family, selection)) if isinstance(family, str) else family
        for family in own
    ]


def chosen_kinds(selection: Selection) -> set[str]:
    """The kinds of input of the families that ``selection`` names; empty where it names none."""
    names = [name for one in selection.family if is_pattern(one) for name in families.select(str(one))]
    return {families.get(name).kind for name in names} | {one.kind for one in own_families(selection)}


def block_options(name: str, selection: Selection) -> dict[str, Any]:
    """The selection's options that the block accepts."""
    known = blocks.get(name).option_names
    return {option: value for option, value in selection.block_options.items() if option in known}


def family_options(name: str, selection: Selection) -> dict[str, Any]:
    """The selection's options that the family accepts with these values."""
    return {option: value for option, value in selection.family_options.items() if refusal(name, option, value) is None}


def refusal(family: str, option: str, value: Any) -> BadInput | None:
    """The error with which the family ``family`` rejects an option; ``None`` if it accepts it."""
    try:
        make_family(family, **{option: value})
    except BadInput as error:
        return error
    return None


def matched(cell: Cell) -> Cell:
    """``cell`` at the width at which its layers cost as much (``match``) as plain's at the cell's nominal width."""
    family = cell_family(cell)
    width = matched_width(cell_spec(cell), family, cell.nominal_width, cell.match, positions=positions_of(family, cell))
    return cell.but(width=width)
