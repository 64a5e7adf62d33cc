"""``highway-bench list``, ``show``, ``fetch``, ``new-block`` and ``check``: what can be measured; your own blocks."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._options import AsJson, BlockName, BlockOptions, FamilyOptions, Plugins, assignments
from highway_bench.cli._output import Printed, records_table, show, text_of, text_table
from highway_bench.errors import HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.block_check import CheckResult
    from highway_bench.network_summary import NetworkSummary
    from highway_bench.scaffold import NewBlock


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
    Section.DATASETS: ("name", "summary", "source", "missing"),
    Section.PROFILES: ("name", "summary", "tasks"),
}
"""The keys of entries that tables have."""
IMPORTED = {"metrics", "words", "tasks", "missing"}
"""Those for which all that is registered is imported, torch too. The overview of all sections lacks them."""


def list_entries(
    section: Annotated[Section | None, typer.Argument(help="Only these; by default, all.")] = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """List blocks, families, architectures, tasks, words of recipes, data sets, profiles.

    The metrics and words of tasks, the tasks of profiles, and what data sets lack are listed where these are asked for.
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


def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="By default, those that lack nothing are loaded.")] = None,
    option: DataOptions = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """Download what is missing of data sets, load them, which verifies their files, and print their sizes.

    Files come from where they are published, and go into the cache folder.
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
        fetched = None if dataset.missing() is None else dataset.fetch()
        train, test = dataset.load()
        results.append(
            {
                "name": name,
                "fetched": fetched,
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


class CheckFailed(HighwayBenchError):
    """The block violates the contract."""


def new_block(
    name: Annotated[str, typer.Argument(help="Lower-case words joined by '-', such as my-gate.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it; by default, among the package's blocks in its "
            "source checkout, elsewhere in this folder."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the file of a new block.

    It works unchanged, and has one equation to edit.
    """
    from highway_bench import scaffold

    written = scaffold.new_block(name, folder)
    data = {"name": written.name, "file": written.path, "in_tree": written.in_tree}
    show(data, next_steps(written), as_json=json)


def next_steps(written: NewBlock) -> Iterator[Printed]:
    """Where the file is, and the commands that use it."""
    name, path = written.name, written.path.resolve()
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    plugin = "" if written.in_tree else f" --plugin {shown}"
    yield f"{shown}\n"
    yield "Edit the line marked 'the equation', and the texts that describe it. Then:\n"
    yield f"  highway-bench check {name}{plugin}"
    yield f"  highway-bench run --profile smoke --block plain --block {name}{plugin}"
    if not written.in_tree:
        yield (
            f'\nIn your own package, the entry point\n\n  [project.entry-points."highway_bench.blocks"]\n'
            f'  {name} = "your_package.{written.path.stem}"\n\nregisters it without --plugin.'
        )


def check(
    name: BlockName,
    family: Annotated[
        list[str] | None,
        typer.Option(help="Families, wildcards too, or your own layer as module:factory; by default, all."),
    ] = None,
    plugin: Plugins = None,
    json: AsJson = False,
) -> None:
    """Check a block against the contract.

    Tests the block in every family and says what to correct. Takes about a minute on a CPU.
    """
    from rich.progress import track

    from highway_bench.block_check import check_results, subjects_of
    from highway_bench.execution.progress import stderr_console
    from highway_bench.plugins import load_plugins
    from highway_bench.report.format import counted

    began = time.perf_counter()
    load_plugins(plugin or [])
    console = stderr_console()
    how: dict[str, Any] = {"console": console, "transient": True, "disable": not console.is_terminal}
    subjects = subjects_of(name, family or ["*"])
    results = [result for one in track(subjects, f"checking {name}", **how) for result in check_results(one)]
    seconds = time.perf_counter() - began
    problems = [result for result in results if result.problem is not None]
    data = {"block": name, "passed": not problems, "seconds": seconds, "results": list(map(asdict, results))}
    show(data, checked(name, results), as_json=json)
    if json:
        raise typer.Exit(1 if problems else 0)
    sys.stdout.flush()
    if problems:
        faults = len({fault_of(result) for result in problems})
        raise CheckFailed(f"{name} has {counted(faults, 'fault')} ({seconds:.0f} s)")
    also = "".join(f" --plugin {one}" for one in plugin or [])
    typer.echo(f"\n{name} meets the contract: {len(results)} checks in {len(subjects)} families, {seconds:.0f} s")
    typer.echo(
        f"Its equation is not checked. Next: highway-bench run --profile smoke --block plain --block {name}{also}"
    )


def checked(name: str, results: Sequence[CheckResult]) -> Iterator[Printed]:
    """The problems and the notes, each with the families that have it; a fault's text is that in the first of them."""
    for title, head in (("Broken", "what to correct"), ("Noted", "note")):
        same: dict[object, list[CheckResult]] = {}
        for one in results:
            if one.problem if title == "Broken" else one.note:
                same.setdefault(fault_of(one) if one.problem else (one.check, one.note), []).append(one)
        if same:
            rows = [(a[0].check, a[0].problem or a[0].note, ", ".join(one.family for one in a)) for a in same.values()]
            yield text_table(f"{title}: {name}", ["check", head, "families"], rows)


def fault_of(result: CheckResult) -> tuple[str, str]:
    """What the results of one fault have in common: the check, and its words without numbers and what torch adds."""
    said, raised, error = str(result.problem).partition("raised ")
    return result.check, re.sub(r"\d[\d.,]*(e[+-]?\d+)?", "#", said) + raised + error.partition(":")[0]
