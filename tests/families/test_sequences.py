"""Families of sequences: attention against torch's own modules, an LSTM stepped by hand, and padding."""

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.data import make_dataset
from highway_bench.families import Site, make_family
from highway_bench.families.bilstm import BiLstmTransform
from highway_bench.families.padding import lengths_of
from highway_bench.network import Network, build
from tests.combinations import families_of

WIDTH, HEADS, STEPS = 8, 4, 6


def mask(causal):
    return nn.Transformer.generate_square_subsequent_mask(STEPS, dtype=torch.float64) if causal else None


def copy_attention(source, target):
    target.in_proj_weight.data.copy_(source.inward.weight)
    target.in_proj_bias.data.copy_(source.inward.bias)
    target.out_proj.load_state_dict(source.outward.state_dict())


def randomise(module):
    """Biases and gains off their starts, so that a forgotten one shows."""
    for parameter in module.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_torchs(causal):
    family = make_family("attention", causal=causal)
    ours = family.transform(Site(family, WIDTH)).double()
    randomise(ours)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
    copy_attention(ours, theirs)
    x = torch.randn(3, STEPS, WIDTH, dtype=torch.float64)
    expected, _ = theirs(x, x, x, attn_mask=mask(causal), need_weights=False)
    torch.testing.assert_close(ours(x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("block", "norm_first"), [("pre-norm", True), ("post-norm", False)])
def test_the_norm_blocks_are_torchs_encoder(block, norm_first, causal):
    depth = 2
    ours = build(block, "transformer", width=WIDTH, depth=depth, family_options={"causal": causal}, seed=1).double()
    randomise(ours)
    layer = nn.TransformerEncoderLayer(
        WIDTH,
        HEADS,
        dim_feedforward=4 * WIDTH,
        dropout=0.0,
        activation="relu",
        batch_first=True,
        norm_first=norm_first,
        dtype=torch.float64,
    )
    final = nn.LayerNorm(WIDTH, dtype=torch.float64) if norm_first else None
    theirs = nn.TransformerEncoder(layer, depth, norm=final, enable_nested_tensor=False)
    for number, part in enumerate(theirs.layers):
        attend, feed = ours.joins[2 * number], ours.joins[2 * number + 1]
        copy_attention(attend.transform, part.self_attn)
        part.linear1.load_state_dict(feed.transform[0].state_dict())
        part.linear2.load_state_dict(feed.transform[2].state_dict())
        part.norm1.load_state_dict(attend.norm.state_dict())
        part.norm2.load_state_dict(feed.norm.state_dict())
    if final is not None:
        theirs.norm.load_state_dict(ours.leave.state_dict())
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())

    x = torch.randn(3, STEPS, WIDTH, dtype=torch.float64)
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = ours(mine), theirs(other, mask=mask(causal))
    torch.testing.assert_close(y, expected, rtol=1e-9, atol=1e-11)
    cotangent = torch.randn_like(y)
    y.backward(cotangent)
    expected.backward(cotangent)
    torch.testing.assert_close(mine.grad, other.grad, rtol=1e-8, atol=1e-10)


# --------------------------------------------------------------------------------------------------- bidirectional LSTM


def test_an_lstm_of_the_published_size():
    """300 wide: two directions of 150 with two bias vectors each, and a gate."""
    family = make_family("bilstm")
    assert blocks.get("plain").layer_parameters(family, 300) == 542_400
    assert blocks.get("highway").layer_parameters(family, 300) == 542_400 + 90_300


