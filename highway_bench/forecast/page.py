"""The forecast for people: its skills and weights as tables, and its calibration as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from highway_bench.forecast.examples import FEATURES
from highway_bench.forecast.fitting import Forecast, NoSkill, Validation
from highway_bench.report.figures import Picture, svg_text
from highway_bench.report.figures.base import head, joined, panels, settings
from highway_bench.report.figures.drawing import point_with_interval
from highway_bench.report.format import between, count, signed, three
from highway_bench.report.markdown import markdown_table
from highway_bench.report.style import Style
from highway_bench.writing import writing

STYLE = Style("#0072B2", "o", "-")
PICTURE, PAGE = "calibration.svg", "forecast.md"
SKILL_HEADS = ("left out", "against", "Brier skill", "95 % interval", "groups")
WEIGHT_HEADS = ("feature", "weight, per standard deviation", "")

TextRows = list[list[str]]


class WrittenForecast(NamedTuple):
    """The page in Markdown, and the figure, which there is only with a validation."""

    page: Path
    figure: Path | None


def verdict_text(result: Forecast | NoSkill) -> str:
    """Whether there is a forecast, in one sentence."""
    if isinstance(result, Forecast):
        return f"There is a forecast, fitted on {count(result.validation.runs)} runs."
    return f"There is no forecast: {result.reason}."


def skill_rows(validation: Validation) -> TextRows:
    """The skills as entries of a table."""
    return [
        [f"one {skill.left_out}", skill.against, signed(skill.score.value, ".3f"),
         between(skill.score.low, skill.score.high), str(skill.score.n)]
        for skill in validation.skills
    ]  # fmt: skip


def weight_rows(forecast: Forecast) -> TextRows:
    """The weights as entries of a table."""
    pairs = zip(FEATURES, forecast.model.weights, strict=True)
    return [[one.about, signed(weight, ".3f"), "at most 0" if one.falls else ""] for one, weight in pairs]


def calibration_picture(validation: Validation) -> Picture:
    """The share of runs that succeeded against their forecast, with a connection left out."""
    with settings():
        figure, (axes,) = panels(1, 1, 3.2)
        axes.plot([0, 1], [0, 1], color="#555555", linewidth=0.8, linestyle="--")
        for one in validation.calibration:
            point_with_interval(axes, one.forecast, one.share, STYLE, (one.low, one.high))
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("forecast probability of success, mean of a bin")
        axes.set_ylabel("share that succeeded")
        worst = max(validation.calibration, key=lambda one: abs(one.forecast - one.share))
        title = f"Of runs with a forecast of {three(worst.forecast)}, {three(worst.share)} succeed: the worst bin"
        head(figure, title)
    alt = [f"forecast {three(one.forecast)}: {three(one.share)} of {one.n}" for one in validation.calibration]
    caption = (
        f"n = {validation.runs:,} runs in {len(validation.calibration)} bins of equal size; each run is forecast by a "
        "fit without its connection. Bars: Wilson's 95 % intervals. Dashed: perfect calibration."
    )
    return Picture("calibration", title, f"Calibration of the forecast. {joined(alt)}", caption, figure)


def write_forecast(result: Forecast | NoSkill, out: Path) -> WrittenForecast:
    """Write the page and the figure into the folder ``out``. Raises ``BadInput`` if they cannot be written."""
    page, figure = out / PAGE, None
    lines = [verdict_text(result)]
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        if result.validation is not None:
            picture, figure = calibration_picture(result.validation), out / PICTURE
            figure.write_text(svg_text(picture), encoding="utf-8")
            lines += ["", *markdown_table(SKILL_HEADS, skill_rows(result.validation))]
            if isinstance(result, Forecast):
                lines += ["", *markdown_table(WEIGHT_HEADS, weight_rows(result))]
            lines += ["", f"![{picture.alt}]({PICTURE})", "", f"*{picture.caption}*"]
        page.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return WrittenForecast(page, figure)
