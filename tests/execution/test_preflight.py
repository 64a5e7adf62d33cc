"""The preflight: what fails in every cell is found before the first, in one line, and nothing else is refused."""

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.preflight import first_fault, preflight, trials
from highway_bench.families import make_family
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from tests.inline_engine import cell_of

LAYERS = """
import torch
from torch import nn

def fine(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())

class Detached(nn.Linear):
    def forward(self, x):
        return torch.relu(super().forward(x)).detach() + x

def detached(width):
    return Detached(width, width)

def frozen(width):
    return nn.Linear(width, width).requires_grad_(False)

class WritesWhenWide(nn.Linear):
    def forward(self, x):
        return super().forward(x.clamp_(-1, 1) if x.shape[-1] > 100 else x)

def wide(width):
    return WritesWhenWide(width, width)

class OnceOnly(nn.Linear):
    calls = 0

    def forward(self, x):
        self.calls += torch.is_grad_enabled()
        if self.calls > 1:
            raise ValueError("it takes one step")
        return super().forward(x)

def once(width):
    return OnceOnly(width, width)

class TrainingOnly(nn.Linear):
    def forward(self, x):
        if not self.training and len(x) > 2:
            raise ValueError("it is never evaluated")
        return super().forward(x)

def training(width):
    return TrainingOnly(width, width)

class Short(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.codes = nn.Parameter(torch.zeros(16, width))

    def forward(self, x):
        batch, steps, width = x.shape
        return x.view(batch, -1, 16, width).add(self.codes).view(x.shape)

def short(width):
    return Short(width)

def dies(width):
    import os, signal
    if width > 100:
        os.kill(os.getpid(), signal.SIGSEGV)
    return nn.Linear(width, width)
"""


@pytest.fixture
def layers(module_of):
    return module_of(LAYERS)


def cell(family, **changes):
    words = {"block": "residual", "depth": 50, "batch_size": 4, "phase": "train-step"} | changes
    return cell_of("throughput", family=family, family_options=make_family(family).options, **words)


@pytest.mark.parametrize("block", ["plain", "highway", "hc-dynamic", "attn-residual", "dense-average", "x0-mix"])
def test_a_layer_that_can_be_measured(layers, block):
    one = cell(f"{layers}:fine", block=block)
    assert first_fault(trials([one, one.but(dataset="digits", width=64)]), ()) is None


@pytest.mark.parametrize(
    ("layer", "changes", "says"),
    [
        ("detached", {}, "no gradient"),
        ("frozen", {}, "no gradient"),
        ("wide", {"width": 128, "nominal_width": 128}, "writes to its input"),
        ("once", {}, "ValueError: it takes one step"),
        ("training", {}, "never evaluated"),
        ("short", {"seq_len": 24}, "it takes 16, 32"),
    ],
)
def test_what_would_fail_in_every_cell(layers, layer, changes, says):
    found = first_fault(trials([cell(f"{layers}:{layer}", **changes)]), ())
    assert says in found[1]
    assert "\n" not in found[1]


def test_a_copy_cures_a_layer_that_writes_at_some_sizes(layers):
    one = cell(f"{layers}:wide", width=128, nominal_width=128)
    options = make_family(one.family, copy_input=True).options
    assert options["copy_input"] is True
    assert first_fault(trials([one.but(family_options=options)]), ()) is None


def test_the_ends_of_each_axis_and_every_connection_are_tried(layers):
    cells = [
        cell(f"{layers}:fine", block=block, width=width, batch_size=batch)
        for block in ("plain", "residual", "highway")
        for width in (8, 16, 32)
        for batch in (1, 2, 4)
    ]
    chosen = trials(cells)
    assert {one.block for one in chosen} == {"plain", "residual", "highway"}
    assert {one.width for one in chosen} == {8, 32}
    assert {one.batch_size for one in chosen} >= {1, 4}
    assert max(one.depth for one in chosen) == 2
    preflight([one.but(family="dense", family_options={}) for one in cells])  # the package's own are tried in its tests


@pytest.mark.parametrize(("layer", "says"), [("frozen", "no gradient"), ("dies", "SIGSEGV")])
def test_one_line_with_the_file_and_the_line_of_the_layer(layers, layer, says):
    """In a process of its own, which may crash."""
    with pytest.raises(BadInput) as caught:
        preflight([cell(f"{layers}:{layer}", width=128, nominal_width=128)])
    message = str(caught.value)
    assert says in message
    assert f"{layers}.py, line" in message
    assert "\n" not in message


def test_a_plan_says_what_is_done_with_a_layer_and_refuses_another_dtype(layers, tmp_path):
    (tmp_path / f"{layers}_more.py").write_text(
        "from torch import nn\n"
        "def double(width):\n    return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(width, width)).double()\n"
        "def twelve(width):\n    return nn.TransformerEncoderLayer(width, 12, width, batch_first=True)\n"
    )
    plan = Plan.of("smoke", Selection.of("throughput", family=f"{layers}_more:double", block="plain"))
    assert {one.dtype for one in plan.cells} == {"float64"}
    assert {one.family_options["copy_input"] for one in plan.cells} == {True}
    assert len(plan.remarks) == 2
    with pytest.raises(BadInput, match="float64"):
        Plan.of("smoke", Selection.of("throughput", family=f"{layers}_more:double", dtype=["float64", "float32"]))
    wide = Plan.of("smoke", Selection.of("throughput", family=f"{layers}_more:twelve", width=64, block="plain"))
    assert {one.width for one in wide.cells} == {60}
    assert any("at 60" in remark for remark in wide.remarks)
