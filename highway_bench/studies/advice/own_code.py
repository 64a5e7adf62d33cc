"""Own code: whether a user's layer can be joined and a user's loss trained with. A reason against it is one line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

import torch
from torch import Tensor, nn

from highway_bench.data import DataSet
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families import Family, Site
from highway_bench.families.seeding import all_seeded, seeded
from highway_bench.registry import imported_function
from highway_bench.terminal import prints_to_stderr
from highway_bench.training.evaluation import LossFunction

BATCH = 4  # items of the inputs that a layer is tried with
ITEMS = 1_000  # of the training data that a loss is tried with
STEPS = 100  # of the optimiser that fits the constant


def check_joinable(family: Family, width: int) -> None:
    """Raise ``BadInput`` for a layer that cannot be compared under several connections.

    Such a layer draws random numbers in ``forward``, has a state that one call leaves to the next (buffers that only
    training changes are allowed: a batch norm's statistics, a spectral norm's vectors), gives values that are not
    finite, has no parameters, or shares them with every other layer.
    """
    with torch.device("cpu"), seeded(0):
        x, other = family.small_example(BATCH, width), family.small_example(BATCH, width)
        modules = modules_of(family, width)
        for module in modules:
            reason = fault(module, x, other)
            if reason is not None:
                raise BadInput(f"family {family.name!r} cannot be joined: it {reason}")
        again = modules_of(family, width)
    own = {id(parameter) for module in modules for parameter in module.parameters()}
    if any(id(parameter) in own for parameter in chain.from_iterable(module.parameters() for module in again)):
        raise BadInput(f"family {family.name!r} cannot be joined: its factory returns the same parameters every time")
    if not own:
        raise BadInput(f"family {family.name!r} cannot be joined: it has no parameters, so there is nothing to train")


def modules_of(family: Family, width: int) -> list[nn.Module]:
    """Fresh modules of one layer."""
    return [part.transform(Site(part, width)) for part in family.sublayers]


def fault(module: nn.Module, x: Tensor, other: Tensor) -> str | None:
    """Why ``module`` cannot be joined, in words that follow "it"; ``None`` if it can.

    It runs several times, in training mode from the same buffers; a copy is not needed, and some modules have none.
    """
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    module.train()
    before, _, after, drawn = (output(module, *given, buffers) for given in ((x, 1), (other, 1), (x, 1), (x, 2)))
    module.eval()
    evaluated, _, again = (output(module, given, 1) for given in (x, other, x))
    if not bool(torch.isfinite(before).all()):
        return "gives values that are not finite"
    if not same(before, after) or not same(evaluated, again):
        return "keeps a state, or draws from a generator of its own: its output depends on the calls before"
    if not same(after, drawn):
        return "draws random numbers in forward"
    return None


def output(module: nn.Module, x: Tensor, seed: int, buffers: Mapping[str, Tensor] = MappingProxyType({})) -> Tensor:
    """The output for ``x``, with every random generator at ``seed``, from the values of ``buffers``."""
    with all_seeded(seed), prints_to_stderr(), torch.no_grad():
        for name, value in buffers.items():
            module.get_buffer(name).copy_(value)
        try:
            y: Tensor = module(x.clone())
        except USER_ERRORS as error:  # the user's code
            raise BadInput(f"a layer of {tuple(x.shape)} raises {type(error).__name__}: {error}") from error
    return y


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two outputs are equal, up to the rounding of parallel sums."""
    return torch.allclose(one, other, rtol=1e-5, atol=1e-7, equal_nan=True)


def constant_loss_under(reference: str, dataset: DataSet) -> float:
    """The loss of the best constant prediction on the first training items, for the loss ``module:function``.

    Raises ``BadInput`` for a loss that cannot be imported, raises, gives no finite number with a gradient, or is not
    positive there: success and learning are shares of it.
    """
    loss, targets = imported_function(reference, "loss"), dataset.load(seed=0).train.targets[:ITEMS]
    shape = targets.shape if dataset.target_kind == "token" else targets.shape[:1]
    squeezed = dataset.target_kind == "scalar" and dataset.outputs == 1
    constant = torch.zeros(() if squeezed else (dataset.outputs,), requires_grad=True)
    optimiser = torch.optim.LBFGS([constant], max_iter=STEPS, line_search_fn="strong_wolfe")
    size = shape if squeezed else (*shape, dataset.outputs)

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = tried(loss, constant.expand(size), targets, reference)
        value.backward()
        return value

    optimiser.step(closure)
    best = float(tried(loss, constant.expand(size), targets, reference).detach())
    if best <= 0:
        raise BadInput(
            f"the loss {reference!r} is {best:.3g} for the best constant prediction, but must be above 0 there: add a "
            "constant, such as 1 to a negative cosine"
        )
    return best


def tried(loss: LossFunction, outputs: Tensor, targets: Tensor, reference: str) -> Tensor:
    """The loss of ``outputs``; raises ``BadInput`` where training cannot use it."""
    try:
        value = loss(outputs, targets)
    except USER_ERRORS as error:  # the user's code
        raise BadInput(f"the loss {reference!r} raised {type(error).__name__}: {error}") from error
    number = isinstance(value, Tensor) and value.numel() == 1 and value.requires_grad  # type: ignore[redundant-expr]
    if not number or not torch.isfinite(value):
        raise BadInput(f"the loss {reference!r} must give one finite number with a gradient, not {value!r}")
    return value
