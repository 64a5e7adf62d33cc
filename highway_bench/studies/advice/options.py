"""Options: what the user of an advice may say, each declared once. Importing this module does not import torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from highway_bench.by_value import reference_to
from highway_bench.cell import TARGETS
from highway_bench.options import by_name, check_options, help_of, several, single
from highway_bench.plan.selection import Selection
from highway_bench.registry import reference_of
from highway_bench.studies.advice.budget import LEAST_STEPS

F = TypeVar("F", bound=Callable[..., Any])

ADVICES: Final = Path("reports/advice")
"""The folder of advices, where none is given; each advice has a folder in it."""


@dataclass(frozen=True, kw_only=True)
class AdviceOptions:
    """The options of the command ``advise`` and of ``hb.advise`` besides the layer, its depth and the time.

    In Python, ``data`` may be the data themselves, ``loss`` a function, and a block its class. Raises ``BadInput`` for
    a number below its minimum, ``UnknownName`` for a value that is not among an option's choices.
    """

    data: str | None = single(
        "A data set, a text file, or data of your own as module:NAME; by default, by the layer's kind."
    )
    target: str | None = single("What the targets of your own data are", choices=TARGETS)
    data_options: Mapping[str, Any] = by_name("An option of the data set, such as pooled=1; repeatable.")
    loss: str | None = single("A loss of your own, module:function of outputs and targets.")
    optimiser: str | None = single("sgd or adamw; by default, adamw for sequences and sgd for others.")
    steps: int | None = single("Training steps of each final; by default, as many as fit.", minimum=LEAST_STEPS)
    width: int | None = single("Plain's width; others have as many parameters.", minimum=1)
    batch_size: int | None = single("Items per step.", minimum=1)
    block: tuple[str, ...] = several("Only these blocks and pre-norm, wildcards too; by default, all.")
    family_options: Mapping[str, Any] = by_name("An option of the family, such as heads=8. May be repeated.")
    device: str | None = single("cpu or cuda; by default, cuda if available.")
    repetition: int = single("Another number gives other seeds.", minimum=0, default=0)

    @classmethod
    def of(cls, **words: Any) -> AdviceOptions:
        """The options of these values; ``None`` is the default. Classes and functions get their names."""
        given = {name: value for name, value in words.items() if value is not None}
        if "loss" in given:
            loss = given["loss"]
            given["loss"] = reference_of(loss) if isinstance(loss, str) else reference_to(loss)
        return cls(**given | {"block": Selection.of(block=given.get("block")).block})

    def __post_init__(self) -> None:
        check_options(self)


def with_advice_options(function: F) -> F:
    """Decorator: the signature of ``function`` has the fields of ``AdviceOptions`` instead of ``**options``, and its
    docstring their help."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    options = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=one.type)
        for one in fields(AdviceOptions)
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    about = "\n".join(f"    {one.name}: {help_of(one)}" for one in fields(AdviceOptions))
    function.__doc__ = f"{function.__doc__}\n    Options:\n\n{about}"
    return function
