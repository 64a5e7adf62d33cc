"""Parameters and multiply-adds of published networks, counted on this project's blocks, families and architectures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.report import columns as column
from highway_bench.report.format import count
from highway_bench.reproduce._measured import measured
from highway_bench.reproduce._published_nets import LONG, NETS, RESNET, SHORT, VGG, Net
from highway_bench.reproduce.base import Conclusion, NotAttempted, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim, Observation
from highway_bench.reproduce.quantities import Quantity, Region, Statistic
from highway_bench.reproduce.request import Request

TOLERANCE = 2  # %: papers print two or three digits, some of them rounded down


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
            "test errors on CIFAR-10: ResNet-20 8.75 %, -56 6.97 %, -110 6.43 %, -1202 7.93 %; FitNet-19 8.39 %, "
            "Highway-19 7.54 %, Highway-32 8.80 %",
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

    def claims(self, request: Request) -> Sequence[Claim]:
        return [*(claim for net in NETS for claim in _claims(net)), _same("plain-34", "ResNet-34 A")]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        counts = measured(rows, self.cells(request))
        by_name = {net.name: counts[net.cell()] for net in NETS}
        findings = [claim.judge(by_name) for claim in self.claims(request)]
        return Conclusion(findings=findings, tables=[_table(by_name)])


ByName = Mapping[str, Mapping[str, float]]  # network → counts


def _claims(net: Net) -> Iterator[Claim]:
    """The claims on the published count of ``net`` and on its exact counts."""
    if net.printed is not None:
        metric, number, printed, source = net.printed
        kind = metric.replace("_", "-")
        yield Claim(
            statement=f"{net.name}: {printed} {kind}",
            source=source,
            quantity=f"{kind} counted, above those published",
            unit="%",
            statistic=Statistic.EXACT,
            region=Region(-TOLERANCE, TOLERANCE, closed=True),
            observe=partial(_deviation, net, metric, number),
        )
    exact = {"parameters": float(net.parameters)}
    exact |= {"multiply_adds": float(net.multiply_adds)} if net.multiply_adds is not None else {}
    yield Claim(
        statement=f"{net.name}: {counted(exact)}",
        source=net.source,
        evidence=net.evidence,
        quantity="largest difference of a count",
        statistic=Statistic.EXACT,
        region=Region(0, 0, closed=True),
        observe=lambda by_name, _: _difference(by_name[net.name], exact),
    )


def _deviation(net: Net, metric: str, number: float, by_name: ByName, _: float) -> Observation:
    own = by_name[net.name]
    if metric not in own:
        return Observation(untestable="not counted")
    return Observation(
        decisive=[Quantity.exact("deviation", 100 * (own[metric] / number - 1), "%")],
        note=counted({metric: own[metric]}),
    )


def _difference(own: Mapping[str, float], exact: Mapping[str, float]) -> Observation:
    if not (exact and exact.keys() <= own.keys()):
        return Observation(untestable="not counted")
    largest = max(abs(own[metric] - number) for metric, number in exact.items())
    note = counted({metric: own[metric] for metric in exact}) if largest else ""
    return Observation(decisive=[Quantity.exact("difference", largest)], note=note)


def counted(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{count(number)} {metric.replace('_', '-')}" for metric, number in numbers.items())


def _same(one: str, other: str) -> Claim:
    """An identity shortcut that pads with zeros is free."""

    def observe(by_name: ByName, _: float) -> Observation:
        known = {"parameters", "multiply_adds"} <= by_name[one].keys()
        return _difference(by_name[other], by_name[one] if known else {})

    return Claim(
        statement=f"{other} has neither more parameters nor more multiply-adds than {one}",
        source=f"{RESNET}, §3.3",
        quantity="largest difference of a count",
        statistic=Statistic.EXACT,
        region=Region(0, 0, closed=True),
        observe=observe,
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
