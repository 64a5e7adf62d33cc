"""Names of contests and sizes for print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from highway_bench.frames.rows import TUNED, recipe_of
from highway_bench.report.format import three


def protocol_of(contest: Mapping[str, Any]) -> str:
    """What is equal among the connections of a contest, in words: width, steps, batches, optimiser, rate."""
    recipe = recipe_of(contest.get("recipe"))
    details = [f"equal {contest['match']}, plain's width {contest['nominal_width']:g}"]
    details += [f"{recipe['steps']:,} steps"] if isinstance(recipe.get("steps"), int) else []
    details += [f"batches of {contest['batch_size']}"] if contest.get("batch_size") else []
    details += [str(recipe["optimiser"])] if recipe.get("optimiser") else []
    rate = recipe.get("rate")
    if rate == TUNED:
        details.append("each connection and depth at its own learning rate")
    elif isinstance(rate, (int, float)):
        details.append(f"learning rate {three(float(rate))}")
    return ", ".join(details)


def title_of(contest: Mapping[str, Any], others: Iterable[Mapping[str, Any]], *, with_data: bool = False) -> str:
    """A contest's family, and its data set if that is wanted, with its differences from those of ``others`` that have
    the same name."""

    def name(one: Mapping[str, Any]) -> str:
        return str(one["family_label"]) + (f" on {one['dataset']}" if with_data and one.get("dataset") else "")

    contest = dict(contest)
    alike = [dict(other) for other in others if name(other) == name(contest)]
    parts = [
        text.format(contest[key])
        for key, text in SETTING_WORDS.items()
        if contest[key] and any(other[key] != contest[key] for other in alike)
    ]
    own = recipe_of(contest["recipe"])
    recipes = [recipe_of(other["recipe"]) for other in alike]
    parts += [
        text(own[key])
        for key, text in RECIPE_WORDS.items()
        if own.get(key) is not None and any(recipe.get(key) != own[key] for recipe in recipes)
    ]
    named = (*SETTING_WORDS, *RECIPE_WORDS)
    same = [
        recipe
        for other, recipe in zip(alike, recipes, strict=True)
        if all((contest | own).get(key) == (other | recipe).get(key) for key in named)
    ]
    differing = sorted({key for recipe in same for key in own | recipe if own.get(key) != recipe.get(key)})
    return ", ".join([name(contest), *parts, *(f"{key}={own.get(key, 'default')}" for key in differing)])


SETTING_WORDS: Final = {
    "dataset": "{}",
    "match": "equal {}",
    "nominal_width": "width {:g}",
    "batch_size": "batches of {:g}",
    "seq_len": "length {:g}",
    "dtype": "{}",
    "device": "{}",
    "machine_label": "{}",  # the longest, and so the first to be cut
}
RECIPE_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "steps": "{:,} steps".format,
    "optimiser": str,
    "rate": "learning rate {}".format,
    "ladder": lambda ladder: f"depths to {max(ladder['depths']):,}",
}
"""Differences between contests of one name, as titles print them."""
