"""``highway-bench forecast``: can success be forecast from the start and the first steps, and how well?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import STORE, AsJson, StorePath, WorkerCount
from highway_bench.cli._output import print_json, print_table


def forecast(
    store: StorePath = STORE,
    out: Annotated[Path, typer.Option(help="The folder for the table and the figure.")] = Path("reports/forecast"),
    starts: Annotated[
        bool, typer.Option("--starts", help="First measure the starts of trainings that lack one.")
    ] = False,
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
    from highway_bench.report import open_results

    exit_status = 0
    if starts and (cells := lacking_starts(open_results(store).rows)):
        try:
            with showing_progress() as on_event:
                ran = Plan(tuple(cells)).run(store, workers=workers, on_event=on_event)
            exit_status = ran.summary.exit_status
        except KeyboardInterrupt:
            raise Interrupted.after_storing(store) from None
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
        print_json({"forecast": exists, "verdict": verdict_text(result), "skills": table, "page": written.page})
        raise typer.Exit(exit_status)
    if result.validation:
        print_table("Skill", SKILL_HEADS, skill_rows(result.validation), right=SKILL_HEADS[2:])
    if isinstance(result, Forecast):
        print_table("Weights", WEIGHT_HEADS, weight_rows(result), right=WEIGHT_HEADS[1:2])
    typer.echo(f"{verdict_text(result)}\npage: {written.page}")
    raise typer.Exit(exit_status)
