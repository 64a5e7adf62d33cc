"""``highway-bench peers``: our networks against other implementations of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import measuring
from highway_bench.cli._options import AsJson, StorePath, with_options_of
from highway_bench.cli._output import Printed, notes, show, write_tables
from highway_bench.cli.run import named, plain, print_plan
from highway_bench.json_values import finite
from highway_bench.peers.request import PeerRequest

if TYPE_CHECKING:
    import pandas as pd

CELL = ("peer", "version", "block", "family", "depth", "width", "batch_size", "phase", "mode", "device", "machine")
MEASURED = ("step_time", "peer_time", "saved_activations", "peer_saved", "difference", "status", "message", "verdict")
RATIOS = ("ratio", "gpu_ratio")


@with_options_of(PeerRequest, argument="peer")
def peers(
    options: Mapping[str, Any] = MappingProxyType({}),
    store: StorePath = Path("reports/peers.sqlite"),
    tables: Annotated[Path | None, typer.Option(help="Also write the tables to this file (.md or .tex).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost; measure nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Time our networks and other implementations of them in turn, on equal weights and inputs.

    A peer whose outputs or gradients are not ours is an error, and is not timed. Stored cells are not measured again.
    keras and x-transformers: pip install highway-bench[peers].
    """
    from highway_bench.peers.comparison import plan_of
    from highway_bench.peers.table import peer_table, peer_tables

    plan = plan_of(PeerRequest.of(**options))
    if dry_run:
        print_plan(plan.estimate(store), store, as_json=json)
        return
    with measuring(store) as on_event:
        result = plan.run(store, on_event=on_event, command=["highway-bench", *sys.argv[1:]])
    table = peer_table(result.rows)
    written = peer_tables(table)
    if tables is not None:
        write_tables(written, tables)
    comparisons = [as_dict(row) for _, row in table.iterrows()]
    parts: list[Printed] = [part for one in written for part in (one, "")]
    show(
        {"store": store, "comparisons": comparisons, "failures": plain(result.failures)},
        [*parts, f"store: {store}"],
        as_json=json,
    )
    if not json:
        notes(named("failed", result.failures))
    raise typer.Exit(result.summary.exit_status)


def as_dict(row: pd.Series) -> dict[str, Any]:
    """One comparison as plain data; null where there is no value."""
    values = finite({str(name): value for name, value in row.items()})
    ratios = {
        name: {"value": values[name], "low": values[f"{name}_low"], "high": values[f"{name}_high"]} for name in RATIOS
    }
    return {name: values[name] for name in (*CELL, *MEASURED)} | ratios
