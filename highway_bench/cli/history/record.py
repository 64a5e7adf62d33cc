"""``highway-bench history record``: copy points into the committed history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json
from highway_bench.cli.history.options import Device, MachineName, Root


def record(
    device: Device = None,
    machine: MachineName = None,
    replace: Annotated[bool, typer.Option(help="Replace recorded points by newer ones.")] = False,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Copy this machine's points into reports/asv/results, to be committed."""
    from dataclasses import asdict

    from highway_bench.history import Paths
    from highway_bench.history.machine import this_machine
    from highway_bench.history.record import record as record_points

    name = machine or this_machine(device, None).name
    summary = record_points(Paths.of(root), name, replace=replace)
    if json:
        print_json(asdict(summary))
    else:
        typer.echo(str(summary))
