"""The command line: each command calls the Python API.

Importing it, and ``--help``, import neither torch nor pandas: commands import what they need when they run.

Exit status: 0 success, including outcomes such as ``diverged``; 1 a measurement or a check failed; 2 bad input; 3
nothing was measured; 4 asv failed; 5 the gate is undecided; 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from typing import Annotated, Any

import typer

from highway_bench import __version__
from highway_bench.cli import (
    connections,
    data,
    decide,
    entries,
    history,
    peers,
    report,
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


def add(to: typer.Typer, name: str, command: Callable[..., Any], example: str) -> None:
    """Register ``command``, with ``example`` at the end of its help."""
    to.command(name, epilog=f"Example: {example}")(command)


add(app, "answer", connections.answer, "highway-bench answer transformer --depth 12 --for time")
add(app, "export", connections.export, "highway-bench export rezero --depth 48")
add(app, "list", entries.list_entries, "highway-bench list blocks")
add(app, "show", entries.show_network, "highway-bench show highway --family conv --depth 10")
add(
    app,
    "run",
    run.run,
    "highway-bench run throughput memory --block plain --block 'highway*' --family dense --depth 10 --depth 50",
)
add(app, "status", stores.status, "highway-bench status --store reports/results.sqlite")
add(app, "report", report.report, "highway-bench report --store reports/results.sqlite --out reports/page")
add(app, "decide", decide.decide, "highway-bench decide --part vision --family conv --dry-run")
add(app, "compare-my-block", decide.compare_my_block, "highway-bench compare-my-block my_gate.py")
add(app, "advise", connections.advise, "highway-bench advise transformer --depth 12 --minutes 10")
add(app, "peers", peers.peers, "highway-bench peers sequential two-linear-maps --width 50 --mode eager")
add(app, "reproduce", reproduce.reproduce, "highway-bench reproduce lecture --epochs 3")
add(app, "new-block", entries.new_block, "highway-bench new-block my-gate")
add(app, "check", entries.check, "highway-bench check my-gate --plugin my_gate.py")

of_results = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
add(of_results, "show", stores.show_rows, "highway-bench results show --task memory --block highway")
add(of_results, "export", stores.export, "highway-bench results export rows.csv")
add(
    of_results,
    "import",
    stores.import_files,
    "highway-bench results import docs/data --store reports/decide.sqlite",
)
add(of_results, "compact", stores.compact, "highway-bench results compact docs/data")
add(of_results, "merge", stores.merge, "highway-bench results merge all.sqlite laptop.sqlite gpu.sqlite")
add(of_results, "check", stores.check, "highway-bench results check")
add(of_results, "salvage", stores.salvage, "highway-bench results salvage reports/results.sqlite whole.sqlite")
add(of_results, "prune", stores.prune, "highway-bench results prune --dry-run")
app.add_typer(
    of_results,
    name="results",
    help="Show, export, import, merge, check and repair stores of results.",
    epilog="Example: highway-bench results export rows.csv",
)

of_data = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
add(of_data, "list", data.list_sets, "highway-bench data list")
add(of_data, "fetch", data.fetch, "highway-bench data fetch sentiment")
add(of_data, "check", data.check, "highway-bench data check mnist-5k digits")
app.add_typer(
    of_data, name="data", help="List, fetch and check data sets.", epilog="Example: highway-bench data fetch mnist"
)

of_history = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
add(of_history, "init", history.init.init, "highway-bench history init")
add(of_history, "run", history.run.run, "highway-bench history run HEAD~10..HEAD")
add(of_history, "import", history.importing.import_folder, "highway-bench history import gpu-results --commit 1a2b3c4d")
add(of_history, "publish", history.publish.publish, "highway-bench history publish --site reports/site")
add(of_history, "gate", history.gate.gate, "highway-bench history gate --measure")
add(of_history, "noise", history.noise.noise, "highway-bench history noise --block highway")
add(of_history, "compare", history.compare.compare, "highway-bench history compare main my-branch --block highway")
app.add_typer(
    of_history,
    name="history",
    help="Follow every block over commits and machines, with asv.",
    epilog="Example: highway-bench history run",
)
add(app, "serve", report.serve, "highway-bench serve")
