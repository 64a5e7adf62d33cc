"""The table and the figure of gate biases by depth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn

from highway_bench.data import make_dataset
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import DOTS_BELOW, reference_losses, seed_dots, some_diverged
from highway_bench.report.format import signed, three
from highway_bench.report.style import Style
from highway_bench.reproduce._biased_arms import BIASES, LEFT_CHANCE, ByDepth, is_mixed
from highway_bench.success.ladder import TRAINABLE

MARKERS = "os^Dv"
NOTE = (
    f"Means leave out seeds that diverged. Where some seeds leave chance, but fewer than {TRAINABLE:.0%}, the loss is "
    "the median, without an interval."
)


def table_of(table: pd.DataFrame) -> column.Shown:
    """One row per depth and bias."""
    columns = [
        column.whole("layers", "layers", "the first and the last included"),
        column.number("bias", "gate bias"),
        column.words("advised", "guideline"),
        column.spread("loss", "final training loss", "low", "high", "nat", "geometric mean and 95 % over seeds"),
        column.percent("accuracy", "test accuracy"),
        column.number("rate", "rate", hint="tuned for each depth and bias"),
        column.words("edge", "edge of the rates"),
        column.whole("n", "seeds"),
        column.whole("trained", "leave chance", f"seeds that have {LEFT_CHANCE.text}"),
        column.whole("diverged", "diverged"),
    ]
    return column.shown("gate-bias", "Gate bias by depth", table, columns, note=NOTE)


def picture_of(table: pd.DataFrame, arms: ByDepth) -> Picture:
    """Loss against bias, one line per depth; a ring marks the guideline's bias."""
    depths = sorted(arms)
    # No block has these colours; the last is too pale
    *shades, _ = seaborn.color_palette("viridis", len(depths) + 1).as_hex()
    styles = {
        layers: (shade, MARKERS[number % len(MARKERS)])
        for number, (layers, shade) in enumerate(zip(depths, shades, strict=True))
    }
    title = "Final training loss by gate bias"
    with settings():
        figure, (axes,) = panels(1, 1, 3.0)
        for number, (layers, (shade, marker)) in enumerate(styles.items()):
            own = table[(table["layers"] == layers) & table["loss"].notna()].sort_values("bias")
            shifted = own["bias"] + 0.05 * (number - (len(styles) - 1) / 2)
            spread = np.nan_to_num(np.array([own["loss"] - own["low"], own["high"] - own["loss"]]))
            axes.errorbar(shifted, own["loss"], yerr=spread, color=shade, marker=marker, capsize=2, linewidth=1.2)
            for x, bias in zip(shifted, own["bias"], strict=True):
                losses = [run["final_loss"] for run in arms[layers][bias].values()]
                few = len(losses) + 1 if is_mixed(arms[layers][bias]) else DOTS_BELOW
                seed_dots(axes, x, losses, Style(shade, marker, "-"), few=few)
            advised = own["advised"] != ""
            axes.scatter(
                shifted[advised],
                own["loss"][advised],
                s=130,
                facecolors="none",
                edgecolors=shade,
                linewidths=1.2,
                zorder=4,
            )
            gone = table.loc[(table["layers"] == layers) & (table["diverged"] > 0), "bias"]
            at = [bias + 0.05 * (number - (len(styles) - 1) / 2) for bias in gone]
            numbers = table.loc[(table["layers"] == layers) & (table["diverged"] > 0), "diverged"]
            some_diverged(axes, at, [int(number) for number in numbers], Style(shade, marker, "-"))
        chance = make_dataset("mnist-5k").chance_loss
        reference_losses(axes, chance, LEFT_CHANCE.region.most, side="outside")
        log_axis(axes, "y")
        axes.set_ylim(top=2 * chance)  # the numbers of diverged seeds stand above chance
        axes.set_xticks(list(BIASES), [signed(bias) for bias in BIASES])
        axes.set_xlabel("gate bias at the start")
        axes.set_ylabel("final training loss, nat (log)")
        head(figure, title)
        handles = [mark(marker, f"{layers} layers", shade) for layers, (shade, marker) in styles.items()]
        handles.append(mark("o", "guideline", filled=False))
        mixed = any(is_mixed(runs) for by_bias in arms.values() for runs in by_bias.values())
        handles += [mark("x", "number: diverged seeds")] if table["diverged"].any() else []
        has_dots = mixed or (table["n"] - table["diverged"]).between(2, DOTS_BELOW - 1).any()
        handles += [mark(".", "a seed")] if has_dots else []
        figure.legend(handles=handles, ncols=3, loc="outside lower left")
    alt = joined(
        [
            f"{record['layers']:.0f} layers, bias {signed(record['bias'])}: {three(record['loss'])}"
            for record in table.to_dict("records")
        ],
        20,
    )
    return Picture(
        "gate-bias",
        title,
        f"Final training loss by gate bias. {alt}",
        "Convolutional highway networks on 4,000 digits, rate tuned for each; bars are 95 % over seeds, "
        "rings the guideline's bias. A net has left chance below the threshold, half of chance's loss. Where only some "
        "seeds leave chance: the median, and a dot for every seed.",
        figure,
    )
