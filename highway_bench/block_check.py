"""The block contract: checks that a block passes or fails. ``highway-bench check`` and the tests both run them.

Each check builds small stacks of the block in one family. Most of the faults occur in public code: a gate created in
every forward pass (so it never learns), a parameter without a gradient, state that persists between calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.module import register_module_parameter_registration_hook

from highway_bench.block_probe import (
    BATCH,
    DEPTH,
    IN_PLACE,
    WIDTH,
    ContractBroken,
    Subject,
    evaluates,
    finds_the_features,
    keeps_items_apart,
    passes_gradients,
    words_of,
)
from highway_bench.blocks import Block, blocks
from highway_bench.cell import DEPTH_AWARE
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.execution.preflight import preflight
from highway_bench.families import AnyLayer, as_family, make_family, reads_ahead, select_families
from highway_bench.families.own_layer import own_layers
from highway_bench.families.parts import count_parameters
from highway_bench.families.seeding import all_seeded, seeded
from highway_bench.measure.flops import count_flops
from highway_bench.network import build, reads_later_steps, started
from highway_bench.terminal import prints_to_stderr
from highway_bench.training.stacked import NotStackable, Stacked

SIGNAL_DEPTH = 50
COMPILED_DEPTH = 2  # the least with a first layer and a last: tracing takes most of a check's time, a layer at a time
OTHER_BATCH, OTHER_STEPS = 3, 7
STEPS = 40  # of training, at most
NOTED = 1e4  # a size that grows or shrinks by more is named in the note; training may still be possible
SIGNAL_WIDTH = 32
NO_START = "no depth-aware start, as others have: PUBLISHED, SCALED_BRANCH of highway_bench.blocks (last map ÷ √L)"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of a block in one family. ``problem`` is ``None`` where it passed."""

    check: str
    family: str
    problem: str | None
    note: str | None = None


def check_block(name: str | type[Block], *, in_families: Sequence[AnyLayer] = ("*",)) -> list[CheckResult]:
    """Check the block ``name``, or its class, against the contract in each family that it can join: a name with
    wildcards, ``module:factory``, or a function from a width to a module.

    Raises ``UnknownName`` for an unknown name, and ``BadInput`` for a user's layer that cannot be measured under it, or
    where the block can join none of the families.
    """
    return [result for subject in subjects_of(name, in_families) for result in check_results(subject)]


def subjects_of(name: str | type[Block], in_families: Sequence[AnyLayer]) -> list[Subject]:
    """The block in each family that it can join; raises as ``check_block`` does."""
    spec = blocks.get(name) if isinstance(name, str) else name.spec
    given = [in_families] if isinstance(in_families, str) or callable(in_families) else in_families
    names = (select_families(one) if isinstance(one, str) else [one] for one in given)
    every = [Subject(spec, as_family(one)) for some in names for one in some]
    subjects = [one for one in every if spec.refusal(one.family) is None]
    if not subjects:
        spec.check_family(every[0].family)
    preflight(subject.cell for subject in subjects)
    return subjects


def check_results(subject: Subject) -> Iterator[CheckResult]:
    """The results of all checks of one block in one family; only the first if the block cannot be built."""
    for remark in subject.family.remarks:
        yield CheckResult("user's layer", subject.family.name, None, remark)
    if subject.spec.group == "own" and DEPTH_AWARE not in {start.name for start in subject.spec.starts}:
        yield CheckResult("starts", subject.family.name, None, NO_START)
    for check in CHECKS:
        label = check.__name__.replace("_", " ")
        try:
            with seeded(0), prints_to_stderr():
                note = check(subject)
        except ContractBroken as broken:
            yield CheckResult(label, subject.family.name, str(broken))
        except USER_ERRORS as error:  # an error in the block's own code is a result as well
            yield CheckResult(label, subject.family.name, words_of(error))
        else:
            yield CheckResult(label, subject.family.name, None, note)
            continue
        if check is CHECKS[0]:
            return


