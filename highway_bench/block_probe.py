"""A block under test: small stacks of it, in a family and around parts that work feature by feature.

With such parts, what else mixes features or positions, or cuts a gradient, is the block's own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from highway_bench.blocks import BlockSpec
from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, HighwayBenchError
from highway_bench.families import Family, Gate, Kind, Site, Transform, families, make_family
from highway_bench.families._site import shape_of
from highway_bench.families.parts import along
from highway_bench.families.seeding import seeded
from highway_bench.measure.precision import torch_dtype
from highway_bench.network import Stack, build, started

DEPTH = 3  # a later layer may get another state than the first
BATCH = 4
WIDTH = 8
POSITIONS: dict[Kind, tuple[int, ...]] = {"vector": (), "sequence": (5,), "image": (3, 4)}
NOISE = 0.1  # standard deviation of what is added to the parameters: a scale of 0 would hide its branch
STEP = 1e-5  # of a difference quotient, in float64
CLOSE = 1e-4  # relative difference of a gradient from that quotient


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

    def draws(self) -> bool:
        """Whether a training step draws random numbers, torch's or Python's."""
        before = torch.get_rng_state(), random.getstate()
        with torch.random.fork_rng(devices=[]):
            self.stack()(self.example())
            return not torch.equal(before[0], torch.get_rng_state()) or random.getstate() != before[1]

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
    if "inplace operation" in str(error) or "in-place operation" in str(error):
        return "an in-place operation overwrites what the backward pass needs; write x = x + y for x += y"
    return f"raised {type(error).__name__}: {error}".partition("\n")[0]


class Gains(nn.Module):
    """x → (w₁ ⊙ x + b₁, …) on the feature axis, with one part for each of ``biases``."""

    def __init__(self, features: int, axis: int, biases: Sequence[float] = (0.0,)) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(len(biases), features))
        self.bias = nn.Parameter(torch.tensor(biases).unsqueeze(1).repeat(1, features))
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        pairs = zip(self.weight, self.bias, strict=True)
        return torch.cat([x * along(weight, self.axis) + along(bias, self.axis) for weight, bias in pairs], self.axis)


class Bounded(Gains):
    """H(x) = tanh(w ⊙ x + b)."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(super().forward(x))


@dataclass(frozen=True, kw_only=True)
class Pointwise(Transform):
    """H, gates and norms that work feature by feature, at one width."""

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        return Bounded(site.width, self.feature_axis)

    def _gate_map(self, site: Site, gates: Sequence[Gate]) -> nn.Module:
        return Gains(site.width, self.feature_axis, [gate.start(site) for gate in gates])

    def norm(self, features: int) -> nn.Module:
        return Gains(features, self.feature_axis)

    rms = norm

    def transform_parameters(self, width: int) -> int:
        return 2 * width

    def transform_flops(self, width: int, positions: int) -> int:
        return 0


class Trial:
    """A stack of a block around pointwise parts for inputs as those of ``family``, in float64, and such an input."""

    def __init__(self, spec: BlockSpec, family: Family) -> None:
        named = {"name": spec.needs or family.name, "kind": family.kind}
        self.kind: Kind = family.kind
        self.axis = family.feature_axis
        width = WIDTH * spec.width_step
        with seeded(0):
            options, part = started(spec, type("Pointwise", (Pointwise,), named)(), None, None)
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
        with seeded(1):
            y: Tensor = self.stack.train(training)(x)
        return y

    @property
    def transforms(self) -> list[nn.Module]:
        """Every H of the stack."""
        return [part for part in self.stack.modules() if isinstance(part, Bounded)]


def mixed_axes(trial: Trial) -> str:
    """What the outputs depend on besides the input at their own feature and position: ``features``, ``positions``,
    ``both`` or ``neither``."""
    middle = tuple(size // 2 for size in POSITIONS[trial.kind])
    changed = trial.x.movedim(trial.axis, -1).clone()
    changed[(0, *middle, 0)] += 1
    with torch.no_grad():
        change = trial(changed.movedim(-1, trial.axis)) - trial(trial.x)
    moved = change.movedim(trial.axis, -1)[0].abs() > 1e-9
    features = bool(moved[middle][1:].any())
    moved[middle] = False
    positions = bool(moved.any())
    return "both" if features and positions else "features" if features else "positions" if positions else "neither"


def trial_of(subject: Subject, family: Family | None = None) -> Trial | None:
    """A trial of the subject's block; ``None`` where the block needs more of H than that it is a module."""
    try:
        trial = Trial(subject.spec, family or subject.family)
        trial(trial.x)
    except USER_ERRORS:
        return None
    return trial


def finds_the_features(subject: Subject) -> None:
    """The block does not mix the features of one kind of input and the positions of another."""
    spec, family = subject.spec, subject.family
    joined = [one for one in map(make_family, families.names()) if spec.refusal(one) is None]
    every = {family.kind: family, **{one.kind: one for one in joined if one.kind != family.kind}}
    trials = {kind: trial_of(subject, one) for kind, one in every.items()}
    mixed = {mixed_axes(trial): kind for kind, trial in trials.items() if trial is not None}
    if {"features", "positions"} <= mixed.keys():
        raise ContractBroken(
            f"it mixes the features of a {mixed['features']} and the positions of a {mixed['positions']}; "
            "give the axis as site.family.feature_axis"
        )


def passes_gradients(subject: Subject) -> None:
    """The gradient of H's input reaches what is before it. Where it does not, the quotient of differences must say so
    too: a block may compute its backward pass itself."""
    if (trial := trial_of(subject)) is None:
        return
    x, inputs = trial.x.requires_grad_(), list[Tensor]()
    hooks = [part.register_forward_pre_hook(lambda _, given: inputs.append(given[0])) for part in trial.transforms]
    y = trial(x, training=True)
    for hook in hooks:
        hook.remove()
    if all(one.requires_grad and gradient_of(one.sum(), x) is not None for one in inputs):
        return
    weights, direction = torch.randn_like(y), torch.randn_like(x)
    gradient = gradient_of((weights * y).sum(), x)
    slope = 0.0 if gradient is None else float((gradient * direction).sum())
    with torch.no_grad():
        ahead, behind = (trial(x + step * direction, training=True) for step in (STEP, -STEP))
        expected = float((weights * (ahead - behind)).sum()) / (2 * STEP)
    if abs(slope - expected) > CLOSE * abs(expected):
        raise ContractBroken("no gradient passes through H to the layers before; do not detach its input")


def gradient_of(value: Tensor, x: Tensor) -> Tensor | None:
    """The gradient of ``value`` by ``x``; ``None`` where it does not depend on it."""
    gradient: Tensor | None = torch.autograd.grad(value, x, retain_graph=True, allow_unused=True)[0]
    return gradient


@torch.no_grad()
def evaluates(subject: Subject) -> None:
    """In evaluation mode the output depends on what it depends on in training: the input, and H."""
    if (trial := trial_of(subject)) is None:
        return
    before = {mode: trial(trial.x, training=mode) for mode in (True, False)}

    def ignored(x: Tensor) -> bool:
        depends, still = (not torch.equal(trial(x, training=mode), before[mode]) for mode in (True, False))
        return depends and not still

    if ignored(trial.x.flip(0)):
        raise ContractBroken("in evaluation mode the output does not depend on the input")
    for part in trial.transforms:
        trial.add_noise(part)
    if ignored(trial.x):
        raise ContractBroken("in evaluation mode the output does not depend on H")
