"""A loss of the user's own: whether it can be trained with, and what the best constant prediction has."""

from __future__ import annotations

import torch
from torch import Tensor

from highway_bench.data import DataSet
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.registry import imported_function
from highway_bench.training.evaluation import LossFunction

ITEMS = 1_000  # of the training data
STEPS = 100  # of the optimiser that fits the constant


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
