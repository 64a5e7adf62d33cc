"""``highway-bench list``, ``data`` and ``show``: what can be measured, and a network of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._options import AsJson, BlockName, BlockOptions, FamilyOptions, Plugins, assignments
from highway_bench.cli._output import Printed, records_table, show, text_of

if TYPE_CHECKING:
    from highway_bench.network_summary import NetworkSummary


class Section(StrEnum):
    """The registries, the words of recipes, and the profiles."""

    BLOCKS = "blocks"
    FAMILIES = "families"
    ARCHITECTURES = "architectures"
    TASKS = "tasks"
    WORDS = "words"
    DATASETS = "datasets"
    PROFILES = "profiles"


COLUMNS = {
    Section.BLOCKS: ("name", "equation", "summary", "source"),
    Section.FAMILIES: ("name", "transform", "kind", "options", "source"),
    Section.ARCHITECTURES: ("name", "summary", "inputs", "outputs", "source"),
    Section.TASKS: ("name", "summary", "metrics", "words"),
    Section.WORDS: ("name", "values", "summary", "tasks"),
    Section.DATASETS: ("name", "summary", "source"),
    Section.PROFILES: ("name", "summary", "tasks"),
}
"""The keys of entries that tables have."""
IMPORTED = {"metrics", "words", "tasks"}
"""Those for which all that is registered is imported, torch too. The overview of all sections lacks them."""


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
    everything = json or plugin or (section and IMPORTED & {*COLUMNS[section]}) or has_entry_points()
    if everything:
        from highway_bench.catalogue import catalogue
        from highway_bench.plugins import load_plugins

        load_plugins(plugin or [])
        entries = {one: catalogue(one) for one in chosen}
    else:
        entries = {one: declared(one) for one in chosen if one in FILES}
    left_out = set() if everything else IMPORTED
    show({str(one): found for one, found in entries.items()}, tables_of(entries, left_out), as_json=json)


def tables_of(entries: Mapping[Section, Sequence[Mapping[str, Any]]], left_out: Collection[str]) -> Iterator[Printed]:
    """The entries of each section as a table, without the columns that are ``left_out``."""
    for number, (section, found) in enumerate(entries.items()):
        if number:
            yield ""
        yield records_table(section, found, (key for key in COLUMNS[section] if key not in left_out))


def show_network(
    block: BlockName,
    family: Annotated[str, typer.Option(help="The family, or your own as module:factory.")] = "dense",
    depth: Annotated[int, typer.Option(help="Layers that the block joins.")] = 10,
    width: Annotated[int | None, typer.Option(help="Plain's width; --match decides the block's.")] = None,
    match: Annotated[str, typer.Option(help="What is held equal to plain's: params, flops or width.")] = "params",
    dataset: Annotated[str | None, typer.Option(help="Build the stem and head for this data set.")] = None,
    seq_len: Annotated[int | None, typer.Option(help="Steps of a sequence.")] = None,
    block_option: BlockOptions = None,
    family_option: FamilyOptions = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """Show a network's layers, parameters and FLOP.

    Shows those of plain at an equal budget too.
    """
    from highway_bench.network_summary import summarise
    from highway_bench.plugins import load_plugins

    load_plugins(plugin or [])
    summary = summarise(
        block,
        family,
        depth=depth,
        width=width,
        match=match,
        dataset=dataset,
        seq_len=seq_len,
        block_options=assignments("--block-option", block_option),
        family_options=assignments("--family-option", family_option),
    )
    show(asdict(summary), network(summary), as_json=json)


def network(summary: NetworkSummary) -> Iterator[Printed]:
    """The layers, then the totals with those of plain."""
    yield f"{summary.block}: {summary.equation}"
    yield f"{summary.family}: {summary.transform}"
    yield f"input of one item: {text_of(summary.input)}\n"
    yield records_table(
        f"Layers, depth {summary.depth}",
        [{**vars(layer), "name": "  " * layer.level + layer.name} for layer in summary.layers],
        ("name", "module", "output", "params", "flops", "repeats"),
        "Of one module and one item, forward. An indented module is part of the module above it.",
    )
    yield ""
    networks = [summary] if summary.equal is None else [summary, summary.equal]
    keys = ("block", "width", "layer_params", "params", "layer_flops", "flops")
    yield records_table("Totals", map(vars, networks), keys, note_on(summary))


def note_on(summary: NetworkSummary) -> str:
    """The note under the totals."""
    text = (
        "FLOP of a forward pass for one item; a multiply-add is two. Matrix products and convolutions count, "
        "element-wise work does not."
    )
    if summary.equal is None:
        return text
    if summary.match == "width":
        return f"{summary.block} and plain have the same width. {text}"
    cost = "parameters" if summary.match == "params" else "FLOP"
    return f"{summary.block} has the width that gives it plain's {cost} a layer, to {summary.mismatch:+.1%}. {text}"


DataOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="K=V", help="An option of the data set, such as corpus=tweets. May be repeated."),
]


def list_data(plugin: Plugins = None, json: AsJson = False) -> None:
    """List the data sets.

    Shows what is missing of each, and the folders that are searched.
    """
    from highway_bench.catalogue import catalogue
    from highway_bench.data import cache_folder, data_folder
    from highway_bench.plugins import load_plugins

    load_plugins(plugin or [])
    entries, given = catalogue("datasets"), data_folder()
    table = records_table("Data sets", entries, [*COLUMNS[Section.DATASETS], "missing"])
    first = given or "the one that HIGHWAY_BENCH_DATA names (it is not set)"
    show(
        {"data_folder": given, "cache_folder": cache_folder(), "datasets": entries},
        [table, f"\nfolders searched: {first}, then {cache_folder()}"],
        as_json=json,
    )


def fetch_data(
    name: Annotated[str, typer.Argument(help="The data set, as in 'highway-bench data list'.")],
    option: DataOptions = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """Download the files of a data set.

    They come from where they are published, and go into the cache folder.
    """
    from highway_bench.data import make_dataset
    from highway_bench.plugins import load_plugins

    load_plugins(plugin or [])
    dataset = make_dataset(name, **assignments("--option", option))
    folder = None if dataset.missing() is None else dataset.fetch()
    text = f"nothing is missing: {name} is here already" if folder is None else f"{name}: {folder}"
    show({"name": name, "fetched": folder}, text, as_json=json)


def check_data(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; by default, all that are complete.")] = None,
    option: DataOptions = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """Load data sets and print their sizes.

    Loading verifies their files.
    """
    from highway_bench.catalogue import catalogue
    from highway_bench.data import datasets, make_dataset
    from highway_bench.plugins import load_plugins

    load_plugins(plugin or [])
    complete = (entry["name"] for entry in catalogue("datasets") if entry["missing"] is None)
    options = assignments("--option", option)
    results: list[dict[str, Any]] = []
    for name in datasets.select(*names) if names else complete:
        dataset = make_dataset(name, **options)
        train, test = dataset.load()
        results.append(
            {
                "name": name,
                "train": tuple(train.inputs.shape),
                "test": tuple(test.inputs.shape),
                "input": dataset.input_kind,
                "target": dataset.target_kind,
                "outputs": dataset.outputs,
                "chance_loss": dataset.chance_loss,
                "chance_accuracy": dataset.chance_accuracy,
            }
        )
    note = "Chance: the best score without the input; the loss is on training data, the accuracy on test data."
    show({"datasets": results}, records_table("Data sets", results, results[0], note), as_json=json)
