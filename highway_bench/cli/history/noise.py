"""``highway-bench history noise``: measure each series' noise for the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json
from highway_bench.cli.history.options import Device, MachineName, Quick, Root


def noise(
    runs: Annotated[int, typer.Option(help="How often to measure this checkout.")] = 3,
    quick: Quick = True,
    device: Device = None,
    machine: MachineName = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Measure how much each series varies when nothing changes, A against A, for the gate.

    The result is pooled with the recorded one; remove the machine's file in reports/asv/noise to start again.
    """
    from highway_bench.history import Paths
    from highway_bench.history.machine import this_machine
    from highway_bench.history.noise import measure_noise

    here = this_machine(device, machine)
    spreads = measure_noise(Paths.of(root), here, runs, quick=quick)
    if json:
        print_json({"machine": here.name, "spreads": {series: spread._asdict() for series, spread in spreads.items()}})
        return
    typer.echo(f"noise of {len(spreads)} series recorded in reports/asv/noise")
