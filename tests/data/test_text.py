"""Text sets of a hub, with labels."""

import sys

import pytest

from highway_bench.data import make_dataset
from highway_bench.errors import BadInput

TRAIN = {"text": ["I like it", "I do not like it", "I do"], "label": ["pos", "neg", "pos"]}
TEST = {"text": ["like it", "no not"], "label": ["pos", "neg"]}


def test_texts_and_labels_become_ids(hub):
    dataset = make_dataset("text", path=hub(train=TRAIN, test=TEST), length=4, min_count=1)
    train, test = dataset.load()
    assert train.inputs.tolist() == [[2, 5, 4, 0], [2, 3, 6, 5], [2, 3, 0, 0]]  # i, do, it, like, not
    assert train.targets.tolist() == [1, 0, 1]
    assert test.inputs.tolist() == [[5, 4, 0, 0], [1, 6, 0, 0]]
    assert test.targets.tolist() == [1, 0]
    assert (dataset.outputs, dataset.vocabulary, dataset.input_shape) == (2, 7, (4,))
    assert dataset.chance_loss == pytest.approx(0.63651, abs=1e-5)
    assert dataset.chance_accuracy == 0.5


@pytest.mark.parametrize(
    ("splits", "options", "fault"),
    [
        ({"train": TRAIN, "test": TEST}, {"test_split": "dev"}, "split 'dev'"),
        ({"train": TRAIN, "test": TEST}, {"label_column": "stars"}, "no column 'stars'"),
        ({"train": TRAIN, "test": TEST | {"label": [-1, -1]}}, {}, "-1"),
        ({"train": TRAIN | {"label": ["pos", 1, 0]}, "test": TEST}, {}, "several types"),
        ({"train": TRAIN | {"text": ["a", None, "b"]}, "test": TEST}, {}, "not all text"),
        ({"train": {"text": [], "label": []}, "test": TEST}, {}, "empty"),
    ],
)
def test_what_cannot_be_used_is_one_line(hub, splits, options, fault):
    with pytest.raises(BadInput, match=fault):
        make_dataset("text", path=hub(**splits), **options).load()


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadInput, match=r"pip install highway-bench\[text\]$"):
        make_dataset("text", path="made/none").load()
