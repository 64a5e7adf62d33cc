"""The command line: each command calls the Python API.

Importing it, and ``--help``, import neither torch nor pandas: commands import what they need when they run.

Exit status: 0 success, including outcomes such as ``diverged``; 1 a measurement or a check failed; 2 bad input; 3
nothing was measured; 4 asv failed; 5 the gate is undecided; 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from highway_bench import __version__
from highway_bench.cli import (
    connections,
    decide,
    entries,
    history,
    reproduce,
    run,
    stores,
)
from highway_bench.cli._errors import Commands, work_here

app = typer.Typer(
    cls=Commands,
    name="highway-bench",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 success; 1 a measurement or a check failed; 2 bad input; 3 nothing was measured; "
    "4 asv failed; 5 the gate is undecided; 130 interrupted. Example: highway-bench run --profile smoke",
)


def main() -> None:
    """The console script ``highway-bench``."""
    gc.set_threshold(100_000)  # the objects that imports make stay: looking through them takes a fifth of a dry run
    atexit.register(gc.freeze)  # at the end, too
    app(prog_name="highway-bench")


def version(requested: bool) -> None:
    if requested:
        typer.echo(f"highway-bench {__version__}")
        raise typer.Exit


@app.callback()
def everything(
    _: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """How should the layers of a network be connected, at this depth, on this hardware, and at what cost?"""
    work_here()


Listed = Mapping[str, tuple[Callable[..., Any], str]]
"""Commands by name, each with the words that follow it in the example at the end of its help."""


def add(to: typer.Typer, commands: Listed, group: str = "") -> None:
    """Register ``commands`` in ``to``, the group of that name."""
    for name, (command, words) in commands.items():
        example = " ".join(filter(None, ("highway-bench", group, name, words)))
        to.command(name, epilog=f"Example: {example}")(command)


def add_group(name: str, about: str, example: str, commands: Listed) -> None:
    """Register a group of ``commands``."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    add(group, commands, name)
    app.add_typer(group, name=name, help=about, epilog=f"Example: highway-bench {name} {example}")


add(
    app,
    {
        "answer": (connections.answer, "transformer --depth 12 --for time"),
        "export": (connections.export, "rezero --depth 48"),
        "list": (entries.list_entries, "blocks"),
        "show": (entries.show_network, "highway --family conv --depth 10"),
        "run": (
            run.run,
            "throughput memory --block plain --block 'highway*' --family dense --depth 10 --depth 50",
        ),
        "status": (stores.status, "--store reports/results.sqlite"),
        "report": (stores.report, "--store reports/results.sqlite --out reports/page"),
        "decide": (decide.decide, "--part vision --family conv --dry-run"),
        "enter": (decide.enter, "my_gate.py --paper arXiv:2601.00001"),
        "advise": (connections.advise, "transformer --depth 12 --minutes 10"),
        "peers": (run.peers, "sequential two-linear-maps --width 50 --mode eager"),
        "reproduce": (reproduce.reproduce, "lecture --epochs 3"),
        "new-block": (entries.new_block, "my-gate"),
        "check": (entries.check, "my-gate --plugin my_gate.py"),
        "fetch": (entries.fetch, "mnist-5k digits"),
        "serve": (stores.serve, ""),
    },
)
add_group(
    "results",
    "Show, export, import and check stores of results.",
    "export rows.csv",
    {
        "show": (stores.show_rows, "--task memory --block highway"),
        "export": (stores.export, "rows.csv"),
        "import": (stores.import_files, "docs/data --store reports/decide.sqlite"),
        "check": (stores.check, ""),
    },
)
add_group(
    "history",
    "Follow every block over commits and machines, with asv.",
    "run",
    {
        "init": (history.run.init, ""),
        "run": (history.run.run, "HEAD~10..HEAD"),
        "import": (history.run.import_folder, "gpu-results --commit 1a2b3c4d"),
        "publish": (history.run.publish, "--site reports/site"),
        "gate": (history.gate.gate, "--measure"),
        "compare": (history.compare.compare, "main my-branch --block highway"),
    },
)
