"""Generated sequence problems: their definitions, checked item by item."""

import pytest
import torch

from highway_bench.data import adding, copy_memory, make_dataset, recall

MAKERS = {"adding": adding._generate, "copy": copy_memory._generate, "recall": recall._generate}


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_makes_the_same_data_anew_and_another_one_others(name):
    options = make_dataset(name, size=50, test_size=20)
    make = MAKERS[name].__wrapped__  # not the kept data
    first, again, other = make(options, 1), make(options, 1), make(options, 2)
    assert all(torch.equal(a, b) for a, b in zip(tensors(first), tensors(again), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(tensors(first), tensors(other), strict=True))
    assert [len(tensor) for tensor in tensors(first)] == [50, 50, 20, 20]


@pytest.mark.parametrize("name", ["adding", "recall"])
def test_the_test_part_does_not_hang_on_the_training_parts_size(name):
    few, many = (make_dataset(name, size=size, test_size=20).load(seed=5).test for size in (10, 30))
    assert torch.equal(few.inputs, many.inputs)


def tensors(data):
    return [tensor for split in data for tensor in split]


def test_the_target_of_adding_is_the_sum_of_the_marked_numbers():
    inputs, targets = make_dataset("adding", length=20, size=2000).load().train
    values, mask = inputs.unbind(-1)
    assert set(mask.unique().tolist()) == {0, 1}
    assert (mask.sum(1) == 2).all()
    assert ((values >= 0) & (values < 1)).all()
    torch.testing.assert_close((values * mask).sum(1), targets)


def test_marks_are_drawn_anywhere():
    marks = make_dataset("adding", length=6, size=30_000).load().train.inputs[..., 1].nonzero()[:, 1].reshape(-1, 2)
    counts = torch.bincount(marks[:, 0] * 6 + marks[:, 1], minlength=36)
    pairs = counts[counts > 0]
    assert len(pairs) == 15  # every pair of different places, the ones within a half too
    assert 1800 < pairs.min() <= pairs.max() < 2200


def test_the_layout_of_copying():
    inputs, targets = make_dataset("copy", length=30, size=500).load().train
    assert inputs.shape == targets.shape == (500, 50)
    assert set(inputs[:, :10].unique().tolist()) == set(range(2, 10))
    assert (inputs[:, 10:39] == 1).all()  # 29 blanks
    assert (inputs[:, 39:] == 10).all()  # 11 markers
    assert (targets[:, :40] == 0).all()
    assert torch.equal(targets[:, 40:] + 1, inputs[:, :10])


@pytest.mark.parametrize(("length", "published"), [(100, 0.1733), (200, 0.0945), (500, 0.0400), (1000, 0.0204)])
def test_chance_in_copying_is_the_published_one(length, published):
    assert make_dataset("copy", length=length).chance_loss == pytest.approx(published, abs=5e-5)


def test_symbols_to_copy_are_equally_likely():
    symbols = make_dataset("copy").load().train.targets[:, -10:]
    assert all(torch.bincount(column, minlength=9)[1:].min() > 1100 for column in symbols.T)  # of 1,250 expected
    assert len(torch.unique(symbols, dim=0)) == len(symbols)


def test_every_key_is_asked_for_once_and_its_value_is_the_answer():
    inputs, targets = make_dataset("recall", size=300).load().train
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        pairs = dict(zip(row[0:8:2], row[1:8:2], strict=True))
        assert len(pairs) == len(set(pairs.values())) == 4
        assert all(1 <= key < 128 <= value < 256 for key, value in pairs.items())
        asked = [(row[place], answer) for place, answer in enumerate(answers) if answer != -100]
        assert sorted(asked) == sorted(pairs.items())


def test_the_first_query_follows_the_power_law_behind_the_pairs():
    targets = make_dataset("recall", pairs=1, length=8, vocab=16, size=40_000).load().train.targets
    shares = (targets != -100).float().mean(0)
    weights = torch.arange(1, 4) ** (0.01 - 1)
    torch.testing.assert_close(shares[[2, 4, 6]], weights / weights.sum(), rtol=0, atol=0.01)
    assert shares[[0, 1, 3, 5, 7]].eq(0).all()
