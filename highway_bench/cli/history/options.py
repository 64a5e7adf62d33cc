"""Options that several history commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from highway_bench.history.suite.series import HistoryCell, Suite

Root = Annotated[Path, typer.Option(help="The checkout.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default a GPU where there is one.")]
MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine",
        envvar="HIGHWAY_BENCH_MACHINE",
        help="This machine's name in the history; by default its GPU's or CPU's.",
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick/--full", help="Only what the gate needs (two minutes), or everything (seven).")
]
BlockOption = Annotated[list[str] | None, typer.Option(help="A block; repeatable. By default, the core blocks.")]
FamilyOption = Annotated[
    list[str] | None, typer.Option(help="A family; repeatable. By default, that of the deep stacks.")
]
DepthOption = Annotated[list[int] | None, typer.Option(help="A depth; repeatable. By default, 10 and 50.")]
Pairs = Annotated[int, typer.Option(help="The most pairs of processes, one process for each commit; 6 or more.")]


def chosen_cells(
    suite: Suite, blocks: Sequence[str] | None, families: Sequence[str] | None, depths: Sequence[int] | None
) -> list[HistoryCell]:
    """The cells of these options, at each size; raises ``UnknownName`` for a block or family that ``suite`` does not
    follow."""
    from highway_bench.errors import UnknownName
    from highway_bench.history.suite.series import HistoryCell

    known = {"block": (*suite.core, *suite.others), "family": (*suite.families, suite.stacked)}
    for kind, given in (("block", blocks), ("family", families)):
        for name in given or ():
            if name not in known[kind]:
                raise UnknownName(kind, name, known[kind])
    sizes = [f"{width}x{batch}" for width, batch in suite.sizes]
    return [
        HistoryCell(block, family, depth, size)
        for family in families or [suite.stacked]
        for size in ["", *(sizes if family in suite.own else [])]
        for depth in depths or [10, 50]
        for block in blocks or suite.core
    ]
