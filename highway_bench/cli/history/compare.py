"""``highway-bench history compare``: time two commits' steps in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json, print_table
from highway_bench.cli.history.left_out import left_out_as_json, raise_failed, report_left_out
from highway_bench.cli.history.options import BlockOption, DepthOption, Device, FamilyOption, Pairs, Root, chosen_cells
from highway_bench.history.limits import MOST_PAIRS

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared


def compare(
    first: Annotated[str, typer.Argument(help="The commit to compare with.")],
    second: Annotated[str, typer.Argument(help="The commit that may be slower, or faster.")] = "HEAD",
    block: BlockOption = None,
    family: FamilyOption = None,
    depth: DepthOption = None,
    pairs: Pairs = MOST_PAIRS,
    device: Device = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with status 1 if a cell is slower.")] = False,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Time two commits' steps in turn, and print the ratio of the second to the first with an interval.

    Fresh pairs of processes are started until the interval is ± 2.5 %. Exits with status 1 if a cell failed.
    """
    from highway_bench.history import Paths
    from highway_bench.history.compare import Precision
    from highway_bench.history.compare import compare as compare_commits
    from highway_bench.history.machine import this_machine

    paths = Paths.of(root)
    every = compare_commits(
        paths,
        first,
        second,
        chosen_cells(paths.suite(), block, family, depth),
        precision=Precision(least=min(pairs, Precision().least), most=pairs),
        device=this_machine(device).device,
        report=lambda line: typer.echo(line, err=True),
    )
    compared, left_out = report_left_out(every)
    if json:
        print_json({"steps": [as_json(one) for one in compared], "left_out": left_out_as_json(left_out)})
    else:
        print_compared(compared, first, second)
    raise_failed(left_out, [one for one in compared if strict and one.verdict == "slower"])


def as_json(one: Compared) -> dict[str, object]:
    """A cell's medians in seconds, and its ratio with the interval."""
    first, second = one.seconds
    ratio = one.ratio()
    return {
        **one.cell._asdict(),
        "first": median(first),
        "second": median(second),
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "ratios": one.ratios,
        "waited": one.waited,
        "verdict": one.verdict,
    }


def print_compared(compared: Sequence[Compared], first: str, second: str) -> None:
    """Print the comparison as a table."""
    from highway_bench.report.ratio import PERCENT, is_decided, quoted

    rows = []
    for one in compared:
        ratio = one.ratio()
        seconds = [f"{1e3 * median(times):.3g} ms" for times in one.seconds]
        decided = is_decided(ratio.value, ratio.low, ratio.high)  # to a thousandth, as bounds are near 1
        quote = (
            f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
            if decided
            else quoted(ratio.value, ratio.low, ratio.high)
        )
        rows.append([str(one.cell), *seconds, quote, str(ratio.n), f"{100 * one.waited:.0f} %", one.verdict])
    print_table(
        f"A step at {second}, relative to {first}",
        ["cell", first, second, "ratio [95 %]", "pairs", "waited", "verdict"],
        rows,
        note="steps: medians, without the wait for a core, whose share is *waited*; ratio: over pairs of processes, "
        "whose steps were timed in turn, not the quotient of the medians. "
        + "A verdict is for its cell alone: of many cells, some differ by chance. "
        * (len(compared) > 1)
        + f"A ratio is undecided if its interval reaches more than "
        f"{PERCENT} from it",
    )
