"""Every check of the block contract can fail: blocks that break one rule each, and what is said of them."""

from __future__ import annotations

import random
import sys

import pytest
import torch
from torch import nn

from highway_bench.block_check import (
    CHECKS,
    check_block,
    check_results,
    compiles,
    counts_flops,
    reads_no_later_step,
)
from highway_bench.block_probe import ContractBroken, Subject
from highway_bench.blocks import Block, Start, blocks, register_block
from highway_bench.data import make_dataset
from highway_bench.errors import UnknownName
from highway_bench.families import Gate, make_family
from highway_bench.measure.memory import tracker_peak
from highway_bench.network import build
from highway_bench.stem_head import Incompatible

ALL = {check.__name__.replace("_", " ") for check in CHECKS}


class Sound(Block):
    """y = x + H(x): meets the contract; the others differ from it in one respect, where the dimension stays."""

    def __init__(self, site):
        super().__init__()
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.prepare(site)

    def prepare(self, site):
        """Make what else the block has."""

    def forward(self, x):
        return self.carry(x) + self.transform(x)


def computing(name, compute):
    """A block of the parts of ``Sound`` that computes another function of H and its input."""

    class Computing(Sound):
        def forward(self, x):
            return compute(self.transform, x) if isinstance(self.carry, nn.Identity) else super().forward(x)

    Computing.__name__ = name
    return Computing


class ChangesDtype(Sound):
    @classmethod
    def build_leave(cls, site, **options):
        return Rounds()


class Rounds(nn.Module):
    def forward(self, x):
        return x.float()


class Gated(Block):
    """Sound by itself; registered below with a wrong count of gates."""

    axis: int | None = None

    def __init__(self, site):
        super().__init__()
        self.maps = site.family.maps(site, (Gate(),))
        self.carry = site.family.carry(site)

    def forward(self, x):
        h, t = self.maps(x)
        return torch.lerp(self.carry(x), h, torch.sigmoid(t) if self.axis is None else t.softmax(self.axis))


class MeansFeaturesByAxisOne(Gated):
    """Its softmax is over features in a vector and an image, and over steps in a sequence."""

    axis = 1


class MeansFeaturesByTheLastAxis(Gated):
    """Over features in a vector and a sequence, and over a row of pixels in an image."""

    axis = -1


class SwapsHalves(Sound):
    def prepare(self, site):
        self.axis, self.half = site.family.feature_axis, site.width // 2

    def forward(self, x):
        first, second = self.transform(x).split(self.half, self.axis)
        return self.carry(x) + torch.cat((second, first), self.axis)


class NormOfTheWrongWidth(Sound):
    def prepare(self, site):
        self.norm = site.family.norm(site.width)  # not in_width

    def forward(self, x):
        return self.carry(x) + self.transform(self.norm(x))


class DetachesTheNormed(Sound):
    def prepare(self, site):
        self.norm = site.family.norm(site.in_width)

    def forward(self, x):
        return self.carry(x) + self.transform(self.norm(x.detach()))


class ZeroInEvaluation(Sound):
    def forward(self, x):
        return super().forward(x) * (1.0 if self.training else 0.0)


class NoBranchInEvaluation(Sound):
    def forward(self, x):
        return self.carry(x) + self.transform(x) * (1.0 if self.training else 0.0)


class OneBranchInEvaluation(Sound):
    def __init__(self, site):
        super().__init__(site)
        self.first = site.layer == 0

    def forward(self, x):
        return self.carry(x) + self.transform(x) * (1.0 if self.training or self.first else 0.0)


class Drops(Sound):
    """Leaves out branches at random, in evaluation too."""

    def forward(self, x):
        h = self.transform(x)
        return self.carry(x) + h * (torch.rand(h.shape) < self.kept()).to(h.dtype)

    def kept(self):
        return 0.5


class DropsInTraining(Drops):
    def kept(self):
        return 0.5 if self.training else 1.1


class HardGate(Gated):
    """Sound: its gate is 0 or 1, with the gradient of a sigmoid (arXiv:1308.3432)."""

    def forward(self, x):
        h, t = self.maps(x)
        soft = torch.sigmoid(t)
        return self.carry(x) + h * ((t > -1).to(h.dtype) + soft - soft.detach())


