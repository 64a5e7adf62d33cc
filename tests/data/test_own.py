"""Data of the user's own: what is taken, how it is split, and what is refused with its cure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from highway_bench.data import _own, batches, make_dataset, read_own
from highway_bench.data.batches import copy_of
from highway_bench.errors import BadInput
from highway_bench.training.evaluation import evaluate, loss_of

X = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
Y = torch.arange(40) % 4
IMAGES = torch.randint(0, 256, (40, 5, 5), dtype=torch.uint8)
BITS = (X[:, :3] > 0).float()


pytestmark = pytest.mark.usefixtures("nowhere")  # copies go to a folder of the test


def read(given, **options):
    return make_dataset("batches", **read_own(given, "mine", **options).options)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(zip(X, Y, strict=True))


class Items:
    """Map style, as other libraries have it: no base of torch's."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"inputs": X[row].numpy(), "label": int(Y[row])}


SOURCES = {
    "tensors": (X, Y),
    "arrays": (X.double().numpy(), Y.int().numpy()),
    "a list": [X.numpy(), Y.tolist()],
    "a column": (X, Y[:, None]),
    "a function": lambda: (X, Y),
    "a generator": lambda: zip(X.split(10), Y.split(10), strict=True),
    "batches": [(X[:20], Y[:20]), (X[20:], Y[20:])],
    "dictionaries": [{"x": X, "target": Y}],
    "a dataset": TensorDataset(X, Y),
    "another dataset": Items(),
    "a stream": Stream(),
    "a loader": DataLoader(TensorDataset(X, Y), batch_size=7),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_items_from_every_source_are_the_same_data(name):
    dataset = read(SOURCES[name])
    assert dataset == read((X, Y))
    train, test = dataset.load()
    assert (len(train.inputs), len(test.inputs), dataset.outputs, dataset.target_kind) == (36, 4, 4, "class")
    rows = torch.cat((train.inputs, test.inputs)).flatten(1)
    order = [int((row == X).all(1).nonzero()) for row in rows]
    assert sorted(order) == list(range(40))
    assert order != list(range(40))
    assert torch.equal(Y[order], torch.cat((train.targets, test.targets)))


KINDS = {
    "tokens": ((Y.view(10, 4), Y.view(10, 4)), {}, "tokens", "token", 4),
    "series": ((torch.randn(10, 4, 3), Y.view(10, 4)), {}, "series", "token", 4),
    "pixels": ((IMAGES, Y), {}, "image", "class", 4),
    "grey images": ((IMAGES.float(), Y), {"images": True}, "image", "class", 4),
    "truth values": ((X, X[:, 0] > 0), {}, "image", "class", 2),
    "bits": ((X, BITS[:, 0]), {}, "image", "class", 2),
    "labels": ((X, BITS), {}, "image", "label", 3),
    "labels as truth values": ((X, BITS.bool()), {}, "image", "label", 3),
    "numbers": ((X, X[:, :2]), {}, "image", "scalar", 2),
    "bits as numbers": ((X, BITS), {"target": "numbers"}, "image", "scalar", 3),
    "one of several columns": ((X, torch.eye(4)[Y]), {"target": "classes"}, "image", "class", 4),
    "parts": (((X, Y), (X[:8], Y[:8])), {}, "image", "class", 4),
    "loaders": ((SOURCES["a loader"], SOURCES["a dataset"]), {}, "image", "class", 4),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_by_type_shape_and_values(name):
    given, options, inputs, targets, outputs = KINDS[name]
    dataset = read(given, **options)
    assert (dataset.input_kind, dataset.target_kind, dataset.outputs) == (inputs, targets, outputs)
    train = dataset.load().train
    logits = torch.zeros(*train.targets.shape[: 2 if targets == "token" else 1], outputs, requires_grad=True)
    loss_of(logits, train.targets, dataset.target_kind).backward()  # a network can train on them
    assert logits.grad is not None
    assert 0 < dataset.chance_loss < 3
    if name == "pixels":
        assert max(float(split.inputs.max()) for split in dataset.load()) == pytest.approx(float(IMAGES.max()) / 255)
        assert train.inputs.shape[1:] == (1, 5, 5)


def test_several_labels_are_scored_one_by_one():
    dataset = read((X, BITS))
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 3))
    with torch.no_grad():
        network[1].weight.copy_(torch.eye(6)[:3] * 100)
        network[1].bias.copy_(torch.tensor([0.0, 0.0, 1e6]))  # the third label always
    scored = evaluate(network, dataset.load().train, "label")
    targets = dataset.load().train.targets
    assert scored.accuracy == pytest.approx(float((2 + targets[:, 2].mean()) / 3))


