"""``highway-bench check``: checks a block against the contract."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson, Plugins
from highway_bench.cli._output import print_json, print_table
from highway_bench.errors import HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.block_check import CheckResult


class CheckFailed(HighwayBenchError):
    """The block violates the contract."""


def check(
    name: Annotated[str, typer.Argument(help="The block, as in 'highway-bench list blocks'.")],
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

    from highway_bench.block_check import check_block
    from highway_bench.blocks import blocks
    from highway_bench.execution.progress import stderr_console
    from highway_bench.families import select_families
    from highway_bench.plugins import load_plugins

    began = time.perf_counter()
    load_plugins(plugin or [])
    blocks.get(name)
    chosen = select_families(*(family or ["*"]))
    console = stderr_console()
    results = [
        result
        for one in track(chosen, f"checking {name}", console=console, transient=True, disable=not console.is_terminal)
        for result in check_block(name, in_families=[one])
    ]
    seconds = time.perf_counter() - began
    problems = [result for result in results if result.problem is not None]
    if json:
        print_json(
            {
                "block": name,
                "passed": not problems,
                "seconds": seconds,
                "results": [
                    {"check": one.check, "family": one.family, "problem": one.problem, "note": one.note}
                    for one in results
                ],
            }
        )
        raise typer.Exit(1 if problems else 0)
    print_results(name, results)
    sys.stdout.flush()
    if problems:
        raise CheckFailed(f"{name} fails {len(problems)} of {len(results)} checks ({seconds:.0f} s)")
    typer.echo(f"\n{name} meets the contract: {len(results)} checks in {len(chosen)} families, {seconds:.0f} s")


def print_results(name: str, results: list[CheckResult]) -> None:
    """Print the problems and the notes, each with the families that have it."""
    broken: dict[tuple[str, str], list[str]] = {}
    noted: dict[tuple[str, str], list[str]] = {}
    for one in results:
        if one.problem is not None:
            broken.setdefault((one.check, one.problem), []).append(one.family)
        elif one.note is not None:
            noted.setdefault((one.check, one.note), []).append(one.family)
    for title, by_text, head in (("Broken", broken, "what to correct"), ("Noted", noted, "note")):
        if by_text:
            print_table(
                f"{title}: {name}",
                ["check", head, "families"],
                [(check, text, ", ".join(families)) for (check, text), families in by_text.items()],
            )
