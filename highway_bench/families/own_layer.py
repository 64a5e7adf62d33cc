"""A user's own layer: its factory is called, and what it returns becomes modules of one input and one output.

Dropout is set to 0, because connections are compared on the same function. Lazy parameters get their shapes from an
example. Where the module writes to its input it gets a copy; where it needs further inputs these come from
``make_inputs``; where it returns several outputs the first one counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from highway_bench.by_value import defined_near, name_of
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families._site import Kind
from highway_bench.terminal import prints_to_stderr

Factory = Callable[[int], nn.Module | Sequence[nn.Module]]
"""From a width to the transform of a layer, or to its transforms in order."""

MAKE_INPUTS = "make_inputs"
MOST_REASON = 160  # letters of an exception's text in a message

_own: WeakSet[nn.Module] = WeakSet()


class Unfit(BadInput):
    """A user's layer raises an exception at a width or for an input; it may run at others."""


class Adapted(nn.Module):
    """y = layer(x, further inputs), or the first of its outputs; with ``copies`` the layer gets a copy of x.

    ``further`` makes the inputs after the first, for an x of this shape; without it x is the only one.
    """

    def __init__(
        self, layer: nn.Module, *, copies: bool = False, further: Callable[[Tensor], Any] | None = None
    ) -> None:
        super().__init__()
        self.layer = layer
        self.copies = copies
        self.further = further
        self._inputs: dict[Any, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def forward(self, x: Tensor) -> Tensor:
        given, named = self._further(x) if self.further else ((), {})
        y = self.layer(x.clone() if self.copies else x, *given, **named)
        first: Tensor = y[0] if isinstance(y, tuple | list) else y
        return first

    def _further(self, x: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        key = x.shape, x.dtype, x.device
        if key not in self._inputs:
            assert self.further is not None
            self._inputs = {key: arguments(self.further(x), x)}
        return self._inputs[key]


def arguments(made: Any, like: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What ``make_inputs`` returned as further arguments: a mapping by name, a tuple or a list in order, else one.

    Tensors are moved to the device of ``like``, and floating-point ones have its dtype.
    """

    def at_hand(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(at_hand, value))
        if not isinstance(value, Tensor):
            return value
        return value.to(like.device, like.dtype if value.is_floating_point() else value.dtype)

    if isinstance(made, Mapping):
        return (), {name: at_hand(value) for name, value in made.items()}
    return tuple(map(at_hand, made if isinstance(made, tuple | list) else (made,))), {}


def own_layers(network: nn.Module) -> list[nn.Module]:
    """The modules within ``network`` that a user's factory made."""
    return [part for part in network.modules() if part in _own]


def called(factory: Factory, width: int, name: str) -> tuple[nn.Module, ...]:
    """The modules of ``factory(width)``; raises ``Unfit`` where the factory raises, and ``BadInput`` where it returns
    anything else."""
    try:
        with prints_to_stderr():
            result = factory(width)
    except USER_ERRORS as error:  # the user's code may raise anything
        raise Unfit(f"family {name!r}: its factory raised {reason(error)}") from error
    several = isinstance(result, list | tuple | nn.ModuleList) and len(result) > 0
    modules: tuple[Any, ...] = tuple(result) if several else (result,)  # type: ignore[arg-type]
    for module in modules:
        if not isinstance(module, nn.Module):
            raise BadInput(
                f"family {name!r}: its factory must return an nn.Module or a list of them, "
                f"not a {type(module).__name__}"
            )
        _own.add(module)
    return modules


def check_factory(factory: Any) -> None:
    """Raise ``BadInput``, with the cure, for a module instead of a function of the width, and for a function that needs
    more than that."""
    made = type(factory) if isinstance(factory, nn.Module) else factory
    if not callable(made):
        raise BadInput(f"a layer is a function from a width to a module, or a name of one, and not {factory!r}")
    try:
        given = list(inspect.signature(made).parameters.values())[1:]
    except (TypeError, ValueError):  # of C code
        given = []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in given if one.default is inspect.Parameter.empty and one.kind not in variable]
    name = name_of(made)
    cure = f"lambda width: {name}({', '.join(['width', *(f'{one}=…' for one in needed)])})"
    if made is not factory:
        raise BadInput(f"{name} is given as one module, and every layer needs one of its own: give {cure}")
    if needed:
        raise BadInput(f"{name} needs {' and '.join(needed)} besides the width: give {cure}")


def without_dropout(modules: Sequence[nn.Module]) -> float:
    """Set every share of dropout and of stochastic depth in ``modules`` to 0, and return the largest.

    A share is an attribute ``p`` of a part whose class is named after it, or an attribute with ``drop`` in its name.
    """
    largest = 0.0
    for part in chain.from_iterable(module.modules() for module in modules):
        kind = type(part).__name__.lower()
        for attribute, value in list(vars(part).items()):
            named = "drop" in attribute or (attribute == "p" and ("drop" in kind or "stochastic" in kind))
            if named and isinstance(value, float) and 0 < value <= 1:
                setattr(part, attribute, 0.0)
                largest = max(largest, value)
    return largest


def fill_lazy(modules: Sequence[nn.Module], shape: tuple[int, ...]) -> None:
    """Give the lazy parameters of ``modules`` their shapes, by a call in evaluation mode with an input of ``shape``.

    Raises ``Unfit`` where that call fails.
    """
    for module in modules:
        if any(map(is_lazy, chain(module.parameters(), module.buffers()))):
            training = module.training
            try:
                with prints_to_stderr(), torch.no_grad():
                    module.eval()(torch.zeros(shape))
            except USER_ERRORS as error:
                raise Unfit(f"{shape} raises {reason(error)}") from error
            module.train(training)


def rebuilt(make: Callable[[], nn.Module], like: nn.Module) -> nn.Module:
    """A new module of ``make`` with the state and the mode of ``like``. Not every module can be copied."""
    module = make().train(like.training)
    module.load_state_dict(like.state_dict())
    return module


def further_inputs(module: nn.Module, factory: Factory, width: int, kind: Kind) -> Callable[[Tensor], Any] | None:
    """What makes the inputs of ``module`` after its first: ``make_inputs(width, batch)`` beside the factory.

    Of a mapping, the inputs that ``forward`` has count; a tuple or another value counts where it needs further inputs.
    A parameter ``steps`` of that function gets the steps of a sequence, ``side`` the side of an image. ``None`` where
    there is no such function, or the module takes one input.
    """
    make, known = defined_near(factory, MAKE_INPUTS), signature_of(module)
    if make is None or len(known) < 2:
        return None
    wanted, needed = inspect.signature(make).parameters, len(required_inputs(module)) > 1
    names = {one.name for one in known[1:]}
    takes_any = any(one.kind == inspect.Parameter.VAR_KEYWORD for one in known)

    def further(x: Tensor) -> Any:
        sizes = {"steps": x.shape[1]} if kind == "sequence" else {"side": x.shape[-1]} if kind == "image" else {}
        with prints_to_stderr():
            made = make(width, len(x), **{name: size for name, size in sizes.items() if name in wanted})
        if isinstance(made, Mapping):
            return {name: value for name, value in made.items() if takes_any or name in names}
        return made if needed else ()

    return further


def signature_of(module: nn.Module) -> list[inspect.Parameter]:
    """The parameters of ``forward``; none where its signature is not known."""
    try:
        return list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):  # a compiled or scripted module
        return []


def required_inputs(module: nn.Module) -> list[str]:
    """The names of the inputs without a default that ``forward`` has."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        one.name for one in signature_of(module) if one.default is inspect.Parameter.empty and one.kind not in variable
    ]


def check_inputs(modules: Sequence[nn.Module], factory: Factory, name: str) -> None:
    """Raise ``BadInput`` where one of ``modules`` needs more than its input, and nothing makes that."""
    if defined_near(factory, MAKE_INPUTS) is not None:
        return
    for module in modules:
        first, *others = required_inputs(module) or [""]
        if others:
            raise BadInput(
                f"family {name!r}: forward needs {', '.join(others)} besides {first}: write a function "
                f"{MAKE_INPUTS}(width, batch) beside the factory that returns them, or compute them inside of the layer"
            )


def own_dtype(modules: Sequence[nn.Module], name: str) -> torch.dtype | None:
    """The dtype of all parameters of ``modules``, where that is not float32; of complex ones, that of their parts.

    Raises ``BadInput`` for parameters of several dtypes: one cast for the whole network would change the layer.
    """
    given = {one.dtype for module in modules for one in module.parameters()}
    dtypes = {dtype.to_real() for dtype in given if dtype.is_floating_point or dtype.is_complex}
    if len(dtypes) > 1:
        listed = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
        raise BadInput(f"family {name!r} has parameters of several dtypes ({listed}): give all of them one")
    return next((dtype for dtype in dtypes if dtype != torch.float32), None)


def reason(error: BaseException) -> str:
    """An exception in one line: its type and the start of its text."""
    text = " ".join(str(error).split())
    cut = text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 1]}…"
    return f"{type(error).__name__}: {cut}" if cut else type(error).__name__
