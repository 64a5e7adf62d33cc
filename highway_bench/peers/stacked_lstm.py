"""torch's own stack of bidirectional LSTMs: one ``nn.LSTM`` of several layers."""

from typing import cast

from torch import Tensor, nn

from highway_bench.network import Stack
from highway_bench.peers.base import copy_into, joins_of, register_peer


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
    """An ``nn.LSTM`` with as many layers; half the width in each direction."""
    layers = [cast(nn.LSTM, join.transform.lstm) for join in joins_of(ours)]
    theirs = HiddenStates(
        layers[0].input_size, layers[0].hidden_size, len(layers), batch_first=True, bidirectional=True
    )
    for number, layer in enumerate(layers):
        for name, weight in layer.named_parameters():
            copy_into(theirs.get_parameter(name.replace("_l0", f"_l{number}")), weight)
    return theirs