class GateMadeInForward(Sound):
    """The fault of a public BiLSTM highway code: each call makes its gate anew, so it never learns."""

    def forward(self, x):
        h, x = self.transform(x), self.carry(x)
        gate = nn.Linear(x.shape[-1], x.shape[-1], dtype=x.dtype)
        nn.init.zeros_(gate.weight)
        nn.init.zeros_(gate.bias)
        return torch.lerp(x, h, torch.sigmoid(gate(x)))


class NeverUses(Sound):
    def prepare(self, site):
        self.unused = site.family.transform(site)


class Ties(Sound):
    """One scale under two names, which ``torch.func`` knows under the first only."""

    def prepare(self, site):
        self.scale = self.same = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.carry(x) + self.transform(x * self.scale) * self.same


class DrawsElsewhere(Sound):
    """Its scale comes from Python's generator, which the network's seed does not reach."""

    def prepare(self, site):
        self.register_buffer("scale", torch.tensor(random.random()))

    def forward(self, x):
        return self.carry(x) + self.transform(x) * self.scale.to(x.dtype)


class DrawsAsItTrains(Sound):
    """A layer is left out by Python's generator; registered with compile=False and vmap=False, nothing else sees it."""

    def forward(self, x):
        kept = 2 * random.random() if self.training else 1.0
        return self.carry(x) + kept * self.transform(x)


class CountsCalls(Sound):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * (1.0 + 0.1 * self.calls)


class ForgetsItsScale(Sound):
    """A number drawn at the start that is neither a parameter nor a buffer."""

    def prepare(self, site):
        self.scale = float(torch.rand(()))

    def forward(self, x):
        return self.carry(x) + self.transform(x) * self.scale


class Branches(Sound):
    def forward(self, x):
        weight = next(self.transform.parameters()).detach()
        return super().forward(x) if float(weight.sum()) > 0 else self.carry(x) - self.transform(x)


class Leaves(Sound):
    def prepare(self, site):
        if site.depth > 10:
            sys.exit(7)


GrowsAxis = computing("GrowsAxis", lambda h, x: (x + h(x))[None])
ReadsTheNextStep = computing("ReadsTheNextStep", lambda h, x: x + h(x) + x.roll(-1, 1))
DividesByZero = computing("DividesByZero", lambda h, x: (x + h(x)) / 0)
ForgetsToLeave = computing("ForgetsToLeave", lambda h, x: (x[0] if isinstance(x, tuple) else x + h(x),))
MixesItems = computing("MixesItems", lambda h, x: x - x.mean(0) + h(x - x.mean(0)))
DetachesItsInput = computing("DetachesItsInput", lambda h, x: x + h(x.detach()))
Explodes = computing("Explodes", lambda h, x: 10 * (x + h(x)))
Overwrites = computing("Overwrites", lambda h, x: x.add_(h(x)))
OverwritesH = computing("OverwritesH", lambda h, x: x + (y := h(x).sigmoid()) * y.mul_(2))
ForgetsToCarry = type("ForgetsToCarry", (Sound,), {"forward": lambda self, x: x + self.transform(x)})
Detaches = computing("Detaches", lambda h, x: x + h(x).detach() + 0 * h(x))

