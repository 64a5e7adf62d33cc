"""A network's output does not depend on padding: no direction of an LSTM reads it first, no step attends to it."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.data import make_dataset
from highway_bench.families.bilstm import BiLstmTransform
from highway_bench.families.padding import lengths_of
from highway_bench.network import Network, build
from tests.combinations import families_of

VOCABULARY = 12


def texts(steps: int) -> Tensor:
    """Three texts of 3, 5 and 1 words, padded to ``steps``."""
    rows = torch.zeros(3, steps, dtype=torch.int64)
    for row, words in zip(rows, ([4, 2, 9], [3, 3, 8, 11, 5], [7]), strict=True):
        row[: len(words)] = torch.tensor(words)
    return rows


MIXING = [("bilstm", {}), ("attention", {}), ("attention", {"causal": True}), ("transformer", {})]


def network(block: str, family: str = "bilstm", options: dict[str, bool] | None = None) -> Network:
    body = build(block, family, width=8, depth=2, family_options=options, seed=1)
    stem = nn.Embedding(VOCABULARY, 8, padding_idx=0)
    return Network(stem, body, nn.Linear(8, 2), pool_steps=True, padded=True).double()


@pytest.mark.parametrize(
    ("block", "family", "options"),
    [(block, *mixing) for block in blocks for mixing in MIXING if mixing[0] in families_of(block)],
)
def test_outputs_do_not_depend_on_the_length_of_padding(block: str, family: str, options: dict[str, bool]) -> None:
    net = network(block, family, options)
    wide, narrow = net(texts(9)), net(texts(5))
    torch.testing.assert_close(wide, narrow, rtol=1e-12, atol=1e-12)
    alone = net(texts(9)[2:, :1])
    torch.testing.assert_close(wide[2:], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_a_layer_without_lengths_reads_the_padding(family: str) -> None:
    """Without the lengths the outputs differ, so the test above can fail."""
    net = network("plain", family)
    net.readers = []
    assert not torch.allclose(net(texts(9)), net(texts(5)), atol=1e-6)


@pytest.mark.parametrize("method", ["reversed_items", "packed"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_each_method_gives_the_states_of_a_text_by_itself(method: str, dtype: torch.dtype, tolerance: float) -> None:
    """``packed`` is what a GPU runs. In float32 the CPU has a fused kernel, with a backward pass of its own."""
    module = BiLstmTransform(6, 8).to(dtype)
    x, lengths = torch.randn(3, 9, 6, dtype=dtype), torch.tensor([3, 9, 1])
    cotangent = torch.randn(3, 9, 8, dtype=dtype)
    together = getattr(module, method)(x, lengths)
    result, expected = [], []
    for item, length in enumerate(lengths.tolist()):
        alone = module.lstm(x[item : item + 1, :length])[0][0]
        for states, parts in ((together[item, :length], result), (alone, expected)):
            gradients = torch.autograd.grad(
                states, list(module.parameters()), cotangent[item, :length], retain_graph=True
            )
            parts += [states, *gradients]
    for one, other in zip(result, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_gradients_do_not_depend_on_padding() -> None:
    net = network("highway")
    gradients = [torch.autograd.grad(net(texts(steps)).square().sum(), list(net.parameters())) for steps in (9, 5)]
    for wide, narrow in zip(*gradients, strict=True):
        torch.testing.assert_close(wide, narrow, rtol=1e-10, atol=1e-12)


def test_an_empty_text_counts_as_one_step() -> None:
    rows = texts(9)
    rows[1] = 0
    assert lengths_of(rows).tolist() == [3, 1, 1]  # type: ignore[union-attr]
    net = network("highway")
    torch.testing.assert_close(net(rows)[1:2], net(rows[1:2, :1]), rtol=1e-12, atol=1e-12)  # pooled over that step too


def test_nothing_is_told_where_nothing_is_padded() -> None:
    assert lengths_of(torch.ones(2, 4, dtype=torch.int64)) is None


def test_lengths_are_forgotten_after_the_pass_even_where_it_fails() -> None:
    net = network("plain")
    net(texts(9))
    assert all(reader.lengths is None for reader in net.readers)
    net.body.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        net(texts(9))
    assert all(reader.lengths is None for reader in net.readers)


def test_series_have_no_padding() -> None:
    net = cast(Network, build("plain", "bilstm", width=8, depth=1, dataset=make_dataset("adding", length=6), seed=1))
    assert net.readers == []
    assert net(torch.zeros(2, 6, 2)).shape == (2,)
