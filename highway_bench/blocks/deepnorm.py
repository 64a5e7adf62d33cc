"""DeepNorm: a norm after the sum, in which the stream weighs more the deeper the network is."""

from torch import Tensor

from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Site


@register_block(
    "deepnorm",
    equation="y = norm(L^¼·x + H(x)), the maps of H × (4L)^−¼",
    source="arXiv:2203.00555; microsoft/torchscale",
    summary="norm after a sum that favours the stream",
    norms=1,
    starts=(Start("published", "the maps of H, but queries and keys, × (4L)^−¼"),),
    evidence="paper",
    group="modern",
    order=10,
)
class DeepNorm(Block):
    """y = norm(α·x + H(x)) with α = L^¼, and initial weights of H times β = (4L)^−¼, for L connections.

    The paper counts M layers of two connections: α = (2M)^¼ and β = (8M)^−¼. The weights of queries and keys are not
    scaled. Before β, weights have the family's init, where the paper has Glorot's.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.alpha, beta = site.joins**0.25, (4 * site.joins) ** -0.25
        self.transform = site.family.transform(site, gain=beta, inner_gain=beta)
        self.carry = site.family.carry(site)
        self.norm = site.family.norm(site.width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.alpha * self.carry(x) + self.transform(x))
        return y
