"""Parts that the convolutional architectures share: stems, pools between stages, and checks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from highway_bench.errors import BadInput
from highway_bench.families import Family
from highway_bench.network import Stack
from highway_bench.stem_head import Incompatible, rectified


def check_images(architecture: str, family: Family, inputs: tuple[int, ...], least: int) -> None:
    """Raise ``Incompatible`` unless family and inputs are of images with ``least`` pixels a side or more."""
    if family.kind != "image":
        raise Incompatible(f"the {architecture} architecture takes families of images, not {family.name!r}")
    if len(inputs) != 3 or min(inputs[1:]) < least:
        raise Incompatible(
            f"the {architecture} architecture takes images of {least} × {least} pixels or more, not inputs of {inputs}"
        )


def check_stages(architecture: str, depth: int, known: Sequence[int]) -> None:
    """Raise ``BadInput`` for a depth that is not one of the paper's networks."""
    if depth not in known:
        depths = " or ".join(map(str, known))
        raise BadInput(f"the {architecture} architecture has {depths} layers with the block, not {depth}")


def normed_stem(inputs: int, outputs: int, *, kernel: int, stride: int = 1) -> nn.Sequential:
    """Convolution without bias, batch norm, ReLU; zero-padding keeps the size, divided by ``stride``."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


def rectified_stem(inputs: int, outputs: int, *, kernel: int, padding: int) -> nn.Sequential:
    """Convolution with bias, ReLU."""
    return nn.Sequential(rectified(nn.Conv2d(inputs, outputs, kernel, padding=padding)), nn.ReLU())


def pooled(body: nn.Module, pools: Sequence[nn.Module]) -> list[nn.Module]:
    """The parts of ``body``, with one of ``pools`` after each of its stacks."""
    parts = [body] if isinstance(body, Stack) else list(body.children())
    remaining = iter(pools)
    return [module for part in parts for module in ([part, next(remaining)] if isinstance(part, Stack) else [part])]
