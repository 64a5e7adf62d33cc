"""How contests and settings are called in print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.report.frame import recipe_of
from highway_bench.report.number import three


def contest_text(contest: Mapping[str, Any]) -> str:
    """A contest in a line: family, data set, what is equal, how it was trained."""
    recipe = recipe_of(contest.get("recipe"))
    parts = [str(contest["family_label"])]
    parts += [f"on {contest['dataset']}"] if contest.get("dataset") else []
    head = " ".join(parts)
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
    return (
        f"{contest['family_label']} on {contest['dataset']}" if contest.get("dataset") else str(contest["family_label"])
    )
