"""A block under test: small stacks of it, in a family and around parts that work feature by feature.

With such parts, what else mixes features or positions, or cuts a gradient, is the block's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from highway_bench.blocks import BlockSpec
from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, HighwayBenchError
from highway_bench.families import Family, Gate, Kind, Site, Transform, families, make_family
from highway_bench.families._site import shape_of
from highway_bench.families.seeding import all_seeded, seeded
from highway_bench.measure.precision import torch_dtype
from highway_bench.network import Stack, build, started

DEPTH = 3  # a later layer may get another state than the first
BATCH = 4
WIDTH = 8
POSITIONS: dict[Kind, tuple[int, ...]] = {"vector": (), "sequence": (5,), "image": (3, 4)}
NOISE = 0.1  # standard deviation of what is added to the parameters: a scale of 0 would hide its branch
STEP = 1e-5  # of a difference quotient, in float64
IN_PLACE = "an in-place operation overwrites its input or what the backward pass needs; write x = x + y for x += y"


class ContractBroken(HighwayBenchError):
    """A block violates the contract; the message says how, and what to change."""


@dataclass(frozen=True)
class Subject:
    """A block in a family. Builds small stacks of it and inputs for them."""

    spec: BlockSpec
    family: Family

    def width(self, at_least: int = WIDTH) -> int:
        """The least width of at least ``at_least`` that the block has in the family."""
        step = self.spec.step(self.family)
        return self.family.nearest_width(step * math.ceil(at_least / step))

    def stack(self, *, seed: int = 0, width: int = WIDTH, depth: int = DEPTH) -> nn.Module:
        return build(self.spec.name, self.family, width=self.width(width), depth=depth, seed=seed)

    def example(self, seed: int = 0, width: int = WIDTH) -> Tensor:
        source = torch.Generator().manual_seed(seed)
        return self.family.small_example(BATCH, self.width(width), generator=source)

    @property
    def own(self) -> bool:
        """Whether the family is a user's layer."""
        return ":" in self.family.name

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its stacks."""
        return torch_dtype(self.family.dtype or "float32")

    @property
    def cell(self) -> Cell:
        """A step of a small stack."""
        return Cell(
            task="throughput",
            block=self.spec.name,
            family=self.family.name,
            family_options=self.family.options,
            depth=DEPTH,
            width=self.width(),
            nominal_width=self.width(),
            batch_size=BATCH,
            dtype=self.family.dtype or "float32",
        )


def words_of(error: BaseException) -> str:
    """An exception of the block's own code in one line."""
    if "inplace operation" in str(error):
        return IN_PLACE
    said = f"raised {type(error).__name__}: {error}".partition("\n")[0]
    compiling = type(error).__module__.startswith("torch._dynamo")
    return f"use torch.where for if, or register it with compile=False: {said}" if compiling else said


class Gains(nn.Module):
    """x → (w₁ x + b₁, …) on the feature axis, with one part for each of ``biases``."""

    def __init__(self, axis: int, biases: Sequence[float] = (0.0,)) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(len(biases)))
        self.bias = nn.Parameter(torch.tensor(biases))
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        pairs = zip(self.weight, self.bias, strict=True)
        return torch.cat([weight * x + bias for weight, bias in pairs], self.axis)


class Bounded(Gains):
    """H(x) = tanh(w x + b), which remembers its last x."""

    given: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.given = x
        return torch.tanh(super().forward(x))