FAULTS = [  # a block, the checks that it breaks, and what is said of it
    (GrowsAxis, {"keeps shape"}, "a block must preserve the shape"),
    (DividesByZero, {"keeps shape"}, "not finite"),
    (ForgetsToLeave, {"keeps shape"}, "build_leave must return the stream"),
    (ChangesDtype, {"keeps dtype"}, "torch.float64 becomes torch.float32"),
    (Gated, {"counts parameters", "counts flops"}, "3 layers of width 8 have 432 parameters, but"),
    (GateMadeInForward, {"counts flops", "registers once", "batches", "compiles"}, "move them to __init__"),
    (MixesItems, {"keeps items apart"}, "do not mix items"),
    (DetachesItsInput, {"passes gradients"}, "no gradient passes through H to the layers before"),
    (DetachesTheNormed, {"passes gradients"}, "do not detach its input"),
    (ZeroInEvaluation, {"evaluates"}, "in evaluation the output does not depend on the input"),
    (NoBranchInEvaluation, {"evaluates"}, "in evaluation the output does not depend on H"),
    (OneBranchInEvaluation, {"evaluates"}, "in evaluation the output does not depend on H"),
    (
        MeansFeaturesByAxisOne,
        {"finds the features"},
        "of sequences; use site.family.feature_axis",
    ),
    (MeansFeaturesByTheLastAxis, {"finds the features"}, "features of sequences and positions of images"),
    (SwapsHalves, {"takes other sizes"}, "width 9: use the sizes of x, or declare width_step: raised"),
    (NormOfTheWrongWidth, {"changes dimension"}, "use site.in_width before H"),
    (ForgetsToCarry, {"changes dimension"}, "site.family.carry(site) on x: raised RuntimeError"),
    (Drops, {"is deterministic", "batches"}, "evaluation draws random numbers; draw where self.training is true"),
    (DropsInTraining, {"batches"}, "register it with vmap=False: the network draws random numbers"),
    (Explodes, {"carries signal"}, "50 untrained layers reach infinity, unlike those of residual"),
    (Overwrites, {"keeps shape"}, "an in-place operation overwrites its input"),
    (OverwritesH, {"keeps shape"}, "write x = x + y for x += y"),
    (NeverUses, {"trains everything", "batches"}, "joins.0.unused"),
    (Detaches, {"counts flops", "trains everything"}, "no gradient moves"),
    (DrawsElsewhere, {"is deterministic"}, "two networks of one seed differ"),
    (DrawsAsItTrains, {"is deterministic"}, "a training step draws from random or numpy"),
    (Ties, {"batches"}, "register it with vmap=False: parameters are shared"),
    (CountsCalls, {"is deterministic", "batches", "compiles"}, "store no state between calls"),
    (ForgetsItsScale, {"saves state", "batches"}, "register parameters and buffers"),
    (Branches, {"batches", "compiles"}, "use torch.where for if, or register it with compile=False: raised"),
    (Leaves, {"carries signal"}, "raised SystemExit: 7"),
]
ABOUT = {
    DrawsAsItTrains: {"compile": False, "vmap": False},
    NeverUses: {"extra_parameters": lambda family, width, joins: joins * (width * width + width)},
    Ties: {"extra_parameters": lambda family, width, joins: joins},
    MeansFeaturesByAxisOne: {"gates": 1},
    MeansFeaturesByTheLastAxis: {"gates": 1},
    NormOfTheWrongWidth: {"norms": 1},
    DetachesTheNormed: {"norms": 1},
}


@pytest.fixture
def block(request):
    cls, about = request.param
    register_block("throw-away", **{"equation": "", "source": "", "summary": "", **about})(cls)
    yield "throw-away"
    blocks.unregister("throw-away")


@pytest.mark.parametrize(
    ("block", "breaks", "says"),
    [((cls, ABOUT.get(cls, {})), breaks, says) for cls, breaks, says in FAULTS],
    ids=[cls.__name__ for cls, _, _ in FAULTS],
    indirect=["block"],
)
def test_a_fault_is_found(block, breaks, says):
    found = check_block(block, in_families=["dense"])
    problems = {one.check: one.problem for one in found if one.problem is not None}
    assert set(problems) == breaks
    assert any(says in problem for problem in problems.values()), problems
    assert all("\n" not in problem for problem in problems.values())


def test_every_check_has_a_block_that_fails_it():
    assert set().union(*(breaks for _, breaks, _ in FAULTS)) == ALL - {"reads no later step"}  # a note


@pytest.mark.parametrize("block", [(ReadsTheNextStep, {})], indirect=True)
def test_a_block_that_reads_later_steps_is_skipped_where_they_are_the_targets(block, tmp_path):
    subject = Subject(blocks.get(block), make_family("transformer"))
    assert reads_no_later_step(subject) is not None
    assert reads_no_later_step(Subject(blocks.get("attn-residual"), make_family("transformer"))) is None
    (tmp_path / "text.txt").write_text("".join(f"{number} sheep\n" for number in range(200)))
    text = make_dataset("language", path=str(tmp_path / "text.txt"))
    causal = make_family("transformer", causal=True)
    build("pre-norm", causal, width=8, depth=2, dataset=text)
    with pytest.raises(Incompatible, match="reads later steps"):
        build(block, causal, width=8, depth=2, dataset=text)


