"""Initialised networks: verdicts on signal and gradient, verdicts by gain, and the first training steps."""

from __future__ import annotations

from typing import Any

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Record, Shown
from highway_bench.report.descriptions import Descriptions
from highway_bench.report.format import NONE, between, counted, three
from highway_bench.report.labels import contest_name
from highway_bench.report.results import Results
from highway_bench.report.rows import groups, rows_of
from highway_bench.report.sections.base import MOST, ReportSection, register_section
from highway_bench.report.tables.propagation import (
    EXPLODES,
    IN_RANGE,
    LAYERS,
    SETTING,
    SIZES,
    STILL,
    VANISHES,
)

RULE = (
    "A size vanishes at the first layer where it is below 1/100 of its initial value, and explodes where it is above "
    "a hundred times that value: forward from the first layer up, backward from the last layer down."
)
BOTH = {VANISHES: "both vanish", EXPLODES: "both explode"}


@register_section
class PropagationSection(ReportSection):
    """One row per block, family, depth and gain; in the summary, one table per family with unscaled weights."""

    name = "propagation"
    title = "The start"
    absent = "no signal was measured at the start"
    order = 40
    metrics = (*SIZES, *LAYERS, *STILL, "budget_mismatch")

    def tables(self, results: Results) -> list[Shown]:
        if results.of_task(self.name).empty:
            return []
        columns = [*_setting(), *_brief(results.about), *_more(results.about)]
        title = "Signal and gradient at the start"
        return [column.shown("propagation", title, results.propagation(), columns, most=MOST)]

    def summary(self, results: Results) -> list[Shown]:
        """Verdicts by family, verdicts by gain, and the layers that the first steps leave unchanged."""
        if results.of_task(self.name).empty:
            return []
        table = without_first_steps(results.propagation())
        own = table[table["gain"] == 1] if (table["gain"] == 1).any() else table
        tables: list[Shown] = []
        for setting, part in groups(own, ["family_label", "dataset", "machine_label"]):
            title = f"{contest_name(setting)}: signal and gradient at the start"
            note = _shared(part) + ("" if tables else f" {RULE}")
            columns = [*_layers(), *_brief(results.about), *_differing(part)]
            tables.append(column.shown(f"start-{len(tables) + 1}", title, part, columns, note=note))
        steps = results.first_steps()
        still = "First steps of training: layers that stand still"
        return [*tables, _by_gain(table), column.shown("first-steps", still, steps, _step_columns())]


