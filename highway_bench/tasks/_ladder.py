"""The ladder of depths: a depth is tried only if the next shallower one trained with at least one seed.

A frontier needs every block at every depth up to where it stops training, and no deeper. A thousand layers of a block
that fails at fifty cost an hour and show nothing. Cells whose recipe has a ``ladder`` wait for the rung below them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.tasks.base import Skip, value_of
from highway_bench.words import POSITIVE, listed, mapping, whole

DEPTHS, SEEDS, RATES = listed(whole(1)), listed(whole(0)), listed(POSITIVE)


def is_ladder(value: Mapping[str, Any]) -> bool:
    """Whether ``value`` has depths, a number of seeds or a list of them, and rates or none."""
    return (
        {"depths", "seeds"} <= set(value) <= {"depths", "seeds", "rates"}
        and DEPTHS.holds(value["depths"])
        and (whole(1).holds(value["seeds"]) or SEEDS.holds(value["seeds"]))
        and ("rates" not in value or RATES.holds(value["rates"]))
    )


LADDER = mapping("depths, seeds and, where they are tuned, rates", is_ladder).meaning(
    "The depths, seeds and rates of a ladder; a depth waits for the next shallower one to train."
)


def rung_below(cell: Cell) -> tuple[Cell, ...]:
    """The cells of the next shallower depth of ``cell``'s ladder, one a seed; none on the lowest rung.

    A ladder is ``{"depths": […], "seeds": n or […], "rates": […]}``. Every rung is tuned over the rates. Without rates,
    all rungs have the cell's own rate.
    """
    ladder: Mapping[str, Any] = value_of(cell, "ladder", {})
    shallower = [depth for depth in ladder.get("depths", ()) if depth < cell.depth]
    if not shallower:
        return ()
    tuned = {"rate": "tuned", "rates": ladder["rates"]} if "rates" in ladder else {}
    seeds = range(ladder["seeds"]) if isinstance(ladder["seeds"], int) else ladder["seeds"]
    return _at_seeds(cell.but(depth=max(shallower), recipe={**cell.recipe, **tuned}, trial=None, seed=0), *seeds)


@lru_cache(maxsize=1024)  # every seed and every trial of the rung above asks
def _at_seeds(cell: Cell, *seeds: int) -> tuple[Cell, ...]:
    return tuple(cell.but(seed=seed) for seed in seeds)


def check_rung(cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> None:
    """Check that the rung below ``cell`` trained with at least one seed, by the scalar metrics in ``results``.

    Raises ``Skip`` where it trained with none or was skipped itself, and ``BadInput`` where no finished seed trained
    and some seeds did not finish.
    """
    below = rung_below(cell)
    if below and not any(results.get(one, {}).get("success") for one in below):
        if any(one not in results for one in below):
            raise BadInput(f"depth {below[0].depth} did not finish, so whether {cell.block} trains there is not known")
        raise Skip(f"{cell.block} trained at no seed of depth {below[0].depth}, so no deeper was tried")
