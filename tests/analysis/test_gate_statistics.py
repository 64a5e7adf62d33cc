"""Gate activity: shares, class means and sparsity against hand-made gates."""

import math

import pytest
import torch

from highway_bench.analysis.gate_statistics import Activity, ExampleSparsity, gate_state, sparsity


def met(values, classes=None, batch=3):
    """The activity of (items, places, units), met in batches."""
    activity = Activity(classes)
    for part in values.split(batch):
        activity.add(part)
    return activity


def test_sparsity_at_its_ends_and_between():
    values = torch.tensor([[1.0, 1, 1, 1], [0, 0, 3, 0], [0, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.float64)
    expected = [0.0, 1.0, 0.0, 2 - math.sqrt(2)]  # (√4 − 2/√2) / (√4 − 1)
    assert sparsity(values).tolist() == pytest.approx(expected)
    assert sparsity(1e-3 * values).tolist() == pytest.approx(expected)
    assert sparsity(torch.ones(3, 1)).tolist() == [0, 0, 0]  # one value is neither


def test_shares_of_hand_made_gates():
    # Unit 0 is always shut, 1 always open, 2 open for one item of four, 3 full for two.
    gates = torch.tensor([[0.01, 0.8, 0.9, 0.99], [0.02, 0.8, 0.0, 0.99], [0.01, 0.8, 0.1, 0.0], [0.0, 0.8, 0.0, 0.0]])
    activity = met(gates.unsqueeze(1))
    assert activity.mean().tolist() == pytest.approx([0.01, 0.8, 0.25, 0.495])
    assert activity.shut() == 1 / 4
    assert activity.full() == pytest.approx(2 / 16)
    assert activity.open_for_one() == pytest.approx((4 + 1 + 2) / 16)
    assert activity.open_on_average() == 1 / 4
    assert activity.open_for_some() == 3 / 4
    assert activity.class_spread() is None


def test_a_gate_is_open_above_one_half():
    activity = met(torch.tensor([[0.45, 0.55]]).expand(4, 2).unsqueeze(1))
    assert activity.open_on_average() == 1 / 2


def test_class_means_do_not_hang_on_the_batches():
    classes = torch.tensor([2, 0, 0, 2, 0, 2, 2])  # class 1 is never met, and counts for nothing
    gates = torch.where(classes == 0, 0.2, 0.8).reshape(-1, 1, 1).expand(-1, 5, 3)
    for batch in (1, 3, 7):
        assert met(gates, classes, batch).class_spread() == pytest.approx(0.3)
    assert met(torch.full((7, 5, 3), 0.4), classes).class_spread() == pytest.approx(0, abs=1e-12)


def test_places_of_an_item_are_examples_and_padding_is_none():
    """Two items of two and one places; what stands at the other is never met."""
    gates = torch.tensor([[[0.9, 0.2], [0.1, 0.6]], [[0.3, 0.8], [0.99, 0.99]]])
    real = torch.tensor([[True, True], [True, False]])
    activity = Activity(torch.tensor([0, 1]))
    activity.add(gates, real)
    assert (activity.items, activity.examples, activity.full()) == (2, 3, 0)
    assert activity.mean().tolist() == pytest.approx([1.3 / 3, 1.6 / 3])
    assert activity.class_spread() == pytest.approx((0.1 + 0.2) / 2)  # of 0.5 and 0.3, and of 0.4 and 0.8
    whole = ExampleSparsity(2)
    whole.add(1, gates, real)
    expected = (sparsity(gates[0].flatten().double()) + sparsity(gates[1, 0].double())) / 2
    assert whole.mean() == pytest.approx(float(expected))


def test_sparsity_of_examples_is_over_all_layers():
    torch.manual_seed(0)
    first, second = torch.rand(7, 1, 3), torch.rand(7, 2, 5)
    whole = ExampleSparsity(7)
    for rows in torch.arange(7).split(2):
        whole.add(1, first[rows])
        whole.add(2, second[rows])
    expected = sparsity(torch.cat([first.flatten(1), second.flatten(1)], dim=1).double()).mean()
    assert whole.mean() == pytest.approx(float(expected))


def test_means_and_saturation():
    logit = math.log(0.04 / 0.96)
    found = gate_state([torch.tensor([[0.0, logit]]), torch.tensor([[-logit, -logit]])])
    assert found.means == pytest.approx((0.27, 0.96))
    assert found.saturated == 0.75
    assert gate_state([torch.full((2, 3), math.log(0.06 / 0.94))]).saturated == 0.0
