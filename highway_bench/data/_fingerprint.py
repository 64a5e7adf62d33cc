"""A hash of a data set's items, and of the properties from which a network and its success follow."""

from __future__ import annotations

import hashlib

from highway_bench.data.base import Data, DataSet


def fingerprint(dataset: DataSet) -> str:
    """16 hexadecimal digits for the training and the test part of ``dataset``, and for all that it says of them."""
    said = [
        dataset.input_kind,
        dataset.target_kind,
        dataset.outputs,
        dataset.vocabulary,
        dataset.chance_loss,
        dataset.chance_accuracy,
        dataset.reference_loss,
        dataset.padded,
        dataset.causal,
        dataset.byte_targets,
    ]
    return hash_of_items(dataset.load(seed=0), repr(said))


def hash_of_items(data: Data, said: str) -> str:
    """16 hexadecimal digits for ``data``, and for what is ``said`` of them."""
    total = hashlib.sha256(said.encode())
    for part in (part for split in data for part in split):
        total.update(f"{part.dtype} {tuple(part.shape)}".encode())
        total.update(part.contiguous().numpy().tobytes())
    return total.hexdigest()[:16]
