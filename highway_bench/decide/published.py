"""What has been published about connections against pre-norm in language models, to print next to our own contrasts.

Most of these are single runs of far larger networks, and many of the differences are smaller than what ten seeds of a
small network can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class PublishedContrast(NamedTuple):
    """A published result of one connection against pre-norm, and its source."""

    result: str
    source: str


PUBLISHED: Final[Mapping[str, PublishedContrast]] = {
    "hc-dynamic": PublishedContrast("−0.030 nat at 1B", "arXiv:2409.19606"),
    "mhc": PublishedContrast("−0.019 nat at 436M", "arXiv:2603.15031"),
    "attn-residual": PublishedContrast("−0.029 nat at 436M", "arXiv:2603.15031"),
    "dense-average": PublishedContrast("+0.001 nat at 436M", "arXiv:2603.15031"),
    "x0-mix": PublishedContrast("−0.0103 bit at depth 8, −0.0039 at depth 20", "karpathy/nanochat"),
    "rezero": PublishedContrast("56 % fewer steps to 1.2 bits at 12 layers", "arXiv:2003.04887"),
    "keel": PublishedContrast("better at 64 to 1,024 layers", "arXiv:2601.19895"),
}


def published_on(block: str) -> str:
    """The published result on ``block`` and its source, empty where none is known here."""
    one = PUBLISHED.get(block)
    return f"{one.result} ({one.source})" if one else ""
