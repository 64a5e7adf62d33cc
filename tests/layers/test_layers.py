"""Layers as people publish them: each is joined and measured, and computes what the same mathematics gives plainly."""

import importlib.util
from functools import partial

import pytest
import torch

from highway_bench.families import make_family
from highway_bench.families.own_layer import own_layers
from highway_bench.network import build
from highway_bench.tasks import tasks
from tests.cells import cell, on_digits

WIDTH, STEPS, BATCH, DEPTH = 8, 5, 3, 2
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)

# -------------------------------------------------------------------------------- the same mathematics, written plainly


def affine(w, name, x):
    return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", torch.zeros(()))


def layer_norm(w, name, x):
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def heads(x, size):
    """(batch, steps, heads · size) as (batch, heads, steps, size)."""
    return x.reshape(*x.shape[:2], -1, size).transpose(1, 2)


def attend(q, k, v, *, causal):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores + torch.full(scores.shape[-2:], -torch.inf, dtype=q.dtype).triu(1)
    return (scores.exp() / scores.exp().sum(-1, keepdim=True) @ v).transpose(1, 2).flatten(2)


def gelu(x):
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def llama(w, x):
    def norm(name, x):
        return w[f"{name}.weight"] * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()

    def rotated(x):
        """Each pair (first half, second half) of a head, turned by its angle at the step."""
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
        angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
        first, second = x[..., :half], x[..., half:]
        turned = first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()
        return torch.cat(turned, dim=-1)

    normed = norm("input_layernorm", x)
    q, k, v = (heads(affine(w, f"self_attn.{one}_proj", normed), WIDTH // 4) for one in "qkv")
    k, v = (torch.stack([one[:, number // 2] for number in range(4)], dim=1) for one in (rotated(k), v))
    x = x + affine(w, "self_attn.o_proj", attend(rotated(q), k, v, causal=True))
    normed = norm("post_attention_layernorm", x)
    gate = affine(w, "mlp.gate_proj", normed)
    return x + affine(w, "mlp.down_proj", gate / (1 + (-gate).exp()) * affine(w, "mlp.up_proj", normed))


def gpt2_attention(w, x):
    q, k, v = (heads(one, WIDTH // 4) for one in (x @ w["c_attn.weight"] + w["c_attn.bias"]).split(WIDTH, dim=-1))
    return attend(q, k, v, causal=True) @ w["c_proj.weight"] + w["c_proj.bias"]


def gpt2_mlp(w, x):
    h = x @ w["c_fc.weight"] + w["c_fc.bias"]
    h = h * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (h + 0.044715 * h**3))) / 2
    return h @ w["c_proj.weight"] + w["c_proj.bias"]


def vit(w, x):
    normed = layer_norm(w, "layernorm_before", x)
    q, k, v = (heads(affine(w, f"attention.{one}_proj", normed), WIDTH // 4) for one in "qkv")
    x = x + affine(w, "attention.o_proj", attend(q, k, v, causal=False))
    return x + affine(w, "mlp.fc2", gelu(affine(w, "mlp.fc1", layer_norm(w, "layernorm_after", x))))


def scan(w, x):
    """The sum over all earlier steps: what each wrote, times the product of the decays since."""
    step = (1 + affine(w, "step", x).exp()).log()
    write, read = (x @ w["read_write.weight"].T).split(4, dim=-1)
    log_decay = -w["log_rate"].exp() * step[..., None]
    y = torch.zeros_like(x)
    for t in range(STEPS):
        for s in range(t + 1):
            since = log_decay[:, s + 1 : t + 1].sum(1).exp()
            written = (step[:, s] * x[:, s])[..., None] * write[:, s, None]
            y[:, t] = y[:, t] + (since * written * read[:, t, None]).sum(-1)
    return affine(w, "out", y + w["skip"] * x)


def gru(w, x):
    h = torch.zeros_like(x[:, 0])
    outputs = []
    for t in range(STEPS):
        r, z, n = (x[:, t] @ w["weight_ih_l0"].T + w["bias_ih_l0"]).split(WIDTH, dim=-1)
        hr, hz, hn = (h @ w["weight_hh_l0"].T + w["bias_hh_l0"]).split(WIDTH, dim=-1)
        update = torch.sigmoid(z + hz)
        h = (1 - update) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + update * h
        outputs.append(h)
    return torch.stack(outputs, dim=1)


def encoder(w, x):
    return gelu(affine(w, "map", x))


def decoder(w, x):
    return x @ w["weight"] + w["bias"]


def gated(w, x):
    padded = torch.cat([torch.zeros_like(x[:, :2]), x], dim=1)
    filtered = sum(padded[:, tap : tap + STEPS] * w["filter.weight"][:, 0, tap] for tap in range(3)) + w["filter.bias"]
    return filtered / (1 + (-affine(w, "gate.map", x)).exp())


def swish(w, x):
    h = affine(w, "up", x)
    return affine(w, "down", h / (1 + (-h).exp()))


# ---------------------------------------------------------------------------------------------------------------- tests

LAYERS = {  # each with its parts
    "llama": (llama,),
    "gpt2": (gpt2_attention, gpt2_mlp),
    "vit": (vit,),
    "scan": (scan,),
    "gru": (gru,),
    "tied": (encoder, decoder),
    "gated": (gated,),
    "swish": (swish,),
}
MEASURED = {
    "memory": partial(cell, "memory"),
    "throughput": partial(cell, "throughput", seconds=0.0, samples=3, processes=1, limit=0),
    "trainability": partial(on_digits, steps=2, optimiser="adam", rate=0.01, decay=1.0),
}
TOLD = {"vit": {"kind": "sequence"}}  # it takes a vector too, by attention among its features
SINGLE = {"llama": 1e-5}  # its norm and its rotations are of float32, whatever the input is
EACH = [
    pytest.param(name, marks=needs_transformers if name in ("llama", "gpt2", "vit") else (), id=name) for name in LAYERS
]


def own(layer):
    return make_family(f"tests.layers.{layer}:layer", **TOLD.get(layer, {}))


@pytest.mark.parametrize("layer", EACH)
def test_a_joined_layer_computes_the_same_as_its_mathematics(layer):
    family = own(layer)
    positions = (STEPS,) if family.kind == "sequence" else ()
    for block, carry in (("plain", 0.0), ("residual", 1.0)):
        network = build(block, family, width=WIDTH, depth=DEPTH).double()
        parameters = list(network.parameters())
        x = torch.randn(BATCH, *positions, WIDTH, dtype=torch.float64, requires_grad=True)
        state = x
        for number, part in enumerate(own_layers(network)):
            plainly = LAYERS[layer][number % len(LAYERS[layer])]
            state = carry * state + plainly(dict(part.named_parameters()), state)
        y = network(x)
        close = {"rtol": SINGLE.get(layer, 1e-9), "atol": SINGLE.get(layer, 1e-10)}
        torch.testing.assert_close(y, state, **close)
        wanted, given = (torch.autograd.grad(one.sin().sum(), [x, *parameters]) for one in (state, y))
        assert all(gradient.any() for gradient in given)
        torch.testing.assert_close(given, wanted, **close)


@pytest.mark.parametrize("task", MEASURED)
@pytest.mark.parametrize("layer", EACH)
def test_a_joined_layer_is_measured(layer, task):
    family = own(layer)
    steps = STEPS if family.kind == "sequence" and task != "trainability" else None
    one = MEASURED[task]("residual", family.name, family_options=family.options, seq_len=steps)
    (outcome,) = tasks.get(task).measure([one])
    assert outcome.error is None
    assert outcome.measurements
