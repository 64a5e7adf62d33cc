"""Kinds of layers: what people call them, and the family and data set that stand for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from highway_bench.errors import UnknownName


class LayerKind(NamedTuple):
    """A kind of layer: its ``name`` in commands and addresses, the ``label`` that people read, the ``family`` with its
    options and the ``data`` set on which it is measured, other names that it is found under, and the ``protocol`` of
    its rows; empty for that of most."""

    name: str
    label: str
    family: str
    data: str
    also: tuple[str, ...] = ()
    protocol: str = ""


KINDS: Final = (
    LayerKind("mlp", "MLP", "dense", "mnist-5k", ("dense", "linear", "fully-connected", "feed-forward")),
    LayerKind("convolution", "convolution", "conv", "mnist-5k", ("conv", "cnn", "conv2d")),
    LayerKind("conv-pair", "two convolutions", "conv-pair", "mnist-5k", ("two-convolutions",)),
    LayerKind("resnet", "ResNet block", "resnet", "mnist-5k", ("resnet-block", "batch-norm")),
    LayerKind("bilstm", "BiLSTM", "bilstm", "mnist-5k", ("lstm", "rnn", "recurrent")),
    LayerKind("transformer", "transformer, digits", "transformer", "mnist-5k", ("vit", "encoder", "attention")),
    LayerKind("gpt", "language model", "transformer causal", "language", ("text", "language", "decoder", "llm", "lm")),
    LayerKind("code", "transformer, code", "transformer causal", "code", ("python",)),
    LayerKind("mlp-mnist", "MLP, all of MNIST", "dense", "mnist", ()),
)


def kind_of(family: str, data: str) -> LayerKind:
    """The kind of a family with its options on a data set; one of its own name where none is listed."""
    listed = (one for one in KINDS if (one.family, one.data) == (family, data))
    name = "-".join(f"{family} {data}".split())
    return next(listed, LayerKind(name, f"{family} on {data}", family, data))


def kind_named(name: str, kinds: Sequence[LayerKind] = KINDS) -> LayerKind:
    """The one of ``kinds`` that is found under ``name``. Raises ``UnknownName``."""
    wanted = name.strip().lower().replace(" ", "-").replace("_", "-")
    for one in kinds:
        if wanted in (one.name, one.label.lower().replace(", ", "-"), *one.also):
            return one
    raise UnknownName("kind of layer", name, [one.name for one in kinds])