@pytest.mark.parametrize("block", [(Sound, {"extra_flops": lambda family, width, joins: joins})], indirect=True)
def test_flop_that_nothing_computes_are_found(block):
    with pytest.raises(ContractBroken, match="516"):
        counts_flops(Subject(blocks.get(block), make_family("dense")))


@pytest.mark.parametrize(
    "block", [(Sound, {"starts": (Start("published", "orthogonal", init="orthogonal"),)})], indirect=True
)
def test_the_first_start_is_whole_wherever_none_is_named(block):
    first, named = (build(block, "dense", width=8, depth=2, seed=0, **given) for given in ({}, {"start": "published"}))
    weights = [next(one.parameters()) for one in (first, named)]
    assert torch.equal(*weights)
    assert torch.allclose(weights[0] @ weights[0].T, 2 * torch.eye(8), atol=1e-5)
    assert not torch.equal(next(build("plain", "dense", width=8, depth=2, seed=0).parameters()), weights[0])


@pytest.mark.parametrize(
    "block",
    [
        (HardGate, {"gates": 1}),
        (DropsInTraining, {"vmap": False}),
        (MeansFeaturesByTheLastAxis, {"gates": 1, "families": ("dense*", "bilstm")}),
    ],
    indirect=True,
)
def test_what_looks_like_a_fault_and_is_none(block):
    """A gradient that is not that of the function, random numbers, which compiled and eager draw alike, and an axis
    that is right in all families that the block is for."""
    assert [one for one in check_block(block, in_families=["dense", "bilstm"]) if one.problem] == []


@pytest.mark.parametrize("block", [(SwapsHalves, {"width_step": 2})], indirect=True)
def test_a_width_step_is_kept(block):
    assert [one for one in check_block(block, in_families=["dense", "attention"]) if one.problem] == []


@pytest.mark.parametrize("block", [(Sound, {})], indirect=True)
def test_a_sound_block_passes_everywhere(block):
    found = check_block(block, in_families=["dense", "bilstm"])
    assert [finding.problem for finding in found] == [None] * 2 * (len(CHECKS) + 1)  # and a note on starts
    assert {finding.family for finding in found} == {"dense", "bilstm"}
    notes = {(finding.family, finding.check): finding.note for finding in found}
    assert notes["bilstm", "batches"] == "declared as not running under vmap"
    assert str(notes["dense", "carries signal"]).startswith("50 layers: signal grows × ")


@pytest.mark.parametrize("block", [(Branches, {"vmap": False, "compile": False})], indirect=True)
def test_what_is_declared_is_not_held_against_a_block(block):
    found = check_block(block, in_families=["dense"])
    assert all(finding.problem is None for finding in found)
    assert {finding.note for finding in found} >= {"declared as not compiling", "declared as not running under vmap"}


@pytest.mark.parametrize("block", [(GrowsAxis, {})], indirect=True)
def test_a_block_that_cannot_be_built_gets_one_finding_a_family(block):
    subject = Subject(blocks.get(block), make_family("dense"))
    assert [finding.check for finding in check_results(subject)] == ["starts", "keeps shape"]


def test_families_by_wildcard():
    assert {finding.family for finding in check_block("plain", in_families=["dense*"])} == {"dense", "dense-pair"}
    with pytest.raises(UnknownName, match="did you mean dense"):
        check_block("plain", in_families=["dens"])


def test_the_compiled_stack_is_compiled_even_after_the_memory_tracker_ran():
    from torch._dynamo.utils import counters

    net = nn.Linear(4, 4)
    tracker_peak(lambda: net(torch.ones(2, 4)).sum().backward(), held=[net])
    counters.clear()
    compiles(Subject(blocks.get("highway"), make_family("dense")))
    assert counters["stats"]["unique_graphs"] == 1


def half_frozen(width):
    return nn.Sequential(nn.Linear(width, width).requires_grad_(False), nn.Tanh(), nn.Linear(width, width))


def test_frozen_parameters_of_a_users_layer_are_not_held_against_a_block():
    found = check_results(Subject(blocks.get("pre-norm"), make_family(f"{__name__}:half_frozen")))
    assert [finding.problem for finding in found if finding.problem] == []
