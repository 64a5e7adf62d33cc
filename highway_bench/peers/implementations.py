"""Implementations: highway layers as public code, a library and courses write them, torch's own layers, and one other
library's. Each function makes one from our network, with copies of its weights.
"""

from __future__ import annotations

import os
from typing import Any, cast

import torch
from torch import Tensor, nn

from highway_bench.errors import BadInput
from highway_bench.network import Stack
from highway_bench.peers.base import register_peer


def joins_of(ours: Stack) -> list[Any]:
    """The connections of our network. Their parts depend on its block and family, so they have no common type."""
    return list(ours.joins)


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """An ``nn.Linear`` with copies of these weights."""
    outputs, inputs = weight.shape
    module = nn.Linear(inputs, outputs)
    copy_into(module.weight, weight)
    copy_into(module.bias, bias)
    return module


@torch.no_grad()
def copy_into(parameter: Tensor, values: Tensor) -> None:
    """Copy ``values`` into a parameter of the same shape."""
    if parameter.shape != values.shape:
        raise ValueError(f"weights of shape {tuple(values.shape)} do not fit {tuple(parameter.shape)}")
    parameter.copy_(values)


@register_peer(
    "sequential", block="plain", family="dense", summary="nn.Sequential of linear layers and ReLUs", source="torch.nn"
)
def sequential(ours: Stack) -> nn.Module:
    """torch's own plain layers: linear and ReLU a layer."""
    maps = (join.transform for join in joins_of(ours))
    return nn.Sequential(*(part for one in maps for part in (linear(one.weight, one.bias), nn.ReLU())))


class TwoLinearMaps(nn.Module):
    """y = T·H + (1 − T)·x with H = relu(W_H x + b_H) and T = σ(W_T x + b_T)."""

    def __init__(self, transform: nn.Linear, gate: nn.Linear) -> None:
        super().__init__()
        self.transform = transform
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.transform(x))
        t = torch.sigmoid(self.gate(x))
        return t * h + (1 - t) * x


@register_peer(
    "two-linear-maps",
    block="highway",
    family="dense",
    summary="a highway layer of two nn.Linear",
    source="arXiv:1505.00387, eq. 3, written out",
)
def two_linear_maps(ours: Stack) -> nn.Module:
    """As most public code writes a highway layer: a linear layer each for H and T."""
    products = (join.maps.product for join in joins_of(ours))
    halves = (zip(one.weight.chunk(2), one.bias.chunk(2), strict=True) for one in products)
    return nn.Sequential(*(TwoLinearMaps(*(linear(weight, bias) for weight, bias in both)) for both in halves))


class FusedMap(nn.Module):
    """y = T·relu(h) + (1 − T)·x with (h, t) = Wx + b and T = σ(t)."""

    def __init__(self, maps: nn.Linear) -> None:
        super().__init__()
        self.maps = maps

    def forward(self, x: Tensor) -> Tensor:
        h, t = self.maps(x).chunk(2, dim=-1)
        t = torch.sigmoid(t)
        return t * torch.relu(h) + (1 - t) * x


@register_peer(
    "fused-map",
    block="highway",
    family="dense",
    summary="a highway layer of one nn.Linear for both maps",
    source="AllenNLP, allennlp/modules/highway.py, with T for 1 − T",
)
def fused_map(ours: Stack) -> nn.Module:
    """As AllenNLP writes a highway layer: one linear layer for H and T."""
    products = (join.maps.product for join in joins_of(ours))
    return nn.Sequential(*(FusedMap(linear(one.weight, one.bias)) for one in products))


def import_keras(device: str) -> Any:
    """Keras with torch as its backend, on ``device`` if this process has not imported it before; raises ``BadInput``
    where this process has it with another backend."""
    os.environ.setdefault("KERAS_BACKEND", "torch")  # both are read at its first import
    os.environ.setdefault("KERAS_TORCH_DEVICE", device)
    import keras

    if keras.backend.backend() != "torch":
        raise BadInput(f"Keras computes with {keras.backend.backend()} here: set KERAS_BACKEND=torch")
    return keras


