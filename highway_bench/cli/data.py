"""``highway-bench data``: list, fetch and check data sets."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from highway_bench.cli._options import AsJson, Plugins, assignments
from highway_bench.cli._output import Table, show

Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="K=V", help="An option of the data set, such as corpus=tweets. May be repeated."),
]


def list_sets(plugin: Plugins = None, json: AsJson = False) -> None:
    """List the data sets.

    Shows what is missing of each, and the folders that are searched.
    """
    from highway_bench.catalogue import catalogue
    from highway_bench.data import cache_folder, data_folder
    from highway_bench.plugins import load_plugins

    load_plugins(plugin or [])
    entries, given = catalogue("datasets"), data_folder()
    table = Table(
        "Data sets",
        ["data set", "what it is", "source", "missing"],
        [(entry["name"], entry["summary"], entry["source"], entry["missing"]) for entry in entries],
    )
    first = given or "the one that HIGHWAY_BENCH_DATA names (it is not set)"
    show(
        {"data_folder": given, "cache_folder": cache_folder(), "datasets": entries},
        [table, f"\nfolders searched: {first}, then {cache_folder()}"],
        as_json=json,
    )


def fetch(
    name: Annotated[str, typer.Argument(help="The data set, as in 'highway-bench data list'.")],
    option: Options = None,
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


def check(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; by default, all that are complete.")] = None,
    option: Options = None,
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
    chosen = (
        datasets.select(*names)
        if names
        else [entry["name"] for entry in catalogue("datasets") if entry["missing"] is None]
    )
    options = assignments("--option", option)
    results: list[dict[str, Any]] = []
    for name in chosen:
        dataset = make_dataset(name, **options)
        train, test = dataset.load()
        results.append(
            {
                "name": name,
                "train": list(train.inputs.shape),
                "test": list(test.inputs.shape),
                "input": dataset.input_kind,
                "target": dataset.target_kind,
                "outputs": dataset.outputs,
                "chance_loss": dataset.chance_loss,
                "chance_accuracy": dataset.chance_accuracy,
            }
        )
    table = Table(
        "Data sets",
        ["data set", "training inputs", "test inputs", "targets", "chance loss", "chance accuracy"],
        [
            (
                one["name"],
                sizes(one["train"]),
                sizes(one["test"]),
                f"{one['target']}, {one['outputs']}",
                f"{one['chance_loss']:.3g}",
                none_or(one["chance_accuracy"]),
            )
            for one in results
        ],
        right=["chance loss", "chance accuracy"],
        note="Chance: the best score without the input; the loss is on training data, the accuracy on test data.",
    )
    show({"datasets": results}, [table], as_json=json)


def sizes(shape: list[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)


def none_or(share: float | None) -> str:
    return "" if share is None else f"{share:.3g}"
