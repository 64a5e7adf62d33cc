"""The table and the figure of step times by sequence length."""

from __future__ import annotations

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, legend, log_axis, panels, settings
from highway_bench.report.format import quantity
from highway_bench.report.rows import rows_of
from highway_bench.report.style import styles as styles_of

NAMES = {"attention": "attention", "bilstm": "BiLSTM"}


def shown(table: pd.DataFrame, note: str) -> column.Shown:
    """The table with one row per length, which has the columns of both families."""
    values = ("step", "low", "high", "share", "flops")
    by_length: dict[int, dict[str, float]] = {}
    for record in rows_of(table):
        own = by_length.setdefault(record["length"], {"length": record["length"]})
        own |= {f"{record['family']}_{name}": record[name] for name in values}
    wide = pd.DataFrame([by_length[length] for length in sorted(by_length)])
    wide = wide.reindex(columns=["length", *(f"{family}_{name}" for family in NAMES for name in values)])
    columns = [column.whole("length", "n")]
    for family, name in NAMES.items():
        columns += [
            column.spread(
                f"{family}_step",
                f"{name}, step",
                f"{family}_low",
                f"{family}_high",
                "s",
                "median with the 95 % interval of its order statistics",
            ),
            column.number(f"{family}_flops", f"{name}, work", "FLOP", "forward, one layer, one item"),
            column.percent(f"{family}_share", f"{name}, of the roofline"),
        ]
    return column.shown("parallel-step-time", "Step time by sequence length", wide, columns, note=note)


def picture(table: pd.DataFrame, width: int, title: str, caption: str) -> Picture:
    """Step time against length on log scales: a line and a band (p10 to p90) per family, a dotted line at n = d."""
    styles, alt = styles_of(table["family"]), []
    with settings():
        figure, (axes,) = panels(1, 1, 3.1)
        for family, style in styles.items():
            own = table[table["family"] == family].sort_values("length")
            axes.plot(own["length"], own["step"], color=style.colour, marker=style.marker, linestyle=style.dash)
            axes.fill_between(own["length"], own["p10"], own["p90"], color=style.colour, alpha=0.18, linewidth=0)
            alt += [f"{family}, n = {record['length']}: {quantity(record['step'], 's')}" for record in rows_of(own)]
        axes.axvline(width, color="#555555", linewidth=0.8, linestyle=":")
        axes.annotate(
            "n = d",
            (width, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -10),
            textcoords="offset points",
            fontsize=8,
            color="#555555",
        )
        log_axis(axes, "x", at=[length for length in sorted(set(table["length"])) if length & (length - 1) == 0])
        log_axis(axes, "y", "s")
        axes.set_xlabel("sequence length n (log)")
        axes.set_ylabel("step time (log)")
        head(figure, title)
        legend(figure, styles, lines=True)
    caption += f" Medians, bands p10 to p90 of {table['n'].min()} samples or more; each cell sampled by itself."
    return Picture("parallel-step-time", title, f"Step time by length. {joined(alt, 30)}", caption, figure)