@register_peer(
    "keras",
    block="highway",
    family="dense",
    summary="Keras's functional API, two Dense a layer",
    source="https://keras.io/guides/functional_api",
    package="keras",
    compiles=False,
)
def keras_functional(ours: Stack) -> nn.Module:
    """As courses write highway layers in Keras 3, here on torch: a model of ``Dense``, ``Multiply`` and ``Add``."""
    products = [join.maps.product for join in joins_of(ours)]
    keras = import_keras(products[0].weight.device.type)
    layers = keras.layers
    inputs = x = layers.Input((products[0].in_features,))
    maps: list[tuple[Any, Tensor, Tensor]] = []
    for product in products:
        h, t = (layers.Dense(product.in_features, activation=name) for name in ("relu", "sigmoid"))
        gate = t(x)
        x = layers.Add()([layers.Multiply()([h(x), gate]), layers.Multiply()([x, 1 - gate])])
        maps += list(zip((h, t), product.weight.chunk(2), product.bias.chunk(2), strict=True))
    for layer, weight, bias in maps:
        layer.set_weights([weight.detach().cpu().numpy().T, bias.detach().cpu().numpy()])
    model: nn.Module = keras.Model(inputs, x)
    computes_on = next(model.parameters()).device
    if computes_on.type != products[0].weight.device.type:
        raise BadInput(f"Keras computes on {computes_on} here: choose --device {computes_on.type}")
    return model


class HiddenStates(nn.LSTM):
    """The hidden states alone."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x)[0]


@register_peer(
    "stacked-lstm",
    block="plain",
    family="bilstm",
    summary="one bidirectional nn.LSTM of several layers",
    source="torch.nn.LSTM",
    compiles=False,
)
def stacked_lstm(ours: Stack) -> nn.Module:
    """torch's own bidirectional LSTM of as many layers; half the width in each direction."""
    layers = [cast(nn.LSTM, join.transform.lstm) for join in joins_of(ours)]
    theirs = HiddenStates(
        layers[0].input_size, layers[0].hidden_size, len(layers), batch_first=True, bidirectional=True
    )
    for number, layer in enumerate(layers):
        for name, weight in layer.named_parameters():
            copy_into(theirs.get_parameter(name.replace("_l0", f"_l{number}")), weight)
    return theirs


@register_peer(
    "transformer-encoder",
    block="pre-norm",
    family="transformer",
    summary="nn.TransformerEncoder, norm first",
    source="torch.nn.TransformerEncoder",
)
def transformer_encoder(ours: Stack) -> nn.Module:
    """torch's own encoder: a layer for each pair of our connections, then the final norm."""
    attentions, branches = joins_of(ours)[::2], joins_of(ours)[1::2]
    width, inner = branches[0].transform[0].in_features, branches[0].transform[0].out_features
    layer = nn.TransformerEncoderLayer(
        width, attentions[0].transform.heads, inner, dropout=0.0, activation="relu", batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(layer, len(attentions), norm=nn.LayerNorm(width), enable_nested_tensor=False)
    for made, attention, branch in zip(theirs.layers, attentions, branches, strict=True):
        parts = {
            "self_attn.in_proj_": attention.transform.inward,
            "self_attn.out_proj.": attention.transform.outward,
            "linear1.": branch.transform[0],
            "linear2.": branch.transform[2],
            "norm1.": attention.norm,
            "norm2.": branch.norm,
        }
        for name, part in parts.items():
            copy_into(made.get_parameter(f"{name}weight"), part.weight)
            copy_into(made.get_parameter(f"{name}bias"), part.bias)
    assert theirs.norm is not None
    theirs.norm.load_state_dict(ours.leave.state_dict())
    return theirs


@register_peer(
    "x-transformers",
    block="pre-norm",
    family="transformer",
    summary="x_transformers.Encoder with fused attention",
    source="https://github.com/lucidrains/x-transformers",
    package="x-transformers",
)
def x_transformers_encoder(ours: Stack) -> nn.Module:
    """The encoder of x-transformers: a layer for each pair of our connections, then the final norm.

    Its norms and the maps of its attention have no bias. Ours are 0 at the start, so the outputs are equal; the few
    additions are in our time alone.
    """
    from x_transformers import Encoder

    attentions, branches = joins_of(ours)[::2], joins_of(ours)[1::2]
    heads = attentions[0].transform.heads
    width, inner = branches[0].transform[0].in_features, branches[0].transform[0].out_features
    theirs: nn.Module = Encoder(
        dim=width,
        depth=len(attentions),
        heads=heads,
        attn_dim_head=width // heads,
        attn_flash=True,
        ff_mult=inner / width,
        ff_custom_activation=nn.ReLU(),
    )
    maps = iter(module for module in theirs.modules() if isinstance(module, nn.Linear))
    for attention, branch in zip(attentions, branches, strict=True):
        for weight in (*attention.transform.inward.weight.chunk(3), attention.transform.outward.weight):
            copy_into(next(maps).weight, weight)
        for part in (branch.transform[0], branch.transform[2]):
            made = next(maps)
            copy_into(made.weight, part.weight)
            copy_into(made.bias, part.bias)
    return theirs
