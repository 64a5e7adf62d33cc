"""``highway-bench history compare``: time two commits' steps in turn, and count what they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import Printed, notes, show, text_table
from highway_bench.cli.history.options import BlockOption, DepthOption, Device, FamilyOption, Pairs, Root, chosen_cells
from highway_bench.errors import HighwayBenchError
from highway_bench.history import MOST_PAIRS

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared, Precision, ValueChange
    from highway_bench.history.paths import Paths
    from highway_bench.history.suite.series import HistoryCell

SECONDS = 240.0  # in which cells are timed


class ComparisonFailed(HighwayBenchError):
    """A cell failed at one of the commits, or is slower or larger at the second where none may be."""


class Undecided(HighwayBenchError):
    """The machine was too disturbed, or the time too short, to decide."""

    exit_status = 5


def compare(
    first: Annotated[str, typer.Argument(help="The commit to compare with.")],
    second: Annotated[str, typer.Argument(help="The commit that may be slower, or faster.")] = "HEAD",
    block: BlockOption = None,
    family: FamilyOption = None,
    depth: DepthOption = None,
    pairs: Pairs = MOST_PAIRS,
    device: Device = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail if a cell is slower (status 1) or undecided (5), or a count rose (1)."),
    ] = False,
    stored: Annotated[
        bool, typer.Option("--stored", help="Measure nothing: print the commits' stored points.")
    ] = False,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Build two commits, time their steps in turn and count their operators and bytes; print what differs.

    By default at all cells that the gate judges. A cell is slower by the gate's rule: 2.5 % or more, with 99 %
    confidence for all cells together. Exits with status 1 if a cell failed, 4 if a commit cannot be built.
    """
    from highway_bench.history.compare import EXCLUDED, Precision, StepChange, compare_counts, joint, stored_values
    from highway_bench.history.machine import this_machine
    from highway_bench.history.paths import Paths
    from highway_bench.history.suite.series import BY_NAME

    paths = Paths.of(root)
    if stored:
        chosen = [set(names) for names in (block, family, depth) if names]
        known = [one for one in stored_values(paths, first, second) if all(names & {*one.cell} for names in chosen)]
        show({"stored": changes_as_json(known)}, changes("Stored points", known, first, second), as_json=json)
        return
    here = this_machine(device).device
    suite = paths.suite().on(here)
    cells = counted = chosen_cells(suite, block, family, depth)
    if not (block or family or depth):
        cells, counted = (list(suite.cells(BY_NAME[name], quick=True)) for name in ("ratio", "flop"))
    confidence = joint(len(cells))
    rule = Precision(
        least=min(pairs, Precision().least),
        most=pairs,
        confidence=confidence,
        seconds=SECONDS,
        excluded=EXCLUDED if strict else None,
    )
    every = timed(paths, first, second, cells, rule, here)
    counts = compare_counts(paths, first, second, counted, here)
    undecided = [one for one in every if not one.reason and len(one.ratios) < 2]
    for one in undecided:
        one.reason = "not reached in time"
    compared, left_out = report_left_out(every)
    undecided += [one for one in compared if one.change(confidence) is StepChange.UNDECIDED]
    data = {
        "steps": [as_dict(one, confidence) for one in compared],
        "counts": changes_as_json(counts),
        "left_out": left_out_as_json(left_out),
    }
    differ = changes("Exact counts that differ", counts, first, second)
    show(data, chain(steps(compared, first, second, confidence, here), differ), as_json=json)
    slower = [one for one in compared if strict and one.change(confidence) is StepChange.SLOWER]
    raise_failed(left_out, slower, counts, strict=strict)
    if strict and undecided:
        raise Undecided(f"undecided: {'; '.join(one.cell.described(here) for one in undecided)}")


def timed(
    paths: Paths, first: str, second: str, cells: Sequence[HistoryCell], rule: Precision, device: str
) -> list[Compared]:
    """The comparison of two commits at ``cells``, with a line on stderr for each pair of processes."""
    from highway_bench.history.compare import compare

    return compare(paths, first, second, cells, precision=rule, device=device, report=lambda line: notes([line]))


