"""Parameters and multiply-adds of published networks, counted on the project's own blocks, families and layouts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from highway_bench.cell import Cell
from highway_bench.report import present
from highway_bench.report.figures import Picture
from highway_bench.report.figures._base import head, joined, log_axis, panels, settings
from highway_bench.report.number import count, quantity
from highway_bench.report.style import KNOWN
from highway_bench.reproduce._base import (
    Asked,
    Finding,
    NotAttempted,
    Outcome,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce._paired import measured

TOLERANCE = 0.02  # papers print two or three digits, and some are rounded down
RESNET, LONG, SHORT, VGG = "arXiv:1512.03385", "arXiv:1507.06228", "arXiv:1505.00387", "arXiv:1409.1556"
COMPARISON = "R. Srivastava, 2025"
ARITHMETIC = "arithmetic on the published layers"

NORMED: Mapping[str, Any] = {"branch_norm": True, "norm_kind": "batch"}
GATE_PAIR: Mapping[str, Any] = {**NORMED, "gate": "pair", "last_activation": "relu"}


@dataclass(frozen=True, kw_only=True)
class Net:
    """A published network: how it is built here, what it must hold by arithmetic, and what is printed of it.

    ``parameters`` and ``multiply_adds`` are worked out by hand from the published layers, apart from this code;
    ``printed`` is (metric, number, as it is printed, where).
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
        return Cell(task="cost", block=self.block, block_options=self.block_options, family=self.family,
                    family_options=self.family_options, depth=self.depth, width=self.width, nominal_width=self.width,
                    match="width", dataset=self.dataset, recipe={"layout": self.layout} if self.layout else {})


def vgg(layers: int, depth: int, parameters: int, multiply_adds: int, billions: float) -> Net:
    printed = ("multiply_adds", billions * 1e9, f"{billions} billion", f"{RESNET}, §4.1")
    return Net(name=f"VGG-{layers}", block="plain", family="conv", layout="vgg", depth=depth, width=64,
               parameters=parameters, multiply_adds=multiply_adds, printed=printed)


def imagenet(name: str, block: str, depth: int, option: str, parameters: int, multiply_adds: int,
             billions: float | None) -> Net:
    printed = None if billions is None else ("multiply_adds", billions * 1e9, f"{billions} billion",
                                             f"{RESNET}, table 1")
    return Net(name=name, block=block, family="conv-pair", family_options=NORMED, depth=depth, width=64,
               layout="imagenet-resnet" if option == "A" else "imagenet-resnet-b", parameters=parameters,
               multiply_adds=multiply_adds, printed=printed)


def cifar(layers: int, parameters: int, multiply_adds: int, millions: float) -> Net:
    printed = ("parameters", millions * 1e6, f"{millions} M", f"{RESNET}, table 6")
    return Net(name=f"ResNet-{layers} (CIFAR)", block="residual", family="conv-pair", family_options=NORMED,
               layout="cifar-resnet", depth=(layers - 2) // 2, width=16, parameters=parameters,
               multiply_adds=multiply_adds, printed=printed)


def conv_highway(width: int, parameters: int, thousands: int) -> Net:
    return Net(name=f"conv highway, width {width}", block="highway", family="conv", layout="conv-highway", depth=8,
               width=width, parameters=parameters,
               printed=("parameters", 1e3 * thousands, f"{thousands}K", f"{LONG}, table 1"))


def figure1(block: str, layers: int, width: int, parameters: int) -> Net:
    return Net(name=f"Figure 1, {block}, {layers} layers", block=block, family="dense", depth=layers - 1, width=width,
               dataset="mnist-5k", parameters=parameters)


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
    Net(name="Highway-110 (CIFAR)", block="highway", family="conv-pair", family_options=GATE_PAIR, depth=54, width=14,
        layout="cifar-resnet-b", block_options={"gate_bias": -6.0}, parameters=2_649_918, source=f"{COMPARISON}, log"),
    conv_highway(16, 38_986, 39),
    conv_highway(32, 151_690, 151),
    Net(name="a highway layer of 50 units", block="highway", family="dense", depth=1, width=50, parameters=5_100),
    Net(name="a plain layer of 71 units", block="plain", family="dense", depth=1, width=71, parameters=5_112),
    *(figure1("highway", layers, 50, total) for layers, total in
      ((10, 85_660), (20, 136_660), (50, 289_660), (100, 544_660))),
    *(figure1("plain", layers, 71, total) for layers, total in
      ((10, 102_463), (20, 153_583), (50, 306_943), (100, 562_543))),
    Net(name="the lecture's network", block="highway", family="dense", layout="stemless", depth=20, width=784,
        dataset="mnist-5k", parameters=24_625_450),
)


@register_reproduction("flops", title="Parameters and multiply-adds of the published networks",
                       source=f"{RESNET}, {VGG}, {LONG}, {SHORT}")
