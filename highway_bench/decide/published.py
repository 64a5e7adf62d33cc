"""What has been published about connections in language models, to print next to our own contrasts with pre-norm.

Most of these are single runs of far larger networks, and many of the differences are smaller than what ten seeds of a
small network can show. Where public results on a connection disagree, those with a source are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class PublishedContrast(NamedTuple):
    """A published result of one connection: the ``network``, the ``result`` against pre-norm unless it names another
    baseline, and its ``source``."""

    network: str
    result: str
    source: str


RESIDUALS: Final = "arXiv:2603.15031"

PUBLISHED: Final[Mapping[str, tuple[PublishedContrast, ...]]] = {
    "hc-dynamic": (PublishedContrast("OLMo, 1B", "loss 2.811 to 2.781: −0.030 nat", "arXiv:2409.19606"),),
    "mhc": (
        PublishedContrast("436M", "loss 1.766 to 1.747: −0.019 nat", RESIDUALS),
        PublishedContrast("3B, on the output side only", "diverged", "arXiv:2605.20798"),
    ),
    "attn-residual": (
        PublishedContrast("436M", "loss 1.766 to 1.737: −0.029 nat", RESIDUALS),
        PublishedContrast("194M", "loss 1.931 to 1.899: −0.032 nat", RESIDUALS),
    ),
    "dense-average": (PublishedContrast("436M", "loss 1.766 to 1.767: +0.001 nat", RESIDUALS),),
    "x0-mix": tuple(
        PublishedContrast(f"nanochat, {depth} layers", f"−{gain} bit per byte", "karpathy/nanochat, dev/LOG.md")
        for depth, gain in ((8, "0.0103"), (12, "0.0077"), (16, "0.0057"), (20, "0.0039"))
    ),
    "rezero": (
        PublishedContrast(
            "12 layers, enwiki8", "1.2 bits 56 % faster than the vanilla Transformer (post-norm)", "arXiv:2003.04887"
        ),
    ),
    "keel": (PublishedContrast("64 to 1,024 layers", "better at each depth", "arXiv:2601.19895"),),
}
