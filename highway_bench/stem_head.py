"""Stem and head: a stem maps a data set's inputs to features, a head maps features to predictions.

| inputs \\ family | vector                        | image                  | sequence                                |
|------------------|-------------------------------|------------------------|-----------------------------------------|
| image            | flatten, one plain layer      | 3×3 convolution, ReLU  | rows as steps, affine map               |
| tokens           | incompatible                  | incompatible           | embedding (may have padding)            |
| series           | incompatible                  | incompatible           | affine map at every step                |

Where a data set's targets are its later inputs (``language``, ``code``), families that read later steps are
incompatible.

Heads: for ``class`` and ``scalar`` targets, an affine map of the features averaged over pixels or (unpadded) steps; for
``token`` targets, an affine map at every step. The first plain layer and the head are those of arXiv:1505.00387, §3.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from highway_bench.data import DataSet
from highway_bench.data.base import PADDING
from highway_bench.errors import BadInput
from highway_bench.families import Family, reads_ahead
from highway_bench.families.init import init_map_


class Incompatible(BadInput):
    """A family, a data set and an architecture that cannot form a network. In a run such a cell is ``skipped``, with
    this message."""


class ImageRows(nn.Module):
    """(batch, channels, height, width) → (batch, height, channels × width): an image read row by row."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(-3, -2).flatten(-2)


class PositionCodes(nn.Module):
    """Adds sinusoids of the position to (batch, steps, width); no parameters (arXiv:1706.03762, §3.5)."""

    codes: Tensor

    def __init__(self, steps: int, width: int) -> None:
        super().__init__()
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
        angles = torch.arange(steps).unsqueeze(1) * rates
        codes = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[:, :width]
        self.register_buffer("codes", codes, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.codes[: x.shape[-2]]


class MeanOver(nn.Module):
    """The mean over the given axes: of pixels, or of steps."""

    def __init__(self, *axes: int) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(self.axes)


class ScalarAnswer(nn.Module):
    """(batch, 1) → (batch,)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.squeeze(-1)


def build_stem(dataset: DataSet, family: Family, width: int) -> nn.Module:
    """The module from a data set's inputs to the family's features. Raises ``Incompatible`` for an impossible pair."""
    shape = dataset.input_shape
    if dataset.input_kind != "image" and family.kind != "sequence":
        cure = "; to give it every step: --family-option kind=sequence" if ":" in family.name else ""
        raise Incompatible(
            f"family {family.name!r} takes {family.kind}s, but the data set has {dataset.input_kind}{cure}"
        )
    fault = family.input_fault(width, feature_shape(family, dataset))
    if fault is not None:
        raise Incompatible(f"family {family.name!r} cannot take inputs of this data set: {fault}")
    if dataset.input_kind == "image":
        channels, height, across = shape
        if family.kind == "vector":
            return nn.Sequential(nn.Flatten(), rectified(nn.Linear(math.prod(shape), width)), nn.ReLU())
        if family.kind == "image":
            return nn.Sequential(rectified(nn.Conv2d(channels, width, 3, padding=1)), nn.ReLU())
        return with_order(nn.Sequential(ImageRows(), linear(channels * across, width)), family, height, width)
    if dataset.causal and reads_ahead(family, width):
        cure = "; set its option causal" if hasattr(family, "causal") else ""
        raise Incompatible(f"family {family.name!r} reads later steps, which are the targets of this data set{cure}")
    steps = shape[0]
    if dataset.input_kind == "series":
        return with_order(linear(shape[1], width), family, steps, width)
    assert dataset.vocabulary is not None
    words = nn.Embedding(dataset.vocabulary, width, padding_idx=PADDING if dataset.padded else None)
    return with_order(words, family, steps, width)


def build_head(dataset: DataSet, family: Family, width: int) -> nn.Module:
    """The module from the family's features to predictions: (batch, classes), (batch,) or (batch, steps, vocabulary).

    Raises ``Incompatible`` for ``token`` targets in a family without steps.
    """
    output = linear(width, dataset.outputs)
    if dataset.target_kind == "token":
        if family.kind != "sequence":
            raise Incompatible(f"family {family.name!r} has no steps, which token targets need")
        return output
    pool: list[nn.Module] = [MeanOver(-2, -1)] if family.kind == "image" else []
    return nn.Sequential(*pool, output, *([ScalarAnswer()] if dataset.target_kind == "scalar" else []))


def with_order(stem: nn.Module, family: Family, steps: int, width: int) -> nn.Module:
    """``stem``, followed by position codes where the family's transform ignores the order of steps."""
    return nn.Sequential(stem, PositionCodes(steps, width)) if family.order_blind else stem


def rectified(module: nn.Linear | nn.Conv2d) -> nn.Module:
    """``module`` initialised for a following ReLU: He weights, zero bias."""
    return _initialised(module, relu=True)


def linear(inputs: int, outputs: int) -> nn.Module:
    """An affine map without activation: Glorot weights, zero bias."""
    return _initialised(nn.Linear(inputs, outputs), relu=False)


def _initialised(module: nn.Linear | nn.Conv2d, *, relu: bool) -> nn.Module:
    init_map_(module.weight, "relu" if relu else "identity", "default")
    assert module.bias is not None
    nn.init.zeros_(module.bias)
    return module


def feature_positions(family: Family, dataset: DataSet | None, seq_len: int | None = None) -> int:
    """Positions of one item that have features: pixels or steps of ``dataset``, or of the family's example."""
    return family.positions(seq_len) if dataset is None else math.prod(feature_shape(family, dataset))


def feature_shape(family: Family, dataset: DataSet) -> tuple[int, ...]:
    """The positions of one item of ``dataset`` that have features: its steps, its height and width, or none."""
    if family.kind == "vector":
        return ()
    if dataset.input_kind == "image":
        return tuple(dataset.input_shape[1:]) if family.kind == "image" else (dataset.input_shape[1],)
    return (dataset.input_shape[0],)
