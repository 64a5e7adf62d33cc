"""``highway-bench history compare``: time two commits' steps in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json, print_table
from highway_bench.cli.history.options import Root
from highway_bench.errors import UnknownName

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared


def compare(
    first: Annotated[str, typer.Argument(help="The commit to compare with.")],
    second: Annotated[str, typer.Argument(help="The commit that may be slower, or faster.")] = "HEAD",
    block: Annotated[list[str] | None, typer.Option(help="A block; repeatable. By default, the core blocks.")] = None,
    family: Annotated[list[str] | None, typer.Option(help="A family; repeatable.")] = None,
    depth: Annotated[list[int] | None, typer.Option(help="A depth; repeatable.")] = None,
    pairs: Annotated[int, typer.Option(help="Pairs of fresh processes, one a commit; 6 or more.")] = 8,
    steps: Annotated[int, typer.Option(help="Steps of each process a cell.")] = 6,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Time two commits' steps in turn, and print the ratio of the second to the first with an interval."""
    from highway_bench.history import Paths
    from highway_bench.history.compare import compare as compare_commits
    from highway_bench.history.machine import this_machine
    from highway_bench.registry import literal_calls

    paths = Paths.of(root)
    if device != "cpu":  # raises for a device that this machine lacks, before anything is unpacked
        this_machine(device)
    calls = literal_calls(paths.root / "highway_bench/blocks", "register_block")
    variants = literal_calls(paths.root / "highway_bench/blocks", "register_variant")
    families = literal_calls(paths.root / "highway_bench/families", "register_family")
    for kind, given, known in (("block", block, calls | variants), ("family", family, families)):
        for name in given or []:
            if name not in known:
                raise UnknownName(kind, name, known)
    blocks = block or [name for name, about in calls.items() if about.get("core")]
    cells = [(one, kind, deep) for kind in family or ["dense"] for deep in depth or [10, 50] for one in blocks]
    compared = compare_commits(
        paths,
        first,
        second,
        cells,
        pairs=pairs,
        steps=steps,
        device=device,
        report=lambda line: typer.echo(line, err=True),
    )
    if json:
        print_json({"steps": [as_json(one) for one in compared]})
    else:
        print_compared(compared, first, second, pairs)


def as_json(one: Compared) -> dict[str, object]:
    """A cell's medians in seconds, and its ratio with the interval."""
    return {
        **dict(zip(("block", "family", "depth"), one.cell, strict=True)),
        "first": median(one.first),
        "second": median(one.second),
        "ratio": one.ratio.value,
        "low": one.ratio.low,
        "high": one.ratio.high,
        "ratios": one.ratios,
        "verdict": one.verdict,
    }


def print_compared(compared: Sequence[Compared], first: str, second: str, pairs: int) -> None:
    """Print the comparison as a table."""
    from highway_bench.report.ratio import PERCENT, quoted

    print_table(
        f"A step at {second}, relative to {first}",
        ["cell", first, second, "ratio [at least 95 %]", "verdict"],
        [
            [
                one.name,
                f"{1e3 * median(one.first):.3g} ms",
                f"{1e3 * median(one.second):.3g} ms",
                quoted(one.ratio.value, one.ratio.low, one.ratio.high),
                one.verdict,
            ]
            for one in compared
        ],
        note=f"steps: medians; ratio: the median over {pairs} pairs of processes whose steps were timed in turn, not "
        "the quotient of the medians; the interval is the sign test's of that median. A verdict is for its cell alone: "
        f"of {len(compared)} cells, some may differ by chance. A ratio is undecided if its interval reaches more than "
        f"{PERCENT} from it; more --pairs make it narrower",
    )
