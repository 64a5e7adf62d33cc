"""Small requests, layers of a user's, and measurements by a formula."""

from pathlib import Path

import pytest

from highway_bench.measure.roofline import Roofline
from highway_bench.studies.advice.request import requested
from tests.inline_engine import InlineEngine

ROOT = Path(__file__).resolve().parents[2]
LAYERS = """
import torch
from torch import nn

def fine(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())

class Causal(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        return self.map(x.cumsum(1) / torch.arange(1, steps + 1).view(1, -1, 1))

def normed(width):
    return nn.Sequential(nn.utils.weight_norm(nn.Linear(width, width)), nn.Tanh())

def wider(width):
    return nn.Linear(width, width + 1)

class Noise(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.randn_like(x)

def noisy(width):
    return Noise(width, width)

class Memory(nn.Linear):
    last = 0.0

    def forward(self, x):
        y = super().forward(x) + self.last
        self.last = float(x.mean())
        return y

def state(width):
    return Memory(width, width)

class Buffered(nn.Linear):
    def __init__(self, width):
        super().__init__(width, width)
        self.register_buffer("last", torch.zeros(()))

    def forward(self, x):
        y = super().forward(x) + self.last
        self.last.copy_(y.detach().mean())
        return y

def state_in_a_buffer(width):
    return Buffered(width)

def spectral(width):
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(width, width)), nn.Tanh())

class Masked(nn.Linear):
    def forward(self, x, mask):
        return super().forward(x) * mask

def masked(width):
    return Masked(width, width)

def empty(width):
    return nn.Tanh()

one = nn.Linear(64, 64)

def shared(width):
    return one

def batches():
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):
        x = torch.randn(16, 6, generator=generator)
        yield x, (x.sum(1) > 0).long()

def numbers():
    for x, _ in batches():
        yield x, x.sum(1)

def one_class():
    for x, y in batches():
        yield x, 0 * y

def loss(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, label_smoothing=0.1)

def no_loss(outputs, targets):
    return 3.0

def negative_loss(outputs, targets):
    return loss(outputs, targets) - 100
"""


@pytest.fixture
def layers(module_of):
    return module_of(LAYERS)


@pytest.fixture
def examples(monkeypatch):
    """The module of the layers that the documents use."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return "user_layers"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Copies of the users' data go to a folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def ask():
    """A request for three blocks in ``dense``; keywords change it."""

    def make(layer="dense", **changes):
        words = {
            "depth": 2,
            "minutes": 1.0,
            "width": 8,
            "batch_size": 16,
            "data": "digits",
            "block": ("plain", "highway", "pre-norm"),
        }
        return requested(layer, **words | changes)

    return make


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    return lambda **words: InlineEngine(tmp_path_factory.mktemp("jobs"), **words)


@pytest.fixture(scope="module")
def brief():
    """Budgets of a few steps and seeds, whatever the machine: nothing here depends on times.

    Steps are timed in this process alone, against a roofline that is given: no advice reads it..
    """
    patch = pytest.MonkeyPatch()
    patch.setattr("highway_bench.execution.runner.source_commit", lambda: "0123456789")
    patch.setattr("highway_bench.tasks.throughput.measure_roofline", lambda *where: Roofline(*where, 1e9, 1e9, 1e9))
    for name, value in {
        "COSTS": 0.0,
        "HALVING": 100.0,
        "CHOICES": ((2, 1, 1, 2),),
        "MOST_STEPS": 3,
        "MOST_FINAL_SEEDS": 3,
        "TIMED_ROUNDS": (2,),
        "PROCESSES": 1,
    }.items():
        patch.setattr(f"highway_bench.studies.advice.budget.{name}", value)
    yield
    patch.undo()
