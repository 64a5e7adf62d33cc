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
from highway_bench.registry import described
from highway_bench.tasks import tasks
from highway_bench.words import Word

CatalogueEntry = dict[str, Any]


def catalogue(section: str) -> list[CatalogueEntry]:
    """The entries of ``section``, a key of ``SECTIONS``, each with its name and description."""
    return SECTIONS[section]()


def block_entries() -> list[CatalogueEntry]:
    """Blocks: equation, source, group, starts, and the gates and norms of one connection."""
    specs = [blocks.get(name) for name in blocks]
    return [
        {
            "name": spec.name,
            "equation": spec.equation,
            "summary": spec.summary,
            "source": spec.source,
            "group": spec.group,
            "evidence": spec.evidence,
            "init_state": spec.init_state,
            "starts": {start.name: start.about for start in spec.starts},
            "gates": spec.gates,
            "norms": spec.norms,
            "options": dict(spec.options),
            "module": blocks.module_of(spec.name),
        }
        for spec in specs
    ]


def family_entries() -> list[CatalogueEntry]:
    """Families: the transform H, the kind of its inputs, and its options with their defaults."""
    specs = [families.get(name) for name in families]
    return [
        {
            "name": spec.name,
            "transform": spec.transform,
            "summary": spec.summary,
            "kind": spec.kind,
            "source": spec.source,
            "options": spec.options,
            "module": families.module_of(spec.name),
        }
        for spec in specs
    ]


def architecture_entries() -> list[CatalogueEntry]:
    """Architectures: the published shape of one input, without the batch, and the published number of outputs."""
    return [
        {
            "name": name,
            "summary": architecture.summary,
            "source": architecture.source,
            "inputs": list(architecture.inputs),
            "outputs": architecture.outputs,
            "module": architectures.module_of(name),
        }
        for name, architecture in ((name, architectures.get(name)) for name in architectures)
    ]


def task_entries() -> list[CatalogueEntry]:
    """Tasks: what they measure, in which unit, and which direction is better."""
    registered = [tasks.get(name) for name in tasks]
    return [
        {
            "name": task.name,
            "summary": described(type(task)),
            "version": task.version,
            "metrics": [
                {"name": one.name, "unit": one.unit, "better": one.better, "label": one.label} for one in task.metrics
            ],
            "words": list(task.recipe_words),
            "module": tasks.module_of(task.name),
        }
        for task in registered
    ]


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


def dataset_entries() -> list[CatalogueEntry]:
    """Data sets: their source, and what must be downloaded or installed before they load (``missing``)."""
    return [dataset_entry(datasets.get(name)) for name in datasets]


def dataset_entry(spec: DataSetSpec) -> CatalogueEntry:
    """One data set. A required option without a default counts as missing."""
    needed = [name for name, default in spec.options.items() if default is MISSING]
    missing = f"needs the option {', '.join(needed)}" if needed else make_dataset(spec.name).missing()
    options = {name: None if default is MISSING else default for name, default in spec.options.items()}
    return {
        "name": spec.name,
        "summary": spec.summary,
        "source": spec.source,
        "options": options,
        "missing": missing,
        "module": datasets.module_of(spec.name),
    }


def profile_entries() -> list[CatalogueEntry]:
    """Profiles: purpose and tasks."""
    return [
        {
            "name": profile.name,
            "summary": profile.summary,
            "tasks": list(dict.fromkeys(grid.task for grid in profile.grids)),
        }
        for profile in PROFILES.values()
    ]


SECTIONS: Mapping[str, Callable[[], list[CatalogueEntry]]] = {
    "blocks": block_entries,
    "families": family_entries,
    "architectures": architecture_entries,
    "tasks": task_entries,
    "words": word_entries,
    "datasets": dataset_entries,
    "profiles": profile_entries,
}
