"""Class labels: the fixed stratified split, and what a constant predictor scores on the labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # a part of it is imported at its first use
from numpy.typing import NDArray


def stratified_rows(
    labels: NDArray[np.int64], *, test: float | int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of a training and a test part in which every class has the share that it has in ``labels``.

    ``test`` is a share (float) or a count (int). The rows come shuffled, always the same for the same ``seed``.
    """
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(labels))
    train, held_out = train_test_split(rows, test_size=test, stratify=labels, random_state=seed)
    return train, held_out


def label_entropy(counts: Sequence[int] | NDArray[np.int64]) -> float:
    """Cross entropy in nat of predicting the label shares: the least that a constant predictor can have."""
    return float(scipy.stats.entropy(counts))


def commonest_share(train: Sequence[int] | NDArray[np.int64], test: Sequence[int] | NDArray[np.int64]) -> float:
    """Share of the test labels that the commonest training label gets right, from the counts by class."""
    return float(test[int(np.argmax(train))] / np.sum(test))
