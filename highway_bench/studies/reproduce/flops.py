"""Parameters and multiply-adds of published networks, counted on this project's blocks, families and architectures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.report import columns as column
from highway_bench.report.format import count
from highway_bench.studies.reproduce.base import (
    Evaluated,
    Metrics,
    NotAttempted,
    Reproduction,
    measured,
    register_reproduction,
)
from highway_bench.studies.reproduce.claims import Claim, Evidence, Observation
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic
from highway_bench.studies.reproduce.request import Request

RESNET, LONG, SHORT, VGG = "arXiv:1512.03385", "arXiv:1507.06228", "arXiv:1505.00387", "arXiv:1409.1556"
COMPARISON = "flukeskywalker/highway-resnet-comparison, 2025"
ARITHMETIC = "arithmetic on the published layers"
COUNTS = ("parameters", "multiply_adds")
TOLERANCE = 2  # %: papers print two or three digits, some of them rounded down

# Options of branches of two convolutions with batch norm. In the counter-result (GATE_PAIR) the gate is such a pair too
NORMED: Mapping[str, Any] = {"branch_norm": True, "norm_kind": "batch"}
GATE_PAIR: Mapping[str, Any] = {**NORMED, "gate": "pair", "last_activation": "relu"}


@dataclass(frozen=True, kw_only=True)
class Net:
    """A published network: how it is built here, its exact counts, and its published count.

    ``parameters`` and ``multiply_adds`` (of one item, forward) were computed by hand from the published layers, without
    this code. ``printed`` is (metric, number, the number as text, source).
    """

    name: str
    block: str
    family: str
    depth: int
    width: int
    layout: str | None = None
    dataset: str | None = None
    block_options: Mapping[str, Any] = field(default_factory=dict)
    family_options: Mapping[str, Any] = field(default_factory=dict)
    parameters: int
    multiply_adds: int | None = None
    printed: tuple[str, float, str, str] | None = None
    source: str = ARITHMETIC  # of ``parameters`` and ``multiply_adds``

    def cell(self) -> Cell:
        return Cell(
            task="cost",
            block=self.block,
            block_options=self.block_options,
            family=self.family,
            family_options=self.family_options,
            depth=self.depth,
            width=self.width,
            nominal_width=self.width,
            match="width",
            dataset=self.dataset,
            recipe={"layout": self.layout} if self.layout else {},
        )


def vgg(layers: int, depth: int, parameters: int, multiply_adds: int, billions: float) -> Net:
    printed = ("multiply_adds", billions * 1e9, f"{billions} billion", f"{RESNET}, §4.1")
    return Net(
        name=f"VGG-{layers}",
        block="plain",
        family="conv",
        layout="vgg",
        depth=depth,
        width=64,
        parameters=parameters,
        multiply_adds=multiply_adds,
        printed=printed,
    )


def imagenet(
    name: str, block: str, depth: int, option: str, parameters: int, multiply_adds: int, billions: float | None
) -> Net:
    printed = (
        None if billions is None else ("multiply_adds", billions * 1e9, f"{billions} billion", f"{RESNET}, table 1")
    )
    return Net(
        name=name,
        block=block,
        family="conv-pair",
        family_options=NORMED,
        depth=depth,
        width=64,
        layout="imagenet-resnet" if option == "A" else "imagenet-resnet-b",
        parameters=parameters,
        multiply_adds=multiply_adds,
        printed=printed,
    )


def cifar(layers: int, parameters: int, multiply_adds: int, millions: float) -> Net:
    printed = ("parameters", millions * 1e6, f"{millions} M", f"{RESNET}, table 6")
    return Net(
        name=f"ResNet-{layers} (CIFAR)",
        block="residual",
        family="conv-pair",
        family_options=NORMED,
        layout="cifar-resnet",
        depth=(layers - 2) // 2,
        width=16,
        parameters=parameters,
        multiply_adds=multiply_adds,
        printed=printed,
    )


def conv_highway(width: int, parameters: int, thousands: int) -> Net:
    return Net(
        name=f"conv highway, width {width}",
        block="highway",
        family="conv",
        layout="conv-highway",
        depth=8,
        width=width,
        parameters=parameters,
        printed=("parameters", 1e3 * thousands, f"{thousands}K", f"{LONG}, table 1"),
    )


def figure1(block: str, layers: int, width: int, parameters: int) -> Net:
    return Net(
        name=f"Figure 1, {block}, {layers} layers",
        block=block,
        family="dense",
        depth=layers - 1,
        width=width,
        dataset="mnist-5k",
        parameters=parameters,
    )


NETS: Sequence[Net] = (
    vgg(16, 9, 138_357_544, 15_470_264_320, 15.3),
    vgg(19, 12, 143_667_240, 19_632_062_464, 19.6),
    imagenet("plain-34", "plain", 16, "A", 21_623_848, 3_644_493_824, 3.6),
    imagenet("ResNet-34 A", "residual", 16, "A", 21_623_848, 3_644_493_824, 3.6),
    imagenet("ResNet-34 B", "residual", 16, "B", 21_797_672, 3_663_761_408, None),
    imagenet("ResNet-18 A", "residual", 8, "A", 11_515_688, 1_794_805_760, 1.8),
    imagenet("ResNet-18 B", "residual", 8, "B", 11_689_512, 1_814_073_344, 1.8),
    cifar(20, 269_722, 40_551_040, 0.27),
    cifar(32, 464_154, 68_862_592, 0.46),
    cifar(44, 658_586, 97_174_144, 0.66),
    cifar(56, 853_018, 125_485_696, 0.85),
    cifar(110, 1_727_962, 252_887_680, 1.7),
    cifar(1202, 19_421_274, 2_829_238_912, 19.4),
    Net(
        name="Highway-110 (CIFAR)",
        block="highway",
        family="conv-pair",
        family_options=GATE_PAIR,
        depth=54,
        width=14,
        layout="cifar-resnet-b",
        block_options={"gate_bias": -6.0},
        parameters=2_649_918,
        source=f"{COMPARISON}, log",
    ),
    conv_highway(16, 38_986, 39),
    conv_highway(32, 151_690, 151),
    Net(name="a highway layer of 50 units", block="highway", family="dense", depth=1, width=50, parameters=5_100),
    Net(name="a plain layer of 71 units", block="plain", family="dense", depth=1, width=71, parameters=5_112),
    *(
        figure1("highway", layers, 50, total)
        for layers, total in ((10, 85_660), (20, 136_660), (50, 289_660), (100, 544_660))
    ),
    *(
        figure1("plain", layers, 71, total)
        for layers, total in ((10, 102_463), (20, 153_583), (50, 306_943), (100, 562_543))
    ),
    Net(
        name="the lecture's network",
        block="highway",
        family="dense",
        layout="stemless",
        depth=20,
        width=784,
        dataset="mnist-5k",
        parameters=24_625_450,
    ),
)


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
        ),
        NotAttempted("top-1 errors on ImageNet: plain-34 28.54 %, ResNet-34 25.03 %", f"{RESNET}, table 2"),
    )

    def cells(self, request: Request) -> list[Cell]:
        return [net.cell() for net in NETS]

    def claims(self, request: Request) -> Sequence[Claim]:
        return [*(claim for net in NETS for claim in _claims(net)), _same("plain-34", "ResNet-34 A")]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        counts = measured(rows, self.cells(request))
        by_name = {net.name: counts[net.cell()] for net in NETS}
        return by_name, [_table(by_name)], []


ByName = Mapping[str, Metrics]
"""The counts by network."""


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
    exact = {name: float(number) for name in COUNTS if (number := getattr(net, name)) is not None}
    yield _equal(
        f"{net.name}: {counted(exact)}",
        net.source,
        lambda by_name: _difference(by_name[net.name], exact),
        evidence=Evidence.COMPUTED if net.source == ARITHMETIC else Evidence.SOURCE,
    )


def _deviation(net: Net, metric: str, number: float, by_name: ByName, _: float) -> Observation:
    own = by_name[net.name]
    if metric not in own:
        return Observation(untestable="not counted")
    return Observation(
        decisive=[Quantity.exact("deviation", 100 * (own[metric] / number - 1), "%")],
        note=counted({metric: own[metric]}),
    )


def _difference(own: Metrics, exact: Metrics) -> Observation:
    if not (exact and exact.keys() <= own.keys()):
        return Observation(untestable="not counted")
    largest = max(abs(own[metric] - number) for metric, number in exact.items())
    note = counted({metric: own[metric] for metric in exact}) if largest else ""
    return Observation(decisive=[Quantity.exact("difference", largest)], note=note)


def counted(numbers: Metrics) -> str:
    return ", ".join(f"{count(number)} {metric.replace('_', '-')}" for metric, number in numbers.items())


def _equal(statement: str, source: str, difference: Callable[[ByName], Observation], **rest: Any) -> Claim:
    """A claim that counts do not differ."""
    return Claim(
        statement=statement,
        source=source,
        quantity="largest difference of a count",
        statistic=Statistic.EXACT,
        region=Region(0, 0, closed=True),
        observe=lambda by_name, _: difference(by_name),
        **rest,
    )


def _same(one: str, other: str) -> Claim:
    """An identity shortcut that pads with zeros is free."""

    def difference(by_name: ByName) -> Observation:
        known = by_name[one].keys() >= set(COUNTS)
        return _difference(by_name[other], by_name[one] if known else {})

    statement = f"{other} has neither more parameters nor more multiply-adds than {one}"
    return _equal(statement, f"{RESNET}, §3.3", difference)


def _table(by_name: ByName) -> column.TextTable:
    records = [
        {
            "network": net.name,
            "built": " ".join(filter(None, (net.block, "in", net.family, net.layout or ""))),
            "depth": net.depth,
            "width": net.width,
            "printed": f"{net.printed[2]} {net.printed[0].replace('_', '-')}" if net.printed else "",
            **{metric: by_name[net.name].get(metric, math.nan) for metric in COUNTS},
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
