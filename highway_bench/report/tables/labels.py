"""How contests and settings are called in print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.report.format import three
from highway_bench.report.rows import recipe_of


def contest_text(contest: Mapping[str, Any]) -> str:
    """A contest in a line: family, data set, machine where there are several, what is equal, how it was trained."""
    recipe = recipe_of(contest.get("recipe"))
    parts = [str(contest["family_label"])]
    parts += [f"on {contest['dataset']}"] if contest.get("dataset") else []
    head = ", ".join([" ".join(parts), *_machine(contest)])
    details = [f"equal {contest['match']}, plain's width {contest['nominal_width']:g}"]
    details += [f"{recipe['steps']:,} steps"] if isinstance(recipe.get("steps"), int) else []
    details += [f"batches of {contest['batch_size']}"] if contest.get("batch_size") else []
    details += [str(recipe["optimiser"])] if recipe.get("optimiser") else []
    rate = recipe.get("rate")
    if rate == "tuned":
        details.append("learning rate tuned per block and depth")
    elif isinstance(rate, (int, float)):
        details.append(f"learning rate {three(float(rate))}")
    return ", ".join([head, *details])


def contest_name(contest: Mapping[str, Any]) -> str:
    """A contest in a few words, for headings."""
    name = str(contest["family_label"]) + (f" on {contest['dataset']}" if contest.get("dataset") else "")
    return ", ".join([name, *_machine(contest)])


def size_text(depth: float, width: float, batch: float) -> str:
    """The size of what was timed or counted, which need not be that of what was trained; ``width`` is plain's."""
    named = (("depth", depth), ("width", width), ("batch", batch))
    return ", ".join(f"{name} {value:g}" for name, value in named if value == value)


def _machine(contest: Mapping[str, Any]) -> list[str]:
    """The machine, where there are several."""
    return [str(contest["machine_label"])] if contest.get("machine_label") else []