def without_first_steps(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of networks that were not trained; if there are none, those of networks with first steps."""
    return table[table["steps"].isna()] if table["steps"].isna().any() else table


def _brief(about: Descriptions) -> list[Column]:
    return [
        _verdict_column("signal", "forward", "RMS of activations against the first layer's input"),
        _verdict_column("gradient", "backward", "RMS of gradients against the last layer's output"),
        _ratio_column("gradient_ratio", about, "RMS of dL/dx₀ over that of dL/dx_L"),
        _median_column("gate_mean", about, "of the first gate, over layers"),
        _median_column("depth_scale", about, "layers over which two inputs' correlation converges exponentially"),
        column.computed(
            _heading(about, "jacobian_spread"),
            _spread,
            "log₁₀ of the Jacobian's largest over its smallest singular value, or the rank if it is singular",
        ),
        _median_column("gradient_correlation", about, "cosine of dL/dx at neighbouring inputs on a line"),
    ]


def _more(about: Descriptions) -> list[Column]:
    return [
        _ratio_column("activation_ratio", about, "RMS of x_L over that of x₀"),
        _median_column("stream_change", about, "change of the stream by a layer, mean over layers"),
        _ratio_column("weight_gradient_ratio", about, "RMS of dL/dW₁ over that of dL/dW_L"),
        _median_column("gate_sum", about, "of all gates, over layers"),
        column.percent("gate_saturation", _heading(about, "gate_saturation"), "within 0.05 of 0 or 1"),
        _median_column("jacobian_largest", about, "the Jacobian's largest singular value"),
        _median_column("jacobian_smallest", about, "the Jacobian's smallest singular value"),
        _median_column("jacobian_gain", about, "mean square of the Jacobian's singular values"),
        column.whole("n", "seeds"),
        column.whole("steps", "training steps"),
        column.whole("width", "width"),
        column.whole("batch_size", "batch"),
        column.whole("seq_len", "length"),
        column.words("match", "equal"),
        column.whole("params", "parameters"),
        column.percent("budget_mismatch", _heading(about, "budget_mismatch")),
        column.words("dtype", "dtype"),
        column.words("device", "device"),
        column.words("status", "status"),
    ]


def _step_columns() -> list[Column]:
    return [
        *_setting(),
        column.whole("steps", "steps"),
        column.number("rate", "rate"),
        column.computed("layers that stand still", _still),
        column.number("update_least", "least ‖ΔW‖/‖W‖"),
        column.number("update_most", "largest"),
        column.whole("diverged", "diverged"),
        column.whole("n", "seeds"),
    ]


def _by_gain(table: pd.DataFrame) -> Shown:
    """One row per block and setting with several gains, one column per gain."""
    alike = [name for name in SETTING if name != "recipe"]
    records = []
    for setting, part in groups(table, [*alike, "block"]):
        if len(part) > 1:
            records.append(setting | {f"gain {cell['gain']:g}": _both(cell) for cell in rows_of(part)})
    gains = sorted(
        {name for record in records for name in record if name.startswith("gain ")},
        key=lambda name: float(name.removeprefix("gain ")),
    )
    columns = [*_setting(gain=False), *(column.words(name, name) for name in gains)]
    note = "The gain multiplies all initial weights, those of gates included. A verdict is that of most seeds."
    note = note if records else ""
    return column.shown("gains", "The start by weight gain", pd.DataFrame(records), columns, note=note)


def _setting(*, gain: bool = True) -> list[Column]:
    return [
        column.words("family_label", "family"),
        column.words("dataset", "data"),
        column.words("machine_label", "machine"),
        *_layers(gain=gain),
    ]


def _layers(*, gain: bool = True) -> list[Column]:
    columns = [column.whole("depth", "depth"), column.words("block", "block")]
    return [*columns, column.computed("gain", _gain)] if gain else columns


def _gain(record: Record) -> str:
    return "" if record["gain"] == 1 else three(record["gain"])


def _both(record: Record) -> str:
    """Both verdicts in a few words."""
    signal, gradient = record["signal"], record["gradient"]
    if signal == gradient:
        return BOTH.get(str(signal), str(signal))
    parts = [f"{name} {word}" for name, word in (("signal", signal), ("gradient", gradient)) if word != IN_RANGE]
    return ", ".join(parts)


def _verdict_column(way: str, heading: str, hint: str) -> Column:
    """A column of verdicts, each with the layer (median and range over seeds) and the number of seeds that agree."""

    def make(record: Record) -> str:
        word, at = str(record[way]), record[f"{way}_at"]
        text = word
        if not column.missing(at):
            low, high = record[f"{way}_low"], record[f"{way}_high"]
            text += f" at {at:g}" + (f" ({low:g}–{high:g})" if low != high else "")
        if 0 < record[f"{way}_agree"] < record["n"]:
            text += f", {record[f'{way}_agree']} of {record['n']}"
        return text

    return column.computed(heading, make, hint, is_number=False)


def _heading(about: Descriptions, metric: str) -> str:
    return about.metric(PropagationSection.name, metric).heading


def _median_column(name: str, about: Descriptions, hint: str) -> Column:
    """A column of medians over seeds."""
    return column.number(name, _heading(about, name), hint=f"{hint}, median over seeds")


def _ratio_column(name: str, about: Descriptions, hint: str) -> Column:
    """A column of medians over seeds with the least and the largest, which a single seed does not have."""

    def make(record: Record) -> str:
        value, low, high = (record[key] for key in (name, f"{name}_low", f"{name}_high"))
        if column.missing(value):
            return NONE
        return three(value) if low == high else f"{three(value)} {between(low, high)}"

    return column.computed(_heading(about, name), make, f"{hint}, median over seeds [least, most]")


def _spread(record: Record) -> str:
    if not column.missing(record["jacobian_spread"]):
        return three(record["jacobian_spread"])
    if column.missing(record["jacobian_rank"]):
        return NONE
    return f"rank {record['jacobian_rank']:g}"


def _still(record: Record) -> str:
    count = record["still_layers"]
    if column.missing(count):
        return NONE
    if not count:
        return "none"
    low, high = record["still_layers_low"], record["still_layers_high"]
    text = f"{count:g} of {record['depth']:g}" + (f" ({low:g}–{high:g})" if low != high else "")
    return f"{text}, from {record['still_first']:g} to {record['still_last']:g}"


def _shared(table: pd.DataFrame) -> str:
    """A sentence with the values that all rows share. ``_differing`` has columns for the other values."""
    parts = [f"equal {match}" for match in _same(table["match"])]
    parts += [f"plain's width {width:g}" for width in _same(table["nominal_width"])]
    parts += [str(dtype) for dtype in _same(table["dtype"])]
    seeds = "".join(f" over {counted(seeds, 'seed')}" for seeds in _same(table["n"]))
    shared = ", ".join(parts)
    return f"{shared[:1].upper()}{shared[1:]}; medians{seeds}." if shared else f"Medians{seeds}."


def _differing(table: pd.DataFrame) -> list[Column]:
    """Columns for the values that differ between rows."""
    columns = {
        "match": column.words("match", "equal"),
        "nominal_width": column.whole("nominal_width", "plain's width"),
        "dtype": column.words("dtype", "dtype"),
        "n": column.whole("n", "seeds"),
    }
    return [column for name, column in columns.items() if not _same(table[name])]


def _same(values: pd.Series) -> list[Any]:
    """A list with the value that all rows share, or an empty list."""
    distinct = sorted(set(values))
    return distinct if len(distinct) == 1 else []