def test_against_a_cell_stepped_by_hand():
    """Both directions from zero states, forwards first in the features."""
    stack = build("plain", "bilstm", width=WIDTH, depth=1, seed=1).double()
    lstm = stack.joins[0].transform.lstm
    x = torch.randn(2, STEPS, WIDTH, dtype=torch.float64)

    def read(steps, suffix):
        hidden = cell = torch.zeros(2, WIDTH // 2, dtype=torch.float64)
        states = {}
        for step in steps:
            sums = (
                x[:, step] @ getattr(lstm, f"weight_ih_l0{suffix}").T
                + getattr(lstm, f"bias_ih_l0{suffix}")
                + hidden @ getattr(lstm, f"weight_hh_l0{suffix}").T
                + getattr(lstm, f"bias_hh_l0{suffix}")
            )
            enter, forget, new, leave = sums.chunk(4, dim=-1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            states[step] = hidden
        return torch.stack([states[step] for step in range(STEPS)], dim=1)

    expected = torch.cat([read(range(STEPS), ""), read(range(STEPS)[::-1], "_reverse")], dim=-1)
    torch.testing.assert_close(stack(x), expected, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------- padding

VOCABULARY = 12


def texts(steps):
    """Three texts of 3, 5 and 1 words, padded to ``steps``."""
    rows = torch.zeros(3, steps, dtype=torch.int64)
    for row, words in zip(rows, ([4, 2, 9], [3, 3, 8, 11, 5], [7]), strict=True):
        row[: len(words)] = torch.tensor(words)
    return rows


MIXING = [("bilstm", {}), ("attention", {}), ("attention", {"causal": True}), ("transformer", {})]


def network(block, family="bilstm", options=None):
    body = build(block, family, width=8, depth=2, family_options=options, seed=1)
    stem = nn.Embedding(VOCABULARY, 8, padding_idx=0)
    return Network(stem, body, nn.Linear(8, 2), pool_steps=True, padded=True).double()


@pytest.mark.parametrize(
    ("block", "family", "options"),
    [(block, *mixing) for block in blocks for mixing in MIXING if mixing[0] in families_of(block)],
)
def test_outputs_do_not_depend_on_the_length_of_padding(block, family, options):
    net = network(block, family, options)
    wide, narrow = net(texts(9)), net(texts(5))
    torch.testing.assert_close(wide, narrow, rtol=1e-12, atol=1e-12)
    alone = net(texts(9)[2:, :1])
    torch.testing.assert_close(wide[2:], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_a_layer_without_lengths_reads_the_padding(family):
    """Without the lengths the outputs differ, so the test above can fail."""
    net = network("plain", family)
    net.readers = []
    assert not torch.allclose(net(texts(9)), net(texts(5)), atol=1e-6)


@pytest.mark.parametrize("method", ["reversed_items", "packed"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_each_method_gives_the_states_of_a_text_by_itself(method, dtype, tolerance):
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


def test_gradients_do_not_depend_on_padding():
    net = network("highway")
    gradients = [torch.autograd.grad(net(texts(steps)).square().sum(), list(net.parameters())) for steps in (9, 5)]
    for wide, narrow in zip(*gradients, strict=True):
        torch.testing.assert_close(wide, narrow, rtol=1e-10, atol=1e-12)


def test_an_empty_text_counts_as_one_step():
    rows = texts(9)
    rows[1] = 0
    assert lengths_of(rows).tolist() == [3, 1, 1]
    net = network("highway")
    torch.testing.assert_close(net(rows)[1:2], net(rows[1:2, :1]), rtol=1e-12, atol=1e-12)  # pooled over that step too


def test_nothing_is_told_where_nothing_is_padded():
    assert lengths_of(torch.ones(2, 4, dtype=torch.int64)) is None


def test_lengths_are_forgotten_after_the_pass_even_where_it_fails():
    net = network("plain")
    net(texts(9))
    assert all(reader.lengths is None for reader in net.readers)
    net.body.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        net(texts(9))
    assert all(reader.lengths is None for reader in net.readers)


def test_series_have_no_padding():
    net = build("plain", "bilstm", width=8, depth=1, dataset=make_dataset("adding", length=6), seed=1)
    assert net.readers == []
    assert net(torch.zeros(2, 6, 2)).shape == (2,)
