"""Output norm: the branch's output is normalised before it is added, as in OLMo 2."""

from typing import Any, Literal

from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm, is_number
from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.errors import BadInput
from highway_bench.families import Site

OUTPUT_GAINS = (
    Start("published", "gains of 1"),
    Start("depth-aware", "gain of the output norm 1/√L", {"output_gain": "auto"}),
)


@register_block(
    "output-norm",
    equation="y = x + norm(H(x)), norm after the last layer",
    source="arXiv:2501.00656; allenai/OLMo-core",
    summary="norm after the branch",
    norms=1,
    leave_norms=1,
    starts=OUTPUT_GAINS,
    evidence="paper",
    group="modern",
    order=12,
)
class OutputNorm(Block):
    """y = x + norm(H(x)): each branch adds unit variance at first; H reads the stream itself.

    ``output_gain`` is the initial gain of the norm; ``auto`` is 1/√L for L connections.
    """

    def __init__(self, site: Site, *, output_gain: float | Literal["auto"] = 1.0) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.norm = output_norm(site, output_gain)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.norm(self.transform(x))
        return y

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)


def output_norm(site: Site, gain: float | Literal["auto"]) -> nn.Module:
    """A norm of a branch's output with the initial ``gain``; raises ``BadInput`` for one that is no number."""
    if gain != "auto" and not is_number(gain):
        raise BadInput(f"the gain of a norm is a number or auto, not {gain!r}")
    norm = site.family.norm(site.width)
    nn.init.constant_(norm.weight, site.joins**-0.5 if gain == "auto" else float(gain))  # type: ignore[arg-type]
    return norm
