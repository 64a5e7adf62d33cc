"""Byte n-grams: the held-out loss of an interpolated Witten–Bell model, a reference for language models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BYTES = 256
HIGHEST_ORDER = 7  # the number of an n-gram, n bytes to the base 256, is an int64

Codes = NDArray[np.int64]


def witten_bell_loss(train: bytes, test: bytes, order: int) -> float:
    """Mean loss in nat per byte of ``test`` under the byte n-gram of this ``order``, fitted on ``train``.

    For a byte w after the n − 1 bytes h, where h′ is h without its first byte, c(h, w) counts how often w follows h in
    ``train``, c(h) is its sum over w, and t(h) the number of different w:

        p(w | h) = (c(h, w) + t(h) · p(w | h′)) / (c(h) + t(h)),  and p(w | h) = p(w | h′) where c(h) is 0.

    Below order 1, p is 1/256. The first bytes of ``test`` have shorter h. Neither text may be empty. Source: Witten and
    Bell 1991, method C, interpolated as by Chen and Goodman (1998, §2.4).
    """
    assert 1 <= order <= HIGHEST_ORDER
    fitted, held_out = (np.frombuffer(text, np.uint8).astype(np.int64) for text in (train, test))
    chances = np.full(len(held_out), 1 / BYTES)
    for n in range(1, min(order, len(held_out)) + 1):
        # ``chances[n - 1 :]`` are those of the bytes with n − 1 bytes before them; the others keep shorter h.
        grams, counts = np.unique(codes(fitted, n), return_counts=True)
        contexts, first, kinds = np.unique(grams // BYTES, return_index=True, return_counts=True)
        totals = np.add.reduceat(counts, first) if len(counts) else counts
        wanted = codes(held_out, n)
        seen = counts_of(wanted, grams, counts)
        total, kind = (counts_of(wanted // BYTES, contexts, values) for values in (totals, kinds))
        shorter = chances[n - 1 :]
        chances[n - 1 :] = np.where(total > 0, (seen + kind * shorter) / np.maximum(total + kind, 1), shorter)
    return float(-np.log(chances).mean())


def codes(text: Codes, n: int) -> Codes:
    """The number of every n-gram of ``text``: its bytes as digits to the base 256, the first byte the highest."""
    grams = np.zeros(max(len(text) - n + 1, 0), np.int64)
    for offset in range(n):
        grams = grams * BYTES + text[offset : offset + len(grams)]
    return grams


def counts_of(wanted: Codes, known: Codes, counts: Codes) -> Codes:
    """The count of each of ``wanted``, by the sorted ``known`` ones with their ``counts``; 0 for others."""
    if not len(known):
        return np.zeros_like(wanted)
    index = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[index] == wanted, counts[index], 0)