def keeps_shape(subject: Subject) -> None:
    """In a training step and in evaluation, the output has the input's shape, and all its numbers are finite."""
    stack = subject.stack()
    for mode in (True, False):
        x = subject.example()
        y = stack.train(mode)(x)
        if not isinstance(y, Tensor):
            raise ContractBroken(f"the stack returns a {type(y).__name__}; build_leave must return the stream")
        if y.shape != x.shape:
            raise ContractBroken(
                f"the stack turns {tuple(x.shape)} into {tuple(y.shape)}; a block must preserve the shape"
            )
        if not torch.isfinite(y).all():
            raise ContractBroken("the output has numbers that are not finite at a standard-normal input")
        if not torch.equal(x, subject.example()):
            raise ContractBroken(IN_PLACE)
        if mode and y.requires_grad:
            y.sum().backward()


def keeps_dtype(subject: Subject) -> None:
    """float64 stays float64, and bfloat16 bfloat16; a user's layer has one dtype."""
    for dtype in (subject.dtype,) if subject.own else (torch.float64, torch.bfloat16):
        y = subject.stack().to(dtype)(subject.example().to(dtype))
        if y.dtype != dtype:
            raise ContractBroken(f"{dtype} becomes {y.dtype}; make constants with the input's dtype")


def counts_parameters(subject: Subject) -> None:
    """Parameters equal the closed form of the block's specification."""
    actual = count_parameters(subject.stack())
    width = subject.width()
    declared = subject.spec.stack_parameters(subject.family, width, DEPTH)
    if actual != declared:
        raise ContractBroken(
            f"{DEPTH} layers of width {width} have {actual:,} parameters, but gates, norms, leave_norms "
            f"and extra_parameters say {declared:,}; correct these, or register every part on self"
        )