@dataclass(frozen=True, kw_only=True)
class Pointwise(Transform):
    """H, gates and norms that work feature by feature, at one width."""

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        return Bounded(self.feature_axis)

    def _gate_map(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        return Gains(self.feature_axis, [gate.start(site) for gate in gates])

    def norm(self, features: int) -> nn.Module:
        return Gains(self.feature_axis)

    rms = norm

    def transform_parameters(self, width: int) -> int:
        return 0

    def transform_flops(self, width: int, positions: int) -> int:
        return 0


class Trial:
    """A stack of a block around pointwise parts for inputs as those of ``family``, in float64, and such an input."""

    def __init__(self, spec: BlockSpec, family: Family) -> None:
        self.kind: Kind = family.kind
        self.middle = tuple(size // 2 for size in POSITIONS[family.kind])
        self.axis = family.feature_axis
        width = WIDTH * spec.width_step
        with seeded(0):
            part = type("Pointwise", (Pointwise,), {"name": spec.needs or family.name, "kind": family.kind})()
            options, part = started(spec, part, None, None)
            sites = [Site(part, width, layer, DEPTH) for layer in range(DEPTH)]  # type: ignore[arg-type]
            joins = [spec.join(site, options) for site in sites]
            enter, leave = spec.cls.build_enter(sites[0], **options), spec.cls.build_leave(sites[-1], **options)
            self.stack = Stack(enter, joins, leave).double()
            self.add_noise(self.stack)
            self.x = torch.randn(shape_of(self.kind, width, POSITIONS[self.kind], BATCH)).double()

    @torch.no_grad()
    def add_noise(self, module: nn.Module) -> None:
        """Change the parameters of ``module`` a little."""
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=NOISE)

    def __call__(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The output for ``x``, with the same random numbers in every call."""
        with all_seeded(1):
            y: Tensor = self.stack.train(training)(x)
        return y

    @torch.no_grad()
    def moved(self) -> Tensor:
        """Which outputs (batch, …, features) change with the first feature of the first item, in its middle."""
        x = self.x.movedim(self.axis, -1).clone()
        x[(0, *self.middle, 0)] += 1
        change = self(x.movedim(-1, self.axis)) - self(self.x)
        return change.movedim(self.axis, -1).abs() > 1e-9

    @property
    def mixes(self) -> str:
        """What outputs depend on besides the input at their own feature and position: ``features``, ``positions``,
        both or neither."""
        moved = self.moved()[0]
        features = bool(moved[self.middle][1:].any())
        moved[self.middle] = False
        return "features" * features + "positions" * bool(moved.any())

    @property
    def transforms(self) -> list[Bounded]:
        """Every H of the stack."""
        return [part for part in self.stack.modules() if isinstance(part, Bounded)]


def trial_of(subject: Subject, family: Family | None = None) -> Trial | None:
    """A trial of the subject's block; ``None`` where the block needs more of H than that it is a module, and where its
    state persists between calls."""
    try:
        trial = Trial(subject.spec, family or subject.family)
        return trial if torch.equal(trial(trial.x), trial(trial.x)) else None
    except USER_ERRORS:
        return None


def keeps_items_apart(subject: Subject) -> None:
    """In evaluation mode an item's output does not depend on the other items of its batch."""
    if (trial := trial_of(subject)) is not None and trial.moved()[1:].any():
        raise ContractBroken("one item changes the others' outputs; do not mix items of a batch")


def finds_the_features(subject: Subject) -> None:
    """The block does not mix the features of one kind of input and the positions of another."""
    spec, family = subject.spec, subject.family
    joined = [*(one for one in map(make_family, families.names()) if spec.refusal(one) is None), family]
    by_kind = {one.kind: one for one in joined}
    trials = (trial_of(subject, by_kind[kind]) for kind in POSITIONS if kind in by_kind)
    mixed = {trial.mixes: trial.kind for trial in trials if trial is not None}
    if {"features", "positions"} <= mixed.keys():
        raise ContractBroken(
            f"mixes features of {mixed['features']}s and positions of {mixed['positions']}s; "
            "use site.family.feature_axis"
        )


def passes_gradients(subject: Subject) -> None:
    """The gradient of H's input reaches what is before it. Where it does not, the quotient of differences must say so
    too: a block may compute its backward pass itself."""
    if (trial := trial_of(subject)) is None:
        return

    def loss(x: Tensor) -> Tensor:
        return trial(x, training=True).square().sum()

    def gradient(value: Tensor) -> Tensor:
        return torch.autograd.grad(value, x, retain_graph=True, materialize_grads=True)[0]

    x = trial.x.requires_grad_()
    value = loss(x)
    every = [one.given for one in trial.transforms if one.given is not None]
    if all(given.requires_grad and gradient(given.sum()).any() for given in every):
        return
    direction = torch.randn_like(x)
    with torch.no_grad():
        slope = (loss(x + STEP * direction) - loss(x - STEP * direction)) / (2 * STEP)
    if not torch.allclose((gradient(value) * direction).sum(), slope):
        raise ContractBroken("no gradient passes through H to the layers before; do not detach its input")


@torch.no_grad()
def evaluates(subject: Subject) -> None:
    """In evaluation mode the output depends on what it depends on in training: the input, and H."""
    if (trial := trial_of(subject)) is None:
        return

    def outputs(x: Tensor) -> list[Tensor]:
        return [trial(x, training=mode) for mode in (True, False)]

    def ignored(before: list[Tensor], after: list[Tensor]) -> bool:
        depends, still = (not torch.equal(one, other) for one, other in zip(before, after, strict=True))
        return depends and not still

    before = outputs(trial.x)
    if ignored(before, outputs(trial.x.flip(0))):
        raise ContractBroken("in evaluation the output does not depend on the input")
    for part in trial.transforms:
        trial.add_noise(part)
        after = outputs(trial.x)
        if ignored(before, after):
            raise ContractBroken("in evaluation the output does not depend on H")
        before = after
