"""``highway-bench list``: registered blocks, families, architectures, tasks, data sets and profiles."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from highway_bench.cli._options import AsJson, Plugins
from highway_bench.cli._output import print_json, print_table


class Section(StrEnum):
    """The registries, the words of recipes, and the profiles."""

    BLOCKS = "blocks"
    FAMILIES = "families"
    ARCHITECTURES = "architectures"
    TASKS = "tasks"
    WORDS = "words"
    DATASETS = "datasets"
    PROFILES = "profiles"


COLUMNS: dict[str, dict[str, str]] = {
    Section.BLOCKS: {"block": "name", "equation": "equation", "what it is": "summary", "source": "source"},
    Section.FAMILIES: {
        "family": "name",
        "transform": "transform",
        "takes": "kind",
        "options": "options",
        "source": "source",
    },
    Section.ARCHITECTURES: {
        "architecture": "name",
        "what it is": "summary",
        "inputs": "inputs",
        "outputs": "outputs",
        "source": "source",
    },
    Section.TASKS: {"task": "name", "what it does": "summary", "metrics": "metrics", "recipe words": "words"},
    Section.WORDS: {"recipe word": "name", "may be": "values", "what it means": "summary", "tasks": "tasks"},
    Section.DATASETS: {"data set": "name", "what it is": "summary", "source": "source"},
    Section.PROFILES: {"profile": "name", "what it is for": "summary", "tasks": "tasks"},
}
IMPORTED = {"metrics", "words", "tasks"}
"""Keys of columns for which all that is registered is imported, torch too. The overview of all sections lacks them."""


def list_entries(
    section: Annotated[Section | None, typer.Argument(help="Only these; by default, all.")] = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """List blocks, families, architectures, tasks, words of recipes, data sets, profiles.

    The metrics and words of tasks, and the tasks of profiles, are listed where these are asked for.
    """
    from highway_bench.declared import FILES, declared, has_entry_points

    chosen = [section] if section else list(Section)
    everything = json or plugin or (section and IMPORTED & {*COLUMNS[section].values()}) or has_entry_points()
    if everything:
        from highway_bench.catalogue import catalogue
        from highway_bench.plugins import load_plugins

        load_plugins(plugin or [])
        entries = {str(one): catalogue(one) for one in chosen}
    else:
        entries = {str(one): declared(one) for one in chosen if one in FILES}
    if json:
        print_json(entries)
        return
    for index, (one, found) in enumerate(entries.items()):
        if index:
            typer.echo()
        columns = {title: key for title, key in COLUMNS[one].items() if everything or key not in IMPORTED}
        rows = [[text_of(entry[key]) for key in columns.values()] for entry in found]
        print_table(one, list(columns), rows, right=["outputs"])


def text_of(value: Any) -> str:
    """An entry's value as text in a table: options as name=value, metrics by name and unit."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={inner}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(f"{one['name']} [{one['unit']}]" if isinstance(one, dict) else str(one) for one in value)
    return "" if value is None else str(value).replace("``", "")
