"""``highway-bench show``: prints a network's layers, shapes, parameters and FLOP."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson, BlockOptions, FamilyOptions, Plugins, assignments
from highway_bench.cli._output import print_json, print_table

if TYPE_CHECKING:
    from highway_bench.network_summary import NetworkSummary


def show(
    block: Annotated[str, typer.Argument(help="The block, as in 'highway-bench list blocks'.")],
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
    if json:
        print_json(asdict(summary))
    else:
        print_network(summary)


def print_network(summary: NetworkSummary) -> None:
    """Print the layers, then the totals with those of plain."""
    typer.echo(f"{summary.block}: {summary.equation}")
    typer.echo(f"{summary.family}: {summary.transform}")
    typer.echo(f"input of one item: {shape(summary.input)}\n")
    rows = [
        (
            "  " * layer.level + layer.name,
            layer.module,
            shape(layer.output),
            f"{layer.params:,}",
            f"{layer.flops:,}",
            f"× {layer.repeats}" if layer.repeats > 1 else "",
        )
        for layer in summary.layers
    ]
    print_table(
        f"Layers, depth {summary.depth}",
        ["module", "kind", "output", "parameters", "FLOP", "times"],
        rows,
        right=["parameters", "FLOP"],
        note="Of one module and one item, forward. An indented module is part of the module above it.",
    )
    typer.echo()
    summaries = [summary] + ([summary.equal] if summary.equal else [])
    print_table(
        "Totals",
        ["block", "width", "parameters a layer", "parameters", "FLOP a layer", "FLOP"],
        [
            (one.block, one.width, f"{one.layer_params:,}", f"{one.params:,}", f"{one.layer_flops:,}", f"{one.flops:,}")
            for one in summaries
        ],
        right=["width", "parameters a layer", "parameters", "FLOP a layer", "FLOP"],
        note=note_on(summary),
    )


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


def shape(sizes: tuple[int, ...]) -> str:
    """(16, 28, 28) as 16 × 28 × 28."""
    return " × ".join(map(str, sizes))
