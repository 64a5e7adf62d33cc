"""Keras 3 on torch: highway layers in the functional API, two ``Dense`` a layer, as courses write them."""

import os
from typing import Any

from torch import Tensor, nn

from highway_bench.errors import BadInput
from highway_bench.network import Stack
from highway_bench.peers.base import joins_of, register_peer


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
    """A model of ``Dense``, ``Multiply`` and ``Add``."""
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
