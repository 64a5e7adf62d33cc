"""The bidirectional LSTM: its two directions together give the width back."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from highway_bench.errors import BadInput
from highway_bench.families._base import Transform, register_family
from highway_bench.families._site import Site


class BiLstmTransform(nn.Module):
    """(batch, steps, in) → (batch, steps, width): hidden states of both directions side by side, from zero states."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.lstm(x)[0]
        return hidden


@register_family("bilstm", transform="H(x) = [LSTM→(x); LSTM←(x)]", summary="bidirectional LSTM, half the width a way",
                 source="Schuster and Paliwal 1997; Hochreiter and Schmidhuber 1997")
@dataclass(frozen=True, kw_only=True)
class BiLstm(Transform):
    """H(x) = the hidden states of an LSTM read forwards and one read backwards, width/2 each, concatenated.

    Weights start as torch's own (uniform within ±1/√hidden) or, with ``init="orthogonal"``, every gate's matrix
    orthogonal. ``nn.LSTM`` has no batching rule, so this family does not run under ``vmap``, and ``torch.compile``
    leaves it to eager code.
    """

    kind = "sequence"
    inits = ("default", "orthogonal")
    vmap = False
    one_graph = False

    @property
    def width_step(self) -> int:
        return 2

    def transform(self, site: Site) -> nn.Module:
        if site.stride != 1:
            raise BadInput("family 'bilstm' has no places to stride over")
        module = BiLstmTransform(site.in_width, site.width)
        if self.init == "orthogonal":
            for name, parameter in module.lstm.named_parameters():
                if name.startswith("weight"):
                    for gate in parameter.data.chunk(4):
                        nn.init.orthogonal_(gate)
                else:
                    nn.init.zeros_(parameter)
        return module

    def transform_parameters(self, width: int) -> int:
        hidden = width // 2
        return 2 * 4 * (hidden * width + hidden * hidden + 2 * hidden)

    def transform_flops(self, width: int, positions: int) -> int:
        hidden = width // 2
        return 2 * 2 * 4 * (hidden * width + hidden * hidden) * positions
