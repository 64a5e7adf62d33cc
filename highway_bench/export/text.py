"""The file of one connection: comments, its class, and a stack of layers that are joined by it."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pandas as pd
from torch import nn

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.errors import BadInput
from highway_bench.export.connections import (
    TorchAttentionResidual,
    TorchBranchScaled,
    TorchDeepNorm,
    TorchDenseAverage,
    TorchDepthAttention,
    TorchGatedRead,
    TorchGatedResidual,
    TorchGatedSum,
    TorchGruGate,
    TorchHighway,
    TorchHighwayFree,
    TorchHyperConnection,
    TorchKeel,
    TorchLaurelLr,
    TorchLayerScalar,
    TorchLayerScale,
    TorchMhc,
    TorchNormScaled,
    TorchOutputNorm,
    TorchPlain,
    TorchPostNorm,
    TorchPreNorm,
    TorchResidual,
    TorchReZero,
    TorchSandwichNorm,
    TorchScaled,
    TorchX0Mix,
    logits_of,
)
from highway_bench.report.choice.answers import known_answers
from highway_bench.report.choice.ranking import kind_of

WIDTH: Final = 100
PREFIX: Final = "Torch"
"""Begins the names of classes in ``connections``; a printed file has none."""
ANY_DEPTH: Final = 12
"""The depth in the files that travel with the package."""
OF_ANY_LAYER: Final = ("default", "scaled-branch")
"""Initialisations that need not know the weights of a layer."""
STACK: Final = '''class Stack(nn.Module):
    """x (…, width) → y (…, width): layers of make_layer(width), each joined by Connection."""

    def __init__(self, make_layer, width, depth={depth}):
        super().__init__()
        self.joins = nn.ModuleList(
            Connection({layer}, width, layer, depth{arguments})
            for layer in range(1, depth + 1)
        ){leave}

    def forward(self, x):
        state = {state}
        for join in self.joins:
            state = join(state)
        return {output}
'''


class PlainForm(NamedTuple):
    """How a connection is printed: its class after the ``parts`` that it uses, the stack's first ``state`` of the input
    x, its module ``leave`` and the ``output`` of the last state, and by start what follows ``depth`` in the class's
    arguments. ``gain`` is the factor of each layer, where the connection has one."""

    cls: type[nn.Module]
    parts: tuple[Any, ...] = ()
    state: str = "x"
    leave: str = ""
    output: str = "state"
    arguments: Mapping[str, str] = MappingProxyType({})
    gain: str = ""


NORM: Final = "nn.LayerNorm(width)"


def normed(cls: type[nn.Module], arguments: Mapping[str, str] = MappingProxyType({})) -> PlainForm:
    """A connection of the stream with a norm after the last layer."""
    return PlainForm(cls, leave=NORM, output="self.leave(state)", arguments=arguments)


def with_history(cls: type[nn.Module], arguments: Mapping[str, str] = MappingProxyType({})) -> PlainForm:
    """A connection whose state begins with the stream, and has the input of the first layer too."""
    return PlainForm(cls, state="(x, x)", leave=NORM, output="self.leave(state[0])", arguments=arguments)


def of_streams(cls: type[nn.Module], leave: str, output: str, *parts: Any) -> PlainForm:
    """A connection of four streams, which start as copies of the input."""
    return PlainForm(cls, parts, "x.expand(4, *x.shape)", leave, output)


AT_DEPTH: Final = {"depth-aware": "-max(1.0, math.log(depth))", "published": "-2.0"}
GAINS: Final = {"published": "1.0", "depth-aware": "depth**-0.5"}
PLAIN: Final = {
    "plain": PlainForm(TorchPlain),
    "residual": PlainForm(TorchResidual),
    "pre-norm": normed(TorchPreNorm),
    "parallel": normed(TorchPreNorm),  # with one transform a layer
    "post-norm": PlainForm(TorchPostNorm),
    "highway": PlainForm(TorchHighway, arguments=AT_DEPTH),
    "highway-free": PlainForm(TorchHighwayFree, arguments=AT_DEPTH),
    "rezero": PlainForm(TorchReZero),
    "layerscale": normed(TorchLayerScale),
    "branch-scaled": normed(TorchBranchScaled),
    "deepnorm": PlainForm(TorchDeepNorm, gain="(4 * depth) ** -0.25"),
    "norm-scaled": normed(TorchNormScaled),
    "output-norm": normed(TorchOutputNorm, GAINS),
    "sandwich-norm": normed(TorchSandwichNorm, GAINS),
    "layer-scalar": normed(TorchLayerScalar, GAINS),
    "keel": PlainForm(TorchKeel),
    "gru-gate": PlainForm(TorchGruGate, arguments={"published": "2.0", "depth-aware": "max(2.0, math.log(depth))"}),
    "laurel-lr": normed(TorchLaurelLr),
    "x0-mix": with_history(TorchX0Mix, {"published": "False", "depth-aware": "True"}),
    "dense-average": with_history(TorchDenseAverage),
    "attn-residual": PlainForm(
        TorchAttentionResidual,
        (TorchDepthAttention,),
        state="[x]",
        leave=f"nn.Sequential(DepthAttention(width), {NORM})",
        output="self.leave(state)",
    ),
    "hc-dynamic": of_streams(TorchHyperConnection, NORM, "self.leave(state.sum(0))"),
    "mhc": of_streams(TorchMhc, "GatedSum(width)", "self.leave(state)", logits_of, TorchGatedSum),
    "gated-residual": of_streams(TorchGatedResidual, "GatedRead(width)", "self.leave(state)[1]", TorchGatedRead),
}
"""The plain form of each connection by its name."""


def plain_torch(name: str, *, depth: int, start: str | None = None, known: pd.DataFrame | None = None) -> str:
    """The connection called ``name`` with one of its starts as a file of plain torch, by default with its first start.

    Its learning rates are those of ``known``, a wide table, by default that of the committed rows.
    Raises ``BadInput`` for a connection without a plain form, and for a start that a layer of the user's cannot have.
    """
    spec = blocks.get(name)
    if name not in PLAIN:
        raise BadInput(
            f"{name!r} has no plain form: it mixes the values of attention, which a layer alone does not give"
        )
    if depth < 1:
        raise BadInput(f"depth must be at least 1, not {depth}")
    chosen = spec.starts[0] if start is None else spec.start(start)
    if chosen.init not in OF_ANY_LAYER:
        raise BadInput(f"start {chosen.name!r} of {name!r} sets the layer's own weights: {chosen.about}")
    form = PLAIN[name]
    gain = form.gain or ("depth**-0.5" if chosen.init == "scaled-branch" else "")
    parts = [_source(TorchScaled)] if gain else []
    parts += [_source(part) for part in form.parts]
    parts.append(_source(form.cls).replace(f"class {form.cls.__name__.removeprefix(PREFIX)}(", "class Connection(", 1))
    parts.append(_stack(form, depth, chosen.name, gain))
    code = "\n\n".join(parts)
    imports = "import math\n\n" * ("math." in code) + "import torch\nfrom torch import nn\n"
    comments = _comments(spec, chosen.name, chosen.about, known_answers() if known is None else known, fixed=bool(gain))
    return f"{comments}\n{imports}\n\n{code}"


def _source(of: type | object) -> str:
    """The source of a class or function without annotations, its docstring and the prefix of names."""
    text = re.sub(rf"\b{PREFIX}(?=[A-Z])", "", inspect.getsource(of))  # type: ignore[arg-type]
    text = re.sub(r"(\w+): (?:nn\.\w+|Tensor|int|float|bool|list|tuple)\b", r"\1", text)
    text = re.sub(r"\) -> [\w. |]+:", "):", text)
    return re.sub(r'^    """.*?"""\n\n', "", text, count=1, flags=re.MULTILINE | re.DOTALL)


def _stack(form: PlainForm, depth: int, start: str, gain: str) -> str:
    arguments = form.arguments.get(start, "")
    return STACK.format(
        depth=depth,
        layer=f"Scaled(make_layer(width), {gain})" if gain else "make_layer(width)",
        arguments=f", {arguments}" if arguments else "",
        leave=f"\n        self.leave = {form.leave}" if form.leave else "",
        state=form.state,
        output=form.output,
    )


def _comments(spec: BlockSpec, start: str, about: str, known: pd.DataFrame, *, fixed: bool) -> str:
    rates = [] if fixed else _rates(known, spec.name, start)  # a factor that stays changes the best rate
    lines = [
        f"{spec.name}, start {start}: {spec.equation}",
        f"Source: {spec.source}. Start: {about}.",
        *rates,
        "Written by highway_bench (MIT licence). make_layer(width): any nn.Module (…, width) → (…, width).",
    ]
    wrapped = (part for line in lines for part in textwrap.wrap(line, WIDTH - 2))
    return "".join(f"# {part}\n" for part in wrapped)


def _rates(table: pd.DataFrame, name: str, start: str) -> list[str]:
    """The best learning rates that are known of a connection and start, from the lowest to the highest over depths."""
    own = table[table["connection"].eq(name) & table["start"].eq(start) & table["outcome"].eq("trains")]
    own = own[~own["kind"].str.startswith(("conv", "resnet"))]  # whose features are not on the last axis
    rates = []
    for (kind, data), part in own.groupby(["kind", "data"], sort=False):
        (low, high), depths = (part["rate"].min(), part["rate"].max()), (part["depth"].min(), part["depth"].max())
        layers = f"{depths[0]}" if depths[0] == depths[1] else f"{depths[0]} to {depths[1]}"
        rate = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        rates.append(f"{kind_of(str(kind), str(data)).label} {rate} ({layers} layers)")
    return [f"Learning rates that were best: {'; '.join(rates)}."] if rates else []


def every_plain_torch(known: pd.DataFrame) -> pd.DataFrame:
    """The file of every connection and start that has one, with the columns ``connection``, ``start`` and ``text``; its
    depth is ``ANY_DEPTH``."""
    records = []
    for name in sorted(PLAIN):
        for start in blocks.get(name).starts:
            if start.init in OF_ANY_LAYER:
                text = plain_torch(name, depth=ANY_DEPTH, start=start.name, known=known)
                records.append({"connection": name, "start": start.name, "text": text})
    return pd.DataFrame(records)
