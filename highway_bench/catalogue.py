"""Catalogue: all registered blocks, families, architectures, tasks, data sets and profiles as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.data import DataSetSpec, datasets, make_dataset
from highway_bench.families import families
from highway_bench.plan.profiles import PROFILES
from highway_bench.registry import Registry, described
from highway_bench.tasks import tasks
from highway_bench.words import Word

CatalogueEntry = dict[str, Any]


def catalogue(section: str) -> list[CatalogueEntry]:
    """The entries of ``section``, a key of ``SECTIONS``, each with its name and description."""
    return SECTIONS[section]()


def registered(registry: Registry[Any], *facts: str, **made: Callable[[Any], Any]) -> list[CatalogueEntry]:
    """Each entry of ``registry`` with its name, the attributes ``facts``, what is ``made`` of it, and its module."""
    return [
        {
            "name": name,
            **{fact: getattr(entry, fact) for fact in facts},
            **{fact: make(entry) for fact, make in made.items()},
            "module": registry.module_of(name),
        }
        for name, entry in ((name, registry.get(name)) for name in registry)
    ]


def missing(spec: DataSetSpec) -> str | None:
    """What must be given, downloaded or installed before a data set loads."""
    needed = [name for name, default in spec.options.items() if default is MISSING]
    return f"needs the option {', '.join(needed)}" if needed else make_dataset(spec.name).missing()


def word_entries() -> list[CatalogueEntry]:
    """Words of recipes: what each may be and what it means, with the tasks whose cells have it."""
    found: dict[tuple[str, Word], list[str]] = {}
    for task in map(tasks.get, tasks):
        for name, word in task.recipe_words.items():
            found.setdefault((name, word), []).append(task.name)
    return [
        {"name": name, "tasks": having, "type": word.type, "values": word.says, "summary": word.help}
        for (name, word), having in sorted(found.items(), key=lambda item: item[0][0])
    ]


SECTIONS: Mapping[str, Callable[[], list[CatalogueEntry]]] = {
    "blocks": lambda: registered(
        blocks,
        *("equation", "summary", "source", "group", "evidence", "init_state", "gates", "norms"),
        starts=lambda spec: {start.name: start.about for start in spec.starts},
        options=lambda spec: dict(spec.options),
    ),
    "families": lambda: registered(families, "transform", "summary", "kind", "source", "options"),
    "architectures": lambda: registered(architectures, "summary", "source", "inputs", "outputs"),
    "tasks": lambda: registered(
        tasks,
        "version",
        summary=lambda task: described(type(task)),
        metrics=lambda task: [
            {fact: getattr(metric, fact) for fact in ("name", "unit", "better", "label")} for metric in task.metrics
        ],
        words=lambda task: list(task.recipe_words),
    ),
    "words": word_entries,
    "datasets": lambda: registered(
        datasets,
        "summary",
        "source",
        options=lambda spec: {name: None if one is MISSING else one for name, one in spec.options.items()},
        missing=missing,
    ),
    "profiles": lambda: [
        {
            "name": profile.name,
            "summary": profile.summary,
            "tasks": list(dict.fromkeys(grid.task for grid in profile.grids)),
        }
        for profile in PROFILES.values()
    ],
}
