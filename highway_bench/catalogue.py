"""Catalogue: what there is to choose from, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any

from highway_bench.blocks import blocks
from highway_bench.data import DataSetSpec, datasets, make_dataset
from highway_bench.families import families
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import PROFILES
from highway_bench.registry import described
from highway_bench.tasks import tasks
from highway_bench.training.recipe import Word

Entry = dict[str, Any]


def catalogue(section: str) -> list[Entry]:
    """The entries of ``section``, one of ``SECTIONS``, each with its name and what is known of it."""
    return SECTIONS[section]()


def block_entries() -> list[Entry]:
    """Blocks: equation, source, and the parts that one join has."""
    specs = [blocks.get(name) for name in blocks]
    return [
        {
            "name": spec.name,
            "equation": spec.equation,
            "summary": spec.summary,
            "source": spec.source,
            "gates": spec.gates,
            "norms": spec.norms,
            "options": dict(spec.options),
            "module": blocks.place(spec.name),
        }
        for spec in specs
    ]


def family_entries() -> list[Entry]:
    """Families: the transform H, what it takes, and its options with their defaults."""
    specs = [families.get(name) for name in families]
    return [
        {
            "name": spec.name,
            "transform": spec.transform,
            "summary": spec.summary,
            "kind": spec.kind,
            "source": spec.source,
            "options": spec.options,
            "module": families.place(spec.name),
        }
        for spec in specs
    ]


def task_entries() -> list[Entry]:
    """Tasks: what they measure, in which unit, and which direction is better."""
    found = [tasks.get(name) for name in tasks]
    return [
        {
            "name": task.name,
            "summary": described(type(task)),
            "version": task.version,
            "metrics": [
                {"name": one.name, "unit": one.unit, "better": one.better, "label": one.label} for one in task.metrics
            ],
            "words": list(task.recipe_words),
            "section": task.section,
            "module": tasks.place(task.name),
        }
        for task in found
    ]


def word_entries() -> list[Entry]:
    """Words of recipes: what each may be and what it means, with the tasks whose cells have it."""
    found: dict[tuple[str, Word], list[str]] = {}
    for task in map(tasks.get, tasks):
        for name, word in task.recipe_words.items():
            found.setdefault((name, word), []).append(task.name)
    return [
        {"name": name, "tasks": having, "type": word.type, "values": word.says, "summary": word.help}
        for (name, word), having in sorted(found.items(), key=lambda item: item[0][0])
    ]


def dataset_entries() -> list[Entry]:
    """Data sets: where they come from, and what has to be had before they can be loaded (``missing``)."""
    return [dataset_entry(datasets.get(name)) for name in datasets]


def dataset_entry(spec: DataSetSpec) -> Entry:
    """One data set. What must be given before it is known to be there counts as missing."""
    needed = [name for name, default in spec.options.items() if default is MISSING]
    missing = f"needs the option {', '.join(needed)}" if needed else make_dataset(spec.name).missing()
    options = {name: None if default is MISSING else default for name, default in spec.options.items()}
    return {
        "name": spec.name,
        "summary": spec.summary,
        "source": spec.source,
        "options": options,
        "missing": missing,
        "module": datasets.place(spec.name),
    }


def profile_entries() -> list[Entry]:
    """Profiles: what they are for, their tasks, and how many cells they have here, trials of searches included."""
    return [
        {
            "name": profile.name,
            "summary": profile.summary,
            "tasks": list(dict.fromkeys(grid.task for grid in profile.grids)),
            "cells": len(Plan.of(profile).needs),
        }
        for profile in PROFILES.values()
    ]


SECTIONS: Mapping[str, Callable[[], list[Entry]]] = {
    "blocks": block_entries,
    "families": family_entries,
    "tasks": task_entries,
    "words": word_entries,
    "datasets": dataset_entries,
    "profiles": profile_entries,
}
