"""The measured parts of docs/advice.md: makes its advices, and writes them between its marks.

An advice that was made before is read from ``reports/advice``, and an interrupted one goes on.

    nox -s proof -- advice-docs
    nox -s proof -- advice-docs --only feed-forward --minutes 10
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.registry import make_importable
from highway_bench.report.columns import shown_lines
from highway_bench.results import Store
from highway_bench.studies.advice.answer import Advice
from highway_bench.studies.advice.options import ADVICES
from highway_bench.studies.advice.page import finalists_table
from highway_bench.studies.advice.run import advise

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/advice.md"
LAYERS = ROOT / "examples"
OUT = ROOT / ADVICES
MINUTES = 10.0

Make = Callable[..., Advice]


@dataclass(frozen=True)
class Example:
    """An advice in the document, under ``name``; ``refused`` are layers that cannot be joined."""

    name: str
    layer: str
    depth: int
    refused: bool = False

    @property
    def words(self) -> list[str]:
        """The command, to be given in the folder of the layers."""
        return ["highway-bench", "advise", self.layer, "--depth", str(self.depth)]


EXAMPLES = (
    Example("feed-forward", "user_layers:feed_forward", 24),
    Example("refused", "user_layers:InHalf", 12, refused=True),
)


def marks(name: str) -> tuple[str, str]:
    """The lines of the document between which the part ``name`` is."""
    return f"<!-- measured: {name} -->", "<!-- end -->"


def with_part(text: str, name: str, lines: Iterable[str]) -> str:
    """The document with ``lines`` as its part ``name``."""
    begin, end = marks(name)
    before, found, rest = text.partition(f"{begin}\n")
    if not found or end not in rest:
        raise SystemExit(f"the document has no part {name!r}: the lines {begin} and {end}")
    return f"{before}{begin}\n" + "\n".join(["", *lines, "", end]) + rest.partition(end)[2]


def advice_lines(example: Example, make: Make) -> list[str]:
    """The answer to ``example``, or the line that refuses it.

    Raises ``BadInput`` if another one is refused, or this one for another reason, and ``SystemExit`` if a measurement
    failed or this one is not refused.
    """
    try:
        advice = make(example.layer, depth=example.depth, command=example.words)
    except BadInput as error:
        if not example.refused or " casts: " not in str(error):
            raise
        return [f"    highway-bench: {error}"]
    if example.refused:
        raise SystemExit(f"{example.name}: {example.layer} should be refused, and was not")
    if advice.exit_status:
        raise SystemExit(f"{example.name}: {advice.notes[-1]}")
    answer = [line for text in advice.lines() for line in (f"> {text}", ">")][:-1]
    return [*answer, "", *shown_lines(finalists_table(advice)), "", " ".join([*advice.notes, measured_by(advice)])]


def measured_by(advice: Advice) -> str:
    """When, where and with what an advice was measured, in a sentence."""
    with Store(advice.store, read_only=True) as store:
        runs = [run for run in store.runs().values() if run.get("measured")]
    facts = {name: ", ".join(sorted({str(run[name]) for run in runs})) for name in ("commit", "torch", "os", "cores")}
    machines = ", ".join(sorted({one for run in runs for one in run["machines"].values()}))
    return (
        f"Measured within {advice.about['minutes']:g} minutes on {min(run['started'] for run in runs)[:10]}, "
        f"{machines} ({facts['cores']} cores, {facts['os']}), torch {facts['torch']}, commit {facts['commit']}."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the parts that the arguments name, by default all."""
    examples = {example.name: example for example in EXAMPLES}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=examples)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    given = parser.parse_args(arguments)
    make_importable(LAYERS)

    def make(layer: str, **words: Any) -> Advice:
        minutes = [] if given.minutes == MINUTES else ["--minutes", f"{given.minutes:g}"]
        command = [*words.pop("command"), *minutes]
        return advise(layer, minutes=given.minutes, out=OUT, progress=True, command=command, **words)

    try:
        for name in given.only or examples:
            lines = advice_lines(examples[name], make)
            DOCUMENT.write_text(with_part(DOCUMENT.read_text(encoding="utf-8"), name, lines), encoding="utf-8")
    except BadInput as error:
        parser.exit(error.exit_status, f"{error}\n")


if __name__ == "__main__":
    main()