def counts_flops(subject: Subject) -> None:
    """What one more layer computes equals the closed form, counted in matrix products. A user's layer may compute
    another number for other inputs."""
    if subject.own:
        return
    x, width, counted = subject.example(), subject.width(), []
    for depth in (2, 3):
        stack = subject.stack(depth=depth)
        with torch.no_grad():  # in evaluation, where no layer is left out at random
            counted.append(count_flops(partial(stack.eval(), x)))
    declared = BATCH * subject.spec.layer_flops(subject.family, width, x.numel() // (BATCH * width))
    if counted[1] - counted[0] != declared:
        raise ContractBroken(
            f"one more layer of width {width} takes {counted[1] - counted[0]:,} FLOP, but gates and extra_flops say "
            f"{declared:,}; correct these"
        )


def registers_once(subject: Subject) -> None:
    """No parameter is created in a forward pass: it would be random in each step, and no optimiser would train it."""
    stack = subject.stack()
    before = {name: id(parameter) for name, parameter in stack.named_parameters()}
    created: list[str] = []

    def note(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        created.append(f"{type(module).__name__}.{name}")

    handle = register_module_parameter_registration_hook(note)
    try:
        stack(subject.example())
    finally:
        handle.remove()
    if created:
        raise ContractBroken(
            f"forward creates parameters ({created[0]}), which are never trained; move them to __init__"
        )
    if before != {name: id(parameter) for name, parameter in stack.named_parameters()}:
        raise ContractBroken("forward replaces parameters; the optimiser has the old ones")


def trains_everything(subject: Subject) -> None:
    """Within some steps every parameter has a gradient (a scale of 0 gives its branch none in the first, and a random
    block leaves out layers). Which parameters of a user's layer are trained is its own matter."""
    dtype = subject.dtype if subject.own else torch.float64
    stack = subject.stack().to(dtype)
    of_user = {id(parameter) for layer in own_layers(stack) for parameter in layer.parameters()}
    still = {name: one for name, one in stack.named_parameters() if id(one) not in of_user}
    optimiser = torch.optim.SGD(stack.parameters(), lr=0.05)
    x, target = subject.example().to(dtype), subject.example(seed=1).to(dtype)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = ((stack(x) - target) ** 2).mean()
        if loss.requires_grad:
            loss.backward()
        optimiser.step()
        still = {name: one for name, one in still.items() if one.grad is None or not one.grad.any()}
        if not still:
            return
    raise ContractBroken(f"no gradient moves {', '.join([*still][:3])}; use every part in forward, and detach nothing")


def takes_other_sizes(subject: Subject) -> None:
    """One network runs at an odd multiple of the least width, with another batch, and sequences of another length."""
    step = subject.spec.step(subject.family)
    width = subject.family.nearest_width(step * (WIDTH // step + 1 | 1))
    try:
        stack = subject.stack(width=width)
        stack(subject.example(width=width))
        if not subject.own:
            stack(subject.family.example(OTHER_BATCH, width, seq_len=OTHER_STEPS)).sum().backward()
    except USER_ERRORS as error:
        raise ContractBroken(f"width {width}: use the sizes of x, or declare width_step: {words_of(error)}") from None


def changes_dimension(subject: Subject) -> str | None:
    """A layer doubles the features and, in an image, takes every second pixel. A block may refuse by ``BadInput``."""
    if subject.own:
        return None
    family, width = subject.family, subject.width()
    stages = [(1, width), (2, 2 * width, 2 if family.kind == "image" else 1)]
    try:
        build(subject.spec.name, family, stages=stages, change="pad", seed=0)(subject.example())
    except BadInput as refusal:
        return f"refuses a change of dimension: {refusal}"
    except USER_ERRORS as error:
        raise ContractBroken(
            "a change of dimension fails: use site.in_width before H, and site.family.carry(site) on x: "
            f"{words_of(error)}"
        ) from None
    return None


def is_deterministic(subject: Subject) -> None:
    """One seed gives one network, and in evaluation mode one input gives one output."""
    x = subject.example()
    first, second = subject.stack(seed=3).eval(), subject.stack(seed=3).eval()
    y, other, again = (_output(one, x) for one in (first, second, first))
    if not torch.equal(y, other):
        raise ContractBroken("two networks of one seed differ; draw random numbers from torch's generator only")
    if not torch.equal(y, again):
        raise ContractBroken("one input gives two outputs in evaluation mode; store no state between calls")
    if not torch.equal(y, _output(first, x, seed=1)):
        raise ContractBroken("evaluation draws random numbers; draw where self.training is true")
    if not subject.own:  # a user's layer may draw from numpy
        with all_seeded(1), seeded(0):  # two networks: a first pass may change the next
            other = second.train()(x)
        if not torch.equal(_output(first.train(), x), other):
            raise ContractBroken("a training step draws from random or numpy; draw from torch's generator")


def saves_state(subject: Subject) -> None:
    """A network of another seed gives the same output once it has loaded the state dictionary."""
    saved, fresh = subject.stack(seed=1).eval(), subject.stack(seed=2).eval()
    fresh.load_state_dict(saved.state_dict())
    if not torch.equal(_output(saved, subject.example()), _output(fresh, subject.example())):
        raise ContractBroken("state_dict does not hold all that decides the output; register parameters and buffers")


def _output(stack: nn.Module, x: Tensor, seed: int = 0) -> Tensor:
    with all_seeded(seed):
        y: Tensor = stack(x)
    return y


def compiles(subject: Subject) -> str | None:
    """The compiled stack agrees with the eager one, forward and backward, in one graph."""
    if not subject.spec.compile:
        return "declared as not compiling"
    stack, x = subject.stack(depth=COMPILED_DEPTH), subject.example()
    trained = [parameter for parameter in stack.parameters() if parameter.requires_grad]
    torch.compiler.reset()
    compiled: Any = torch.compile(stack, backend="aot_eager", fullgraph=subject.family.one_graph)
    outcomes = []
    for run in (stack, compiled):
        y = _output(run, x)  # a random block draws the same numbers
        loss = y.square().mean()
        gradients = torch.autograd.grad(loss, trained, materialize_grads=True) if loss.requires_grad else ()
        outcomes.append([y, *gradients])
    torch.compiler.reset()
    for eager, graph in zip(*outcomes, strict=True):
        _agree(eager, graph, "the compiled stack")
    return None


def batches(subject: Subject) -> str | None:
    """Two networks stacked under ``vmap`` agree with each by itself."""
    if not (subject.spec.vmap and subject.family.vmap):
        return "declared as not running under vmap"
    stacks = [subject.stack(seed=seed) for seed in (0, 1)]
    x = torch.stack([subject.example(seed=seed) for seed in (0, 1)])
    try:
        with sdpa_kernel(SDPBackend.MATH):  # the fused attention has no batching rule
            together = Stacked(stacks, lambda stack, x: stack(x), [x])(x)
    except NotStackable as reason:
        raise ContractBroken(
            "two networks cannot run as one; correct this, or register it with vmap=False: "
            + str(reason).partition("\n")[0]
        ) from None
    for index, stack in enumerate(stacks):
        _agree(stack(x[index]), together[index], "the stack under vmap")
    return None


def reads_no_later_step(subject: Subject) -> str | None:
    """Whether the block adds a look at later steps to a causal family: a note, as not every data set forbids that."""
    family = subject.family
    if hasattr(family, "causal"):
        family = make_family(family.name, **{**family.options, "causal": True})
    if family.kind != "sequence" or reads_ahead(family, subject.width()):
        return None
    options, family = started(subject.spec, family, None, None)
    reads = reads_later_steps(subject.spec, family, subject.width(), options)
    return "reads later steps: skipped where these are the targets" if reads else None


def carries_signal(subject: Subject) -> str:
    """The change in size of signal and gradient over 50 untrained layers: a note, without a verdict, unless it is
    infinite and that of the sum x + H(x) is not."""
    signal, gradient = growth(subject)
    if math.isinf(signal + gradient) and not math.isinf(sum(growth(Subject(blocks.get("residual"), subject.family)))):
        raise ContractBroken(f"{SIGNAL_DEPTH} untrained layers reach infinity, unlike those of residual; scale H or x")
    return f"{SIGNAL_DEPTH} layers: signal {_ratio_text(signal)}, gradient {_ratio_text(gradient)}"


def growth(subject: Subject) -> tuple[float, float]:
    """The sizes of signal and gradient after many layers, relative to those before."""
    stack = subject.stack(width=SIGNAL_WIDTH, depth=SIGNAL_DEPTH)
    x = subject.example(width=SIGNAL_WIDTH).requires_grad_()
    y = stack(x)
    (gradient,) = torch.autograd.grad(y, x, torch.randn(y.shape, generator=torch.Generator().manual_seed(2)).to(y))
    return _size(y) / _size(x), _size(gradient)


def _ratio_text(ratio: float) -> str:
    """A ratio of sizes, preceded by "grows" or "shrinks" where it is far from 1."""
    word = "grows " if ratio > NOTED else "shrinks " if ratio < 1 / NOTED else ""
    return f"{word}× {ratio:.3g}"


def _size(x: Tensor) -> float:
    value = float(x.detach().double().square().mean().sqrt())
    return value if math.isfinite(value) else math.inf


def _agree(expected: Tensor, actual: Tensor, what: str) -> None:
    if not torch.allclose(expected, actual, rtol=1e-3, atol=1e-5):
        worst = float((expected - actual).abs().max())
        raise ContractBroken(f"{what} is off by up to {worst:.3g} from the eager one; avoid Python values that change")


CHECKS: tuple[Callable[[Subject], str | None], ...] = (
    keeps_shape,
    keeps_dtype,
    counts_parameters,
    counts_flops,
    registers_once,
    trains_everything,
    passes_gradients,
    evaluates,
    keeps_items_apart,
    finds_the_features,
    takes_other_sizes,
    changes_dimension,
    reads_no_later_step,
    is_deterministic,
    saves_state,
    batches,
    compiles,
    carries_signal,
)