def report_left_out(every: Sequence[Compared]) -> tuple[list[Compared], list[Compared]]:
    """Print on stderr why each cell was left out; return the cells that were compared, and those."""
    compared, left_out = [one for one in every if not one.reason], [one for one in every if one.reason]
    notes(f"{'failed' if one.failed else 'left out'}: {one.cell}: {one.reason}" for one in left_out)
    return compared, left_out


def left_out_as_json(left_out: Sequence[Compared]) -> list[dict[str, object]]:
    """The cells, each with the reason and whether it failed."""
    return [{**one.cell._asdict(), "reason": one.reason, "failed": one.failed} for one in left_out]


def raise_failed(
    left_out: Sequence[Compared], slower: Sequence[Compared], counts: Sequence[ValueChange], *, strict: bool
) -> None:
    """Raise ``ComparisonFailed`` with the cells that failed, the ``slower`` ones, and if ``strict``, those where a
    count rose; if there are any."""
    failed = [one.cell for one in left_out if one.failed]
    named = {
        "failed": failed + [one.cell for one in counts if isinstance(one.after, str)],
        "slower": [one.cell for one in slower],
        "higher counts": [
            one.cell for one in counts if strict and not isinstance(one.after, str) and one.after > one.before
        ],
    }
    texts = [f"{word}: {'; '.join(dict.fromkeys(map(str, cells)))}" for word, cells in named.items() if cells]
    if texts:
        raise ComparisonFailed("; ".join(texts))


def as_dict(one: Compared, confidence: float) -> dict[str, object]:
    """A cell's medians in seconds, and its ratio with the interval."""
    first, second = one.seconds
    ratio = one.ratio(confidence)
    return {
        **one.cell._asdict(),
        "first": median(first),
        "second": median(second),
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "ratios": one.ratios,
        "waited": one.waited,
        "verdict": one.change(confidence),
    }


def changes_as_json(changes: Sequence[ValueChange]) -> list[dict[str, object]]:
    """The values; the second is null where it failed."""
    return [
        {
            "series": one.series.name,
            **one.cell._asdict(),
            "machine": one.machine,
            "before": one.before,
            "after": None if isinstance(one.after, str) else one.after,
        }
        for one in changes
    ]


def steps(compared: Sequence[Compared], first: str, second: str, confidence: float, device: str) -> Iterator[Printed]:
    """The comparison of steps."""
    from highway_bench.report.columns import PERCENT, is_decided, quoted

    rows = []
    for one in compared:
        ratio = one.ratio(confidence)
        seconds = [f"{1e3 * median(times):.3g} ms" for times in one.seconds]
        decided = is_decided(ratio.value, ratio.low, ratio.high)  # to a thousandth, as bounds are near 1
        quote = (
            f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
            if decided
            else quoted(ratio.value, ratio.low, ratio.high)
        )
        waited, change = f"{100 * one.waited:.0f} %", one.change(confidence)
        rows.append([one.cell.described(device), *seconds, quote, str(ratio.n), waited, change])
    yield text_table(
        f"A step at {second}, relative to {first}",
        ["cell", first, second, f"ratio [{100 * confidence:.4g} %]", "pairs", "waited", "verdict"],
        rows,
        note="steps: medians, without the wait for a core, whose share is *waited*; ratio: over pairs of processes, "
        "whose steps were timed in turn, not the quotient of the medians; verdict: with 99 % confidence (one-sided) "
        "for all cells together, and from 2.5 % on. A ratio is undecided if its interval reaches more than "
        f"{PERCENT} from it",
    )


def changes(title: str, values: Sequence[ValueChange], first: str, second: str) -> list[Printed]:
    """The values as a table, if there are any."""
    rows = []
    for one in values:
        where = [one.machine, one.series.title, one.cell.described(one.device), number(one.before)]
        if isinstance(one.after, str):
            rows.append([*where, "failed", one.after])
        else:
            change = f"{100 * (one.after / one.before - 1):+.3g} %" if one.before else ""
            rows.append([*where, number(one.after), change])
    return [text_table(title, ["machine", "series", "cell", first, second, "change"], rows)] if rows else []


def number(value: float) -> str:
    """A count in full, any other value with four digits."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:.4g}"
