"""Connections to take home: each file of plain torch computes what ``hb.build`` does over a user's layer."""

import ast

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import highway_bench as hb
from highway_bench.blocks import blocks
from highway_bench.cli import app
from highway_bench.errors import BadInput
from highway_bench.export.text import ANY_DEPTH, PLAIN, WIDTH, plain_torch
from highway_bench.report.choice.answers import plain_texts

DEPTH, FEATURES = 5, 16
LISTED = [name for name in blocks if blocks.get(name).group in ("core", "modern")]
CASES = [
    (name, start.name)
    for name in PLAIN
    for start in blocks.get(name).starts
    if start.init in ("default", "scaled-branch")
]


def make_layer(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())


def names_in(state):
    """The parameters of ``hb.build`` under the names of the plain form."""
    renamed = (("maps.transform.", "transform."), ("maps.gate.", "gate."), ("leave.module.", "leave."),
               ("update_gate.bias", "bias"), ("rms.gain", "gain"), ("leave.read.", "leave."))  # fmt: skip
    for old, new in renamed:
        state = {name.replace(old, new): value for name, value in state.items()}
    return state


def exported(name, start):
    scope = {}
    exec(compile(plain_torch(name, depth=DEPTH, start=start), f"{name}.py", "exec"), scope)
    return scope["Stack"](make_layer, FEATURES)


def moved(network):
    """Move every parameter, so that nothing that begins at 0 or 1 stays there."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


@pytest.mark.parametrize(("name", "start"), CASES, ids=[" · ".join(case) for case in CASES])
def test_outputs_and_gradients_are_those_of_the_package(name, start):
    ours = hb.build(name, hb.family(make_layer), width=FEATURES, depth=DEPTH, start=start)
    plain = exported(name, start)
    begins = dict(plain.named_parameters())
    for key, value in names_in(dict(ours.named_parameters())).items():
        if (value.numel() > 1 and value.std() == 0) or value.numel() == 1 or ("bias" in key and "transform" not in key):
            torch.testing.assert_close(begins[key], value, msg=f"{key} begins at another value")
    moved(ours.double())
    plain.double().load_state_dict(names_in(ours.state_dict()))
    x = torch.randn(3, 4, FEATURES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    outputs = [network(x) for network, x in zip((ours, plain), inputs, strict=True)]
    torch.testing.assert_close(*outputs)
    for y in outputs:
        y.square().sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    theirs = {key: one.grad for key, one in plain.named_parameters()}
    for key, one in names_in(dict(ours.named_parameters())).items():
        torch.testing.assert_close(one.grad, theirs[key])


@pytest.mark.parametrize(("name", "start"), CASES, ids=[" · ".join(case) for case in CASES])
def test_a_file_is_short_and_imports_torch_only(name, start):
    text = plain_torch(name, depth=48, start=start)
    lines = text.splitlines()
    assert len(lines) <= 80
    assert max(map(len, lines)) <= WIDTH + 20
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {ast.unparse(node) for node in imports} <= {"import math", "import torch", "from torch import nn"}


def test_every_listed_connection_has_a_plain_form_or_says_why_not():
    assert set(LISTED) - set(PLAIN) == {"value-residual"}
    with pytest.raises(BadInput, match="no plain form"):
        plain_torch("value-residual", depth=3)
    with pytest.raises(BadInput, match="own weights"):
        plain_torch("plain", depth=3, start="depth-aware")
    with pytest.raises(BadInput, match="at least 1"):
        plain_torch("rezero", depth=0)


def test_the_command_prints_the_file():
    done = CliRunner().invoke(app, ["export", "pre-norm", "--depth", "48", "--start", "depth-aware"])
    assert done.exit_code == 0
    assert done.stdout == plain_torch("pre-norm", depth=48, start="depth-aware")
    assert "Learning rates" in plain_torch("pre-norm", depth=48, start="published")
    assert "Learning rates" not in done.stdout  # a constant factor on the branch changes the best rate


def test_the_files_on_the_page_are_those_of_the_command():
    texts = plain_texts()
    for name, start in CASES:
        assert texts[name][start] == plain_torch(name, depth=ANY_DEPTH, start=start)
