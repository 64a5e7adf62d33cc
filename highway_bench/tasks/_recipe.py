"""The training half of a cell's recipe: which of its words are the training's own."""

from __future__ import annotations

from typing import Any

from highway_bench.data._base import check_count
from highway_bench.errors import BadInput
from highway_bench.search.recipe import Recipe

# Words of a cell's recipe that are not the training's own
BESIDE = frozenset({"rates", "threshold", "verdict", "dataset", "layout", "evaluate", "mistakes", "together", "search",
                    "ladder"})


def recipe_from(options: dict[str, Any]) -> Recipe:
    """The training half of a cell's recipe; raises ``BadInput`` for a rate that is still to be tuned."""
    unknown = options.keys() - Recipe.__dataclass_fields__.keys() - BESIDE
    if unknown:
        names = ", ".join([*Recipe.__dataclass_fields__, *sorted(BESIDE)])
        raise BadInput(f"a recipe has no {', '.join(sorted(unknown))}; it has {names}")
    check_count("a recipe's together", options.get("together", 1), least=1)
    known = {name: options[name] for name in Recipe.__dataclass_fields__ if name in options}
    if not isinstance(known.get("rate", 0.1), int | float):
        raise BadInput(f"the rate {known['rate']!r} is no number: it must be resolved before training")
    return Recipe(**known)
