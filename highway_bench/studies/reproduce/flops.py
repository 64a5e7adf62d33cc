"""Parameters and multiply-adds of published networks, counted on this project's blocks, families and architectures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

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


class Printed(NamedTuple):
    """A published count of one of ``COUNTS``, as a number and in the words of its ``source``."""

    metric: str
    number: float
    text: str
    source: str


def billions(number: float, where: str = f"{RESNET}, table 1") -> Printed:
    return Printed("multiply_adds", number * 1e9, f"{number} billion", where)


def millions(number: float) -> Printed:
    return Printed("parameters", number * 1e6, f"{number} M", f"{RESNET}, table 6")


def thousands(number: int) -> Printed:
    return Printed("parameters", 1e3 * number, f"{number}K", f"{LONG}, table 1")


class Kind(NamedTuple):
    """What networks of one kind are built of."""

    family: str
    width: int
    layout: str | None = None
    dataset: str | None = None
    family_options: Mapping[str, Any] = {}


VGG_NET = Kind("conv", 64, "vgg")
RESNET_A = Kind("conv-pair", 64, "imagenet-resnet", None, NORMED)
RESNET_B = Kind("conv-pair", 64, "imagenet-resnet-b", None, NORMED)
CIFAR = Kind("conv-pair", 16, "cifar-resnet", None, NORMED)
CIFAR_GATED = Kind("conv-pair", 14, "cifar-resnet-b", None, GATE_PAIR)
FIGURE_1 = {block: Kind("dense", width, None, "mnist-5k") for block, width in (("highway", 50), ("plain", 71))}


class Net(NamedTuple):
    """A published network: how it is built here, its exact counts, and its published count.

    ``parameters`` and ``multiply_adds`` (of one item, forward) were computed by hand from the published layers, without
    this code. ``source`` is that of these counts.
    """

    name: str
    block: str
    kind: Kind
    depth: int
    parameters: int
    multiply_adds: int | None = None
    printed: Printed | None = None
    block_options: Mapping[str, Any] = {}
    source: str = ARITHMETIC

    def cell(self) -> Cell:
        return Cell(
            task="cost",
            block=self.block,
            block_options=self.block_options,
            family=self.kind.family,
            family_options=self.kind.family_options,
            depth=self.depth,
            width=self.kind.width,
            nominal_width=self.kind.width,
            match="width",
            dataset=self.kind.dataset,
            recipe={"layout": self.kind.layout} if self.kind.layout else {},
        )


NETS: Sequence[Net] = (
    Net("VGG-16", "plain", VGG_NET, 9, 138_357_544, 15_470_264_320, billions(15.3, f"{RESNET}, §4.1")),
    Net("VGG-19", "plain", VGG_NET, 12, 143_667_240, 19_632_062_464, billions(19.6, f"{RESNET}, §4.1")),
    Net("plain-34", "plain", RESNET_A, 16, 21_623_848, 3_644_493_824, billions(3.6)),
    Net("ResNet-34 A", "residual", RESNET_A, 16, 21_623_848, 3_644_493_824, billions(3.6)),
    Net("ResNet-34 B", "residual", RESNET_B, 16, 21_797_672, 3_663_761_408),
    Net("ResNet-18 A", "residual", RESNET_A, 8, 11_515_688, 1_794_805_760, billions(1.8)),
    Net("ResNet-18 B", "residual", RESNET_B, 8, 11_689_512, 1_814_073_344, billions(1.8)),
    *(
        Net(f"ResNet-{layers} (CIFAR)", "residual", CIFAR, (layers - 2) // 2, total, multiply_adds, millions(printed))
        for layers, total, multiply_adds, printed in (
            (20, 269_722, 40_551_040, 0.27),
            (32, 464_154, 68_862_592, 0.46),
            (44, 658_586, 97_174_144, 0.66),
            (56, 853_018, 125_485_696, 0.85),
            (110, 1_727_962, 252_887_680, 1.7),
            (1202, 19_421_274, 2_829_238_912, 19.4),
        )
    ),
    Net(
        "Highway-110 (CIFAR)",
        "highway",
        CIFAR_GATED,
        54,
        2_649_918,
        block_options={"gate_bias": -6.0},
        source=f"{COMPARISON}, log",
    ),
    *(
        Net(f"conv highway, width {width}", "highway", Kind("conv", width, "conv-highway"), 8, total, None, printed)
        for width, total, printed in ((16, 38_986, thousands(39)), (32, 151_690, thousands(151)))
    ),
    Net("a highway layer of 50 units", "highway", Kind("dense", 50), 1, 5_100),
    Net("a plain layer of 71 units", "plain", Kind("dense", 71), 1, 5_112),
    *(
        Net(f"Figure 1, {block}, {layers} layers", block, FIGURE_1[block], layers - 1, total)
        for block, totals in (
            ("highway", {10: 85_660, 20: 136_660, 50: 289_660, 100: 544_660}),
            ("plain", {10: 102_463, 20: 153_583, 50: 306_943, 100: 562_543}),
        )
        for layers, total in totals.items()
    ),
    Net("the lecture's network", "highway", Kind("dense", 784, "stemless", "mnist-5k"), 20, 24_625_450),
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
        kind = worded(net.printed.metric)
        yield Claim(
            statement=f"{net.name}: {net.printed.text} {kind}",
            source=net.printed.source,
            quantity=f"{kind} counted, above those published",
            unit="%",
            statistic=Statistic.EXACT,
            region=Region(-TOLERANCE, TOLERANCE, closed=True),
            observe=partial(_deviation, net.name, net.printed),
        )
    exact = {name: float(number) for name in COUNTS if (number := getattr(net, name)) is not None}
    yield _equal(
        f"{net.name}: {counted(exact)}",
        net.source,
        lambda by_name: _difference(by_name[net.name], exact),
        evidence=Evidence.COMPUTED if net.source == ARITHMETIC else Evidence.SOURCE,
    )


def _deviation(name: str, printed: Printed, by_name: ByName, _: float) -> Observation:
    own = by_name[name].get(printed.metric)
    if own is None:
        return Observation(untestable="not counted")
    deviation = Quantity.exact("deviation", 100 * (own / printed.number - 1), "%")
    return Observation(decisive=[deviation], note=counted({printed.metric: own}))


def _difference(own: Metrics, exact: Metrics) -> Observation:
    if not (exact and exact.keys() <= own.keys()):
        return Observation(untestable="not counted")
    largest = max(abs(own[metric] - number) for metric, number in exact.items())
    note = counted({metric: own[metric] for metric in exact}) if largest else ""
    return Observation(decisive=[Quantity.exact("difference", largest)], note=note)


def worded(metric: str) -> str:
    return metric.replace("_", "-")


def counted(numbers: Metrics) -> str:
    return ", ".join(f"{count(number)} {worded(metric)}" for metric, number in numbers.items())


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
            "built": " ".join(filter(None, (net.block, "in", net.kind.family, net.kind.layout))),
            "depth": net.depth,
            "width": net.kind.width,
            "printed": f"{net.printed.text} {worded(net.printed.metric)}" if net.printed else "",
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
