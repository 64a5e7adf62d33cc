"""Selection: narrows or changes a profile. Each option is declared here, once.

The command line, its help, the Python API and the checks of single values are derived from these declarations.
Importing this module does not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from highway_bench.cell import DTYPES, MATCHES, MODES, PHASES, STARTS, TARGETS
from highway_bench.errors import BadInput, UnknownName
from highway_bench.options import by_name, check_options, several, single, takes_several
from highway_bench.registry import reference_of

if TYPE_CHECKING:
    from torch import nn

    from highway_bench.blocks import Block
    from highway_bench.families import Family

T = TypeVar("T")

STORE: Final = Path("reports/results.sqlite")  # where rows are kept by default
OneOrMore: TypeAlias = T | Sequence[T]
AnyBlock: TypeAlias = "str | type[Block]"
AnyFamily: TypeAlias = "str | Family | Callable[[int], nn.Module]"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Options that narrow or change a profile. ``None``, or an empty value, leaves a coordinate to the profile.

    ``task``, ``block`` and ``family`` choose among the profile's by wildcard. A family given as ``module:factory``, or
    as a family object, replaces the profile's families of its kind. The other options replace the grids' values where
    they apply: a block option, for example, applies to the blocks that have it. ``data`` are those of the user, by name
    or, in Python, the data themselves.

    Raises ``BadInput`` for a value below an option's minimum or not among its choices.
    """

    task: tuple[str, ...] = several("Tasks, wildcards too; by default, all of the profile's.")
    block: tuple[str, ...] = several("Blocks, wildcards too ('highway*').")
    family: tuple[str | Family, ...] = several("Families, wildcards too, or your own layer as module:factory.")
    depth: tuple[int, ...] = several("Layers that the block joins.", minimum=1)
    width: tuple[int, ...] = several("Plain's width; other blocks get theirs by --match.", minimum=1)
    match: str | None = single("What is held equal between blocks", choices=MATCHES)
    dtype: tuple[str, ...] = several("Types of numbers", choices=DTYPES)
    device: str | None = single("cpu or cuda; by default, cuda if available.")
    mode: tuple[str, ...] = several("How a step is run", choices=MODES)
    phase: tuple[str, ...] = several("What a timed step is", choices=PHASES)
    seed: tuple[int, ...] = several("Seeds of trained cells.", minimum=0)
    start: tuple[str, ...] = several("Starts at which each block that has them is measured", choices=STARTS)
    dataset: str | None = single("Data set of trained cells.")
    data: str | None = single("Data of your own: module:NAME or FILE.py:NAME, or a text file.")
    target: str | None = single("What the targets of such data are, where it is not seen", choices=TARGETS)
    batch_size: int | None = single("Items per step.", minimum=1)
    seq_len: tuple[int, ...] = several("Steps of a sequence.", minimum=1)
    block_options: Mapping[str, Any] = by_name("An option of the block, such as gate_bias=-2. May be repeated.")
    family_options: Mapping[str, Any] = by_name("An option of the family, such as heads=8. May be repeated.")
    recipe: Mapping[str, Any] = by_name(
        "Recipe words, which replace the profile's in tasks that have them: steps=100, rate=0.1, seconds=1, …"
    )
    threads: int | None = single("Threads of timed cells; by default one, which is pinned to a core.", minimum=1)

    @classmethod
    def of(cls, task: OneOrMore[str] | None = None, **words: Any) -> Selection:
        """A selection from single values or several, names or classes; ``None`` is no value.

        Raises ``UnknownName`` for an option that it does not have.
        """
        given: dict[str, Any] = {"task": task, **words}
        for name in given.keys() - options_of(cls).keys():
            raise UnknownName("option", name, options_of(cls))
        values = {name: value for name, value in given.items() if value is not None}
        for name in {one.name for one in fields(cls) if takes_several(one)} & values.keys():
            value = values[name].tolist() if hasattr(values[name], "tolist") else values[name]  # of an array
            if not isinstance(value, Mapping):
                values[name] = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        values["block"] = tuple(map(block_name, values.get("block", ())))
        layers = values.get("family", ())
        values["family"] = tuple(_own(layers)) if isinstance(layers, Mapping) else tuple(map(_family, layers))
        return cls(**values)

    def __post_init__(self) -> None:
        check_options(self)


def options_of(cls: type[Selection]) -> dict[str, Field[Any]]:
    """The options of a selection by name."""
    return {one.name: one for one in fields(cls)}


def block_name(given: AnyBlock) -> str:
    """The name of a block, given by that or as its class. Raises ``BadInput`` for anything else."""
    name = given if isinstance(given, str) else getattr(getattr(given, "spec", None), "name", None)
    if not isinstance(name, str):
        raise BadInput(f"a block is a name or a class that was registered, and not {given!r}")
    return name


def _family(given: AnyFamily) -> str | Family:
    from highway_bench.families import as_family

    return reference_of(given) if isinstance(given, str) else as_family(given)


def _own(named: Mapping[str, Callable[[int], nn.Module]]) -> Iterator[Family]:
    from highway_bench.families import family

    return (family(factory, name=name) for name, factory in named.items())
