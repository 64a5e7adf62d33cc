"""Parameters and multiply-adds of published networks, counted on this project's blocks, families and architectures."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.lines import Line2D

from highway_bench.cell import Cell
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, log_axis, panels, settings
from highway_bench.report.format import count, quantity, signed, three
from highway_bench.reproduce._paired import measured
from highway_bench.reproduce._published_nets import LONG, NETS, RESNET, SHORT, VGG, Net
from highway_bench.reproduce.base import (
    Conclusion,
    Evidence,
    Finding,
    NotAttempted,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce.request import Request

TOLERANCE = 0.02  # papers print two or three digits, some of them rounded down
COUNTED, PRINTED = "#8A8A8A", "#222222"  # greys, because colours denote blocks


@register_reproduction(
    "flops", title="Parameters and multiply-adds of the published networks", source=f"{RESNET}, {VGG}, {LONG}, {SHORT}"
)
class Flops(Reproduction):
    """Counts for one item, on tensors without storage. What these papers call FLOPs are multiply-adds of convolutions
    and matrix products alone."""

    least_seeds = 0  # counts do not depend on seeds
    not_attempted = (
        NotAttempted(
            "ResNet-50, -101 and -152: 3.8, 7.6 and 11.3 billion",
            f"{RESNET}, table 1",
            "their branch of three convolutions widens the stream fourfold, and no family here changes the "
            "width within a layer",
        ),
        NotAttempted(
            "test errors on CIFAR-10: ResNet-20 8.75 %, -56 6.97 %, -110 6.43 %, -1202 7.93 %",
            f"{RESNET}, table 6",
            "the data are not here",
        ),
        NotAttempted(
            "top-1 errors on ImageNet: plain-34 28.54 %, ResNet-34 25.03 %",
            f"{RESNET}, table 2",
            "the data are not here",
        ),
    )

    def cells(self, request: Request) -> list[Cell]:
        return [net.cell() for net in NETS]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        counts = measured(rows, self.cells(request))
        by_name = {net.name: counts[net.cell()] for net in NETS}
        findings = [finding for net in NETS for finding in _findings(net, by_name[net.name])]
        findings.append(_same("plain-34", "ResNet-34 A", by_name))
        return Conclusion(findings=findings, tables=[_table(by_name)], pictures=[_picture(by_name)])


def _findings(net: Net, counts: Mapping[str, float]) -> list[Finding]:
    """The findings on the published count of ``net`` and on its exact counts."""
    computed = {"parameters": net.parameters, "multiply_adds": net.multiply_adds}
    exact = {metric: number for metric, number in computed.items() if number is not None}
    text, verdict = "not counted", Verdict.NOT_TESTABLE
    if exact.keys() <= counts.keys():
        agrees = all(counts[metric] == number for metric, number in exact.items())
        text = "the same" if agrees else counted({metric: counts[metric] for metric in exact})
        verdict = Verdict.REPRODUCED if agrees else Verdict.CONTRADICTED
    findings = [
        Finding(
            published=f"{net.name}: {counted(exact)}",
            source=net.source,
            evidence=net.evidence,
            rule="equal",
            measured=text,
            verdict=verdict,
        )
    ]
    if net.printed is not None:
        metric, number, printed, source = net.printed
        text, verdict = "not counted", Verdict.NOT_TESTABLE
        if metric in counts:
            deviation = counts[metric] / number - 1
            text = f"{count(counts[metric])} ({signed(100 * deviation, '+.2f')} %)"
            verdict = Verdict.REPRODUCED if abs(deviation) <= TOLERANCE else Verdict.CONTRADICTED
        findings.insert(
            0,
            Finding(
                published=f"{net.name}: {printed} {metric.replace('_', '-')}",
                source=source,
                evidence=Evidence.PAPER,
                rule=f"within {TOLERANCE:.0%}",
                measured=text,
                verdict=verdict,
            ),
        )
    return findings


def counted(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{count(number)} {metric.replace('_', '-')}" for metric, number in numbers.items())


def _same(one: str, other: str, by_name: Mapping[str, Mapping[str, float]]) -> Finding:
    """An identity shortcut that pads with zeros is free."""
    a, b = by_name[one], by_name[other]
    counted = {"parameters", "multiply_adds"} <= a.keys() & b.keys()
    equal = counted and all(a[metric] == b[metric] for metric in ("parameters", "multiply_adds"))
    verdict = Verdict.REPRODUCED if equal else Verdict.CONTRADICTED if counted else Verdict.NOT_TESTABLE
    return Finding(
        published=f"{other} has neither more parameters nor more multiply-adds than {one}",
        source=f"{RESNET}, §3.3",
        evidence=Evidence.PAPER,
        rule="equal",
        verdict=verdict,
        measured="equal" if equal else "not equal" if counted else "not counted",
    )


def _table(by_name: Mapping[str, Mapping[str, float]]) -> column.Shown:
    records = [
        {
            "network": net.name,
            "built": " ".join(filter(None, (net.block, "in", net.family, net.layout or ""))),
            "depth": net.depth,
            "width": net.width,
            "parameters": by_name[net.name].get("parameters", math.nan),
            "multiply_adds": by_name[net.name].get("multiply_adds", math.nan),
            "printed": f"{net.printed[2]} {net.printed[0].replace('_', '-')}" if net.printed else "",
        }
        for net in NETS
    ]
    columns = [
        column.words("network", "network"),
        column.words("built", "built of", "block, family and architecture"),
        column.whole("depth", "layers with the block"),
        column.whole("width", "width"),
        column.whole("parameters", "parameters"),
        column.whole("multiply_adds", "multiply-adds", "of one item, forward"),
        column.words("printed", "published"),
    ]
    return column.shown("flops", "Counted networks", pd.DataFrame(records), columns)


def _picture(by_name: Mapping[str, Mapping[str, float]]) -> Picture:
    """Counted multiply-adds of the image networks, next to the published numbers."""
    nets = [net for net in NETS if net.multiply_adds is not None and "multiply_adds" in by_name[net.name]]
    values = [by_name[net.name]["multiply_adds"] for net in nets]
    positions = range(len(nets))
    printed = [
        (y, net.printed[1])
        for y, net in enumerate(nets)
        if net.printed is not None and net.printed[0] == "multiply_adds"
    ]
    deviation = max((abs(values[y] / number - 1) for y, number in printed), default=math.nan)
    title = (
        f"Counted multiply-adds are within {three(100 * deviation)} % of the published ones"
        if printed
        else "No network with published multiply-adds was counted"
    )
    with settings():
        figure, (axes,) = panels(1, 1, 0.24 * max(len(nets), 4) + 0.4)
        axes.scatter(values, positions, color=COUNTED, s=30, zorder=3)
        axes.scatter(
            [number for _, number in printed],
            [y for y, _ in printed],
            color=PRINTED,
            marker="x",
            s=45,
            zorder=4,
        )
        axes.set_yticks(list(positions), [net.name for net in nets])
        axes.invert_yaxis()
        if values:
            log_axis(axes, "x", "MAC")
        axes.set_xlabel("multiply-adds (log)")
        head(figure, title)
        figure.legend(
            loc="outside lower left",
            ncols=2,
            handles=[
                Line2D([], [], color=COUNTED, marker="o", linestyle="none", label="counted"),
                Line2D([], [], color=PRINTED, marker="x", linestyle="none", label="published"),
            ],
        )
    alt = joined([f"{net.name} {quantity(value, 'MAC')}" for net, value in zip(nets, values, strict=True)], 20)
    return Picture(
        "flops",
        title,
        f"Multiply-adds by network. {alt}",
        "Convolutions and matrix products of one image, forward; crosses are the papers' numbers.",
        figure,
    )