class Flops(Reproduction):
    """Counted for one item on tensors without storage; what these papers call FLOPs are multiply-adds, of convolutions
    and matrix products alone."""

    not_attempted = (
        NotAttempted("ResNet-50, -101 and -152: 3.8, 7.6 and 11.3 billion", f"{RESNET}, table 1",
                     "their branch of three convolutions widens the stream fourfold, and no family here changes the "
                     "width within a layer"),
    )

    def cells(self, asked: Asked) -> list[Cell]:
        return [net.cell() for net in NETS]

    def outcome(self, rows: pd.DataFrame, asked: Asked) -> Outcome:
        counts = measured(rows, self.cells(asked))
        found = {net.name: counts[net.cell()] for net in NETS}
        findings = [finding for net in NETS for finding in _findings(net, found[net.name])]
        findings.append(_same("plain-34", "ResNet-34 A", found))
        return Outcome(findings=findings, tables=[_table(found)], pictures=[_picture(found)])


def _findings(net: Net, found: Mapping[str, float]) -> list[Finding]:
    exact = {"parameters": net.parameters, "multiply_adds": net.multiply_adds}
    held = {metric: number for metric, number in exact.items() if number is not None}
    if not held.keys() <= found.keys():
        return [Finding(published=f"{net.name}: {_counted(held)}", source=net.source, measured="not counted",
                        verdict=Verdict.NOT_TESTABLE)]
    agrees = all(found[metric] == number for metric, number in held.items())
    findings = [Finding(published=f"{net.name}: {_counted(held)}", source=net.source, rule="equal",
                        measured="the same" if agrees else _counted({metric: found[metric] for metric in held}),
                        verdict=Verdict.REPRODUCED if agrees else Verdict.CONTRADICTED)]
    if net.printed is not None:
        metric, number, text, where = net.printed
        off = found[metric] / number - 1
        findings.insert(0, Finding(
            published=f"{net.name}: {text} {metric.replace('_', '-')}", source=where,
            measured=f"{count(found[metric])} ({100 * off:+.2f} %)".replace("-", "−"), rule=f"within {TOLERANCE:.0%}",
            verdict=Verdict.REPRODUCED if abs(off) <= TOLERANCE else Verdict.CONTRADICTED))
    return findings


def _counted(held: Mapping[str, float]) -> str:
    return ", ".join(f"{count(number)} {metric.replace('_', '-')}" for metric, number in held.items())


def _same(one: str, other: str, found: Mapping[str, Mapping[str, float]]) -> Finding:
    """An identity shortcut that pads with zeros is free."""
    a, b = found[one], found[other]
    verdict = (Verdict.NOT_TESTABLE if not (a and b) else Verdict.REPRODUCED if dict(a) == dict(b)
               else Verdict.CONTRADICTED)
    return Finding(published=f"{other} has neither more parameters nor more multiply-adds than {one}",
                   source=f"{RESNET}, §3.3", rule="equal", verdict=verdict,
                   measured="equal" if verdict == Verdict.REPRODUCED else "not equal" if a and b else "not counted")


def _table(found: Mapping[str, Mapping[str, float]]) -> present.Shown:
    records = [{
        "network": net.name, "built": " ".join(filter(None, (net.block, "in", net.family, net.layout or ""))),
        "depth": net.depth, "width": net.width, "parameters": found[net.name].get("parameters", math.nan),
        "multiply_adds": found[net.name].get("multiply_adds", math.nan),
        "printed": f"{net.printed[2]} {net.printed[0].replace('_', '-')}" if net.printed else "",
    } for net in NETS]
    columns = [
        present.words("network", "network"),
        present.words("built", "built of", "block, family and layout"),
        present.whole("depth", "joined layers"),
        present.whole("width", "width"),
        present.whole("parameters", "parameters"),
        present.whole("multiply_adds", "multiply-adds", "of one item, forward"),
        present.words("printed", "published"),
    ]
    return present.shown("flops", "Counted networks", pd.DataFrame(records), columns)


def _picture(found: Mapping[str, Mapping[str, float]]) -> Picture:
    """Multiply-adds of the image networks, with those that are published."""
    nets = [net for net in NETS if net.multiply_adds is not None and "multiply_adds" in found[net.name]]
    values = [found[net.name]["multiply_adds"] for net in nets]
    colour, places = KNOWN["highway"].colour, range(len(nets))
    printed = [(place, net.printed[1]) for place, net in enumerate(nets)
               if net.printed is not None and net.printed[0] == "multiply_adds"]
    title = "Multiply-adds of one image, as counted and as published"
    with settings():
        figure, (axes,) = panels(1, 1, 0.24 * max(len(nets), 4) + 0.4)
        axes.scatter(values, places, color=colour, s=30, zorder=3)
        axes.scatter([number for _, number in printed], [place for place, _ in printed], color="#D55E00", marker="x",
                     s=45, zorder=4)
        axes.set_yticks(list(places), [net.name for net in nets])
        axes.invert_yaxis()
        if values:
            log_axis(axes, "x", "MAC")
        axes.set_xlabel("multiply-adds (log)")
        head(figure, title)
        figure.legend(loc="outside lower left", ncols=2, handles=[
            Line2D([], [], color=colour, marker="o", linestyle="none", label="counted"),
            Line2D([], [], color="#D55E00", marker="x", linestyle="none", label="published"),
        ])
    alt = joined([f"{net.name} {quantity(value, 'MAC')}" for net, value in zip(nets, values, strict=True)], 20)
    return Picture("flops", title, f"Multiply-adds by network. {alt}",
                   "Convolutions and matrix products of one image, forward; crosses are the papers' numbers.", figure)
