"""The words that narrow or change a profile: the same for ``run(…)`` and for ``highway-bench run``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

from torch import nn

from highway_bench.blocks import Block
from highway_bench.families import Family, family
from highway_bench.plan.grids import Selection

T = TypeVar("T")
OneOrMore: TypeAlias = T | Sequence[T]
AnyFamily: TypeAlias = str | Family | Callable[[int], nn.Module]


class Words(TypedDict, total=False):
    """What may be asked for on top of a profile. A word that is left out, or ``None``, leaves it to the profile."""

    block: OneOrMore[str | type[Block]] | None  # names with wildcards, or block classes
    family: OneOrMore[AnyFamily] | None  # names with wildcards, module:factory, family objects, factories
    depth: OneOrMore[int] | None  # layers that the block joins
    width: OneOrMore[int] | None  # plain's; other blocks get theirs by match
    match: str | None  # params, flops or width
    dtype: OneOrMore[str] | None
    device: str | None
    mode: OneOrMore[str] | None  # eager, compile, cudagraph
    phase: OneOrMore[str] | None  # forward, forward-backward, train-step
    seed: OneOrMore[int] | None
    dataset: str | None
    batch_size: int | None
    seq_len: OneOrMore[int] | None
    block_options: Mapping[str, Any] | None
    family_options: Mapping[str, Any] | None
    recipe: Mapping[str, Any] | None  # over the profile's, for tasks that have the word: steps, …
    threads: int | None  # of timing cells; others get one


def selected(tasks: OneOrMore[str] | None = None, **words: Unpack[Words]) -> Selection:
    """``words`` as a ``Selection``; a single value stands for a list of one."""
    return Selection(
        tasks=many(tasks),
        blocks=[one if isinstance(one, str) else one.spec.name for one in many(words.get("block"))],
        families=[one if isinstance(one, str | Family) else family(one) for one in many(words.get("family"))],
        depths=many(words.get("depth")),
        widths=many(words.get("width")),
        match=words.get("match"),
        dtypes=many(words.get("dtype")),
        device=words.get("device"),
        modes=many(words.get("mode")),
        phases=many(words.get("phase")),
        seeds=many(words.get("seed")),
        dataset=words.get("dataset"),
        batch_size=words.get("batch_size"),
        seq_lens=many(words.get("seq_len")),
        block_options=words.get("block_options") or {},
        family_options=words.get("family_options") or {},
        recipe=words.get("recipe") or {},
        threads=words.get("threads"),
    )


def many(value: Any) -> list[Any]:
    """``value`` as a list: none, one, or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
