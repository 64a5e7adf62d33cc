"""``highway-bench forecast``: can success be forecast from the start and the first steps, and how well?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import STORE, AsJson, Plugins, StorePath, WorkerCount
from highway_bench.cli._output import print_json, print_table
from highway_bench.cli.run import name_cells, plain


def forecast(
    store: StorePath = STORE,
    out: Annotated[Path, typer.Option(help="The folder for the table and the figure.")] = Path("reports/forecast"),
    starts: Annotated[
        bool, typer.Option("--starts", help="First measure the starts of trainings that lack one.")
    ] = False,
    plugin: Plugins = None,
    workers: WorkerCount = None,
    json: AsJson = False,
) -> None:
    """Fit the forecast of success to a store's trainings, and say how much skill it has.

    There is a forecast only if its skill is proven, on connections and on families that it was not fitted to.
    """
    from highway_bench.execution.progress_bar import showing_progress
    from highway_bench.forecast import Forecast, fit
    from highway_bench.forecast.page import (
        SKILL_HEADS,
        WEIGHT_HEADS,
        skill_rows,
        verdict_text,
        weight_rows,
        write_forecast,
    )
    from highway_bench.forecast.starts import lacking_starts
    from highway_bench.plan.plan import Plan
    from highway_bench.plugins import load_plugins
    from highway_bench.report import open_results

    modules = load_plugins(plugin or ())
    ran = None
    if starts and (cells := lacking_starts(open_results(store).rows)):
        try:
            with showing_progress() as on_event:
                ran = Plan(tuple(cells), modules).run(store, workers=workers, on_event=on_event)
        except KeyboardInterrupt:
            raise Interrupted.after_storing(store) from None
    failures = ran.failures if ran else []
    result = fit(open_results(store).rows)
    written = write_forecast(result, out)
    exists = isinstance(result, Forecast)
    skills = result.validation.skills if result.validation else ()
    if json:
        table = [
            {
                "left_out": skill.left_out,
                "against": skill.against,
                "skill": skill.score.value,
                "low": skill.score.low,
                "high": skill.score.high,
            }
            for skill in skills
        ]
        print_json(
            {
                "forecast": exists,
                "verdict": verdict_text(result),
                "skills": table,
                "page": written.page,
                "failures": plain(failures),
            }
        )
    else:
        if result.validation:
            print_table("Skill", SKILL_HEADS, skill_rows(result.validation), right=SKILL_HEADS[2:])
        if isinstance(result, Forecast):
            print_table("Weights", WEIGHT_HEADS, weight_rows(result), right=WEIGHT_HEADS[1:2])
        name_cells("failed", failures)
        typer.echo(f"{verdict_text(result)}\npage: {written.page}")
    raise typer.Exit(ran.summary.exit_status if ran else 0)