def test_what_is_ignored_does_not_count():
    y = Y.clone()
    y[::2] = -100
    dataset = read((X, y))
    assert dataset.outputs == 4
    assert dataset.chance_loss == pytest.approx(np.log(2), abs=0.01)


def test_of_many_items_some_are_taken(monkeypatch):
    """Arrays give a random part; a stream its first items, unless these are in order of class."""
    monkeypatch.setattr(_own, "MOST_ITEMS", 20)
    order = Y.argsort()
    for given in ((X[order], Y[order]), TensorDataset(X[order], Y[order])):
        train, test = read(given).load()
        assert len(train.targets) + len(test.targets) == 20
        assert set(train.targets.tolist()) == {0, 1, 2, 3}
    assert sum(len(split.inputs) for split in read([(X, Y)]).load()) == 20
    with pytest.raises(BadInput, match="shuffle it"):
        read([(X[order], Y[order])])
    assert read([(X[order][:20], Y[order][:20])]).outputs == 2  # it ends here


def test_other_items_are_other_data_and_the_same_ones_the_same_copy():
    one = read((X, Y))
    assert read((X, Y)) == one
    assert read((X, Y.flip(0))) != one
    assert read((X, Y), target="numbers") != one
    path = copy_of(one.items)
    path.unlink()
    _own.read_own((X, Y), "mine")
    assert path.is_file()


def test_a_copy_that_is_gone_or_broken_is_one_line():
    dataset = read((X, Y))
    path = copy_of(dataset.items)
    path.write_bytes(path.read_bytes()[:100])
    batches._load.cache_clear()
    with pytest.raises(BadInput, match="cannot be read"):
        dataset.load()
    path.unlink()
    assert dataset.missing() is not None


REFUSED = {
    "one array": (lambda: X, "Tensor"),
    "a third part": (lambda: (X, Y, Y), "3 parts"),
    "keys": (lambda: [{"a": X, "b": Y}], "keys a, b"),
    "texts": (lambda: [(["a", "b"], Y[:2])], "str"),
    "items": (lambda: list(zip(X, Y, strict=True)), "one number"),
    "complex": (lambda: (X.to(torch.complex64), Y), "complex64"),
    "nothing": (lambda: iter(()), "no batch"),
    "lengths": (lambda: (X, Y[:5]), "40 inputs"),
    "channels last": (lambda: (torch.zeros(40, 8, 8, 3), Y), "permute"),
    "whole images": (lambda: (IMAGES.long(), Y), "uint8"),
    "below 0": (lambda: (X, Y - 1), "0 or more"),
    "not finite": (lambda: (X / 0, Y), "finite"),
    "several kinds": (lambda: ((X, Y), (X, X[:, 0])), "differs"),
    "several shapes": (lambda: [(X, Y), (X[:, :2], Y)], "several shapes"),
    "an error": (lambda: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_is_one_line_with_the_cure(name):
    given, says = REFUSED[name]
    with pytest.raises(BadInput, match=f"^data 'mine'.*{says}.*$"):
        read_own(given, "mine")


@pytest.mark.parametrize(
    ("y", "target", "says"),
    [
        (X[:, 0], "classes", "class"),
        (X[:, :2], "labels", "labels"),
        (Y, "tokens", "token"),
        (Y, "words", "words"),
    ],
)
def test_a_kind_that_does_not_fit(y, target, says):
    with pytest.raises(BadInput, match=says):
        read_own((X, y), "mine", target=target)


def test_of_two_items_one_is_held_out():
    assert [len(split.inputs) for split in read((X[:2], Y[:2])).load()] == [1, 1]
